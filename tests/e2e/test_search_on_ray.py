"""Judges on a real Ray of this machine; one file, so that one process starts it once."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import podium
from podium.compute import Call, ThreadExecutor
from podium.compute.ray.executor import RayExecutor
from podium.errors import (
    InputError,
    MissingError,
    MissingExtra,
    PodiumError,
    UsageError,
    install_line,
)
from podium.evaluation.cases import Case, TrainingSet
from podium.search.candidate.verdict import RACE, TINY
from podium.search.judging.race import Rivals
from podium.search.run.executor import Context, Task, local_executor, ray_executor
from podium.search.run.plan import Budget, RunPlan, Tuning
from podium.search.run.setup import Means, create_run, open_search
from podium.search.sandbox.limits import Limits
from podium.store import RunRecord, open_store
from support.binary import TESTS, clean_environment
from support.simulating import SPEC

pytestmark = pytest.mark.deep

pytest.importorskip("ray", reason="the extra ray is not installed")

TRAINING = TrainingSet((Case(nodes=8, pods=80), Case(nodes=8, pods=80, seed=1001)))
LIMITS = Limits(time_s=20.0, trial_s=1.5, memory_mib=256)
LOOP = "def score(pod, node):\n    x = 1\n    while x > 0:\n        x += 1\n    return x\n"
BOMB = """def score(pod, node):
    x = [0]
    for _ in range(40):
        x = x + x
    return 1.0
"""
WORKERS = {"ray": 2, "local": 1}
TUNABLE = """from podium.policies import tunable
W = tunable(0.5, -1, 1)
def score(pod, node):
    return W * node.cpu_milli_left - node.gpu_milli_left[0]
"""


def _formula(weight):
    cpu = "node.cpu_milli_left / 1000"
    return f"def score(pod, node):\n    return {weight} * node.gpu_count - {cpu}\n"


TASKS = (
    *(Task(number, _formula(7 * number - 30), 5) for number in range(12)),
    Task(12, LOOP, 5),
    Task(13, BOMB, 5),
    Task(14, "def score(pod, node):\n    return open('/etc/passwd')\n", 5),
    Task(15, TUNABLE, 9),
)


@pytest.fixture(scope="module")
def ray():
    """Starts a Ray with room for several executors; none of them may end it."""
    from podium.compute.ray.cluster import RayCluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(TESTS))  # actors import workers of tests
        cluster = RayCluster("", 6)
    yield cluster.ray
    cluster.close()
    assert not cluster.ray.is_initialized()


@pytest.fixture(scope="module")
def executor(ray):
    executor = ray_executor(TRAINING, "inflation", 2, LIMITS, "")
    yield executor
    executor.close()
    assert ray.is_initialized()


@pytest.fixture(scope="module")
def local():
    """Gives the baseline, a context that races, and what one machine makes of all tasks."""
    executor = local_executor(TRAINING, "inflation", 1, LIMITS)
    try:
        baseline = executor.baseline()
        incumbent = tuple({**each, "allocation_130": 99.0} for each in baseline)
        context = Context((Rivals(incumbent),))
        yield baseline, context, _facts(executor.run(TASKS, context))
    finally:
        executor.close()


def _facts(done):
    """Keeps all but the time it took, by number; a number must not come twice."""
    found = {}
    for each in done:
        assert each.number not in found
        found[each.number] = (
            each.text, each.evaluations, each.verdict, each.scores, each.cases,
            each.decisions,
        )  # fmt: skip
    return found


def test_ray_judges_as_one_machine_does_and_hostile_candidates_leave_its_actors_alone(
    executor, local
):
    baseline, context, expected = local
    assert executor.baseline() == baseline
    before = set(executor.workers.processes())
    found = _facts(executor.run(TASKS, context))
    assert found == expected
    assert found[12][2].gate == TINY
    assert "endless loop" in found[12][2].reason
    assert {found[number][2].gate for number in range(12)} >= {RACE}
    assert before <= set(executor.workers.processes())


def _kill_outside(_ray, member):
    os.kill(member.pid, signal.SIGKILL)


def _kill_by_ray(ray, member):
    ray.kill(member.worker)


def test_the_cluster_does_not_learn_the_command_line(ray):
    (own,) = [job for job in ray._private.state.jobs() if not job["IsDead"]]
    assert own["Entrypoint"] == "podium"


def test_workers_import_nothing_from_the_folder_in_which_podium_was_started(ray):
    paths = ray.get(ray.remote(num_cpus=0)(lambda: sys.path).remote())
    assert str(Path.cwd()) not in paths


@pytest.mark.parametrize("kill", [_kill_outside, _kill_by_ray])
def test_what_a_killed_actor_was_judging_is_judged_by_another(executor, local, ray, kill):
    _, context, expected = local
    assert executor.baseline()
    run, killed = executor.run(TASKS, context), []
    done = []
    for each in run:
        done.append(each)
        busy = [member for member in executor.workers.crew.members if member.call is not None]
        if busy and not killed:
            killed = busy[:1]
            kill(ray, killed[0])
    assert killed
    assert killed[0] not in executor.workers.crew.members
    assert _facts(done) == expected


def test_actors_that_keep_dying_are_an_error_and_no_verdict(executor, local, monkeypatch):
    _, context, _ = local
    monkeypatch.setattr("podium.compute.crew.MOST_ATTEMPTS", 1)
    _wait_for(lambda: _all_ready(executor))
    (task,) = (each for each in TASKS if each.text == LOOP)
    run = executor.run([task, TASKS[0]], context)
    first = next(run)
    assert first.scores or first.verdict.gate == RACE
    (busy,) = (member for member in executor.workers.crew.members if member.call is not None)
    os.kill(busy.pid, signal.SIGKILL)
    with pytest.raises(MissingError, match=f"candidate #{task.number} were lost 1 times"):
        list(run)


def test_every_actor_tells_its_walls(executor):
    executor.baseline()
    assert executor.missing_walls() == ()


def test_tasks_that_nobody_waits_for_do_not_mix_with_the_next(executor, local):
    _, context, expected = local
    executor.baseline()
    next(executor.run(TASKS[:6], context))
    found = _facts(executor.run(TASKS[6:9], context))
    assert found == {number: expected[number] for number in (6, 7, 8)}


@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("trouble", ["die", "miss"])
def test_work_that_is_no_search_runs_on_actors_too(tmp_path, trouble):
    shared = {"nodes": 4, "pods": 30}
    calls = [Call(seed, {"seed": 1000 + seed}) for seed in range(5)]
    task = {**calls[2].task, "trouble": trouble, "mark": str(tmp_path / "mark")}
    troubled = [Call(each.key, task) if each.key == 2 else each for each in calls]
    here, there = ThreadExecutor(SPEC, 1), RayExecutor(SPEC, 2)
    try:
        found = {reply.key: reply.values for reply in there.run(troubled, shared)}
        assert found == {reply.key: reply.values for reply in here.run(calls, shared)}
        with pytest.raises(InputError, match="nobody can use"):
            list(there.run([Call(9, {"seed": 1, "trouble": "object"})], shared))
        with pytest.raises(RuntimeError, match="a bug of the worker"):
            list(there.run([Call(9, {"seed": 1, "trouble": "crash"})], shared))
    finally:
        here.close()
        there.close()


@pytest.mark.usefixtures("ray")
def test_another_version_of_podium_on_the_cluster_is_told(monkeypatch):
    monkeypatch.setattr(podium, "__version__", "0.0.7")
    executor = ray_executor(TRAINING, "inflation", 1, LIMITS, "")
    try:
        with pytest.raises(PodiumError, match=r"is installed there, but 0\.0\.7 here"):
            executor.baseline()
    finally:
        executor.close()


@pytest.mark.usefixtures("ray")
def test_a_machine_without_the_traces_is_named(tmp_path):
    training = TrainingSet((Case(trace="openb:default", folder=str(tmp_path / "none")),))
    executor = ray_executor(training, "inflation", 1, LIMITS, "")
    try:
        with pytest.raises(MissingError, match=f"{socket.gethostname()}: .*{tmp_path}/none"):
            executor.baseline()
    finally:
        executor.close()


@pytest.mark.usefixtures("ray")
def test_a_search_with_an_actor_killed_finds_what_one_machine_finds(tmp_path):
    plan = RunPlan(TRAINING, batch=8, tuning=Tuning(every=2, evaluations=10), seed=1007)
    killed = []

    def kill_once(search):
        def watch(_progress):
            members = search[0].parts.executor.workers.crew.members if search else []
            busy = [each for each in members if each.call is not None]
            if busy and not killed and search[0].archive.batches == 1:
                killed.append(busy[0].pid)
                os.kill(busy[0].pid, signal.SIGKILL)

        return watch

    search = []
    there = _search(tmp_path / "ray", plan, "ray", kill_once(search), search)
    here = _search(tmp_path / "local", plan, "local", lambda _progress: None, [])
    assert killed
    assert len(here) > 24
    assert there == here


def _search(folder, plan, executor, watch, opened):
    folder.mkdir()
    store = open_store(f"sqlite:///{folder / 'runs.db'}")
    record = RunRecord("run-1", "search", "test", 0.0, folder=str(folder / "runs" / "run-1"))
    create_run(store, plan, record)
    means = Means(
        workers=WORKERS[executor], executor=executor, limits=LIMITS, is_validating=False, environ={}
    )
    with open_search(store, record, means, watch) as search:
        opened.append(search)
        search.go(Budget(evaluations=40))
    rows = store.candidates.of("run-1")
    store.close()
    return [(each.number, each.text, each.accepted, each.gate, each.fitness) for each in rows]


INTERRUPTED = """
from podium.search.sandbox.limits import Limits
from podium.search.run.executor import ray_executor
from podium.evaluation.cases import Case, TrainingSet

executor = ray_executor(TrainingSet((Case(nodes=8, pods=80),)), "inflation", 1, Limits(), "")
try:
    print(executor.workers.cluster._folder, flush=True)
    executor.baseline()
    while True:
        executor.workers.crew.idle()
except KeyboardInterrupt:
    print("interrupted")
finally:
    executor.close()
"""


def test_ctrl_c_leaves_no_process_and_no_file(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=clean_environment(tmp_path), start_new_session=True,
    )  # fmt: skip
    folder = Path(process.stdout.readline().strip())
    assert folder.is_dir()
    # A terminal interrupts the whole group, Ray's own processes included.
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=300)
    assert (output, errors, process.returncode) == ("interrupted\n", "", 0)
    assert not folder.exists()
    _wait_for(lambda: not _session(process.pid))


def _session(leader):
    """Lists the processes of a session."""
    found = subprocess.run(["ps", "-s", str(leader), "-o", "pid="], capture_output=True, text=True)
    return found.stdout.split()


def _wait_for(condition):
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _all_ready(executor):
    for _ in executor.workers.crew.listen():
        pass
    return all(each.is_ready for each in executor.workers.crew.members)


def test_without_ray_the_install_line_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra) as caught:
        ray_executor(TRAINING, "inflation", 1, LIMITS, "")
    assert caught.value.hint == install_line("ray")


def test_no_workers_are_refused():
    with pytest.raises(UsageError, match="at least 1, got 0"):
        ray_executor(TRAINING, "inflation", 0, LIMITS, "")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_an_address_where_nobody_answers_is_told_at_once(address):
    with pytest.raises(MissingError, match=f"{address}: no Ray cluster is available"):
        ray_executor(TRAINING, "inflation", 1, LIMITS, address)
