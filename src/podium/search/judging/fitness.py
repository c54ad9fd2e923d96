"""Turns what was measured on training cases into one number, by a rule that has a name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.errors import UnknownName, UsageError
from podium.evaluation.measures import FUNSEARCH, HOLDING, INFLATION, REPLAY, Values
from podium.search.judging.objective import PREFIX, Loaded, Objective

BASELINE = "fgd"
"""The policy that candidates are measured beside."""

TOLERANCE = 0.5
"""Points of allocation that a candidate may fall below fgd at 100 % without penalty, on one case.

The mean of several cases is chance to a lesser degree: of n, it is one nth.
"""

PENALTY = 2.0
"""Points lost for each further point below fgd at 100 %."""

FLOOR_PENALTY = 0.3
"""Points lost for each point below the floor of a rule for holding.

Holding trades about 0.2 points at 130 % for a point at 100 %: this is just steeper, so that the
best lies at the floor, and what lies below it is still a way there.
"""

STARVING = 0.1
"""Points lost for each percent of the CPU-only pods that fgd places and the candidate does not.

They ask for no GPU: a policy that never placed one would look the better for it.
"""

PATIENCE_S = 60.0
"""Added to every wait before two are compared, so that seconds do not decide."""

MAX_WAIT_S = 40.0
"""The mean wait up to which the FunSearch score counts in full, where a rule names no other."""

WAITING_PENALTY = 2.0
"""Points of the FunSearch score lost for each doubling of the mean wait beyond what is allowed."""

MOST_WAITING_PENALTY = 10.0
"""The most that waiting can cost on a case: on some, pods wait whatever the policy does."""

RULES = {
    "inflation": "mean GPU allocation (percent) when 130 % of the GPUs were asked for, less "
    f"{PENALTY:g} points for each point by which, on any of the traces, the mean at 100 % is more "
    f"than {TOLERANCE:g} / n below that of fgd, n being the cases of the trace; the points of "
    "several traces are added",
    "holding:FLOOR": "for candidates that may hold pods: mean GPU allocation (percent) when 130 % "
    f"of the GPUs were asked for, less {FLOOR_PENALTY:g} points for each point by which the mean "
    f"at 100 % is below FLOOR, and less {STARVING:g} for each percent of the CPU-only pods that "
    "fgd places and the candidate does not; a pod that is held was asked for like any other",
    "waiting": "under replay, the mean over the cases of 100 w / (w + v), once with the mean and "
    "once with the 95th percentile of how long pods wait, where v is that of the candidate, w that "
    f"of fgd, and both are taken {PATIENCE_S:g} s longer: 50 is as good as fgd; plus the points "
    "(percent of all GPUs) by which fragmentation while pods arrive is below that of fgd",
    "fragmentation": "100 less the mean fragmentation (percent of all GPUs) after each arrival "
    "under inflation",
    "funsearch:SECONDS": "100 times the score of the FunSearch simulator by its own rules, with or "
    "without its failed attempts as events, whichever is less, averaged over the cases; on each "
    f"less {WAITING_PENALTY:g} points for each doubling of the mean wait beyond SECONDS s, and "
    f"{MOST_WAITING_PENALTY:g} at most",
}
EXAMPLES = ("holding:93", "funsearch", "funsearch:40", "mix:inflation=0.7,waiting=0.3")
NEEDS = {
    "inflation": INFLATION, "holding": INFLATION, "waiting": REPLAY, "fragmentation": INFLATION,
    "funsearch": FUNSEARCH,
}  # fmt: skip
"""The protocol whose runs a rule looks at."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a candidate reached on one case, beside what fgd reaches there."""

    kind: str  # the protocol of the case
    values: Values
    baseline: Values
    family: str = ""  # of the case: its trace, on its cluster


@dataclass(frozen=True, slots=True)
class Fitness:
    """Weighs rules; the weights sum to 1."""

    name: str
    weights: tuple[tuple[str, float], ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Lists the kinds of training cases that the rules need, each once."""
        bases = [_split(rule)[0] for rule, _ in self.weights]
        kinds = (HOLDING if base == HOLDING else NEEDS[base] for base in bases)
        return tuple(dict.fromkeys(kinds))

    @property
    def may_hold(self) -> bool:
        """Returns whether candidates that hold pods are wanted."""
        return any(_split(rule)[0] == HOLDING for rule, _ in self.weights)

    @property
    def text(self) -> str:
        """Shows the whole formula in words."""
        return "\n".join(f"{weight:g} x ({_words(rule)})" for rule, weight in self.weights)

    def score(self, outcomes: Sequence[Outcome]) -> float:
        """Returns the fitness over some cases, by the rules that have a case among them."""
        found = self.terms(outcomes)
        weights = {rule: weight for rule, weight in self.weights if rule in found}
        return sum(weights[rule] * found[rule] for rule in found) / (sum(weights.values()) or 1.0)

    def terms(self, outcomes: Sequence[Outcome]) -> dict[str, float]:
        """Returns the value of each rule before weighing."""
        terms: dict[str, float] = {}
        for rule, _ in self.weights:
            base, floor = _split(rule)
            found = [each for each in outcomes if each.kind == NEEDS[base]]
            if found:
                terms[rule] = _term(base, floor, found)
        return terms


class ObjectiveFitness(Fitness):
    """Leaves what runs are worth to an objective of the user's; its file is run when needed."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Lists the kinds of training cases that the file names."""
        return self._loaded.kinds

    @property
    def may_hold(self) -> bool:
        """Returns whether the file wants candidates that hold pods."""
        return self._loaded.may_hold

    @property
    def text(self) -> str:
        """Shows what the file says of itself."""
        return self._loaded.text

    def score(self, outcomes: Sequence[Outcome]) -> float:
        """Returns what the objective makes of runs."""
        return self._loaded.score([(each.kind, each.values, each.baseline) for each in outcomes])

    def terms(self, outcomes: Sequence[Outcome]) -> dict[str, float]:
        """Returns the same: an objective has no parts."""
        return {"objective": self.score(outcomes)}

    @property
    def _loaded(self) -> Loaded:
        return Objective.named(self.name).loaded()


def fitness_named(name: str) -> Fitness:
    """Finds a fitness: a rule, `mix:RULE=WEIGHT,RULE=WEIGHT`, or an objective's name.

    >>> fitness_named("holding:84").may_hold
    True
    >>> fitness_named("mix:inflation=3,waiting=1").weights
    (('inflation', 0.75), ('waiting', 0.25))
    """
    if name.startswith(PREFIX):
        Objective.named(name)
        return ObjectiveFitness(name, ((name, 1.0),))
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
    base, floor = _split(rule)
    if base == HOLDING:
        _check_floor(rule, floor)
    elif base == FUNSEARCH:
        _check_wait(rule, floor)
    elif rule not in RULES:
        known = [name for name in RULES if ":" not in name]
        raise UnknownName.among("fitness", rule, [*known, *EXAMPLES])


def _check_floor(rule: str, floor: str) -> None:
    try:
        is_percentage = 0 <= float(floor) <= 100
    except ValueError:
        is_percentage = False
    if not is_percentage:
        raise UsageError(
            f'"{rule}" names no floor',
            hint="write the percent of GPUs to allocate at 100 %, as in holding:93",
        )


def _check_wait(rule: str, limit: str) -> None:
    try:
        is_time = 0 < float(limit or MAX_WAIT_S) < float("inf")
    except ValueError:
        is_time = False
    if not is_time or rule.endswith(":"):
        raise UsageError(
            f'"{rule}" names no limit on the mean wait',
            hint="write seconds, as in funsearch:40",
        )


def _split(rule: str) -> tuple[str, str]:
    """Parts a rule from its number, which is empty where it has none."""
    base, _, floor = rule.partition(":")
    return base, floor


def _words(rule: str) -> str:
    base, number = _split(rule)
    if base == FUNSEARCH:
        return RULES["funsearch:SECONDS"].replace("SECONDS", number or f"{MAX_WAIT_S:g}")
    return RULES[f"{base}:FLOOR"].replace("FLOOR", number) if number else RULES[rule]


def _term(base: str, number: str, outcomes: Sequence[Outcome]) -> float:
    if base == HOLDING:
        return _holding(outcomes, float(number))
    if base == FUNSEARCH:
        return _funsearch(outcomes, float(number or MAX_WAIT_S))
    return _RULES[base](outcomes)


def _mean(outcomes: Sequence[Outcome], key: str) -> float:
    return sum(each.values[key] for each in outcomes) / len(outcomes)


def _baseline(outcomes: Sequence[Outcome], key: str) -> float:
    return sum(each.baseline[key] for each in outcomes) / len(outcomes)


def _inflation(outcomes: Sequence[Outcome]) -> float:
    shortfalls = (_shortfall(each, TOLERANCE / len(each)) for each in _by_family(outcomes))
    return _mean(outcomes, "allocation_130") - PENALTY * sum(shortfalls)


def _by_family(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    families = dict.fromkeys(each.family for each in outcomes)
    return [[each for each in outcomes if each.family == family] for family in families]


def _shortfall(outcomes: Sequence[Outcome], tolerance: float) -> float:
    floor = _baseline(outcomes, "allocation_100") - tolerance
    return max(0.0, floor - _mean(outcomes, "allocation_100"))


def _holding(outcomes: Sequence[Outcome], floor: float) -> float:
    shortfall = max(0.0, floor - _mean(outcomes, "allocation_100"))
    cpu_only = "cpu_only_placed"
    starved = max(0.0, _baseline(outcomes, cpu_only) - _mean(outcomes, cpu_only))
    return _mean(outcomes, "allocation_130") - FLOOR_PENALTY * shortfall - STARVING * starved


def _waiting(outcomes: Sequence[Outcome]) -> float:
    # Case by case: one pod behind a job of months would outweigh all other cases together.
    shares = [_share(each, key) for each in outcomes for key in ("wait_mean_s", "wait_p95_s")]
    fragments = "fragmentation_arriving"
    gained = _baseline(outcomes, fragments) - _mean(outcomes, fragments)
    return sum(shares) / len(shares) + gained


def _share(outcome: Outcome, key: str) -> float:
    own, baseline = outcome.values[key] + PATIENCE_S, outcome.baseline[key] + PATIENCE_S
    return 100.0 * baseline / (baseline + own)


def _fragmentation(outcomes: Sequence[Outcome]) -> float:
    return 100.0 - _mean(outcomes, "fragmentation")


def _funsearch(outcomes: Sequence[Outcome], max_wait_s: float) -> float:
    # Failed attempts sample full clusters more often: nobody gains by them here.
    scores = ("funsearch_score", "funsearch_score_without_retries")
    found = []
    for each in outcomes:
        counted = min(each.values[key] for key in scores)
        beyond = max(1.0, each.values["funsearch_wait_mean_s"] / max_wait_s)
        found.append(counted - min(MOST_WAITING_PENALTY, WAITING_PENALTY * math.log2(beyond)))
    return sum(found) / len(found)


_RULES = {
    "inflation": _inflation, "waiting": _waiting, "fragmentation": _fragmentation,
}  # fmt: skip


def mean_values(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Averages what was measured, figure by figure, over the cases that have the figure."""
    keys = dict.fromkeys(key for each in values for key in each)
    found = {key: [each[key] for each in values if key in each] for key in keys}
    return {key: sum(numbers) / len(numbers) for key, numbers in found.items()}
