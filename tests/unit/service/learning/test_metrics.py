from dataclasses import replace

import numpy as np
import pytest

from podium.online import Answer, Candidate
from podium.service.learning.metrics import LearningMetrics, decision_of, regret

KNOWN = Candidate("a", 100.0, 5.0, 0.0, 0.0, 100.0, 50, 0.0, 100.0)
UNKNOWN = replace(KNOWN, gpu_type="b", mu=150.0, sigma=150.0, observations=0)


def answer(chosen, *others):
    return decision_of(Answer(chosen, "exploitation", (chosen, *others), ()))


def draws(known, rng, count=200_000):
    variance = np.log1p((known.sigma / known.mu) ** 2)
    return np.exp(rng.normal(np.log(known.mu) - variance / 2, np.sqrt(variance), count))


@pytest.mark.parametrize("mu", [50.0, 100.0, 150.0, 400.0])
def test_regret_is_what_another_candidate_is_expected_to_save(mu):
    rng = np.random.default_rng(0)
    other = replace(UNKNOWN, mu=mu, sigma=mu)
    saved = np.maximum(draws(KNOWN, rng) - draws(other, rng), 0.0).mean()
    assert regret([answer(KNOWN, other)]) == pytest.approx(saved / (100.0 - saved), rel=0.02)


def test_whoever_never_explores_has_regret_and_pays_no_price_for_exploration():
    # The best known candidate is chosen; one that nobody has tried may well be faster.
    assert regret([answer(KNOWN, UNKNOWN)] * 10) > 0.05


def test_a_choice_that_is_surely_the_best_has_no_regret():
    sure = replace(KNOWN, gpu_type="b", mu=200.0, sigma=1.0)
    assert regret([answer(KNOWN, sure)]) == pytest.approx(0.0, abs=1e-9)
    assert regret([answer(KNOWN)]) == 0.0
    assert regret([]) == 0.0


def test_regret_is_that_of_the_last_decisions_together():
    slow = replace(KNOWN, gpu_type="c", mu=300.0, sigma=0.0)
    fast = replace(KNOWN, gpu_type="d", mu=100.0, sigma=1e-6)
    assert regret([answer(slow, fast), answer(fast, slow)]) == pytest.approx(1.0, rel=1e-6)


def test_what_is_kept_of_a_decision_does_not_grow_with_its_candidates():
    metrics = LearningMetrics()
    many = tuple(replace(UNKNOWN, gpu_type=str(number), mu=999.0) for number in range(1000))
    metrics.decided(Answer(KNOWN, "exploitation", (KNOWN, *many, UNKNOWN), ()))
    (kept,) = metrics._recent
    assert kept == (KNOWN, (UNKNOWN,))
    assert regret([kept]) == regret([answer(KNOWN, UNKNOWN)])
