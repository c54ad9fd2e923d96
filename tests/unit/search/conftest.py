import pytest

from podium.evaluation.cases import Case, TrainingSet
from podium.search.judging.judge import Judge
from podium.search.sandbox import worker as process
from podium.search.sandbox.limits import Limits
from podium.search.sandbox.worker import Worker
from support.forgery import imposter

CASES = (Case(nodes=8, pods=80, seed=1000), Case(nodes=8, pods=80, seed=1001, is_perturbed=True))
LIMITS = Limits(time_s=20.0, trial_s=1.5, memory_mib=256)


@pytest.fixture(scope="module")
def judge():
    """Judges on two tiny cases, in plain Python, with one worker."""
    with Judge(TrainingSet(CASES), "inflation", 1, LIMITS) as judge:
        yield judge


@pytest.fixture(scope="module")
def compiling_judge():
    """Judges on two tiny cases, compiled, with one worker."""
    with Judge(TrainingSet(CASES, is_compiled=True), "inflation", 1, LIMITS) as judge:
        yield judge


@pytest.fixture
def taken_over(monkeypatch):
    """Makes a worker whose process says what it likes, once it is asked."""

    def start(*messages):
        script = imposter(*messages).replace("{", "{{").replace("}", "}}")
        monkeypatch.setattr(process, "_BOOT", script)
        limits = Limits(time_s=6.0, trial_s=1.5, memory_mib=256)
        workers.append(Worker({}, limits))
        workers[-1].get_ready()
        return workers[-1]

    workers = []
    yield start
    for worker in workers:
        worker.close()
