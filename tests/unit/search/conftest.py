import pytest

from podium.search.judge import Judge
from podium.search.limits import Limits
from podium.search.training import Case, TrainingSet

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
