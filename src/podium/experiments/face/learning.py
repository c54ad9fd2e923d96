"""The functions of `import podium` that make policies: search, and train."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from podium.errors import UsageError
from podium.experiments import arguments, search_plan
from podium.experiments import search as searching
from podium.experiments.arguments import python_face
from podium.experiments.face.references import (
    AnyTrace,
    as_reference,
    count,
    settings_with_dump,
    waiting_of,
)
from podium.experiments.listener import Listener
from podium.experiments.runs import check_keeping, check_name
from podium.experiments.training import CasesRequest, fitness_of, lent_fitness
from podium.model import Cluster
from podium.settings import Settings, load_settings
from podium.traces import Trace

if TYPE_CHECKING:
    from podium.experiments.search import SearchOutcome
    from podium.experiments.train import TrainingOutcome
    from podium.search.run.plan import Budget

AnyObjective = str | Path | Callable[[Any], float]
"""A file that defines objective(run), or such a function."""

_STARTS = ("seeds", "random")


@python_face
def train(  # noqa: PLR0913 - the options of the command
    algorithm: Literal["qtable", "mlp", "ppo"] = "qtable",
    config: str | Path | Mapping[str, Any] | None = None,
    *,
    episodes: int | None = None,
    minutes: float | None = None,
    save_interval: int | None = None,
    patience: int | None = None,
    seed: int = 1000,
    device: Literal["cpu", "gpu"] = "cpu",
    keep: str | None = None,
    listener: Listener | None = None,
) -> TrainingOutcome:
    """Trains a policy by trial and returns what it learned: `.best` is a policy like any other.

    Nothing stays on disk unless `keep` names the run.

    Args:
        algorithm: qtable, mlp or ppo.
        config: a TOML file, or the keys of sections: {"learning": {"aim": "balance"}}.
        episodes: episodes in all.
        minutes: ends the training after so many minutes; 0: no limit.
        save_interval: episodes between two checkpoints, each with a validation.
        patience: ends the training after so many validations without a better one.
        seed: of everything random.
        device: where nets are trained.
        keep: keeps the run in the store under this name, to be resumed.
        listener: hears of progress and can cancel.
    """
    from podium.experiments import train as training
    from podium.rl.configuration import ALGORITHMS, create_config, read_configuration

    hears = arguments.listener_or_warner(listener)
    way = arguments.one_of("algorithm", algorithm, ALGORITHMS)
    first = arguments.whole("seed", seed, 0)
    if isinstance(config, str | Path):
        own = read_configuration(way, Path(config))
    else:
        own = create_config(way, **(config or {}))
    request = training.TrainingRequest(way, own, first)
    changes = {"episodes": episodes, "minutes": minutes, "save_interval": save_interval}
    request = training.changed(request, {**changes, "patience": patience, "device": device})
    if keep is None:
        return training.train_in_passing(request, hears)
    return training.begin(training.TrainingEntry(load_settings(), _name(keep)), request, hears)


@python_face
def search(  # noqa: PLR0913 - the options of the command
    *,
    evaluations: int | None = None,
    time: str | float | None = None,
    target: float | None = None,
    fitness: str = "inflation",
    objective: AnyObjective | None = None,
    trace: AnyTrace | Sequence[AnyTrace] = (),
    seeds: int | None = None,
    nodes: int | None = None,
    cluster: AnyTrace | Cluster | None = None,
    load: float | None = None,
    held_out: str | None = None,
    state: Literal["now", "empty", "history"] | None = None,
    duration: str | float | None = None,
    topology: str | Sequence[str] | None = None,
    waiting: str | None = None,
    demand: Literal["trace", "seen", "warm"] | None = None,
    ties: Literal["order", "profile"] | None = None,
    generator: str = "genetic",
    start: Literal["seeds", "random"] = "seeds",
    may_hold: bool = False,
    seed: int = 1000,
    workers: int | None = None,
    keep: str | None = None,
    listener: Listener | None = None,
) -> SearchOutcome:
    """Searches for a policy and returns what it found: `.best` is a policy like any other.

    Candidates are bred here, offline, and judged in sandboxed processes. Nothing stays on disk
    unless `keep` names the run.

    Args:
        evaluations: most evaluations, 2000 where no time is given either.
        time: ends the search after this: "90s", "10m", "2h", or a number of seconds.
        target: ends the search at this fitness.
        fitness: inflation, waiting, fragmentation, holding:84, funsearch:40, or mix:A=1,B=2.
        objective: what to search for instead: a file with `objective(run)`, or such a function.
        trace: what to train on: a name, a file, a loaded trace, or a list of these; families of
            workloads of the embedded profile by default.
        seeds: training cases of each trace, 8 by default; of each family, 2.
        nodes: draws so many nodes of a trace's cluster.
        cluster: takes the nodes from elsewhere, for traces without nodes.
        load: divides the time between arrivals by this, to learn waiting.
        held_out: what is never trained on: "seed", "recorded" for the trace itself, or "time:0.3"
            for the last 30 % of arrivals.
        state: as for `simulate`.
        duration: as for `simulate`.
        topology: as for `simulate`.
        waiting: as for `simulate`.
        demand: as for `simulate`.
        ties: as for `simulate`.
        generator: who writes candidates: genetic or random; llm where the settings name models.
        start: begins with formulas of people, or with nothing.
        may_hold: lets candidates hold pods back.
        seed: of everything random.
        workers: processes; 0 means one per core.
        keep: keeps the run in the store under this name, to be resumed and promoted.
        listener: hears of progress and can cancel.
    """
    hears = arguments.listener_or_warner(listener)
    budget = _budget(evaluations, time, target)
    cases = replace(_cases(fitness, seeds, nodes, load, held_out), waiting=waiting_of(waiting))
    writer = arguments.text("generator", generator, "name one, such as genetic")
    request = search_plan.SearchRequest(
        cases, search_plan.GeneratorRequest(search_plan.read_weights([writer])),
        arguments.whole("seed", seed, 0), arguments.one_of("start", start, _STARTS),
        may_hold=may_hold,
    )  # fmt: skip
    means = search_plan.MeansRequest(arguments.whole_or_none("workers", workers, 0))
    settings = settings_with_dump(state, duration, topology, demand=demand, ties=ties)
    entry = searching.Entry(settings, _name(keep))
    with (
        _fitness(cases.fitness, objective, is_kept=keep is not None) as rule,
        _naming(entry.settings, is_kept=keep is not None) as name_of,
    ):
        several = trace if isinstance(trace, list | tuple) else (trace,)
        traces = tuple(name_of("trace", each) for each in several)
        own = None if cluster is None else name_of("cluster", cluster)
        there = replace(request, cases=replace(cases, fitness=rule, traces=traces, cluster=own))
        return _begin(entry, there, means, budget, hears)


def _budget(evaluations: object, time: object, target: object) -> Budget:
    """Reads when a search ends; a number of a time counts seconds."""
    if time is not None and not isinstance(time, str):
        time = f"{arguments.number_or_none('time', time):f}"
    most = count("evaluations", evaluations)
    return search_plan.budget_of(most, time, arguments.number_or_none("target", target))


def _cases(
    fitness: object, seeds: object, nodes: object, load: object, held_out: object
) -> CasesRequest:
    """Reads what candidates are trained on; rule and traces are named once they are written."""
    return CasesRequest(
        arguments.text("fitness", fitness, "name one, such as inflation"), (),
        count("seeds", seeds), count("nodes", nodes), None,
        arguments.number_or_none("load", load),
        None if held_out is None
        else arguments.text("held_out", held_out, "write seed, recorded, or time:0.3"),
    )  # fmt: skip


def _name(keep: object) -> str:
    """Reads the name under which a run is kept; without one, it is not."""
    if keep is None:
        return ""
    name = arguments.text("keep", keep, "give the run a name")
    check_name(name)
    return name


def _begin(
    entry: searching.Entry, request: search_plan.SearchRequest, means: search_plan.MeansRequest,
    budget: Budget, hears: Listener,
) -> SearchOutcome:  # fmt: skip
    """Begins a search: in the store if it has a name, else for as long as it lasts."""
    plan = search_plan.plan_of(entry.settings, request, hears)
    own = search_plan.means_of(entry.settings, means)
    if not entry.name:
        return searching.begin_in_passing(entry.settings, plan, own, budget, hears)
    check_keeping(entry.settings, entry.name)
    return searching.begin_in_store(entry, plan, own, budget, hears)


@contextmanager
def _fitness(rule: str, objective: object, *, is_kept: bool) -> Iterator[str]:
    """Names what is searched for: a rule, a file, or a function for as long as it is there."""
    if objective is None or isinstance(objective, str | os.PathLike):
        yield fitness_of(rule, arguments.path_or_none("objective", objective))
    elif not callable(objective):
        raise UsageError(
            f"{type(objective).__name__} is not an objective", where="argument objective",
            hint="give a file that defines objective(run), or such a function",
        )  # fmt: skip
    elif is_kept:
        raise UsageError(
            "a search that is kept needs a file for its objective: a function is gone when Python "
            "ends, and the search could not be resumed", where="argument objective",
            hint="write the function to a file and give that, or leave keep out",
        )  # fmt: skip
    else:
        with lent_fitness(rule, objective) as name:
            yield name


@contextmanager
def _naming(settings: Settings, *, is_kept: bool) -> Iterator[Callable[[str, object], str]]:
    """Names traces for the processes that judge candidates; loaded ones are written to files.

    A run that is kept reads them again whenever it is resumed: its files stay beside the runs.
    """
    with tempfile.TemporaryDirectory(prefix="podium-traces-") as passing:
        kept = settings.search.folder / "traces" if is_kept else None

        def name_of(argument: str, value: object) -> str:
            if isinstance(value, Cluster) and argument == "cluster":
                value = Trace(value.name, value, None)
            if isinstance(value, Trace):
                return str(_written(value, Path(passing), kept))
            return as_reference(argument, value)

        yield name_of


def _written(trace: Trace, passing: Path, kept: Path | None) -> Path:
    """Writes a loaded trace, named by what it holds; gives the file, which is kept in a folder."""
    from podium.traces import save_trace

    draft = passing / "trace.json"
    save_trace(trace, draft)
    name = f"trace-{hashlib.sha256(draft.read_bytes()).hexdigest()[:12]}.json"
    if kept is None:
        return draft.rename(passing / name)
    kept.mkdir(parents=True, exist_ok=True)
    save_trace(trace, kept / name)
    return kept / name
