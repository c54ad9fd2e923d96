"""Decides which candidates are promoted, by what they gain on held-out cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium.errors import UsageError
from podium.evaluation.cases import Case
from podium.evaluation.measures import FIGURES, INFLATION, REPLAY, TIMED, Held, Values
from podium.evaluation.paired import Difference, holm, sign_flip_p
from podium.evaluation.validation import (
    FITNESS,
    Column,
    Group,
    GroupResults,
    Selection,
    ValidationResults,
    Worth,
)
from podium.search.judging.fitness import BASELINE, TOLERANCE, Fitness, Outcome
from podium.search.judging.scrutiny import hold_refusal

SENSES = {
    "allocation_130": +1, "allocation_100": +1, "allocation_arriving": +1, "fragmentation": -1,
    "fragmentation_arriving": -1, "wait_mean_s": -1, "wait_p95_s": -1, FITNESS: +1,
}  # fmt: skip
"""Which way is better."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a candidate must win, and against which policy."""

    incumbent: str = BASELINE
    figure: str = "allocation_130"
    risk: float = 0.05  # that any candidate is promoted by luck
    tolerance: float = TOLERANCE  # points that a trace may lose at 100 % arrived load
    trained: frozenset[str] = frozenset()  # traces that the search saw
    may_hold: bool = True  # whether candidates may hold pods
    aim: str = ""  # what the fitness is called, where candidates are judged by it

    def __post_init__(self) -> None:
        if self.figure not in SENSES:
            known = ", ".join(SENSES)
            raise UsageError(f'candidates cannot be judged by "{self.figure}"', hint=f"use {known}")

    @property
    def protocol(self) -> str:
        """Names the protocol under which the figure is taken."""
        return INFLATION if self.figure in FIGURES[INFLATION] else REPLAY

    def counts(self, group: Group) -> bool:
        """Returns whether cases of a group may have the figure."""
        return self.figure == FITNESS or group.protocol == self.protocol

    @property
    def by_aim(self) -> str:
        """Says what a gain is measured by, where that is not the usual figure."""
        return f" by {self.aim}" if self.aim else ""


def worth_by(fitness: Fitness) -> Worth:
    """Measures runs by a fitness, each beside that of fgd on the same case."""
    protocols = _protocols_of(fitness)

    def worth(case: Case, values: Values, baseline: Values) -> float | None:
        if case.protocol not in protocols:
            return None
        return fitness.score([Outcome(case.protocol, values, baseline, case.family)])

    return worth


def _protocols_of(fitness: Fitness) -> set[str]:
    return {kind if kind in TIMED else INFLATION for kind in fitness.kinds}


def check_measured(rule: Rule, cases: Sequence[Case], fitness: Fitness) -> None:
    """Refuses cases that cannot tell which candidate is better, before anything is run on them.

    Raises:
        UsageError: none of them has the figure that decides.
    """
    protocols = _protocols_of(fitness) if rule.figure == FITNESS else {rule.protocol}
    if not any(case.protocol in protocols and not case.is_perturbed for case in cases):
        raise _unmeasured(rule)


@dataclass(frozen=True, slots=True)
class Promotion:
    """Whether a candidate is promoted, and why."""

    name: str
    accepted: bool
    reasons: tuple[str, ...]  # why not; or, of an accepted one, what it won
    gain: Difference  # over the incumbent, with an interval as wide as the correction demands
    perturbed: Difference | None  # likewise on perturbed clusters, which count for themselves
    p_value: float  # corrected for the number of candidates
    may_hold: bool  # it says so, or it did
    held: Held  # decisions on held-out cases that held a pod, and all of them
    table: tuple[GroupResults, ...]

    @property
    def holds(self) -> str:
        """Describes at how many of its decisions it held a pod that fitted somewhere."""
        held, decisions = self.held
        return f"{held:,} of {decisions:,} decisions"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a candidate gains on each seed, and how likely chance is to give as much."""

    name: str
    gains: Column
    p_value: float


def decide(
    results: ValidationResults, candidates: Mapping[str, bool], rule: Rule,
    random: np.random.Generator, baselines: Sequence[str] = (BASELINE,),
) -> tuple[Promotion, ...]:  # fmt: skip
    """Judges candidates, each given with whether it declares that it may hold pods.

    Those that do, or that held one on a held-out case, are judged separately.
    """
    jury = _Jury(results, rule, random, tuple(baselines))
    found: dict[str, Promotion] = {}
    holding = {name: says or results.held_by(name)[0] > 0 for name, says in candidates.items()}
    for may_hold in (False, True):
        claims = [jury.claim(name) for name, holds in holding.items() if holds == may_hold]
        corrected = holm([claim.p_value for claim in claims])
        for claim, p_value in zip(claims, corrected, strict=True):
            found[claim.name] = jury.promotion(claim, p_value, may_hold)
    return tuple(found[name] for name in candidates)


@dataclass(frozen=True, slots=True, eq=False)
class _Jury:
    results: ValidationResults
    rule: Rule
    random: np.random.Generator
    baselines: tuple[str, ...]

    def claim(self, name: str) -> Claim:
        gains = _gains(self.results, name, self.rule, lambda group: not group.is_perturbed)
        if len(gains) == 0:
            raise _unmeasured(self.rule)
        return Claim(name, gains, sign_flip_p(gains, self.random))

    def promotion(self, claim: Claim, p_value: float, may_hold: bool) -> Promotion:
        rule, results, name = self.rule, self.results, claim.name
        # Holm divides the risk by what multiplied the p-value.
        share = max(1.0, p_value / claim.p_value)
        gain = Difference.of(claim.gains, self.random, 1 - rule.risk / share)
        perturbed = _perturbed(results, name, rule, self.random)
        reasons = [] if rule.may_hold else _hold_problems(results, name)
        reasons += _gain_problems(gain, p_value, len(claim.gains), rule)
        reasons += _elsewhere_problems(results, name, rule, perturbed)
        # Holding pods back costs allocation at 100 % by its nature: reported, not judged.
        is_bound = rule.figure in FIGURES[INFLATION] and not may_hold
        reasons += _loss_problems(results, name, rule) if is_bound else []
        told = tuple(reasons) or (_won(gain, p_value, rule),)
        table = results.table(name, self.baselines, rule.trained)
        held = results.held_by(name)
        return Promotion(name, not reasons, told, gain, perturbed, p_value, may_hold, held, table)


def _gains(results: ValidationResults, name: str, rule: Rule, selection: Selection) -> Column:
    def selected(group: Group) -> bool:
        return rule.counts(group) and selection(group)

    gains = results.seed_gains(name, rule.incumbent, rule.figure, selected)
    return SENSES[rule.figure] * gains


def _unmeasured(rule: Rule) -> UsageError:
    if rule.aim:
        return UsageError(
            f"no held-out case measures what the search was for, {rule.aim}",
            hint="leave --trace out, or name one more trace",
        )
    return UsageError(
        f"no held-out case measures {rule.figure}",
        hint=f"give cases that use {rule.protocol}; those of openb:16 use {REPLAY}",
    )


def _hold_problems(results: ValidationResults, name: str) -> list[str]:
    refusal = hold_refusal(results.held.get(name, ()), [case.name for case in results.cases])
    return [refusal] if refusal else []


def _gain_problems(gain: Difference, p_value: float, seeds: int, rule: Rule) -> list[str]:
    if gain.low > 0 and p_value < rule.risk:
        return []
    told = (
        f"its mean gain over {rule.incumbent}{rule.by_aim} on held-out cases is {gain.mean:+.3f} "
        f"({gain.low:+.3f} to {gain.high:+.3f}, p = {p_value:.4f} after correction), which is "
        "not surely above 0"
    )
    is_few = 2.0 ** (1 - seeds) >= rule.risk
    return [told + (f"; {seeds} seeds are too few to be sure of any gain" if is_few else "")]


def _perturbed(
    results: ValidationResults, name: str, rule: Rule, random: np.random.Generator
) -> Difference | None:
    gains = _gains(results, name, rule, lambda group: group.is_perturbed)
    if len(gains) == 0:
        return None
    return Difference.of(gains, random)


def _elsewhere_problems(
    results: ValidationResults, name: str, rule: Rule, perturbed: Difference | None
) -> list[str]:
    found = []
    if perturbed is None:
        found.append("it was measured on no perturbed clusters")
    elif perturbed.low <= 0:
        found.append(
            f"it does not win on perturbed clusters: {perturbed.mean:+.3f} over "
            f"{rule.incumbent} ({perturbed.low:+.3f} to {perturbed.high:+.3f})"
        )
    unseen = [g for g in results.groups() if g.trace not in rule.trained and not g.is_perturbed]
    others = _gains(results, name, rule, unseen.__contains__)
    if len(others) and others.mean() <= 0:
        found.append(
            f"it does not win on traces that it was not trained on: {others.mean():+.3f} over "
            f"{rule.incumbent}"
        )
    return found


def _loss_problems(results: ValidationResults, name: str, rule: Rule) -> list[str]:
    found = []
    for group in results.groups():
        if group.protocol != INFLATION or group.is_perturbed:
            continue
        own, its = (
            results.column(each, "allocation_100", group) for each in (name, rule.incumbent)
        )
        lost = float((its - own).mean())
        if lost > rule.tolerance:
            found.append(
                f"it loses {lost:.2f} points to {rule.incumbent} at 100 % arrived load on "
                f"{group.name}; {rule.tolerance:g} at most"
            )
    return found


def _won(gain: Difference, p_value: float, rule: Rule) -> str:
    return (
        f"its mean gain over {rule.incumbent}{rule.by_aim} on held-out cases is {gain.mean:+.3f} "
        f"({gain.low:+.3f} to {gain.high:+.3f}, p = {p_value:.4f} after correction)"
    )
