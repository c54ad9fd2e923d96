"""The functions of `import podium`: what the commands do, for notebooks and programs."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from podium.errors import UsageError
from podium.experiments import arguments, search_plan
from podium.experiments import compare as comparing
from podium.experiments import search as searching
from podium.experiments.arguments import python_face
from podium.experiments.case import Inputs, loaded_already, named_policy
from podium.experiments.listener import Listener
from podium.experiments.loading import DUMP_KEYS, load_options
from podium.experiments.runs import check_keeping, check_name
from podium.experiments.simulate import simulate as simulate_case
from podium.experiments.training import CasesRequest, fitness_of, lent_fitness
from podium.model import Cluster
from podium.policies import Policy, taken_as_policy
from podium.settings import Settings, load_settings
from podium.sim import Result
from podium.traces import Trace
from podium.traces import load_trace as load_named

if TYPE_CHECKING:
    from podium.experiments.compare import PolicyComparison
    from podium.experiments.fit import Fit
    from podium.experiments.search import SearchOutcome
    from podium.experiments.train import TrainingOutcome
    from podium.reports.explanation import Explanation

AnyPolicy = Policy | str | Path | Callable[..., float]
"""A policy by name or file, a function score(pod, node), or a loaded policy."""

AnyTrace = Trace | str | Path
"""A trace by name or file, or a loaded trace."""

AnyObjective = str | Path | Callable[[Any], float]
"""A file that defines objective(run), or such a function."""

_FIRST_SEED = 1000
_STARTS = ("seeds", "random")
_NODE_ORDERS: tuple[Literal["shuffled", "listed"], ...] = ("shuffled", "listed")


@python_face
def simulate(  # noqa: PLR0913 - the options of the command
    policy: AnyPolicy = "fgd",
    trace: AnyTrace | None = None,
    *,
    cluster: AnyTrace | Cluster | None = None,
    protocol: Literal["replay", "inflation", "rounds"] | None = None,
    seed: int | None = None,
    load: float | None = None,
    ratio: float | None = None,
    preemption: bool | None = None,
    orders: str | Path | None = None,
    nodes: int | None = None,
    pods: int | None = None,
    node_order: Literal["shuffled", "listed"] = "shuffled",
    state: Literal["now", "empty"] | None = None,
    duration: str | float | None = None,
    topology: str | Sequence[str] | None = None,
    skip_bad: bool = False,
    listener: Listener | None = None,
) -> Result:
    """Runs one policy on one trace, as `podium simulate` does.

    What is left out comes from the settings: the environment, podium.toml, defaults.

    Args:
        policy: a name, a file, a function `score(pod, node)`, or a loaded policy.
        trace: a name, a file, or a loaded trace; its pods, and its nodes where it has some.
        cluster: takes the nodes from elsewhere.
        protocol: how pods reach the cluster.
        seed: draws what is generated, shuffled or random.
        load: divides the time between arrivals (replay).
        ratio: GPU demand over capacity (inflation).
        preemption: lets pods that fit nowhere evict pods of lower priority (replay, rounds).
        orders: a file of arrival orders and node ranks (inflation).
        nodes: number of nodes of a generated cluster.
        pods: number of pods of a generated trace.
        node_order: who wins ties.
        state: how the dump of a cluster begins: "now" leaves pods where they run.
        duration: run time of the pods of a dump: "2h", "exponential:1h", or seconds.
        topology: "aws" or another preset, or the label keys of rack, block and zone.
        skip_bad: leaves bad rows of a file out.
        listener: hears of progress and can cancel.
    """
    hears = arguments.listener_or_warner(listener)
    flags = {"protocol": protocol, "seed": seed, "load": load, "ratio": ratio}
    flags |= {"preemption": preemption, **_dump(state, duration, topology)}
    inputs = _inputs(orders, nodes, pods, node_order, is_skipping_bad=skip_bad)
    settings, inputs = _case(flags, inputs, trace, cluster)
    return simulate_case(settings, inputs, as_policy(policy), hears).result


@python_face
def fit(  # noqa: PLR0913 - the options of the command
    trace: AnyTrace,
    pods: str | Path | Sequence[str | Path] = (),
    *,
    policy: AnyPolicy | None = None,
    cluster: AnyTrace | Cluster | None = None,
    state: Literal["now", "empty"] | None = None,
    topology: str | Sequence[str] | None = None,
    preemption: bool | None = None,
    seed: int | None = None,
    skip_bad: bool = False,
    listener: Listener | None = None,
) -> Fit:
    """Answers whether the pending pods of a cluster fit, and where, as `podium fit` does.

    Args:
        trace: the dump of a cluster: a file or a folder, or a loaded one.
        pods: files of pods, Jobs and Deployments that are to be tried as well.
        policy: decides; what the settings choose by default, else kube-default.
        cluster: takes the nodes from elsewhere.
        state: "now" leaves running pods where they are, "empty" places them anew.
        topology: as for `simulate`.
        preemption: lets pending pods evict running pods of lower priority, and says whom.
        seed: breaks ties.
        skip_bad: leaves bad objects of a file out.
        listener: hears of progress and can cancel.
    """
    from podium.experiments import fit as fitting

    hears = arguments.listener_or_warner(listener)
    several = pods if isinstance(pods, list | tuple) else [pods]
    wanted = tuple(_reference("pods", each) for each in several)
    if wanted and isinstance(trace, Trace):
        raise UsageError(
            "pods cannot be added to a trace that is already loaded", where="argument pods",
            hint="name the trace by its file",
        )  # fmt: skip
    flags = {"protocol": "rounds", "seed": seed, "preemption": preemption}
    flags |= _dump(state, None, topology)
    inputs = Inputs(is_skipping_bad=skip_bad, wanted=wanted)
    settings, inputs = _case(flags, inputs, trace, cluster)
    chosen = as_policy(fitting.chosen_policy(settings) if policy is None else policy)
    return fitting.fit(settings, inputs, chosen, hears)


@python_face
def compare(  # noqa: PLR0913 - the options of the command
    policies: Sequence[AnyPolicy] = comparing.DEFAULT_POLICIES,
    trace: AnyTrace | None = None,
    *,
    seeds: int | str | Iterable[int] = 10,
    metric: str | None = None,
    cluster: AnyTrace | Cluster | None = None,
    protocol: Literal["replay", "inflation", "rounds"] | None = None,
    load: float | None = None,
    ratio: float | None = None,
    preemption: bool | None = None,
    orders: str | Path | None = None,
    nodes: int | None = None,
    pods: int | None = None,
    node_order: Literal["shuffled", "listed"] = "shuffled",
    state: Literal["now", "empty"] | None = None,
    duration: str | float | None = None,
    topology: str | Sequence[str] | None = None,
    skip_bad: bool = False,
    jobs: int = 0,
    listener: Listener | None = None,
) -> PolicyComparison:
    """Ranks policies over seeds with confidence intervals and a paired test.

    Takes what `simulate` takes, and:

    Args:
        policies: those to compare, each as `simulate` takes one.
        trace: as for `simulate`.
        seeds: how many, from 1000 on; or the seeds; or a text such as "1000-1009".
        metric: what to rank by; by default waiting in replay, allocated GPUs otherwise.
        cluster: as for `simulate`.
        protocol: as for `simulate`.
        load: as for `simulate`.
        ratio: as for `simulate`.
        preemption: as for `simulate`.
        orders: as for `simulate`.
        nodes: as for `simulate`.
        pods: as for `simulate`.
        node_order: as for `simulate`.
        state: as for `simulate`.
        duration: as for `simulate`.
        topology: as for `simulate`.
        skip_bad: as for `simulate`.
        jobs: threads; 0 means one per core.
        listener: hears of progress and can cancel.
    """
    hears, threads = arguments.listener_or_warner(listener), arguments.whole("jobs", jobs, 0)
    if metric is not None:
        arguments.text("metric", metric, "name one, such as gpu_allocation")
    flags = {"protocol": protocol, "load": load, "ratio": ratio}
    flags |= {"preemption": preemption, **_dump(state, duration, topology)}
    inputs = _inputs(orders, nodes, pods, node_order, is_skipping_bad=skip_bad)
    settings, inputs = _case(flags, inputs, trace, cluster)
    request = comparing.ComparisonRequest(_policies(policies), _seeds(seeds), metric, threads)
    return comparing.compare(settings, inputs, request, hears)


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
        minutes: ends the training after so many minutes.
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
    check_name(arguments.text("keep", keep, "give the run a name"))
    return training.begin(training.TrainingEntry(load_settings(), keep), request, hears)


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
    cluster: str | Path | None = None,
    load: float | None = None,
    held_out: str | None = None,
    state: Literal["now", "empty"] | None = None,
    duration: str | float | None = None,
    topology: str | Sequence[str] | None = None,
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
        seeds: training cases of each trace, 8 by default; of each family, 1.
        nodes: draws so many nodes of a trace's cluster.
        cluster: a name or a file whose nodes are used instead, for traces without nodes.
        load: divides the time between arrivals by this, to learn waiting.
        held_out: what is never trained on: "seed", or "time:0.3" for the last 30 % of arrivals.
        state: as for `simulate`.
        duration: as for `simulate`.
        topology: as for `simulate`.
        generator: who writes candidates: genetic or random; llm where the settings name models.
        start: begins with formulas of people, or with nothing.
        may_hold: lets candidates hold pods back.
        seed: of everything random.
        workers: processes; 0 means one per core.
        keep: keeps the run in the store under this name, to be resumed and promoted.
        listener: hears of progress and can cancel.
    """
    hears = arguments.listener_or_warner(listener)
    most, count = _size("evaluations", evaluations), arguments.whole_or_none("seeds", seeds, 1)
    first, size = arguments.whole("seed", seed, 0), _size("nodes", nodes)
    processes = arguments.whole_or_none("workers", workers, 0)
    begins = arguments.one_of("start", start, _STARTS)
    aim = arguments.text("fitness", fitness, "name one, such as inflation")
    writer = arguments.text("generator", generator, "name one, such as genetic")
    nodes_of = None if cluster is None else _reference("cluster", cluster)
    speed = arguments.number_or_none("load", load)
    if held_out is not None:
        arguments.text("held_out", held_out, "write seed, or time:0.3")
    budget = search_plan.budget_of(most, _span(time), arguments.number_or_none("target", target))
    settings = _with_dump(state, duration, topology)
    if keep is not None:
        check_name(arguments.text("keep", keep, "give the run a name"))
    is_kept = keep is not None
    with (
        _fitness(aim, objective, is_kept=is_kept) as rule,
        _references(settings, trace, is_kept=is_kept) as traces,
    ):
        cases = CasesRequest(rule, traces, count, size, nodes_of, speed, held_out)
        writers = search_plan.GeneratorRequest(search_plan.read_weights([writer]))
        request = search_plan.SearchRequest(cases, writers, first, begins, may_hold=may_hold)
        plan = search_plan.plan_of(settings, request, hears)
        means = search_plan.means_of(settings, search_plan.MeansRequest(processes))
        if keep is None:
            return searching.begin_in_passing(settings, plan, means, budget, hears)
        check_keeping(settings, keep)
        return searching.begin_in_store(searching.Entry(settings, keep), plan, means, budget, hears)


@python_face
def explain(result: Result, pod: str, most: int = 5) -> Explanation:
    """Explains why a pod of a run went where it went: who could take it, and who scored what.

    Args:
        result: what `simulate` gave.
        pod: the name of a pod of that run.
        most: at most so many nodes that could take the pod are listed.
    """
    from podium.reports.explanation import explain as explain_pod

    if not isinstance(result, Result):
        raise UsageError(
            f"{type(result).__name__} is not a result", where="argument result",
            hint="give what podium.simulate(...) returned, or Result.load(path)",
        )  # fmt: skip
    name = arguments.text("pod", pod, "give a name; result.plan.arrivals.names lists them")
    return explain_pod(result, name, arguments.whole("most", most, 1))


@python_face
def load_policy(reference: AnyPolicy) -> Policy:
    """Loads a policy by name, file, or `run:ID`; makes one of a function `score(pod, node)`."""
    return as_policy(reference)


@python_face
def load_trace(  # noqa: PLR0913 - the options of the commands
    reference: AnyTrace, *, seed: int = 0, nodes: int | None = None, pods: int | None = None,
    state: Literal["now", "empty"] | None = None, duration: str | float | None = None,
    topology: str | Sequence[str] | None = None, skip_bad: bool = False,
) -> Trace:  # fmt: skip
    """Loads a trace by name, file or folder; the embedded ones are drawn by the seed.

    The dump of a cluster is read as `simulate` reads it, by state, duration and topology.
    """
    settings = _with_dump(state, duration, topology)
    first, node_count = arguments.whole("seed", seed, 0), _size("nodes", nodes)
    options = load_options(
        settings, seed=first, nodes=node_count, pods=_size("pods", pods), is_skipping_bad=skip_bad
    )
    if isinstance(reference, Trace):
        _refuse_dump(_dump(state, duration, topology))
        return loaded_already(reference, options)
    return load_named(_reference("reference", reference), options)


def _size(name: str, value: object) -> int | None:
    return arguments.whole_or_none(name, value, 1)


def _span(time: object) -> str | None:
    """Takes a time span as text; a number counts seconds."""
    if time is None or isinstance(time, str):
        return time
    return f"{arguments.number_or_none('time', time):f}"


def _dump(state: object, duration: object, topology: object) -> dict[str, Any]:
    """Words what says how a dump is meant as flags do; a number of a duration counts seconds."""
    number = arguments.plain_number(duration)
    if isinstance(number, int | float) and not isinstance(number, bool):
        duration = f"{arguments.number_or_none('duration', number):f}".rstrip("0").rstrip(".")
    if isinstance(topology, list | tuple):
        topology = ",".join(arguments.text("topology", key, "give the keys of labels")
                            for key in topology)  # fmt: skip
    return {"state": state, "duration": duration, "topology": topology}


def _with_dump(state: object, duration: object, topology: object) -> Settings:
    flags = _dump(state, duration, topology)
    return load_settings({f"simulate.{name}": value for name, value in flags.items()})


def _refuse_dump(flags: dict[str, Any]) -> None:
    """Refuses what says how a dump is meant once it is read."""
    for name in DUMP_KEYS:
        if flags.get(name) is not None:
            raise UsageError(
                f"{name} cannot be set for a trace that is already loaded",
                where=f"argument {name}",
                hint=f"load the trace with {name}={flags[name]!r}, or name it by reference",
            )


def _inputs(
    orders: object, nodes: object, pods: object, node_order: object, *, is_skipping_bad: bool
) -> Inputs:
    node_count, pod_count = _size("nodes", nodes), _size("pods", pods)
    order = arguments.one_of("node_order", node_order, _NODE_ORDERS)
    path = arguments.path_or_none("orders", orders)
    return Inputs(path, node_count, pod_count, is_skipping_bad, order)


def _reference(name: str, value: object) -> str:
    """Takes the reference of a trace."""
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    raise UsageError(
        f"{type(value).__name__} is not a trace", where=f"argument {name}",
        hint="give a name, a file, or a loaded trace",
    )  # fmt: skip


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
def _references(settings: Settings, trace: object, *, is_kept: bool) -> Iterator[tuple[str, ...]]:
    """Names traces for the processes that judge candidates; loaded ones are written to files.

    A run that is kept reads them again whenever it is resumed: its files stay beside the runs.
    """
    several = trace if isinstance(trace, list | tuple) else (trace,)
    with tempfile.TemporaryDirectory(prefix="podium-traces-") as passing:
        kept = settings.search.folder / "traces" if is_kept else None
        yield tuple(
            str(_written(each, Path(passing), kept)) if isinstance(each, Trace)
            else _reference("trace", each)
            for each in several
        )  # fmt: skip


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


def as_policy(policy: AnyPolicy) -> Policy:
    """Makes a policy of a reference, a function, or what is one already."""
    if isinstance(policy, str | Path):
        return named_policy(str(policy), "argument policy")
    return taken_as_policy(policy)


def _policies(given: Sequence[AnyPolicy]) -> list[Policy]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise UsageError("policies is not a list of policies", hint='give ["fgd", "best-fit"]')
    loaded = [as_policy(each) for each in given]
    titles = [str(each) if isinstance(each, str | Path) else policy.name
              for each, policy in zip(given, loaded, strict=True)]  # fmt: skip
    policies = comparing.told_apart(loaded, titles)
    names = [policy.name for policy in policies]
    if len(set(names)) < len(names):
        raise UsageError(
            "two policies have the same name", where="argument policies",
            hint="pass every policy once, and give every function its own name",
        )  # fmt: skip
    return policies


def _seeds(seeds: int | str | Iterable[int]) -> list[int]:
    if isinstance(seeds, str):
        return comparing.read_seeds(seeds)
    if isinstance(seeds, Iterable):
        some = islice(seeds, comparing.MOST_SEEDS + 1)  # a list may go on without end
        listed = [str(arguments.whole("seeds", each, 0)) for each in some]
        return comparing.read_seeds(",".join(listed))
    count = arguments.whole("seeds", seeds, 1)
    return comparing.read_seeds(f"{_FIRST_SEED}-{_FIRST_SEED + count - 1}")


def _case(
    flags: dict[str, Any], inputs: Inputs, trace: AnyTrace | None,
    cluster: AnyTrace | Cluster | None,
) -> tuple[Settings, Inputs]:  # fmt: skip
    """Sorts what is given by reference from what is loaded already."""
    given = {f"simulate.{name}": arguments.plain_number(value) for name, value in flags.items()}
    loaded: dict[str, Any] = {}
    for name, value in (("trace", trace), ("cluster", cluster)):
        if isinstance(value, Cluster):
            value = Trace(value.name, value, None)
        if isinstance(value, Trace):
            loaded[name] = value
            if name == "trace":
                _refuse_dump(flags)
        elif value is not None:
            given[f"simulate.{name}"] = _reference(name, value)
    return load_settings(given), replace(inputs, **loaded)
