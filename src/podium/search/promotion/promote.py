"""Turns found candidates into policies that ship: reduce, validate, decide, explain, write."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from podium.errors import PolicyError, UsageError
from podium.evaluation.cases import Case
from podium.evaluation.validation import (
    BASELINES,
    FITNESS,
    OWN_BASELINE,
    Group,
    HeldOut,
    ValidationResults,
    Worth,
    baselines,
    validate,
)
from podium.files.draft import drafted, unwritable
from podium.policies import Policy
from podium.search.candidate.gates import Candidate, checked_policy, read_candidate
from podium.search.candidate.verdict import Verdict
from podium.search.generators.genetic.seeds import seeds
from podium.search.judging.judge import Judge
from podium.search.program.program import Program
from podium.search.program.reader import parse_inlined
from podium.search.promotion.ablation import ablate
from podium.search.promotion.authorship import Authorship, authorship_of
from podium.search.promotion.card import Card, Provenance, Standing
from podium.search.promotion.control import Control, compared, origin_of, seed_programs
from podium.search.promotion.decision import Promotion, Rule, decide
from podium.search.promotion.policy_file import policy_text
from podium.search.promotion.reduction import Reduced, ReductionSettings, Score, reduce
from podium.search.run.plan import RunPlan

Progress = Callable[[str, int, int], None]
"""Called with a stage, how much of it is done, and its total; its last call may be left out."""

_REDUCE, _VALIDATE, _EXPLAIN = "reduce", "validate", "explain"


@dataclass(frozen=True, slots=True)
class Nominee:
    """The text of a candidate nominated for promotion."""

    text: str
    provenance: Provenance = field(default_factory=Provenance)
    name: str = ""  # of the policy; empty: made of what it computes
    summary: str = ""  # in the words of whoever promotes it, never in the candidate's own
    describe: str = ""  # likewise: what it does and why; empty: made of what it computes


@dataclass(frozen=True, slots=True)
class Settings:
    """How candidates are promoted, and where the policies are written."""

    score: Score  # training fitness of a text
    folder: Path
    cases: tuple[Case, ...] = field(default_factory=lambda: HeldOut().cases())
    rule: Rule = field(default_factory=Rule)
    reduction: ReductionSettings = field(default_factory=ReductionSettings)
    seed: int = 0  # of the resampling that decides
    jobs: int = 0  # threads; 0: one per core
    controls: tuple[Control, ...] = ()  # what tuning and drawing reach with as many evaluations
    seeds: Mapping[str, Program] = field(default_factory=seeds)  # the formulas that people wrote
    worth: Worth | None = None  # of held-out runs, where the fitness of the search decides


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a nominee was refused before validation."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of the nominees."""

    promotions: tuple[Promotion, ...]
    refusals: tuple[Refusal, ...]
    reduced: dict[str, Reduced]
    results: ValidationResults | None  # None where nothing could be validated
    files: tuple[Path, ...]  # of policies; each has a card of the same name beside it
    standings: dict[str, Standing] = field(default_factory=dict)  # whose each nominee is
    texts: dict[str, str] = field(default_factory=dict)  # of each nominee, as it was found


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    name: str
    nominee: Nominee
    reduced: Reduced
    policy: Policy


def scorer(judge: Judge, *, may_hold: bool = True) -> Score:
    """Scores texts in the sandbox on training cases; refuses those that hold pods if none may."""

    def score(text: str) -> float:
        found = judge.judge(text, may_hold=may_hold)
        return float(found.scores["fitness"]) if found.verdict.accepted else float("-inf")

    return score


def rivals(incumbent: str, cases: Sequence[Case]) -> tuple[str, ...]:
    """Names the policies that candidates are measured beside; on a cluster's own pods, one more."""
    own = [OWN_BASELINE] if any(case.is_of_cluster for case in cases) else []
    return tuple(dict.fromkeys([incumbent, *BASELINES, *own]))


def promote(
    nominees: Sequence[Nominee], settings: Settings, progress: Progress | None = None
) -> Outcome:
    """Promotes candidates that win on held-out cases; explains why each of the others does not.

    Held-out results decide once, here, and go back into no search.
    """
    tell = progress or (lambda _stage, _done, _total: None)
    check_folder(settings.folder)
    entries, refusals = _reduced(nominees, settings, tell)
    reduced = {entry.name: entry.reduced for entry in entries}
    if not entries:
        return Outcome((), tuple(refusals), reduced, None, ())
    _check_free(entries, settings.folder)
    beside = rivals(settings.rule.incumbent, settings.cases)
    policies = {**baselines(beside), **_policies(settings.controls)}
    policies |= {entry.name: entry.policy for entry in entries}
    results = validate(
        policies, settings.cases, lambda done, total: tell(_VALIDATE, done, total), settings.jobs,
        settings.worth,
    )  # fmt: skip
    holding = {entry.name: entry.policy.may_hold for entry in entries}
    random = np.random.default_rng(settings.seed)
    rows = (*beside, *(each.title for each in settings.controls))
    promotions = decide(results, holding, settings.rule, random, rows)
    standings = _standings(entries, settings, results, random)
    files: list[Path] = []
    for entry, promotion in zip(entries, promotions, strict=True):
        if promotion.accepted:
            tell(_EXPLAIN, len(files), sum(each.accepted for each in promotions))
            told = (promotion, standings[entry.name])
            files.append(_written(entry, told, settings, results))
    texts = {entry.name: entry.nominee.text for entry in entries}
    return Outcome(promotions, tuple(refusals), reduced, results, tuple(files), standings, texts)


def _policies(controls: Sequence[Control]) -> dict[str, Policy]:
    return {each.title: checked_policy(each.text, each.title) for each in controls}


def _standings(
    entries: Sequence[_Entry], settings: Settings, results: ValidationResults,
    random: np.random.Generator,
) -> dict[str, Standing]:  # fmt: skip
    """Finds out whose each nominee is: by what people wrote of it, and by its controls."""
    names = [entry.name for entry in entries]
    beside = compared(results, names, settings.controls, settings.rule, random)
    found = {}
    for entry in entries:
        program = entry.reduced.program
        authorship = None if program is None else authorship_of(program, settings.seeds)
        origin = origin_of(authorship, beside[entry.name], settings.rule.risk)
        found[entry.name] = Standing(origin, authorship, beside[entry.name])
    return found


def authorship_in(text: str, plan: RunPlan) -> Authorship | None:
    """Finds what of a text people wrote; None where it does not read as a program."""
    try:
        return authorship_of(parse_inlined(text), seed_programs(plan))
    except PolicyError:
        return None


def _reduced(
    nominees: Sequence[Nominee], settings: Settings, tell: Progress
) -> tuple[list[_Entry], list[Refusal]]:
    known: set[str] = set()
    entries: list[_Entry] = []
    refusals: list[Refusal] = []
    for number, nominee in enumerate(nominees):
        budget = settings.reduction.evaluations
        tell(_REDUCE, number * budget, len(nominees) * budget)
        title = nominee.name or f"nominee {number + 1}"
        try:
            told = partial(_tell_cut, tell, number * budget, len(nominees) * budget)
            entries.append(_entry(nominee, settings, known, told))
        except PolicyError as error:
            refusals.append(Refusal(title, error.message))
    return entries, refusals


def _tell_cut(tell: Progress, before: int, total: int, done: int, _size: int) -> None:
    tell(_REDUCE, before + done, total)


def _entry(
    nominee: Nominee, settings: Settings, known: set[str], told: Callable[[int, int], None]
) -> _Entry:
    first = _read(nominee.text, known)
    reduced = reduce(nominee.text, settings.score, settings.reduction, told)
    last = _read(reduced.text, known - {first.fingerprint})
    known |= {first.fingerprint, last.fingerprint}
    name = nominee.name or f"found-{last.fingerprint[:6]}"
    return _Entry(name, nominee, reduced, checked_policy(reduced.text, name))


def _read(text: str, known: set[str]) -> Candidate:
    read = read_candidate(text, known)
    if isinstance(read, Verdict):
        raise PolicyError(read.reason)
    return read


def check_folder(folder: Path) -> None:
    """Makes sure, before the work begins, that there is a folder to write policies to.

    Raises:
        UsageError: there is none, or it cannot be written to.
    """
    if not folder.is_dir():
        raise UsageError(
            f'the folder "{folder}" does not exist', hint="create it, or name another folder"
        )
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise unwritable(str(folder), error) from error


def _check_free(entries: Sequence[_Entry], folder: Path) -> None:
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1 or _path(folder, name).exists():
            raise UsageError(
                f'there is already a policy "{name}"', where=str(folder), hint="choose another name"
            )


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('-', '_')}.py"


def _written(
    entry: _Entry, told: tuple[Promotion, Standing], settings: Settings,
    results: ValidationResults,
) -> Path:  # fmt: skip
    program, fitness = entry.reduced.program, entry.reduced.fitness
    parts = () if program is None else ablate(program, settings.score, fitness)
    nominee = entry.nominee
    card = Card(
        entry.name, nominee.summary, nominee.provenance, entry.reduced, told[0], parts,
        settings.rule.incumbent, told[1], nominee.describe, settings.rule.aim,
    )  # fmt: skip
    text = policy_text(entry.reduced, card.docstring())
    if not _is_same(text, entry, settings, results):
        raise PolicyError(
            f"the written policy {entry.name} does not decide like the validated candidate",
            hint="report this as a bug in Podium, with the candidate",
        )
    path = _path(settings.folder, entry.name)
    shown = json.dumps(card.as_object(text), indent=2) + "\n"
    with drafted(path) as policy_file, drafted(path.with_suffix(".json")) as card_file:
        policy_file.write_text(text, encoding="utf-8")
        card_file.write_text(shown, encoding="utf-8")
    return path


def _is_same(text: str, entry: _Entry, settings: Settings, results: ValidationResults) -> bool:
    """Returns whether a text scores and decides like the entry, on a case of every group."""
    if settings.score(text) != entry.reduced.fitness:
        return False
    first = {Group.of(case): index for index, case in reversed([*enumerate(results.cases)])}
    cases = [results.cases[index] for index in first.values()]
    again = validate({entry.name: checked_policy(text, entry.name)}, cases, jobs=settings.jobs)
    known = [results.values[entry.name][index] for index in first.values()]
    before = [{key: each[key] for key in each if key != FITNESS} for each in known]
    return list(again.values[entry.name]) == before
