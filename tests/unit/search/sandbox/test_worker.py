import os
import signal
import sys
import threading
from dataclasses import replace

import pytest

from podium.errors import MissingError, PodiumError
from podium.evaluation.cases import Case, TrainingSet
from podium.search.judging.judge import Judge
from podium.search.judging.trial_pool import TrialPool
from podium.search.sandbox import worker as process
from podium.search.sandbox.limits import CLOCK_FACTOR, Limits
from podium.search.sandbox.report import WorkerReport
from support.forgery import CASE, DONE, KIND, OS, forging, packed
from support.hostile import GOOD

LIMITS = Limits(time_s=6.0, trial_s=1.5, memory_mib=256)


@pytest.fixture(scope="module")
def judge():
    """Judges on one tiny case; its pool takes texts that no gate has read."""
    with Judge(TrainingSet((Case(nodes=8, pods=60),)), KIND, 1, LIMITS) as judge:
        yield judge


def test_a_candidate_that_answers_for_its_process_is_refused(judge):
    trial = judge.pool.run(forging(CASE, DONE))
    assert not trial.verdict.accepted
    assert "no decisions" in trial.reason


def test_a_process_that_never_stops_talking_is_stopped(judge):
    told = packed({"gate": "contract"}).hex()
    text = (
        f'write, told = {OS}.write, bytes.fromhex("{told}") * 100\n'
        "while True:\n    write(4, told)\n"
        "def score(pod, node):\n    return 1\n"
    )
    trial = judge.pool.run(text)
    assert not trial.verdict.accepted
    assert trial.seconds < CLOCK_FACTOR * LIMITS.trial_s + 5
    assert judge.pool.run(GOOD).verdict.accepted


@pytest.mark.parametrize(
    ("boot", "told"),
    [
        (process._BOOT.replace("worker_main import", "nothing import"), "No module named"),
        ("import os; os._exit(7)", r"ended by itself \(exit 7\)"),
        ("print('x' * 100)", "answered with a message of"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "died of SIGSEGV"),
    ],
)
def test_a_process_that_does_not_start_is_told_in_words(monkeypatch, boot, told):
    monkeypatch.setattr(process, "_BOOT", boot)
    worker = process.Worker({"modules": []}, LIMITS)
    with pytest.raises(PodiumError, match=told):
        worker.get_ready()


def test_what_fails_behind_the_walls_is_told_in_words(monkeypatch):
    later = "import podium.search.sandbox.confinement as c\nwas = c.Confinement.enter\n"
    later += "c.Confinement.enter = lambda self, parent: was(self, parent) and [object()]\n"
    monkeypatch.setattr(
        process, "_BOOT", process._BOOT.replace("main({parent})", later + "main({parent})")
    )
    worker = process.Worker({"modules": []}, LIMITS)
    with pytest.raises(PodiumError, match="not JSON serializable"):
        worker.get_ready()


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="processor time is read in /proc")
TINY_SET = TrainingSet((Case(nodes=8, pods=60),))


@needs_proc
def test_a_process_that_is_stopped_while_it_starts_is_replaced(monkeypatch):
    monkeypatch.setattr(process, "STILL_S", 5.0)
    with TrialPool(TINY_SET, KIND, 1, LIMITS) as pool:
        (stopped,) = pool.processes()
        os.kill(stopped, signal.SIGSTOP)
        pool.get_ready()
        assert stopped not in pool.processes()
        assert pool.run(GOOD).verdict.accepted


@needs_proc
def test_processes_that_all_stand_still_while_they_start_are_an_error(monkeypatch):
    monkeypatch.setattr(process, "STILL_S", 1.0)
    monkeypatch.setattr(process, "_BOOT", "import time; time.sleep(600)")
    told = "killed 3 times, the last time by podium, because it stood still"
    with TrialPool(TINY_SET, KIND, 1, LIMITS) as pool, pytest.raises(MissingError, match=told):
        pool.get_ready()


@needs_proc
def test_a_process_that_is_slow_to_start_but_busy_is_waited_for(monkeypatch):
    monkeypatch.setattr(process, "STILL_S", 2.0)
    busy = "import time\nuntil = time.monotonic() + 5\nwhile time.monotonic() < until: pass\n"
    monkeypatch.setattr(process, "_BOOT", busy + process._BOOT)
    worker = process.Worker({"modules": []}, LIMITS)
    pid = worker.pid
    worker.get_ready()
    assert worker.pid == pid
    worker.close()


@needs_proc
def test_time_in_which_a_process_does_not_run_is_not_the_candidates():
    limits = replace(LIMITS, trial_s=1.0)
    with TrialPool(TINY_SET, KIND, 1, limits) as pool:
        pool.get_ready()
        (pid,) = pool.processes()
        os.kill(pid, signal.SIGSTOP)
        waking = threading.Timer(2.5, os.kill, (pid, signal.SIGCONT))
        waking.start()
        trial = pool.run(GOOD)
        waking.join()
        assert trial.verdict.accepted, trial.reason
        assert trial.seconds > limits.trial_s
        assert pid in pool.processes()


@needs_proc
def test_a_process_that_stands_still_for_ever_is_replaced():
    with TrialPool(TINY_SET, KIND, 1, replace(LIMITS, trial_s=0.3)) as pool:
        pool.get_ready()
        (pid,) = pool.processes()
        os.kill(pid, signal.SIGSTOP)
        assert "within 0.3 s" in pool.run(GOOD).reason
        assert pid not in pool.processes()


@pytest.mark.parametrize("name", ["os", "podium.search.judging.handler", "", 7])
def test_a_handler_that_is_not_in_the_table_is_not_loaded(name):
    worker = process.Worker({"handler": name, "modules": []}, LIMITS)
    with pytest.raises(PodiumError, match="no handler is called"):
        worker.get_ready()


def test_a_process_without_a_handler_stands_behind_its_walls_and_serves_nothing():
    worker = process.Worker({"modules": []}, replace(LIMITS, time_s=20.0))
    worker.get_ready()
    assert worker.facts.keys() == {"ready", "walls"}
    report = worker.ask({"text": GOOD}, WorkerReport(), 20.0, 20.0)
    assert "serves no requests" in report.reason
    assert report.is_spoiled
    worker.close()
