"""Turns what was measured on training cases into one number, by a rule that has a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.errors import UnknownName, UsageError
from podium.search.measurement import INFLATION, REPLAY, Values

BASELINE = "fgd"
"""The policy that candidates are measured beside."""

TOLERANCE = 0.5
"""Points of allocation that a candidate may fall below fgd at 100 % without penalty."""

PENALTY = 2.0
"""Points lost for each further point below fgd at 100 %."""

SHORTEST_WAIT_S = 1.0

RULES = {
    "inflation": "mean GPU allocation (percent) when 130 % of the GPUs were asked for, less "
    f"{PENALTY:g} points for each point by which the mean at 100 % is more than {TOLERANCE:g} "
    "below that of fgd",
    "waiting": "100 w / (w + v) under replay, where v is the mean waiting of pods (seconds) and w "
    "that of fgd: 50 is as good as fgd, 100 is no waiting",
    "fragmentation": "100 less the mean fragmentation (percent of all GPUs) after each arrival "
    "under inflation",
}
NEEDS = {"inflation": INFLATION, "waiting": REPLAY, "fragmentation": INFLATION}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Holds what a candidate reached on one case, beside what fgd reaches there."""

    kind: str  # the protocol of the case
    values: Values
    baseline: Values


@dataclass(frozen=True, slots=True)
class Fitness:
    """Weighs rules; the weights sum to 1."""

    name: str
    weights: tuple[tuple[str, float], ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Lists the protocols that the rules need, each once."""
        return tuple(dict.fromkeys(NEEDS[rule] for rule, _ in self.weights))

    @property
    def text(self) -> str:
        """Shows the whole formula in words."""
        return "\n".join(f"{weight:g} x ({RULES[rule]})" for rule, weight in self.weights)

    def score(self, outcomes: Sequence[Outcome]) -> float:
        """Gives the fitness over some cases, by the rules that have a case among them."""
        found = self.terms(outcomes)
        weights = {rule: weight for rule, weight in self.weights if rule in found}
        return sum(weights[rule] * found[rule] for rule in found) / (sum(weights.values()) or 1.0)

    def terms(self, outcomes: Sequence[Outcome]) -> dict[str, float]:
        """Gives the value of each rule before weighing."""
        return {
            rule: _RULES[rule](found)
            for rule, _ in self.weights
            if (found := [each for each in outcomes if each.kind == NEEDS[rule]])
        }


def fitness_named(name: str) -> Fitness:
    """Finds a fitness: a rule, or `mix:RULE=WEIGHT,RULE=WEIGHT`.

    >>> fitness_named("mix:inflation=3,waiting=1").weights
    (('inflation', 0.75), ('waiting', 0.25))
    """
    kind, _, mixture = name.partition(":")
    if kind != "mix" or not mixture:
        _check_rule(name)
        return Fitness(name, ((name, 1.0),))
    weights = dict(_weight(part) for part in mixture.split(","))
    total = sum(weights.values())
    return Fitness(name, tuple((rule, weight / total) for rule, weight in weights.items()))


def _weight(part: str) -> tuple[str, float]:
    rule, _, written = part.partition("=")
    _check_rule(rule.strip())
    try:
        weight = float(written)
    except ValueError:
        weight = 0.0
    if not 0 < weight < float("inf"):
        raise UsageError(
            f'the weight of "{part}" is not a positive number',
            hint="write a mixture as mix:inflation=0.7,waiting=0.3",
        )
    return rule.strip(), weight


def _check_rule(rule: str) -> None:
    if rule not in RULES:
        raise UnknownName.among("fitness", rule, [*RULES, "mix:inflation=0.7,waiting=0.3"])


def _mean(outcomes: Sequence[Outcome], key: str) -> float:
    return sum(each.values[key] for each in outcomes) / len(outcomes)


def _baseline(outcomes: Sequence[Outcome], key: str) -> float:
    return sum(each.baseline[key] for each in outcomes) / len(outcomes)


def _inflation(outcomes: Sequence[Outcome]) -> float:
    floor = _baseline(outcomes, "allocation_100") - TOLERANCE
    shortfall = max(0.0, floor - _mean(outcomes, "allocation_100"))
    return _mean(outcomes, "allocation_130") - PENALTY * shortfall


def _waiting(outcomes: Sequence[Outcome]) -> float:
    usual = max(SHORTEST_WAIT_S, _baseline(outcomes, "wait_mean_s"))
    return 100.0 * usual / (usual + _mean(outcomes, "wait_mean_s"))


def _fragmentation(outcomes: Sequence[Outcome]) -> float:
    return 100.0 - _mean(outcomes, "fragmentation")


_RULES = {"inflation": _inflation, "waiting": _waiting, "fragmentation": _fragmentation}


def mean_values(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Averages what was measured, figure by figure, over the cases that have the figure."""
    keys = dict.fromkeys(key for each in values for key in each)
    found = {key: [each[key] for each in values if key in each] for key in keys}
    return {key: sum(numbers) / len(numbers) for key, numbers in found.items()}
