"""Builds the cases that candidates are trained on: embedded ones, or those of given traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.errors import UsageError
from podium.experiments.leeway import require_leeway
from podium.experiments.listener import SILENT, Listener, Notes
from podium.experiments.loading import load_options
from podium.experiments.places import blaming, traces_folder

if TYPE_CHECKING:
    from podium.evaluation.cases import Case, TrainingSet
    from podium.evaluation.splits import Split
    from podium.settings import Settings
    from podium.sim.plan import Plan


DEFAULT_FITNESS = "inflation"

TRACE_SEEDS = 8
"""Cases of each trace that somebody names."""


@dataclass(frozen=True, slots=True)
class CasesRequest:
    """Describes the cases that candidates are trained on, and what they are worth there."""

    fitness: str = DEFAULT_FITNESS
    traces: tuple[str, ...] = ()  # none: workload families of the embedded profile
    seeds: int | None = None  # cases of each trace or family; None: as many as are usual
    nodes: int | None = None  # drawn of a trace's cluster
    cluster: str | None = None  # the nodes of another trace
    load: float | None = None  # of replays
    held_out: str | None = None  # seed, recorded, or time:SHARE; None: as the fitness needs
    waiting: tuple[str, ...] = ()  # gated, suspended: work of a dump that is tried though it waits


def fitness_of(rule: str, objective: Path | None) -> str:
    """Names the fitness: a rule, or the file of an objective as it is now."""
    from podium.search.judging.objective import Objective

    if objective is None:
        return rule
    _check_alone(rule)
    with blaming("flag --objective"):
        return Objective.at(objective).name


@contextmanager
def lent_fitness(rule: str, objective: Callable[[Any], float]) -> Iterator[str]:
    """Names the fitness that a function of this process is, while a search goes by it."""
    from podium.search.judging.objective import lent

    _check_alone(rule)
    with lent(objective) as name:
        yield name


def _check_alone(rule: str) -> None:
    """Refuses a rule beside an objective."""
    if rule != DEFAULT_FITNESS:
        raise UsageError(
            "--fitness and --objective exclude each other", where="flag --objective",
            hint="leave one of them out",
        )  # fmt: skip


def training_set(
    settings: Settings, request: CasesRequest, listener: Listener = SILENT
) -> TrainingSet:
    """Builds the training cases; what is held out of a trace is never among them."""
    from podium.evaluation.cases import TrainingSet, trace_cases
    from podium.evaluation.default_cases import default_training
    from podium.search.judging.fitness import fitness_named

    with blaming("flag --fitness"):
        kinds = fitness_named(request.fitness).kinds
    if not request.traces and request.cluster is None:
        _refuse_unused(request)
        return default_training(kinds, request.seeds)
    noted = Notes(listener)
    templates = [with_digest(each, noted) for each in _templates(settings, request, kinds)]
    cases = trace_cases(templates, request.seeds or TRACE_SEEDS)
    _check(cases[: len(templates)])
    _check_leeway(cases, len(templates))
    return TrainingSet(cases)


def _check_leeway(cases: Sequence[Case], templates: int) -> None:
    """Refuses the user's own traces where nothing can be learnt about packing."""
    from podium.evaluation.measures import TIMED

    own = [case for case in cases if case.is_own and case.protocol not in TIMED]
    if own:
        # Beside the cluster as it is, one that is perturbed.
        with blaming("flag --trace"):
            require_leeway(own[: 2 * templates])


def _refuse_unused(request: CasesRequest) -> None:
    """Refuses flags that only apply to given traces."""
    unused = {"--nodes": request.nodes, "--load": request.load, "--held-out": request.held_out}
    for flag, value in unused.items():
        if value is not None:
            raise UsageError(f"{flag} needs --trace", hint="add --trace openb, or a file")


def _templates(settings: Settings, request: CasesRequest, kinds: Sequence[str]) -> list[Case]:
    """Builds one case for every trace and protocol."""
    from podium.evaluation.cases import Case
    from podium.evaluation.measures import FUNSEARCH, INFLATION, REPLAY, TIMED

    protocols = dict.fromkeys(kind if kind in TIMED else INFLATION for kind in kinds)
    is_timed = not protocols.keys().isdisjoint(TIMED)
    if request.load is not None and not is_timed:
        raise UsageError(
            f"--load has no effect on the fitness {request.fitness}",
            hint="leave it out, or choose --fitness waiting",
        )
    traces, cluster = _sources(settings, request)
    place, speed = folder_of(settings), 1.0 if request.load is None else request.load
    found = []
    for trace in traces:
        split = _split(trace, request.held_out, is_replayed=REPLAY in protocols)
        plain = Case(
            trace, request.nodes, folder=place, cluster=cluster,
            until=round(1 - split.time_share, 9),
            shift_s=_shift_s(trace, request.held_out, is_timed=is_timed),
            waiting=",".join(request.waiting),
        )  # fmt: skip
        if INFLATION in protocols:
            found.append(replace(plain, protocol="inflation", shift_s=0.0))
        if REPLAY in protocols:
            found.append(replace(plain, protocol="replay", load=speed))
        if FUNSEARCH in protocols:
            found.append(replace(plain, protocol="funsearch", load=speed))
    return [read_as(settings, case) for case in found]


def read_as(settings: Settings, case: Case) -> Case:
    """Says how a dump is meant and run, in words that the processes of a search read as well."""
    options = load_options(settings)
    state = options.state or ("history" if case.is_own else "")
    topology = ",".join(options.topology)
    chosen: Any = settings.simulate
    return replace(
        case, state=state, duration=options.duration or "", topology=topology,
        demand=chosen.demand or "", ties=chosen.ties or "",
    )  # fmt: skip


def _sources(settings: Settings, request: CasesRequest) -> tuple[tuple[str, ...], str]:
    """Names the traces, and the cluster where it is another one."""
    from podium.traces.catalogue import EMBEDDED, LoadOptions, load_trace

    cluster = absolute(request.cluster) if request.cluster else ""
    if request.traces:
        return tuple(absolute(each) for each in request.traces), cluster
    # A folder of manifests may bring its pods along, as for `podium simulate`.
    with blaming("flag --cluster"):
        brought = load_trace(cluster, LoadOptions(traces_folder(settings))).workload
    return ((EMBEDDED,), cluster) if brought is None else ((cluster,), "")


@dataclass(frozen=True, slots=True)
class TrainingSources:
    """Names what a training learns on, so that it means the same in every folder."""

    traces: tuple[str, ...]
    cluster: str  # empty: that of each trace
    waiting: tuple[str, ...]  # gated, suspended: work of a dump that is tried though it waits


def training_sources(
    settings: Settings, traces: Sequence[str], cluster: str | None, listener: Listener = SILENT,
    waiting: Sequence[str] = (),
) -> TrainingSources:  # fmt: skip
    """Names traces and cluster of a training, and notes what of the user's own files is used.

    Raises:
        UndecidedError: nothing can be learnt from the user's own files.
    """
    from podium.evaluation.cases import Case, trace_cases

    named, nodes = _sources(settings, CasesRequest(traces=tuple(traces), cluster=cluster))
    noted, own = Notes(listener), []
    for each in named:
        case = Case(each, cluster=nodes, folder=folder_of(settings), waiting=",".join(waiting))
        if case.is_own:
            own.append(with_digest(replace(case, state="history"), noted))
    _check_leeway(trace_cases(own, 2), len(own))
    return TrainingSources(named, nodes, tuple(waiting))


def _split(trace: str, wanted: str | None, *, is_replayed: bool) -> Split:
    """Chooses what is held out: by default the last arrivals where waiting is learnt."""
    from podium.evaluation.cases import Case
    from podium.evaluation.splits import BY_SEED, BY_TIME, RECORDED, read_split

    is_drawn = Case(trace).is_drawn
    if wanted is None:
        return BY_TIME if is_replayed and not is_drawn else BY_SEED
    if wanted == RECORDED:
        return BY_SEED
    with blaming("flag --held-out"):
        split = read_split(wanted)
        if is_drawn and split.time_share:
            raise UsageError(
                f"{trace} is drawn afresh for every seed, so no time of it can be held out",
                hint="add --held-out seed, or leave it out",
            )
    return split


def _shift_s(trace: str, wanted: str | None, *, is_timed: bool) -> float:
    """Returns by how much arrivals are moved where the recorded ones are held out."""
    from podium.evaluation.cases import Case
    from podium.evaluation.splits import RECORDED, SHIFT_S

    if wanted != RECORDED:
        return 0.0
    if not is_timed or Case(trace).is_drawn:
        raise UsageError(
            f"{trace} is not trained on as it was recorded: {RECORDED} holds nothing out",
            where="flag --held-out",
            hint="leave it out, or choose --fitness funsearch and a recorded trace",
        )
    return SHIFT_S


def with_digest(case: Case, noted: Notes) -> Case:
    """Keeps a digest of what the user's own files hold, so that a changed one is noticed later."""
    from podium.evaluation.measures import TIMED
    from podium.traces.kubernetes.run_times import without_times

    if not case.is_own:
        return case
    with blaming("flag --trace"):
        trace = case.read()
    noted.add(trace.notes if case.protocol in TIMED else without_times(trace.notes))
    return replace(case, digest=case.digest_of(trace))


def folder_of(settings: Settings) -> str:
    """Names the folder of original traces so that it means the same in every folder."""
    folder = traces_folder(settings)
    return str(folder.absolute()) if folder else ""


def absolute(reference: str) -> str:
    """Makes a trace reference absolute, so that it means the same in every folder."""
    from podium.traces.catalogue import is_name

    path = Path(reference)
    return reference if is_name(reference) or not path.exists() else str(path.absolute())


def _check(cases: Sequence[Case]) -> None:
    """Plans every case and what is held out of it, so that errors come before a run exists."""
    from podium.evaluation.cases import planned
    from podium.evaluation.measures import REPLAY
    from podium.policies import load

    both = [*cases, *(case.held_out() for case in cases)]
    with blaming("flag --trace"):
        plans = tuple(planned(both, load("fgd")))
        for case, plan in zip(cases, plans, strict=False):
            if case.protocol == REPLAY:
                _check_waiting(case, replace(plan, tier="scan"))


def _check_waiting(case: Case, plan: Plan) -> None:
    """Refuses a replay in which nobody waits: nothing could be learnt about waiting."""
    from podium.evaluation.measures import measure_case
    from podium.reports.idle import busier_load
    from podium.sim.execution import execute

    if measure_case(execute(plan))["wait_mean_s"] > 0:
        return
    busier = busier_load(plan.cluster, plan.arrivals, case.load)
    raise UsageError(
        f"nobody waits on {case.title} at load {case.load:g}, so there is nothing to learn",
        hint=(f"add --load {busier:g}, or " if busier else "") + "choose --fitness inflation",
    )
