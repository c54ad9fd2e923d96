"""The functions of `import podium`: what the commands do, for notebooks and programs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from podium.errors import PodiumError, UnknownName, UsageError
from podium.experiments import compare as comparing
from podium.experiments import search as searching
from podium.experiments import search_plan
from podium.experiments.case import Inputs, named_policy
from podium.experiments.listener import Listener
from podium.experiments.places import traces_folder
from podium.experiments.runs import check_keeping
from podium.experiments.simulate import simulate as simulate_case
from podium.model import Cluster
from podium.policies import ClusterPolicy, PairPolicy, Policy, from_function
from podium.settings import Settings, load_settings
from podium.sim import Result
from podium.traces import LoadOptions, Trace
from podium.traces import load_trace as load_named

if TYPE_CHECKING:
    from podium.experiments.compare import PolicyComparison
    from podium.experiments.search import SearchOutcome
    from podium.reports.explanation import Explanation

AnyPolicy = Policy | str | Path | Callable[..., float]
"""A policy by name or file, a function score(pod, node), or a loaded policy."""

AnyTrace = Trace | str | Path
"""A trace by name or file, or a loaded trace."""

_FIRST_SEED = 1000
_FLAG = re.compile(r"flag --([a-z-]+)(, \[\w+\] \w+)?")


class Warner(Listener):
    """Passes notes and warnings on as Python warnings; ignores the rest."""

    def note(self, text: str) -> None:
        """Warns with a note."""
        warnings.warn(text, stacklevel=2)

    def warn(self, text: str) -> None:
        """Warns."""
        warnings.warn(text, stacklevel=2)


def simulate(  # noqa: PLR0913 - the options of the command
    policy: AnyPolicy = "fgd",
    trace: AnyTrace | None = None,
    *,
    cluster: AnyTrace | Cluster | None = None,
    protocol: Literal["replay", "inflation", "rounds"] | None = None,
    seed: int | None = None,
    load: float | None = None,
    ratio: float | None = None,
    orders: str | Path | None = None,
    nodes: int | None = None,
    pods: int | None = None,
    node_order: Literal["shuffled", "listed"] = "shuffled",
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
        orders: a file of arrival orders and node ranks (inflation).
        nodes: number of nodes of a generated cluster.
        pods: number of pods of a generated trace.
        node_order: who wins ties.
        skip_bad: leaves bad rows of a file out.
        listener: hears of progress and can cancel.
    """
    with _in_python():
        flags = {"protocol": protocol, "seed": seed, "load": load, "ratio": ratio}
        inputs = Inputs(_path(orders), nodes, pods, skip_bad, _node_order(node_order))
        settings, inputs = _case(flags, inputs, trace, cluster)
        return simulate_case(settings, inputs, as_policy(policy), listener or Warner()).result


def compare(  # noqa: PLR0913 - the options of the command
    policies: Sequence[AnyPolicy] = comparing.DEFAULT_POLICIES,
    trace: AnyTrace | None = None,
    *,
    seeds: int | str | Sequence[int] = 10,
    metric: str | None = None,
    cluster: AnyTrace | Cluster | None = None,
    protocol: Literal["replay", "inflation", "rounds"] | None = None,
    load: float | None = None,
    ratio: float | None = None,
    orders: str | Path | None = None,
    nodes: int | None = None,
    pods: int | None = None,
    node_order: Literal["shuffled", "listed"] = "shuffled",
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
        orders: as for `simulate`.
        nodes: as for `simulate`.
        pods: as for `simulate`.
        node_order: as for `simulate`.
        skip_bad: as for `simulate`.
        jobs: threads; 0 means one per core.
        listener: hears of progress and can cancel.
    """
    with _in_python():
        flags = {"protocol": protocol, "load": load, "ratio": ratio}
        inputs = Inputs(_path(orders), nodes, pods, skip_bad, _node_order(node_order))
        settings, inputs = _case(flags, inputs, trace, cluster)
        request = comparing.ComparisonRequest(_policies(policies), _seeds(seeds), metric, jobs)
        return comparing.compare(settings, inputs, request, listener or Warner())


def search(  # noqa: PLR0913 - the options of the command
    *,
    evaluations: int | None = None,
    time: str | None = None,
    target: float | None = None,
    fitness: str = "inflation",
    trace: str | Path | Sequence[str] = (),
    seeds: int = 8,
    nodes: int | None = None,
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
        time: ends the search after this: "90s", "10m", "2h".
        target: ends the search at this fitness.
        fitness: inflation, waiting, fragmentation, holding:84, or mix:A=1,B=2.
        trace: traces to train on; small cases of the embedded one by default.
        seeds: training cases of each trace or kind.
        nodes: draws so many nodes of a trace's cluster.
        generator: who writes candidates: genetic or random; llm where the settings name models.
        start: begins with published formulas, or with nothing.
        may_hold: lets candidates hold pods back.
        seed: of everything random.
        workers: processes; 0 means one per core.
        keep: keeps the run in the store under this name, to be resumed and promoted.
        listener: hears of progress and can cancel.
    """
    with _in_python():
        _check_least("evaluations", evaluations, 1)
        _check_least("seed", seed, 0)
        settings = load_settings()
        traces = (str(trace),) if isinstance(trace, str | Path) else tuple(trace)
        cases = search_plan.CasesRequest(fitness, traces, seeds, nodes)
        writers = search_plan.GeneratorRequest(search_plan.read_weights([generator]))
        plan = search_plan.plan_of(
            settings,
            search_plan.SearchRequest(cases, writers, seed, start, may_hold=may_hold),
        )
        means = search_plan.means_of(settings, search_plan.MeansRequest(workers))
        budget = search_plan.budget_of(evaluations, time, target)
        hears = listener or Warner()
        if keep is not None:
            check_keeping(settings, keep)
        if keep is None:
            return searching.begin_in_passing(settings, plan, means, budget, hears)
        return searching.begin_in_store(searching.Entry(settings, keep), plan, means, budget, hears)


def explain(result: Result, pod: str, most: int = 5) -> Explanation:
    """Explains why a pod was placed where it was: which nodes could take it, and their scores."""
    from podium.reports.explanation import explain as explain_pod

    with _in_python():
        return explain_pod(result, pod, most)


def load_policy(reference: AnyPolicy) -> Policy:
    """Loads a policy by name, file, or `run:ID`; makes one of a function `score(pod, node)`."""
    with _in_python():
        return as_policy(reference)


def load_trace(
    reference: str | Path, *, seed: int = 0, nodes: int | None = None, pods: int | None = None,
    skip_bad: bool = False,
) -> Trace:  # fmt: skip
    """Loads a trace by name, file or folder; the embedded ones are drawn by the seed."""
    with _in_python():
        folder = traces_folder(load_settings())
        return load_named(str(reference), LoadOptions(folder, seed, nodes, pods, skip_bad))


def _node_order(name: str) -> Literal["shuffled", "listed"]:
    known: dict[str, Literal["shuffled", "listed"]] = {"shuffled": "shuffled", "listed": "listed"}
    if name not in known:
        raise UnknownName.among("node order", name, known, where="argument node_order")
    return known[name]


def _check_least(name: str, value: object, least: int) -> None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (is_whole and value >= least):  # type: ignore[operator]
        raise UsageError(
            f"{name} is {value!r}", where=f"argument {name}",
            hint=f"give a whole number of at least {least}",
        )  # fmt: skip


def as_policy(policy: AnyPolicy) -> Policy:
    """Returns the policy that a reference, a function or a loaded policy stands for."""
    if isinstance(policy, PairPolicy | ClusterPolicy):
        return policy
    if isinstance(policy, str | Path):
        return named_policy(str(policy), "argument policy")
    if callable(policy) and not isinstance(policy, type):
        return from_function(policy)
    raise UsageError(
        f"{type(policy).__name__} is not a policy", where="argument policy",
        hint="give a name, a file, a function score(pod, node), or a loaded policy",
    )  # fmt: skip


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


def _seeds(seeds: int | str | Sequence[int]) -> list[int]:
    if isinstance(seeds, str):
        return comparing.read_seeds(seeds)
    listed = range(_FIRST_SEED, _FIRST_SEED + seeds) if isinstance(seeds, int) else seeds
    return comparing.read_seeds(",".join(str(int(seed)) for seed in listed))


def _case(
    flags: dict[str, Any], inputs: Inputs, trace: AnyTrace | None,
    cluster: AnyTrace | Cluster | None,
) -> tuple[Settings, Inputs]:  # fmt: skip
    """Separates arguments given by reference from objects that are already loaded."""
    given = {f"simulate.{name}": value for name, value in flags.items()}
    loaded: dict[str, Any] = {}
    for name, value in (("trace", trace), ("cluster", cluster)):
        if isinstance(value, Cluster):
            value = Trace(value.name, value, None)
        if isinstance(value, Trace):
            loaded[name] = value
        elif value is not None:
            given[f"simulate.{name}"] = str(value)
    return load_settings(given), replace(inputs, **loaded)


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


@contextmanager
def _in_python() -> Iterator[None]:
    """Replaces the names of flags in errors by those of arguments."""
    try:
        yield
    except PodiumError as error:
        error.where = _FLAG.sub(lambda flag: f"argument {flag[1].replace('-', '_')}", error.where)
        raise
