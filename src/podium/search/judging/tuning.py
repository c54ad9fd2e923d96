"""Tunes the constants that a candidate declares, by CMA-ES, inside its sandbox.

The search is about structure; numbers are found by a method that is better at numbers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
            value = constant.low + float(part) * (constant.high - constant.low)
            rounded = float(f"{value:.{DIGITS}g}")
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
        for index, (kind, baseline) in enumerate(self.baseline):
            # Counted again when the best of all is judged.
            run = run_case(self.fixtures, index, form, may_hold=self.may_hold)
            outcomes.append(Outcome(kind, run.values, baseline))
            scores.append(self.fitness.score(outcomes[-1:]))
            apart = [own - best for own, best in zip(scores, self.best_scores, strict=False)]
            if apart and hopeful(apart) < -MARGIN:
                break
        return outcomes


def tune(tuner: Tuner, evaluations: int, seed: int) -> Mapping[str, float]:
    """Finds better constants within a number of evaluations; does nothing if none are declared."""
    tuner.constants = tuple(c for c in read_constants(tuner.text) if c.high > c.low)
    tuner.constants = tuner.constants[:MOST_CONSTANTS]
    if not tuner.constants:
        return {}
    start = [(c.value - c.low) / (c.high - c.low) for c in tuner.constants]
    tuner.loss(start)
    # CMA-ES wants two dimensions at least; a second one that means nothing does no harm.
    padded = start if len(start) > 1 else [*start, 0.5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cma

        strategy = cma.CMAEvolutionStrategy(padded, SIGMA, _options(evaluations, seed))
        while not strategy.stop() and tuner.evaluations + POINTS <= evaluations:
            points = strategy.ask()
            strategy.tell(points, [tuner.loss(point) for point in points])
    return tuner.values


def _options(evaluations: int, seed: int) -> dict[str, Any]:
    return {
        "bounds": [0, 1], "seed": seed % (2**31 - 2) + 1, "maxfevals": evaluations,
        "popsize": POINTS, "verbose": -9, "verb_disp": 0, "verb_log": 0, "verb_filenameprefix": "",
    }  # fmt: skip
