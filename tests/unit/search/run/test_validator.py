import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from podium.errors import PodiumError
from podium.evaluation.splits import VALIDATION
from podium.search.judging.judge import Judge
from podium.search.run.validator import Validator
from support.hostile import GOOD
from support.searches import LIMITS, TRAINING


@pytest.fixture(scope="module")
def validator():
    """Judges on held-out seeds."""
    validator = Validator(TRAINING, "inflation", LIMITS)
    yield validator
    validator.close()


def test_the_best_is_measured_on_held_out_seeds(validator):
    found = validator.check(7, GOOD)
    assert found.number == 7
    with Judge(TRAINING.held_out(), "inflation", 1, LIMITS) as judge:
        scores = judge.judge(GOOD).scores
    assert (found.fitness, found.baseline) == (scores["fitness"], scores["fgd"]["fitness"])
    assert all(case.seed in VALIDATION for case in TRAINING.held_out().cases)


def test_who_fails_there_has_no_figure(validator):
    assert validator.check(8, "def score(pod, node):\n    return 1 / 0\n") is None
    assert validator.check(9, "prose") is None


def test_a_validator_that_was_never_asked_starts_nothing(monkeypatch):
    started = []
    monkeypatch.setattr("podium.search.run.validator.Judge", lambda *given: started.append(given))
    Validator(TRAINING, "inflation", LIMITS).close()
    assert not started


def test_who_measures_while_the_validator_is_closed_is_told_and_starts_nothing_more():
    validator = Validator(TRAINING, "inflation", LIMITS)
    with ThreadPoolExecutor(1) as threads:
        measured = threads.submit(validator.check, 7, GOOD)
        while validator._judge is None and not measured.done():
            time.sleep(0.01)
        validator.close()
        with pytest.raises(PodiumError, match=r"stopped|killed"):
            measured.result()
    with pytest.raises(PodiumError, match="was stopped"):
        validator.check(7, GOOD)
