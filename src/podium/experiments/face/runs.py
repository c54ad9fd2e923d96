"""The functions of `import podium` that run policies: simulate, compare, fit, and explain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from podium.errors import UsageError
from podium.experiments import arguments
from podium.experiments import compare as comparing
from podium.experiments.arguments import python_face
from podium.experiments.case import Inputs
from podium.experiments.face.references import (
    AnyPolicy,
    AnyTrace,
    as_policy,
    as_reference,
    case_of,
    dump_flags,
    inputs_of,
    waiting_of,
)
from podium.experiments.listener import Listener
from podium.experiments.simulate import simulate as simulate_case
from podium.model import Cluster
from podium.policies import Policy
from podium.sim import Result
from podium.traces import Trace

if TYPE_CHECKING:
    from podium.experiments.compare import PolicyComparison
    from podium.experiments.fit import Fit
    from podium.reports.explanation import Explanation

_FIRST_SEED = 1000


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
    demand: Literal["trace", "seen", "warm"] | None = None,
    ties: Literal["order", "profile"] | None = None,
    orders: str | Path | None = None,
    nodes: int | None = None,
    pods: int | None = None,
    node_order: Literal["shuffled", "listed"] = "shuffled",
    state: Literal["now", "empty", "history"] | None = None,
    duration: str | float | None = None,
    topology: str | Sequence[str] | None = None,
    waiting: str | None = None,
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
        demand: pods that a policy prepares its table from: all of the trace, those seen so far,
            or those after a day of such pods.
        ties: who wins among nodes that score alike: the first in order, or the one that
            kube-scheduler takes with the profile of Podium's chart.
        orders: a file of arrival orders and node ranks (inflation).
        nodes: number of nodes of a generated cluster.
        pods: number of pods of a generated trace.
        node_order: the order of nodes: a seeded shuffle, or as listed.
        state: how the dump of a cluster begins: "now" leaves pods where they run.
        duration: run time of the pods of a dump: "2h", "exponential:1h", or seconds.
        topology: "aws" or another preset, or the label keys of rack, block and zone.
        waiting: tries work of a dump that waits for something else, too: "gated,suspended".
        skip_bad: leaves bad rows of a file out.
        listener: hears of progress and can cancel.
    """
    hears = arguments.listener_or_warner(listener)
    flags: dict[str, Any] = {"protocol": protocol, "seed": seed, "load": load, "ratio": ratio}
    flags |= {"preemption": preemption, "demand": demand, "ties": ties}
    flags |= dump_flags(state, duration, topology)
    inputs = inputs_of(orders, nodes, pods, node_order, waiting=waiting, is_skipping_bad=skip_bad)
    settings, inputs = case_of(flags, inputs, trace, cluster)
    return simulate_case(settings, inputs, as_policy(policy), hears).result


@python_face
def fit(  # noqa: PLR0913 - the options of the command
    trace: AnyTrace,
    pods: str | Path | Sequence[str | Path] = (),
    *,
    waiting: str | None = None,
    policy: AnyPolicy | None = None,
    cluster: AnyTrace | Cluster | None = None,
    state: Literal["now", "empty", "history"] | None = None,
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
        waiting: tries work that waits for something else than a node, too: "gated,suspended".
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
    hint = "give the file of Pods, Jobs or Deployments"
    wanted = tuple(as_reference("pods", each, "a file of pods", hint) for each in several)
    if wanted and isinstance(trace, Trace):
        raise UsageError(
            "pods cannot be added to a trace that is already loaded", where="argument pods",
            hint="name the trace by its file",
        )  # fmt: skip
    flags = {"protocol": "rounds", "seed": seed, "preemption": preemption}
    flags |= dump_flags(state, None, topology)
    inputs = Inputs(is_skipping_bad=skip_bad, wanted=wanted, waiting=waiting_of(waiting))
    settings, inputs = case_of(flags, inputs, trace, cluster)
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
    demand: Literal["trace", "seen", "warm"] | None = None,
    ties: Literal["order", "profile"] | None = None,
    orders: str | Path | None = None,
    nodes: int | None = None,
    pods: int | None = None,
    node_order: Literal["shuffled", "listed"] = "shuffled",
    state: Literal["now", "empty", "history"] | None = None,
    duration: str | float | None = None,
    topology: str | Sequence[str] | None = None,
    waiting: str | None = None,
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
        demand: as for `simulate`.
        ties: as for `simulate`.
        orders: as for `simulate`.
        nodes: as for `simulate`.
        pods: as for `simulate`.
        node_order: as for `simulate`.
        state: as for `simulate`.
        duration: as for `simulate`.
        topology: as for `simulate`.
        waiting: as for `simulate`.
        skip_bad: as for `simulate`.
        jobs: threads; 0 means one per core.
        listener: hears of progress and can cancel.
    """
    hears, threads = arguments.listener_or_warner(listener), arguments.whole("jobs", jobs, 0)
    if metric is not None:
        arguments.text("metric", metric, "name one, such as gpu_allocation")
    flags: dict[str, Any] = {"protocol": protocol, "load": load, "ratio": ratio}
    flags |= {"preemption": preemption, "demand": demand, "ties": ties}
    flags |= dump_flags(state, duration, topology)
    inputs = inputs_of(orders, nodes, pods, node_order, waiting=waiting, is_skipping_bad=skip_bad)
    settings, inputs = case_of(flags, inputs, trace, cluster)
    request = comparing.ComparisonRequest(_policies(policies), _seeds(seeds), metric, threads)
    return comparing.compare(settings, inputs, request, hears)


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
