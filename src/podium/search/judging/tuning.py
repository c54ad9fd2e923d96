"""Tunes the constants that a candidate declares, by CMA-ES, inside its sandbox.

The search is about structure; numbers are found by a method that is better at numbers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.errors import PodiumError
from podium.evaluation.measures import Values
from podium.search.candidate.constants import Constant, read_constants, with_constants
from podium.search.candidate.verdict import Rejected
from podium.search.judging.case_run import run_case
from podium.search.judging.fitness import Fitness, Outcome
from podium.search.judging.fixtures import Fixtures
from podium.search.judging.form import form_for
from podium.search.judging.race import hopeful
from podium.search.judging.trial import read_policy

SIGMA = 0.25
"""The first steps, as a part of the distance between the bounds."""

NEAR = 0.08
"""The same for a start at the best so far."""

EACH_START = 150
"""With so many evaluations for each, constants are tuned from several starts."""

FEWEST_ROUNDS = 2
"""Rounds of variants for a text, besides one for each of its constants."""

MARGIN = 0.5
"""Points by which a variant may trail the best so far before it is left."""

DIGITS = 4
POINTS = 8
"""Variants that are measured before the next ones are drawn."""

MOST_CONSTANTS = 24


@dataclass(slots=True)
class Tuner:
    """Measures variants of one candidate; the best so far is kept."""

    fixtures: Fixtures
    text: str
    fitness: Fitness
    baseline: Sequence[tuple[str, Values]]  # protocol and measurement of fgd on each case
    may_hold: bool = True  # whether a variant that holds pods is wanted
    constants: tuple[Constant, ...] = ()
    evaluations: int = 0
    best: float = -math.inf
    best_scores: list[float] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)

    def variant(self, point: Sequence[float]) -> dict[str, float]:
        """Turns a point of the unit cube into constants with few digits."""
        found = {}
        for constant, part in zip(self.constants, point, strict=False):
            rounded = float(f"{_value_at(constant, float(part)):.{DIGITS}g}")
            found[constant.name] = min(constant.high, max(constant.low, rounded))
        return found

    def loss(self, point: Sequence[float]) -> float:
        """Measures a variant; one that fails gets the worst possible loss."""
        values = self.variant(point)
        self.evaluations += 1
        scores: list[float] = []
        try:
            outcomes = self._outcomes(with_constants(self.text, values), scores)
        except (Rejected, PodiumError):
            return 1e9
        if len(outcomes) < len(self.baseline):
            return -sum(scores) / len(scores) + MARGIN
        score = self.fitness.score(outcomes)
        if score > self.best:
            self.best, self.best_scores, self.values = score, scores, values
        return -score

    def _outcomes(self, text: str, scores: list[float]) -> list[Outcome]:
        policy = read_policy(text)
        form = form_for(text, policy, self.fixtures.plans, self.fixtures.is_compiled)
        outcomes: list[Outcome] = []
        rows = zip(self.fixtures.families, self.baseline, strict=True)
        for index, (family, (kind, baseline)) in enumerate(rows):
            # Counted again when the best of all is judged.
            run = run_case(self.fixtures, index, form, may_hold=self.may_hold)
            outcomes.append(Outcome(kind, run.values, baseline, family))
            scores.append(self.fitness.score(outcomes[-1:]))
            apart = [own - best for own, best in zip(scores, self.best_scores, strict=False)]
            if apart and hopeful(apart) < -MARGIN:
                break
        return outcomes


def tune(tuner: Tuner, evaluations: int, seed: int) -> Mapping[str, float]:
    """Finds better constants within a number of evaluations; does nothing if none are declared.

    Many evaluations are shared by several starts: a formula has more than one good place, and the
    last start begins at the best that the others found.
    """
    tuner.constants = tunables(tuner.text)
    if not tuner.constants:
        return {}
    start = [_part_of(each, each.value) for each in tuner.constants]
    tuner.loss(start)
    rng = np.random.default_rng(seed)
    starts = starts_within(evaluations)
    for index in range(starts):
        until = tuner.evaluations + (evaluations - tuner.evaluations) // (starts - index)
        begin, sigma = start, SIGMA
        if index:
            is_last = index + 1 == starts
            begin = _point(tuner) if is_last else list(rng.random(len(start)))
            sigma = NEAR if is_last else SIGMA
        _search(tuner, begin, sigma, until, seed + index)
    return tuner.values


def tunables(text: str) -> tuple[Constant, ...]:
    """Lists the constants of a text that can be tuned."""
    found = tuple(each for each in read_constants(text) if each.high > each.low)
    return found[:MOST_CONSTANTS]


def cost_of(text: str, evaluations: int) -> int:
    """Counts the evaluations that tuning a text within a number of them takes at most.

    More constants need more: a text with few is done before others.
    """
    count = len(tunables(text))
    if not count:
        return 0
    return min(evaluations, 1 + POINTS * (FEWEST_ROUNDS + count))


def starts_within(evaluations: int) -> int:
    """Counts the starts that share a number of evaluations."""
    return max(1, evaluations // EACH_START)


def _search(tuner: Tuner, begin: list[float], sigma: float, until: int, seed: int) -> None:
    # CMA-ES wants two dimensions at least; a second one that means nothing does no harm.
    padded = begin if len(begin) > 1 else [*begin, 0.5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cma

        strategy = cma.CMAEvolutionStrategy(padded, sigma, _options(until, seed))
        while not strategy.stop() and tuner.evaluations + POINTS <= until:
            points = strategy.ask()
            strategy.tell(points, [tuner.loss(point) for point in points])


def _point(tuner: Tuner) -> list[float]:
    """Returns where the best constants so far are in the unit cube."""
    return [_part_of(each, tuner.values.get(each.name, each.value)) for each in tuner.constants]


def _part_of(constant: Constant, value: float) -> float:
    """Returns where a value lies between its bounds, by its logarithm if all are positive."""
    low, high = constant.low, constant.high
    if low > 0:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def _value_at(constant: Constant, part: float) -> float:
    low, high = constant.low, constant.high
    return low * (high / low) ** part if low > 0 else low + part * (high - low)


def _options(evaluations: int, seed: int) -> dict[str, Any]:
    return {
        "bounds": [0, 1], "seed": seed % (2**31 - 2) + 1, "maxfevals": evaluations,
        "popsize": POINTS, "verbose": -9, "verb_disp": 0, "verb_log": 0, "verb_filenameprefix": "",
    }  # fmt: skip
