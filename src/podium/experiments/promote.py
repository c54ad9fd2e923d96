"""Promotes what a run found: reduces, validates beside its controls, explains, writes a policy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.errors import UnknownName, UsageError
from podium.experiments.control import Searched, controls_of, corrupt, spent
from podium.experiments.listener import SILENT, Listener, Notes, announce_compilation
from podium.experiments.places import blaming
from podium.experiments.runs import best_of_run
from podium.experiments.search import warn_of_walls
from podium.experiments.search_plan import MeansRequest, means_of
from podium.experiments.training import absolute, folder_of, read_as, with_digest
from podium.files.excerpt import excerpt

if TYPE_CHECKING:
    from podium.evaluation.cases import Case
    from podium.evaluation.validation import Worth
    from podium.search.judging.judge import Judge
    from podium.search.promotion.card import Provenance
    from podium.search.promotion.control import Arm, Comparison, Control
    from podium.search.promotion.decision import Rule
    from podium.search.promotion.promote import Nominee, Outcome
    from podium.search.run.plan import RunPlan
    from podium.settings import Settings
    from podium.store import CandidateRecord, RunRecord, Store

FIGURES = {"inflation": "allocation_130", "holding": "allocation_130", "waiting": "wait_mean_s",
           "fragmentation": "fragmentation", "funsearch": "fitness",
           "objective": "fitness"}  # fmt: skip
"""The figure by which each fitness is judged on held-out cases; mixtures by allocation.

The score of FunSearch and objectives of the user's are no figures of a run: what was searched for
is measured by the fitness itself.
"""

CANDIDATE_S = 60.0
"""Time limit of one candidate."""


@dataclass(frozen=True, slots=True)
class PromotionRequest:
    """Describes which candidates of a run are nominated, and what they must beat."""

    run: str
    folder: Path = Path()  # for the policy and its card
    best: int = 1  # nominees: so many of the best
    candidates: tuple[int, ...] = ()  # or these
    name: str = ""
    summary: str = ""  # what the policy does, in a line of whoever promotes it
    describe: str = ""  # what it does and why, in sentences of whoever promotes it
    seeds: int = 20  # validation seeds of each case
    traces: tuple[str, ...] = ()  # validate on these alone
    cluster: str | None = None  # the nodes for traces that have none
    load: float | None = None  # of replays of traces that the run never saw
    loss: float = 0.02  # fitness that a shorter formula may lose
    incumbent: str = "fgd"
    jobs: int = 0  # threads and workers of controls; 0: one per core

    def __post_init__(self) -> None:
        if {"/", "\\"} & set(self.name) or self.name.startswith("."):
            raise UsageError(
                f"{self.name!r} is not a name for a policy", where="flag --name",
                hint="use letters, digits and dashes; --to names the folder",
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Controlled:
    """The best of a run beside its controls."""

    run: str
    candidate: int
    evaluations: int
    fitness: float | None  # on the training set
    comparisons: tuple[Comparison, ...]
    origin: str | None  # what it would be called if promoted as it is; None without tuned seeds

    def as_object(self) -> dict[str, Any]:
        """Describes the comparison as JSON types."""
        return {
            "run": self.run, "candidate": self.candidate, "evaluations": self.evaluations,
            "fitness": self.fitness, "origin": self.origin,
            "control": [each.as_object() for each in self.comparisons],
        }  # fmt: skip


def control(
    settings: Settings, request: PromotionRequest, arms: Sequence[str] = (),
    listener: Listener = SILENT,
) -> Controlled:  # fmt: skip
    """Runs what is missing of the controls of a run, and sets its best beside them."""
    import numpy as np

    from podium.evaluation.validation import baselines, validate
    from podium.search.candidate.gates import checked_policy
    from podium.search.promotion.control import compared, origin_of
    from podium.search.promotion.promote import authorship_in

    wanted = _arms(arms)
    with _opened(settings, request) as searched:
        plan, record = searched.plan, searched.record
        cases = held_out_cases(settings, plan, request, listener)
        announce_compilation(listener)
        controls = controls_of(searched, wanted, listener)
        (best,) = best_of_run(searched.store, record)
        evaluations = searched.evaluations
    name = f"candidate {best.number}"
    texts = {name: best.text, **{each.title: each.text for each in controls}}
    policies = {title: checked_policy(text, title) for title, text in texts.items()}
    rule, worth = rule_of(plan, request), worth_of(plan)
    policies |= baselines(("fgd",)) if worth else {}
    results = validate(policies, cases, partial(listener.progress, "validate"), request.jobs, worth)
    beside = compared(results, [name], controls, rule, np.random.default_rng(0))[name]
    called = None
    if "tuned" in wanted:
        called = origin_of(authorship_in(best.text, plan), beside, rule.risk)
    return Controlled(record.id, best.number, evaluations, best.fitness, beside, called)


def _arms(names: Sequence[str]) -> tuple[Arm, ...]:
    from podium.search.promotion.control import ARMS

    for each in names:
        if each not in ARMS:
            raise UnknownName.among("arm", each, ARMS, where="flag --arm")
    return tuple(each for each in ARMS if not names or each in names)


@contextmanager
def _opened(settings: Settings, request: PromotionRequest) -> Iterator[Searched]:
    """Opens the store for a block, and the run in it that is asked for."""
    from podium.experiments.runs import find_search, open_runs
    from podium.search.run.folder import RunFolder
    from podium.search.run.trust import check_objective

    means = means_of(settings, MeansRequest(request.jobs or None, time_limit_s=CANDIDATE_S))
    with open_runs(settings) as store:
        with blaming("argument RUN"):
            record = find_search(store, request.run)
        plan, evaluations = _plan_of(record), spent(store, record)
        check_objective(RunFolder(Path(record.folder)), record, plan)
        yield Searched(store, settings, record, plan, means, evaluations)


def promote(settings: Settings, request: PromotionRequest, listener: Listener = SILENT) -> Outcome:
    """Validates the best of a run on held-out cases and writes what wins as a policy file."""
    from podium.evaluation.validation import baselines
    from podium.search.judging.judge import Judge
    from podium.search.promotion.promote import check_folder
    from podium.search.sandbox.limits import Limits

    check_summary(request.summary)
    with blaming("flag --to"):
        check_folder(request.folder)
    with blaming("flag --incumbent"):
        baselines((request.incumbent,))
    with _opened(settings, request) as searched:
        plan = searched.plan
        nominees = nominees_of(searched.store, searched.record, plan, request)
        cases = held_out_cases(settings, plan, request, listener)
        announce_compilation(listener)
        controls = controls_of(searched, _arms(()), listener)
    limits = Limits(CANDIDATE_S, allows_unconfined=settings.search.allow_unconfined)
    with Judge(plan.training, plan.fitness, 1, limits) as judge:
        judge.pool.get_ready()
        warn_of_walls(listener, judge.pool.missing_walls)
        outcome = _decide(request, plan, nominees, (cases, controls), judge, listener)
    _keep(outcome, Path(searched.record.folder))
    return outcome


def _keep(outcome: Outcome, folder: Path) -> None:
    """Keeps in the run what was decided: who takes it to a cluster is asked for it."""
    from podium.search.run.folder import RunFolder
    from podium.search.run.promoted import Decision, keep_decisions

    files = iter(outcome.files)
    decisions = [
        Decision.on(
            outcome.texts[each.name], each.reasons,
            next(files).read_text(encoding="utf-8") if each.accepted else None,
        )
        for each in outcome.promotions
    ]  # fmt: skip
    keep_decisions(RunFolder(folder), decisions)


def check_summary(summary: str) -> None:
    """Refuses a summary that does not fit on the first line of a docstring."""
    from podium.search.promotion.card import WIDTH

    if len(summary) > WIDTH or not summary.isprintable():
        raise UsageError(
            f"the summary must be one line of at most {WIDTH} characters", where="flag --summary",
            hint="describe in one sentence what the policy does",
        )  # fmt: skip


def _decide(
    request: PromotionRequest, plan: RunPlan, nominees: list[Nominee],
    beside: tuple[tuple[Case, ...], tuple[Control, ...]], judge: Judge, listener: Listener,
) -> Outcome:  # fmt: skip
    from podium.search.promotion.control import seed_programs
    from podium.search.promotion.promote import Settings as PromotionSettings
    from podium.search.promotion.promote import promote as promote_all
    from podium.search.promotion.promote import scorer
    from podium.search.promotion.reduction import ReductionSettings

    cases, controls = beside
    wanted = PromotionSettings(
        scorer(judge, may_hold=plan.may_hold), request.folder, cases, rule_of(plan, request),
        ReductionSettings(request.loss), jobs=request.jobs, controls=controls,
        seeds=seed_programs(plan), worth=worth_of(plan),
    )  # fmt: skip
    return promote_all(nominees, wanted, listener.progress)


def rule_of(plan: RunPlan, request: PromotionRequest) -> Rule:
    """Chooses the figure that nominees are judged by, and the policy they must beat."""
    from podium.search.promotion.decision import Rule

    figure = _figure(plan)
    trained = frozenset(case.trace for case in plan.training.cases)
    aim = _aim(plan) if figure == "fitness" else ""
    return Rule(request.incumbent, figure, trained=trained, may_hold=plan.may_hold, aim=aim)


def worth_of(plan: RunPlan) -> Worth | None:
    """Measures held-out runs by the fitness of a search, where that is what decides."""
    from podium.search.judging.fitness import fitness_named
    from podium.search.promotion.decision import worth_by

    return worth_by(fitness_named(plan.fitness)) if _figure(plan) == "fitness" else None


def _figure(plan: RunPlan) -> str:
    return FIGURES.get(plan.fitness.partition(":")[0], "allocation_130")


def _aim(plan: RunPlan) -> str:
    """Names the fitness; an objective by its file, without folders."""
    from podium.search.judging.objective import PREFIX, Objective

    if plan.fitness.startswith(PREFIX):
        return f"the objective {Path(Objective.named(plan.fitness).path).name}"
    return f"the fitness {plan.fitness}"


def held_out_cases(
    settings: Settings, plan: RunPlan, request: PromotionRequest, listener: Listener = SILENT
) -> tuple[Case, ...]:
    """Lists what nominees are validated on: what was held out of the user's own traces, if any.

    What they cannot be validated on is refused before anything is run.
    """
    from podium.evaluation.validation import HeldOut
    from podium.search.judging.fitness import fitness_named
    from podium.search.promotion.decision import check_measured

    _refuse_unused(settings, request)
    names, own = _given_traces(settings, plan, request)
    checked = _checked(own, listener)
    with blaming("flag --trace"):
        cases = HeldOut(
            request.seeds, folder_of(settings), names, own=checked, beside=_by_funsearch(plan)
        ).cases()
        check_measured(rule_of(plan, request), cases, fitness_named(plan.fitness))
    return cases


def _given_traces(
    settings: Settings, plan: RunPlan, request: PromotionRequest
) -> tuple[tuple[str, ...], list[Case]]:
    """Tells named traces from the user's own, of which cases are made."""
    from podium.traces.catalogue import is_name

    place, parts = folder_of(settings), held_out_parts(plan)
    names: list[str] = []
    own: list[Case] = [] if request.traces else list(parts)
    for reference in map(absolute, request.traces):
        seen = [part for part in parts if part.trace == reference]
        is_file = Path(reference).exists() and not is_name(reference)
        if seen or is_file:
            unseen = (
                read_as(settings, case) for case in _unseen(reference, plan, request.load, place)
            )
            own += _on(request.cluster, seen or list(unseen))
        else:
            names.append(reference)
    return tuple(names), own


def _checked(own: Sequence[Case], listener: Listener) -> tuple[Case, ...]:
    """Reads and plans the user's own cases: one without nodes, for example, cannot be run."""
    from podium.evaluation.cases import planned
    from podium.policies import load

    noted = Notes(listener)
    checked = tuple(with_digest(case, noted) for case in own)
    with blaming("flag --trace"):
        tuple(planned(checked, load("first-fit")))
    return checked


def _refuse_unused(settings: Settings, request: PromotionRequest) -> None:
    """Refuses flags that only apply to given traces; what a run saw is read as it was then."""
    given = {"--cluster": request.cluster is not None}
    for name in ("state", "duration", "topology"):
        given[f"--{name}"] = settings.origins[f"simulate.{name}"].startswith("flag")
    for flag, is_given in given.items():
        if is_given and not request.traces:
            raise UsageError(f"{flag} needs --trace", hint="name the trace to validate on")


def held_out_parts(plan: RunPlan) -> tuple[Case, ...]:
    """Lists what was held out of the traces that a run trained on, where only these have it."""
    from podium.evaluation.splits import BY_SEED, VALIDATION

    found = (
        replace(case.held_out(), seed=VALIDATION[0], is_perturbed=False, nodes=None)
        for case in plan.training.cases
        if case.is_own or case.split != BY_SEED
    )
    return tuple(dict.fromkeys(found))


def _by_funsearch(plan: RunPlan) -> tuple[Case, ...]:
    """Lists cases by the rules of FunSearch, which no other search is validated on."""
    from podium.evaluation.measures import FUNSEARCH
    from podium.evaluation.splits import BY_SEED, VALIDATION

    found = (
        replace(case, seed=VALIDATION[0], is_perturbed=False, nodes=None)
        for case in plan.training.cases
        if case.protocol == FUNSEARCH and not case.is_own and case.split == BY_SEED
    )
    return tuple(dict.fromkeys(found))


def _unseen(reference: str, plan: RunPlan, load: float | None, folder: str) -> list[Case]:
    """Makes cases of a file that the run never saw, under the protocols that it trained on."""
    from podium.evaluation.cases import Case

    cases = {case.protocol: case for case in plan.training.cases}
    loads = {kind: 1.0 if case.is_drawn else case.load for kind, case in cases.items()}
    return [
        Case(reference, protocol=kind, load=own if load is None else load, folder=folder)
        for kind, own in loads.items()
    ]


def _on(cluster: str | None, cases: list[Case]) -> list[Case]:
    """Places the pods of cases on the nodes of another trace."""
    if cluster is None:
        return cases
    return [replace(case, cluster=absolute(cluster), digest="") for case in cases]


def nominees_of(
    store: Store, record: RunRecord, plan: RunPlan, request: PromotionRequest
) -> list[Nominee]:
    """Lists the candidates that are nominated, with where they were found."""
    from podium.search.promotion.promote import Nominee

    if request.candidates:
        found = [store.candidates.get(record.id, number) for number in request.candidates]
    else:
        found = best_of_run(store, record, request.best)
    if request.name and len(found) > 1:
        raise UsageError(
            "--name cannot name several policies", hint="leave --name out, or --best 1"
        )
    return [
        Nominee(
            each.text,
            provenance_of(store, record, plan, each),
            request.name,
            request.summary,
            request.describe,
        )
        for each in found
    ]


def provenance_of(
    store: Store, record: RunRecord, plan: RunPlan, found: CandidateRecord,
    seen: frozenset[str] = frozenset(),
) -> Provenance:  # fmt: skip
    """Describes where a candidate was found: in an earlier run, if this one started with it."""
    from podium.search.judging.fitness import fitness_named
    from podium.search.promotion.card import Provenance

    origin = _origin(store, found)
    seen |= {record.id}
    if origin is not None and origin[0] in seen:
        raise corrupt(record, f"candidate {found.number} claims to come from its own run")
    if origin is not None:
        earlier, nominee = store.runs.get(origin[0]), store.candidates.get(*origin)
        return provenance_of(store, earlier, _plan_of(earlier), nominee, seen)
    command, summary = record.settings.get("command"), _figures(record)
    if command is not None and not isinstance(command, str):
        raise corrupt(record, "its command is not a string")
    parents = {each.number: each.parents for each in store.candidates.of(record.id)}
    return Provenance(
        run=record.id, candidate=found.number, seed=plan.seed,
        command=command,
        generator=", ".join(each for each, _ in plan.generators),
        evaluations=summary.get("evaluations"), seconds=summary.get("seconds"),
        spend_usd=summary.get("usd") if summary.get("calls") else None,
        fitness=fitness_named(plan.fitness).text,
        training=tuple(case.name for case in plan.training.cases),
        ancestry=_ancestry(found.number, parents),
        ancestor=_ancestor(store, found),
    )  # fmt: skip


def _plan_of(record: RunRecord) -> RunPlan:
    from podium.search.run.folder import PLAN, RunFolder
    from podium.search.run.plan import RunPlan

    return RunPlan.from_object(RunFolder(Path(record.folder)).read(PLAN))


def _origin(store: Store, found: CandidateRecord) -> tuple[str, int] | None:
    """Reads the name that `--from` gave to a candidate of another run."""
    run, _, number = found.source.rpartition("-")
    is_named = found.kind == "seed" and run and number.isdigit()
    is_kept = is_named and run in {each.id for each in store.runs.all()}
    return (run, int(number)) if is_kept else None


def _ancestry(number: int, parents: dict[int, tuple[int, ...]]) -> int:
    """Counts the generations back to a seed, along main parents; nobody is their own ancestor."""
    seen: set[int] = set()
    while number not in seen and parents.get(number):
        seen.add(number)
        number = parents[number][0]
    return len(seen)


def _ancestor(store: Store, found: CandidateRecord) -> str | None:
    """Names the formula that a candidate descends from, where it is one that people wrote."""
    from podium.search.promotion.control import root_of

    by_number = {each.number: each for each in store.candidates.of(found.run_id)}
    root = root_of(found, by_number)
    return root.source if root.kind == "seed" and root.number != found.number else None


def _figures(record: RunRecord) -> dict[str, Any]:
    """Reads the figures of a run out of its summary, which others may have written."""
    found = {key: record.summary.get(key) for key in ("evaluations", "seconds", "usd", "calls")}
    for key, value in found.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value < math.inf):
            raise corrupt(record, f"{key} is {excerpt(value)}")
    return found
