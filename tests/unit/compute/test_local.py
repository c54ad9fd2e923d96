"""Runs simulations on threads and on processes; some workers die, some object, some crash."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from podium.compute import Call, ProcessExecutor, ThreadExecutor, losses
from podium.errors import InputError, MissingError, PodiumError, UsageError
from support.binary import clean_environment
from support.simulating import SPEC

SHARED = {"nodes": 4, "pods": 30}
CALLS = [Call(seed, {"seed": 1000 + seed}) for seed in range(5)]


@pytest.fixture(scope="module")
def processes():
    """Is two processes."""
    executor = ProcessExecutor(SPEC, 2)
    yield executor
    executor.close()


@pytest.fixture(scope="module")
def expected():
    """Gives what one thread makes of all calls."""
    executor = ThreadExecutor(SPEC, 1)
    yield _digests(executor.run(CALLS, SHARED))
    executor.close()


def _digests(replies):
    found = {}
    for each in replies:
        assert each.key not in found
        found[each.key] = each.values["digest"]
    return found


def _troubled(tmp_path, trouble):
    """Makes one call of all go wrong, the first time it is tried."""
    task = {**CALLS[2].task, "trouble": trouble, "mark": str(tmp_path / "mark")}
    return [replace(call, task=task) if call.key == 2 else call for call in CALLS]


def _greet(spec, welcome=lambda _greeting: None, kind=ProcessExecutor):
    with closing(kind(spec, 1, welcome)) as executor:
        executor.get_ready()


def test_seeds_differ_and_threads_share_one_worker(expected):
    assert len(set(expected.values())) == len(CALLS)
    greetings = []
    executor = ThreadExecutor(SPEC, 3, greetings.append)
    executor.get_ready()
    executor.get_ready()
    assert _digests(executor.run(CALLS, SHARED)) == expected
    executor.close()
    assert [(each.pid, each.facts["threads"]) for each in greetings] == [(os.getpid(), 3)]


def test_processes_reply_as_threads_do(processes, expected):
    assert _digests(processes.run(CALLS, SHARED)) == expected
    pids = {pid for _, pid in processes.processes()}
    assert len(pids) >= 1
    assert os.getpid() not in pids


def test_processes_import_nothing_from_the_working_folder(tmp_path, monkeypatch):
    for name in ("json", "podium", "numpy"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')")
    monkeypatch.chdir(tmp_path)
    _greet(SPEC)
    assert not (tmp_path / "imported").exists()


def test_no_call_is_no_work(processes):
    assert list(processes.run([])) == []


@pytest.mark.parametrize("trouble", ["die", "miss"])
def test_what_a_lost_worker_was_doing_is_done_by_another(processes, expected, tmp_path, trouble):
    processes.get_ready()
    assert _digests(processes.run(_troubled(tmp_path, trouble), SHARED)) == expected
    assert len(processes.crew.members) == 2


def test_a_call_that_kills_every_worker_is_an_error(processes):
    call = Call(7, {"seed": 1, "trouble": "die"}, label="seed 1")
    with pytest.raises(MissingError, match=r"on seed 1 were lost 4 times: .* killed by SIGKILL"):
        list(processes.run([call], SHARED))


def _run_and_kill(executor, times):
    """Runs a call after the other; the worker dies after each."""
    for seed in range(times):
        list(executor.run([Call(seed, {"seed": 1000 + seed})], SHARED))
        os.kill(executor.crew.members[0].pid, signal.SIGKILL)


def test_workers_that_die_after_every_reply_are_an_error_before_long(monkeypatch):
    monkeypatch.setattr(losses, "MOST_LOST", 3)
    monkeypatch.setattr(losses, "FOR_EACH", 1)
    with closing(ProcessExecutor(SPEC, 1)) as executor:
        _run_and_kill(executor, 4)
        with pytest.raises(MissingError, match=r"again and again, 4 times in all: .* SIGKILL"):
            _run_and_kill(executor, 1)


def test_a_task_that_nobody_can_do_is_tried_once(processes, tmp_path, expected):
    mark = tmp_path / "mark"
    call = Call(7, {"seed": 1, "trouble": "object", "mark": str(mark)})
    with pytest.raises(InputError, match="seed: a seed that nobody can use") as caught:
        list(processes.run([call], SHARED))
    assert caught.value.hint == "use another"
    assert _digests(processes.run(CALLS, SHARED)) == expected


def test_a_bug_of_a_worker_comes_with_its_traceback(processes):
    call = Call(7, {"seed": 1, "trouble": "crash"})
    with pytest.raises(RuntimeError, match=r"(?s)in _crash.*a bug of the worker"):
        list(processes.run([call], SHARED))


@pytest.mark.parametrize("kind", [ThreadExecutor, ProcessExecutor])
def test_calls_that_nobody_waits_for_do_not_mix_with_the_next(kind, expected):
    executor = kind(SPEC, 1)
    try:
        next(executor.run(CALLS[:3], SHARED))
        found = _digests(executor.run(CALLS[3:], SHARED))
    finally:
        executor.close()
    assert found == {key: expected[key] for key in (3, 4)}


def test_what_went_wrong_with_a_dropped_call_troubles_nobody(expected):
    executor = ProcessExecutor(SPEC, 1)
    try:
        dropped = [CALLS[0], Call(9, {"seed": 1, "trouble": "crash"})]
        next(executor.run(dropped, SHARED))
        assert _digests(executor.run(CALLS, SHARED)) == expected
    finally:
        executor.close()


def test_a_silent_worker_is_replaced(monkeypatch, expected):
    monkeypatch.setattr("podium.compute.crew.PATIENCE_S", 0.0)
    executor = ProcessExecutor(replace(SPEC, start_s=60.0), 1)
    try:
        executor.get_ready()
        (member,) = executor.crew.members
        os.kill(member.pid, signal.SIGSTOP)
        monkeypatch.setattr("podium.compute.crew.MOST_ATTEMPTS", 1)
        with pytest.raises(MissingError, match="did not answer in time"):
            list(executor.run([replace(CALLS[0], limit_s=0.5)], SHARED))
        assert member not in executor.crew.members
        assert _digests(executor.run(CALLS, SHARED)) == expected
    finally:
        executor.close()


def test_workers_that_die_at_once_are_given_up():
    spec = replace(SPEC, setup={**SPEC.setup, "dies_at_start": True})
    with pytest.raises(MissingError, match=r"no worker could be started: .* killed by SIGKILL"):
        _greet(spec)


def test_a_worker_that_cannot_start_says_why():
    with pytest.raises(UsageError, match="unknown policy") as caught:
        _greet(replace(SPEC, setup={"policy": "first-fitt"}))
    assert "first-fit" in caught.value.hint


@pytest.mark.parametrize("kind", [ThreadExecutor, ProcessExecutor])
def test_a_factory_that_is_nowhere_is_named(kind):
    with pytest.raises(MissingError, match="nowhere:open cannot be imported"):
        _greet(replace(SPEC, factory="nowhere:open"), kind=kind)


def test_another_version_of_podium_is_reported():
    with pytest.raises(PodiumError, match=r"is installed there, but 0\.0\.7 here"):
        _greet(replace(SPEC, version="0.0.7"))


def test_whoever_employs_workers_may_refuse_one():
    def refuse(greeting):
        raise PodiumError(f"not {greeting.facts['policy']}", where=greeting.machine)

    with pytest.raises(PodiumError, match="not first-fit"):
        _greet(SPEC, refuse)


@pytest.mark.parametrize("kind", [ThreadExecutor, ProcessExecutor])
def test_no_workers_are_refused(kind):
    with pytest.raises(UsageError, match="at least 1, got 0"):
        kind(SPEC, 0)


ORPHANED = """
from podium.compute import ProcessExecutor
from support.simulating import SPEC

executor = ProcessExecutor(SPEC, 2)
while len(executor.processes()) < 2:
    list(executor.crew.listen())
print(*(pid for _, pid in executor.processes()), flush=True)
input()
"""


def test_workers_end_with_whoever_employs_them(tmp_path):
    command = [sys.executable, "-c", ORPHANED]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=clean_environment(tmp_path),
    ) as employer:  # fmt: skip
        pids = [int(word) for word in employer.stdout.readline().split()]
        assert len(pids) == 2
        employer.kill()
    deadline_s = time.monotonic() + 300
    while any(_is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def _is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
