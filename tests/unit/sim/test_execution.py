"""Runs policies that break their contract: every tier says which pod and node it was."""

import functools
import math
from dataclasses import replace

import numba
import numpy as np
import pytest

from podium.errors import PolicyError, UsageError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import HOLD, ClusterPolicy, abi, from_function, load
from podium.policies.abi import SIGNATURE, Native, pod_at
from podium.sim import Holding, Inflation, Order, Replay, Rounds, Setup, simulate

CLUSTER = Cluster.of([NodeSpec("plain", 4000, 900), NodeSpec("gpus", 4000, 900, 2, "A")])
WORKLOAD = Workload.of(
    [
        PodSpec("good", 100, 1, arrival_s=0, duration_s=5),
        PodSpec("bad", 100, 1, 1, 500, arrival_s=1, duration_s=5),
        PodSpec("whole", 100, 1, 2, 1000, arrival_s=2, duration_s=5),
    ]
)
PROTOCOLS = [Replay(), Rounds(), Inflation(order=Order(np.arange(3)))]
COMPILED = ["cached", "scan"]
node_at = abi.node_at[8]


def nan_for_shares(pod, node):  # noqa: ARG001
    return math.nan if pod.gpu_milli == 500 else 1.0


def infinite_for_shares(pod, node):  # noqa: ARG001
    return math.inf if pod.gpu_milli == 500 else 1.0


def divides_by_zero_for_shares(pod, node):  # noqa: ARG001
    return 1 // (pod.gpu_milli - 500)


def raises_for_shares(pod, node):  # noqa: ARG001
    if pod.gpu_milli == 500:
        raise ValueError("no such luck")
    return 1.0


def fails_on_second_slot(pod, node, gpu):  # noqa: ARG001
    return math.nan if gpu == 1 else 1.0


policy_of = functools.cache(from_function)


def run(policy, tier="auto", protocol=None):
    return simulate(CLUSTER, WORKLOAD, policy, protocol, Setup(tier=tier, ranks="listed"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("tier", ["python", *COMPILED])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (nan_for_shares, "the score is NaN or infinite"),
        (infinite_for_shares, "the score is NaN or infinite"),
        (fails_on_second_slot, "the score is NaN or infinite"),
        (divides_by_zero_for_shares, "ZeroDivisionError"),
        (raises_for_shares, "ValueError: no such luck"),
    ],
)
def test_a_failing_policy_is_reported_with_pod_and_node(function, message, tier, protocol):
    with pytest.raises(PolicyError, match=message) as caught:
        run(policy_of(function), tier, protocol)
    assert caught.value.where == f'{function.__name__}, pod "bad" on node "gpus"'


def test_the_exception_of_a_policy_is_the_cause():
    with pytest.raises(PolicyError) as caught:
        run(policy_of(raises_for_shares), "scan")
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_passed_on_as_it_is(stop):
    def score(pod, node):  # noqa: ARG001
        raise stop

    with pytest.raises(stop):
        run(policy_of(score), "python")


def with_machine_code(evaluate):
    """Makes a policy whose machine code is not that of its text."""
    made = numba.cfunc(SIGNATURE)(evaluate)
    native = Native(made.address, made)
    return replace(from_function(indifferent), compiled={(1, 8): native})


def indifferent(pod, node):  # noqa: ARG001
    return 0.0


def test_a_policy_that_fails_only_when_compiled_is_told_so():
    def fails(pod, node, gpu, table, rows, columns):  # noqa: ARG001
        return math.nan

    with pytest.raises(PolicyError, match="compiled policy fails where plain Python does not"):
        run(with_machine_code(fails), "scan")


def takes_cpu(pod, node):  # noqa: ARG001
    node.cpu_milli_left -= 1
    return 0.0


def gives_cpu(pod, node):  # noqa: ARG001
    node.cpu_milli_left += 1
    node.cpu_milli_total += 1
    return 0.0


def moves_milli_between_gpus(pod, node):
    if pod.gpu_count:
        node.gpu_milli_left[0] = 999
        node.gpu_milli_left[1] = 1001
    return 0.0


def takes_gpus(pod, node):
    if pod.gpu_count:
        node.gpu_milli_left[0] = 0
        node.gpu_milli_left[1] = 0
    return 0.0


def moves_racks(pod, node):  # noqa: ARG001
    node.rack = 3
    return 0.0


def shrinks_pods(pod, node):  # noqa: ARG001
    pod.cpu_milli = 1
    return 0.0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("tier", COMPILED)
@pytest.mark.parametrize(
    "function",
    [takes_cpu, gives_cpu, takes_gpus, moves_milli_between_gpus, moves_racks, shrinks_pods],
)
def test_what_changes_a_record_is_not_compiled(function, tier, protocol):
    with pytest.raises(PolicyError, match="cannot be compiled: line"):
        run(policy_of(function), tier, protocol)


def takes_cpu_natively(pod, node, gpu, table, rows, columns):  # noqa: ARG001
    node_at(node).cpu_milli_left -= 1
    return 0.0


def fills_gpus_natively(pod, node, gpu, table, rows, columns):  # noqa: ARG001
    node_at(node).gpu_milli_left[1] = 1001
    return 0.0


def shrinks_pods_natively(pod, node, gpu, table, rows, columns):  # noqa: ARG001
    pod_at(pod).cpu_milli = 1
    return 0.0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("tier", COMPILED)
@pytest.mark.parametrize(
    "function", [takes_cpu_natively, fills_gpus_natively, shrinks_pods_natively]
)
def test_machine_code_that_changes_a_record_is_found_out(function, tier, protocol):
    with pytest.raises(PolicyError, match="changed the state of the cluster"):
        run(with_machine_code(function), tier, protocol)


def test_plain_python_cannot_change_a_record_at_all():
    for function in (takes_cpu, takes_gpus, shrinks_pods):
        with pytest.raises(PolicyError, match=r"AttributeError|TypeError"):
            run(policy_of(function), "python")


def chooser(choice):
    class Always:
        def choose(self, _pod, _nodes, _feasible):
            return choice

    return ClusterPolicy("always", lambda _seed: Always())


@pytest.mark.parametrize("choice", [-1, 2, 0.5, 1e30, math.inf, math.nan])
def test_a_choice_that_is_no_node_is_an_error(choice):
    with pytest.raises(PolicyError, match=r"the policy chose .+, which is not a node that fits"):
        run(chooser(choice))


def test_a_choice_of_an_infeasible_node_is_an_error_that_names_both():
    with pytest.raises(PolicyError, match="the policy chose 0") as caught:
        run(chooser(0))
    assert caught.value.where == 'always, pod "bad" on node "plain"'


def test_a_chooser_that_raises_is_reported_with_the_pod():
    with pytest.raises(PolicyError, match="TypeError") as caught:
        run(chooser(None))
    assert caught.value.where == 'always, pod "good"'


def test_a_chooser_that_holds_forever_is_overruled():
    result = run(chooser(HOLD), protocol=Replay(holding=Holding(max_holds=2)))
    assert result.is_placed.all()
    assert result.node.tolist() == [0, 1, 1]
    assert (result.holds == 2).all()


def lowest_of_all(pod, node):  # noqa: ARG001
    return -1.7976931348623157e308


def below_all(pod, node):  # noqa: ARG001
    return -1.7976931348623157e308 * 2.0


@pytest.mark.parametrize("policy", [chooser(HOLD), from_function(below_all)])
def test_twins_that_are_held_for_ever_are_overruled_in_rounds_one_like_the_other(policy):
    twins = Workload.of([PodSpec(f"twin-{i}", 100, 1, 1, 500) for i in range(4)])
    protocol = Rounds(6, Holding(max_holds=2))
    result = simulate(CLUSTER, twins, policy, protocol)
    assert result.is_placed.all()
    assert (result.holds == 2).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("tier", ["python", *COMPILED])
def test_the_lowest_number_places_and_what_is_below_all_numbers_holds(tier, protocol):
    low, below = (run(policy_of(each), tier, protocol) for each in (lowest_of_all, below_all))
    assert low.held_decisions == 0
    assert low.is_placed[:2].all()
    assert below.held_decisions >= 3


def test_a_cluster_that_is_partly_used_stays_so():
    used = Cluster.of(CLUSTER.specs())
    used.nodes["cpu_milli_left"] -= 3950
    used.nodes["gpu_milli_left"][1] = [500, 0, 0, 0, 0, 0, 0, 0]
    used.nodes["gpu_classes"][1] = 0b11
    for protocol in PROTOCOLS:
        result = simulate(used, WORKLOAD, load("first-fit"), protocol)
        assert not result.is_placed.any()
    used.nodes["cpu_milli_left"] += 3950
    for protocol in PROTOCOLS:
        result = simulate(used, WORKLOAD, load("first-fit"), protocol, Setup(ranks="listed"))
        assert result.node.tolist() == [0, 1, -1]


def test_an_inflation_to_which_nobody_comes_is_refused():
    no_gpus = Cluster.of([NodeSpec("plain", 4000, 900)])
    pods = Workload.of(WORKLOAD.specs()[1:])
    with pytest.raises(UsageError, match="no GPUs that these pods can use"):
        simulate(no_gpus, pods, load("first-fit"), Inflation())
