from dataclasses import replace

import numpy as np
import pytest

from podium.errors import InputError, UnknownName, UsageError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import from_function, load
from podium.sim import Inflation, Order, Replay, Rounds, Setup, simulate
from podium.sim.engine import make_plan
from podium.sim.execution import execute
from podium.sim.orders import inflate, shuffled_rank
from podium.traces import load_trace

CLUSTER = Cluster.of([NodeSpec(f"n{i}", 1000, 900, 1, "AB"[i % 2]) for i in range(9)])
TIMED = Workload.of(
    [
        PodSpec("late", 1, 1, 1, 500, "B", arrival_s=2, duration_s=1),
        PodSpec("early", 1, 1, arrival_s=1, duration_s=1),
        PodSpec("early too", 1, 1, arrival_s=1, duration_s=1),
    ]
)
UNTIMED = Workload.of([PodSpec("a", 1, 1, 1, 500), PodSpec("b", 1, 1)])


def plan(workload=TIMED, protocol=None, **setup):
    return make_plan(CLUSTER, workload, load("first-fit"), protocol or Replay(), Setup(**setup))


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_fits_no_generator_is_refused(seed):
    with pytest.raises(UsageError, match=f"seed is {seed}"):
        Setup(seed=seed)


def test_pods_arrive_by_time_and_equal_times_keep_the_order_of_the_trace():
    assert plan().arrivals.names == ("early", "early too", "late")
    assert plan(protocol=Rounds()).arrivals.names == ("early", "early too", "late")
    assert plan().trace.names == TIMED.names


def test_a_replay_needs_times_and_the_other_protocols_do_not():
    with pytest.raises(UsageError, match="has no times") as caught:
        plan(UNTIMED)
    assert "inflation" in caught.value.hint
    for protocol in (Inflation(), Rounds()):
        assert len(simulate(CLUSTER, UNTIMED, load("first-fit"), protocol).node) >= 2


def test_nodes_are_ranked_by_a_shuffle_of_the_seed_or_as_listed():
    ranks = shuffled_rank(9, 5)
    assert plan(seed=5).rank_order[ranks].tolist() == list(range(9))
    assert plan(seed=5, ranks="listed").rank_order.tolist() == list(range(9))


def test_an_order_fixes_arrivals_and_ranks():
    ranks = np.array([8, 7, 6, 5, 4, 3, 2, 1, 0])
    found = plan(protocol=Inflation(order=Order(np.array([2, 0, 2]), ranks)))
    assert found.arrivals.names == ("early too", "late", "early too")
    assert found.rank_order.tolist() == ranks.tolist()


def test_an_order_without_ranks_leaves_them_to_the_seed():
    found = plan(protocol=Inflation(order=Order(np.array([0]))), seed=5)
    assert found.rank_order[shuffled_rank(9, 5)].tolist() == list(range(9))


def test_without_an_order_the_seed_inflates_the_trace():
    order = inflate(CLUSTER, TIMED, 1.1, 3)
    found = plan(protocol=Inflation(ratio=1.1), seed=3)
    assert found.arrivals.names == tuple(TIMED.names[i] for i in order.arrivals)


def test_an_order_of_another_trace_is_refused():
    with pytest.raises(InputError, match="the order names pod 3"):
        plan(protocol=Inflation(order=Order(np.array([3]))))


def test_model_constraints_are_read_with_the_models_of_the_cluster():
    result = simulate(CLUSTER, TIMED, load("first-fit"), Replay())
    assert CLUSTER.specs()[result.node[2]].gpu_model == "B"


def test_a_replay_is_what_happens_unless_another_protocol_is_named():
    assert simulate(CLUSTER, TIMED, load("first-fit")).plan.protocol == Replay()


def test_a_policy_may_be_given_by_its_name():
    cluster, workload = Cluster.of([NodeSpec("a", 9, 9)]), Workload.of([PodSpec("p", 1, 1)])
    named = simulate(cluster, workload, "first-fit", Rounds())
    assert named.digest == simulate(cluster, workload, load("first-fit"), Rounds()).digest
    with pytest.raises(UnknownName, match='unknown policy "frist-fit"'):
        simulate(cluster, workload, "frist-fit", Rounds())
    with pytest.raises(UsageError, match="is not a policy"):
        simulate(cluster, workload, len, Rounds())


def test_what_a_run_takes_and_gives_is_shown_in_a_line():
    trace = load_trace("openb")
    result = simulate(trace.cluster, trace.workload, "first-fit")
    for value in (trace, trace.cluster, trace.workload, result, result.plan, load("fgd")):
        assert len(repr(value)) < 600, repr(value)[:200]
        assert "\n" not in repr(value)
    assert repr(trace.cluster) == "<Cluster openb: 1,213 nodes, 6,212 GPUs>"


def weighed(pod, node, table):  # noqa: ARG001
    return table[0]


@pytest.mark.parametrize("tier", ["auto", "python", "cached", "scan"])
def test_a_table_is_prepared_once_for_each_run(tier):
    calls = []

    def prepare(shapes):
        calls.append(len(shapes))
        return shapes.weights

    policy = replace(from_function(weighed), prepare=prepare)
    made = make_plan(CLUSTER, TIMED, policy, Rounds(), Setup(tier=tier))
    first = execute(made)
    assert calls == [2]
    assert execute(made).digest == first.digest
    assert calls == [2, 2]
    assert execute(replace(made, trace=UNTIMED.aligned(CLUSTER.gpu_models))).digest == first.digest
    assert execute(replace(made, policy=load("first-fit"))).digest == first.digest
    assert calls == [2, 2, 2]
