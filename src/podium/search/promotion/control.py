"""What a search is measured against: formulas of people with tuned numbers, and random drawing.

Without a control nobody knows what a search added. Both get as many evaluations as the search had,
on its own training set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from podium.errors import PodiumError
from podium.evaluation.paired import Difference, holm, sign_flip_p
from podium.evaluation.validation import Group, ValidationResults
from podium.search.candidate.constants import read_constants, with_constants
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.parameters import with_tunables
from podium.search.program.program import Program
from podium.search.program.reader import parse_inlined
from podium.search.program.writer import write
from podium.search.promotion.authorship import Authorship
from podium.search.promotion.decision import SENSES, Rule
from podium.search.run.plan import RANDOM, RunPlan, Tuning
from podium.search.run.strategies import plan_of
from podium.search.run.tunings import ALIKE
from podium.store import CandidateRecord

Arm = Literal["tuned", "random"]
ARMS: tuple[Arm, ...] = ("tuned", "random")
TITLES: dict[str, str] = {"tuned": "tuned seed", "random": "random drawing"}
"""What the best of an arm is called where policies are compared."""

Origin = Literal["written", "tuned", "found"]

FEWEST = 10
"""Evaluations below which CMA-ES tells nothing."""

MOST_TRIED = 4
"""Formulas that are tuned at all: the best as they were written."""

RESTART = 150
"""Evaluations of a restart, or more; CMA-ES needs about as many for a handful of numbers."""

TURNS = (0, 1, 0, 0, 2, 0, 1, 0)
"""Which of the best formulas is tuned again: the best of all every other time."""

_BEGIN = 2
"""Evaluations of a restart besides those of CMA-ES."""

SPREAD = 0.15
"""How far a restart begins from the best numbers, as a part of the distance between bounds."""


def written_seeds(plan: RunPlan) -> dict[str, str]:
    """Lists the formulas that people wrote: those that ship, and files that the run began with.

    A run that began with nothing is set beside them too: its ingredients are made of the same.
    """
    given = {title: text for title, text in plan.starters if not _is_found(title)}
    return {title: write(program) for title, program in seeds().items()} | given


def seed_programs(plan: RunPlan) -> dict[str, Program]:
    """Reads the formulas that people wrote; those beyond programs are left out."""
    found = {}
    for title, text in written_seeds(plan).items():
        try:
            found[title] = parse_inlined(text, title)
        except PodiumError:
            continue
    return found


def _is_found(title: str) -> bool:
    """Tells names that `--from` gives, a run's id and a number, from those of files."""
    run, _, number = title.rpartition("-")
    return number.isdigit() and len(run) == 8 and all(each in "0123456789abcdef" for each in run)


def random_plan(plan: RunPlan) -> RunPlan:
    """Plans random drawing: the same cases and the same grammar, without parents or tuning."""
    return replace(plan_of("random", plan), options={})


def tuning_plan(
    plan: RunPlan, evaluations: int, fitness: Mapping[str, float],
    formulas: Mapping[str, str] | None = None,
) -> RunPlan:  # fmt: skip
    """Plans the first round of tuning: the best formulas, with a third of the evaluations.

    Args:
        plan: of the search.
        evaluations: of both rounds.
        fitness: of formulas as they were written, where the search judged them.
        formulas: by name; None: all that people wrote.
    """
    texts = written_seeds(plan) if formulas is None else dict(formulas)
    unknown = [title for title in texts if title not in fitness]
    ranked = sorted(texts.keys() - set(unknown), key=lambda title: (-fitness[title], title))
    chosen = [(each, tunable_text(texts[each])) for each in (*ranked[:MOST_TRIED], *unknown)]
    count = sum(bool(read_constants(text)) for _, text in chosen)
    each = (evaluations // 3 - len(chosen)) // max(1, count) - 1
    return _tuning(plan, chosen, max(FEWEST, each))


def first_round(plan: RunPlan, evaluations: int) -> int:
    """Returns the evaluations of the first round: a third, or what its formulas need at least.

    Where too few would be left for a second round, the first one has them all.
    """
    first = max(evaluations // 3, len(plan.starters) + FEWEST + 1)
    return first if evaluations - first >= FEWEST + _BEGIN else evaluations


def restart_plan(
    plan: RunPlan, rows: Sequence[CandidateRecord], evaluations: int
) -> RunPlan | None:
    """Plans the second round: the best formulas again, from around where they are; the best most.

    Args:
        plan: of the search.
        rows: what the first round judged.
        evaluations: that are left.
    """
    leaders = _leaders(rows)
    starts = max(1, min(len(TURNS), evaluations // RESTART))
    each = evaluations // starts - _BEGIN
    if not leaders or each < FEWEST:
        return None
    rng = np.random.default_rng([plan.seed, len(rows)])
    texts: dict[str, str] = {}
    for turn in TURNS[:starts]:
        title, text = leaders[min(turn, len(leaders) - 1)]
        again = sum(known.startswith(f"{title}~") for known in texts)
        texts[f"{title}~{again + 1}"] = _moved(text, rng) if again else text
    return _tuning(plan, list(texts.items()), each)


def _tuning(plan: RunPlan, texts: Sequence[tuple[str, str]], evaluations: int) -> RunPlan:
    return replace(
        plan, generators=(), start=RANDOM, starters=tuple(texts), tuning=Tuning(1, evaluations),
        options={},
    )  # fmt: skip


def tunable_text(text: str) -> str:
    """Declares every number of a formula as a constant to be tuned, where it can be read."""
    try:
        return write(with_tunables(parse_inlined(text)))
    except PodiumError:
        return text


def _leaders(rows: Sequence[CandidateRecord]) -> list[tuple[str, str]]:
    """Lists formulas with constants by the best fitness each reached, with that text.

    Of those about as good as the best, the one with most numbers has most to gain, and is first.
    """
    by_number = {each.number: each for each in rows}
    best: dict[str, CandidateRecord] = {}
    for row in rows:
        if not row.accepted or row.fitness is None or not read_constants(row.text):
            continue
        title = root_of(row, by_number).source
        if title not in best or row.fitness > (best[title].fitness or 0.0):
            best[title] = row
    highest = max((row.fitness or 0.0 for row in best.values()), default=0.0)

    def rank(item: tuple[str, CandidateRecord]) -> tuple[float, float, str]:
        title, row = item
        fitness = row.fitness or 0.0
        numbers = len(read_constants(row.text)) if fitness >= highest - ALIKE else 0
        return -numbers, -fitness, title

    return [(title, row.text) for title, row in sorted(best.items(), key=rank)]


def root_of(row: CandidateRecord, by_number: Mapping[int, CandidateRecord]) -> CandidateRecord:
    """Finds what a candidate descends from, along main parents; nobody is their own ancestor."""
    seen: set[int] = set()
    while row.parents and row.parents[0] in by_number and row.number not in seen:
        seen.add(row.number)
        row = by_number[row.parents[0]]
    return row


def _moved(text: str, rng: np.random.Generator) -> str:
    """Moves every constant by a part of the distance between its bounds."""
    found = {}
    for each in read_constants(text):
        step = SPREAD * float(rng.standard_normal()) * (each.high - each.low)
        moved = float(f"{each.value + step:.4g}")
        found[each.name] = min(each.high, max(each.low, moved))
    return with_constants(text, found)


@dataclass(frozen=True, slots=True)
class Control:
    """The best of one arm."""

    arm: str
    text: str
    source: str  # the formula that was tuned; of a drawn program, its candidate
    runs: tuple[str, ...]
    evaluations: int
    fitness: float  # on the training set

    @property
    def title(self) -> str:
        """Names the policy where it is compared."""
        return TITLES[self.arm]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A policy beside the best of one arm on held-out seeds."""

    control: Control
    figure: str
    own: float  # mean of the figure
    its: float
    lead: Difference  # above 0 is better, whatever the figure
    p_value: float  # corrected for the number of policies that are compared
    lead_100: Difference | None = None  # in allocation at 100 % arrived load, where that is known

    def is_beyond_chance(self, risk: float) -> bool:
        """Returns whether the policy is better by more than chance gives."""
        return self.lead.low > 0 and self.p_value < risk

    def as_object(self) -> dict[str, Any]:
        """Describes the comparison as JSON types."""
        told = {key: value for key, value in asdict(self.control).items() if key != "text"}
        return {
            **told, "runs": list(self.control.runs), "fitness": round(self.control.fitness, 4),
            "figure": self.figure, "held_out": round(self.its, 4), "own": round(self.own, 4),
            "lead": _rounded(self.lead), "p_value": self.p_value,
            **({"lead_100": _rounded(self.lead_100)} if self.lead_100 is not None else {}),
        }  # fmt: skip


def _rounded(lead: Difference) -> list[float]:
    return [round(each, 4) for each in (lead.mean, lead.low, lead.high)]


def compared(
    results: ValidationResults, names: Sequence[str], controls: Iterable[Control], rule: Rule,
    random: np.random.Generator,
) -> dict[str, tuple[Comparison, ...]]:  # fmt: skip
    """Sets policies beside the arms on the same held-out cases, pair by pair."""
    found: dict[str, list[Comparison]] = {name: [] for name in names}
    for control in controls:
        gains = {name: _gains(results, name, control.title, rule) for name in names}
        raw = [sign_flip_p(gains[name], random) for name in names]
        for name, p_value in zip(names, holm(raw), strict=True):
            lead = Difference.of(gains[name], random)
            own, its = (_mean(results, each, rule) for each in (name, control.title))
            early = _early_lead(results, name, control.title, rule, random)
            found[name].append(Comparison(control, rule.figure, own, its, lead, p_value, early))
    return {name: tuple(each) for name, each in found.items()}


def _is_plain(group: Group, rule: Rule) -> bool:
    return rule.counts(group) and not group.is_perturbed


def _early_lead(
    results: ValidationResults, name: str, other: str, rule: Rule, random: np.random.Generator
) -> Difference | None:
    """Measures what a lead at 130 % costs at 100 %, where policies are judged by the former."""
    if rule.figure != "allocation_130":
        return None
    gains = results.seed_gains(name, other, "allocation_100", lambda group: _is_plain(group, rule))
    return Difference.of(gains, random) if len(gains) else None


def _gains(results: ValidationResults, name: str, other: str, rule: Rule) -> Any:
    gains = results.seed_gains(name, other, rule.figure, lambda group: _is_plain(group, rule))
    return SENSES[rule.figure] * gains


def _mean(results: ValidationResults, name: str, rule: Rule) -> float:
    plain = [each for each in results.groups() if _is_plain(each, rule)]
    groups = [each for each in plain if rule.figure in results.figures(each)]
    means = [results.column(name, rule.figure, each).mean() for each in groups]
    return float(np.mean(means))


def origin_of(authorship: Authorship | None, beside: Sequence[Comparison], risk: float) -> Origin:
    """Decides what a promoted policy is called.

    Found is what has a structure of its own and beats the best formula of people, with its
    numbers tuned as long, by more than chance. Whatever does not is called tuned.
    """
    if authorship is not None and authorship.is_written:
        return "written" if authorship.is_unchanged else "tuned"
    is_better = any(each.control.arm == "tuned" and each.is_beyond_chance(risk) for each in beside)
    return "found" if is_better else "tuned"
