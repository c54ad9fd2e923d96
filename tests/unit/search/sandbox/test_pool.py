import os
import signal
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from podium.compute import losses
from podium.errors import InputError, MissingError, PodiumError, UsageError
from podium.evaluation.cases import Case, TrainingSet
from podium.search.candidate.verdict import TINY
from podium.search.judging.trial_pool import TrialPool
from podium.search.sandbox import worker as process
from podium.search.sandbox.confinement import SYSTEM_CALLS, WALLS
from podium.search.sandbox.limits import Limits
from support.forgery import DONE, imposter
from support.hostile import GOOD

TRAINING = TrainingSet((Case(nodes=8, pods=60),))
LIMITS = Limits(time_s=10.0, trial_s=3.0, memory_mib=256)
GET = '__builtins__["__import__"]'


@pytest.fixture(scope="module")
def pool():
    """Runs texts as they are: what the gates before it refuse comes to the process here."""
    with TrialPool(TRAINING, "inflation", 1, LIMITS) as pool:
        yield pool


def _run(pool, expression):
    # Score functions are translated before they are run; what stands at the top is run as it is.
    return pool.run(f"X = float({expression})\n\n\ndef score(pod, node):\n    return X\n")


def _with_line(line):
    return GOOD.replace("def score", f"{line}\n\n\ndef score")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ('len(__builtins__["open"]("/etc/passwd").read())', "may not cause open"),
        (f'{GET}("os").open("/etc/passwd", 0)', "may not cause open"),
        (f'{GET}("os").open("f", 65)', "may not cause open"),
        (f'len({GET}("os").listdir("/"))', "may not cause os.listdir"),
        (f'{GET}("os").mkdir("here")', "may not cause os.mkdir"),
        (f'{GET}("os").system("true")', "may not cause os.system"),
        (f'{GET}("os").fork()', "may not cause os.fork"),
        (f'{GET}("os").kill(1, 0)', "may not cause os.kill"),
        (f'{GET}("os").execv("/bin/true", ["true"])', "may not cause os.exec"),
        (f'{GET}("resource").setrlimit(0, (1, 1))', "may not cause resource.setrlimit"),
        (f'{GET}("wave").open', "imports nothing"),
        (f'{GET}("_socket").socket().fileno()', ""),
        (f'{GET}("sys").exit(0)', ""),
        (f'{GET}("os")._exit(0)', "ended by itself (exit 0)"),
        (f'{GET}("os").abort()', "died of SIG"),
        (f'{GET}("os").write(1, b"x" * 9) + nothing', "nothing"),
        ("len([0] * 10**9)", "MiB of memory"),
    ],
)
def test_a_text_that_got_past_the_gates_reaches_nothing(pool, expression, reason):
    trial = _run(pool, expression)
    assert (trial.verdict.accepted, trial.gate) == (False, TINY)
    assert trial.reason
    assert reason in trial.reason
    assert pool.run(GOOD).verdict.accepted


def test_the_environment_is_empty(pool):
    trial = _run(pool, f'1 / len({GET}("os").environ)')
    assert "ZeroDivisionError" in trial.reason


@pytest.mark.parametrize("body", ["{}", '{"done": true}', '{"case": 0, "values": {}}', "[]", "no"])
def test_forged_answers_are_refused(pool, body):
    told = (struct.pack(">I", len(body)) + body.encode()).hex()
    trial = _run(pool, f'{GET}("os").write(4, bytes.fromhex("{told}"))')
    assert not trial.verdict.accepted
    assert "the process answered with" in trial.reason
    assert pool.run(GOOD).verdict.accepted


def test_a_worker_is_kept_for_the_next_candidate_and_replaced_after_an_overrun():
    loop = "def score(pod, node):\n    x = 1\n    while x > 0:\n        x += 1\n    return x\n"
    with TrialPool(TRAINING, "inflation", 1, Limits(trial_s=0.5)) as pool:
        first = pool.run(GOOD)
        before = pool.processes()
        assert pool.run(GOOD).cases == first.cases
        assert pool.processes() == before
        trial = pool.run(loop)
        assert "within 0.5 s" in trial.reason
        assert pool.processes() != before
        assert pool.run(GOOD).cases == first.cases


def test_the_process_gets_no_secret_and_no_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENROUTER_API_KEY", "secret")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with TrialPool(TRAINING, "inflation", 1, LIMITS) as pool:
        pool.get_ready()
        (pid,) = pool.processes()
        if not Path(f"/proc/{pid}").exists():
            pytest.skip("this system does not show processes as files")
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"secret" not in environment
        assert b"PATH=" not in environment.split(b"LD_LIBRARY_PATH")[0]
        assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
        assert list(tmp_path.iterdir()) == []


def killing(pool, name, times):
    """Wants every candidate, after somebody killed the process that asks, so many times."""
    left = [times]

    def wants(_decisions):
        if left[0]:
            left[0] -= 1
            os.kill(pool.processes()[0], name)
        return True

    return wants


@pytest.mark.parametrize("name", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_candidate_whose_process_was_killed_by_others_is_tried_again(pool, name):
    expected = pool.run(GOOD)
    found = pool.run(GOOD, wants=killing(pool, name, 1))
    assert found.verdict.accepted, found
    assert found.cases == expected.cases


def test_a_process_that_was_killed_while_it_waited_condemns_nobody(pool):
    pool.run(GOOD)
    os.kill(pool.processes()[0], signal.SIGKILL)
    assert pool.run(GOOD).verdict.accepted


def test_a_process_that_was_killed_before_it_was_ready_is_replaced():
    with TrialPool(TRAINING, "inflation", 1, LIMITS) as pool:
        os.kill(pool.processes()[0], signal.SIGKILL)
        assert pool.run(GOOD).verdict.accepted
        assert pool.baseline


def test_processes_that_are_killed_again_and_again_are_an_error_and_no_verdict(pool):
    with pytest.raises(
        MissingError, match="was killed 3 times, the last time by SIGKILL"
    ) as caught:
        pool.run(GOOD, wants=killing(pool, signal.SIGKILL, 3))
    assert "resume" in caught.value.hint
    assert pool.run(GOOD).verdict.accepted


def test_processes_that_are_killed_once_for_each_candidate_are_an_error_before_long(monkeypatch):
    monkeypatch.setattr(losses, "MOST_LOST", 3)
    monkeypatch.setattr(losses, "FOR_EACH", 1)
    with TrialPool(TRAINING, "inflation", 1, LIMITS) as pool:
        for _ in range(3):
            assert pool.run(GOOD, wants=killing(pool, signal.SIGKILL, 1)).verdict.accepted
        with pytest.raises(MissingError, match=r"again and again, 4 times, .* by SIGKILL") as error:
            pool.run(GOOD, wants=killing(pool, signal.SIGKILL, 1))
    assert "fewer workers" in error.value.hint


def test_a_candidate_that_kills_its_own_process_is_refused_the_first_time(pool):
    trial = _run(pool, f'{GET}("ctypes").string_at(1)[0]')
    assert trial.reason.startswith("the process died of SIGSEGV")
    assert not trial.killed_by


@pytest.mark.parametrize(
    "line",
    [
        f'{GET}("numpy").f2py',  # loaded when it is first asked for
        '__builtins__["exec"]("import numba.misc.timsort")',
        '__builtins__["exec"]("import importlib; importlib.import_module(\\"wave\\")")',
        '__builtins__["exec"]("try: import numba.nothing\\nexcept ImportError: pass")',
    ],
)
def test_what_a_library_loads_late_is_loaded_before_the_next_attempt(line):
    """Imports from code that is not the candidate's own, as compilers do."""
    with TrialPool(TRAINING, "inflation", 1, LIMITS) as pool:
        expected = pool.run(GOOD)
        trial = pool.run(_with_line(line))
        assert trial.verdict.accepted, trial.reason
        assert trial.cases == expected.cases
        before = pool.processes()
        assert pool.run(_with_line(line)).verdict.accepted
        assert pool.processes() == before


def test_two_who_lack_the_same_at_once_are_both_tried_again():
    text = _with_line(f'{GET}("numpy").f2py')
    with TrialPool(TRAINING, "inflation", 2, LIMITS) as pool, ThreadPoolExecutor(2) as threads:
        trials = list(threads.map(pool.run, [text, text]))
    assert [trial.verdict.accepted for trial in trials] == [True, True]


def test_a_process_that_lacks_what_it_has_loaded_is_an_error_and_no_verdict(monkeypatch):
    told = {**DONE, "reason": "lacks", "lacking": ["numba.late"]}
    script = imposter(told).replace("{", "{{").replace("}", "}}")
    monkeypatch.setattr(process, "_BOOT", script)
    limits = replace(LIMITS, allows_unconfined=True)
    with (
        TrialPool(TRAINING, "inflation", 1, limits) as pool,
        pytest.raises(PodiumError, match=r"lacks the module numba\.late"),
    ):
        pool.run(GOOD)


@pytest.mark.parametrize("walls", [[], ["audit"], [each for each in WALLS if each != SYSTEM_CALLS]])
def test_candidates_are_not_judged_where_a_wall_is_missing(monkeypatch, walls):
    script = imposter(DONE, walls=walls).replace("{", "{{").replace("}", "}}")
    monkeypatch.setattr(process, "_BOOT", script)
    with (
        TrialPool(TRAINING, "inflation", 1, LIMITS) as pool,
        pytest.raises(MissingError, match="cannot be confined on this machine") as caught,
    ):
        pool.run(GOOD)
    assert SYSTEM_CALLS in caught.value.message
    assert "--allow-unconfined" in caught.value.hint


def test_a_worker_outlives_the_thread_that_first_used_it():
    with TrialPool(TRAINING, "inflation", 1, LIMITS) as pool:
        with ThreadPoolExecutor(1) as threads:
            trial = threads.submit(_run, pool, f'{GET}("os")._exit(3)').result()
            assert "exit 3" in trial.reason
            expected = threads.submit(pool.run, GOOD).result()
            before = pool.processes()
        assert pool.run(GOOD).cases == expected.cases
        assert pool.processes() == before


PARENT = """
from podium.search.judging.trial_pool import TrialPool
from podium.search.sandbox.limits import Limits
from podium.evaluation.cases import Case, TrainingSet
training = TrainingSet((Case(nodes=8, pods=60),))
with TrialPool(training, "inflation", 1, Limits(600.0, 600.0)) as pool:
    pool.get_ready()
    print(pool.processes()[0], flush=True)
    pool.run("while True:\\n    pass\\ndef score(pod, node):\\n    return 1\\n")
"""


@pytest.mark.parametrize("name", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_parent_that_is_killed_leaves_no_process_and_no_folder(tmp_path, name):
    if sys.platform != "linux":
        pytest.skip("only Linux tells a process of the death of its parent")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, env=environment
    ) as parent:
        pid = int(parent.stdout.readline())
        began = _processor_ticks(pid)
        _wait_for(lambda: _processor_ticks(pid) > began + 20)
        parent.send_signal(name)
    _wait_for(lambda: not _is_alive(pid))
    assert list(tmp_path.iterdir()) == []


def _processor_ticks(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def _wait_for(is_so):
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)


def test_no_process_outlives_its_pool():
    with TrialPool(TRAINING, "inflation", 2, LIMITS) as pool:
        pids = pool.processes()
        assert len(pids) == 2
    deadline = time.monotonic() + 120
    while any(_is_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(_is_alive(pid) for pid in pids)


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_set_that_cannot_be_built_is_an_error_and_not_a_rejection():
    broken = TrainingSet((Case(trace="openb:nothing"),))
    with (
        TrialPool(broken, "inflation", 1, LIMITS) as pool,
        pytest.raises(PodiumError, match=r"could not be started.*openb:nothing"),
    ):
        pool.run(GOOD)


def test_files_that_were_changed_are_blamed_and_not_the_installation():
    broken = TrainingSet((Case(digest="0" * 64),))
    with (
        TrialPool(broken, "inflation", 1, LIMITS) as pool,
        pytest.raises(InputError, match="changed after the search had been planned") as raised,
    ):
        pool.run(GOOD)
    assert raised.value.hint == "restore them, or begin a new search"


def test_a_pool_without_workers_is_refused():
    with pytest.raises(UsageError, match="workers must be at least 1, got 0"):
        TrialPool(TRAINING, "inflation", 0, LIMITS)


@pytest.mark.parametrize("limits", [{"time_s": 0}, {"memory_mib": 1}, {"trial_s": float("nan")}])
def test_limits_that_bound_nothing_are_refused(limits):
    with pytest.raises(UsageError):
        Limits(**limits)
