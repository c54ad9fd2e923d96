from dataclasses import replace

import numpy as np
import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.cluster import LIMIT
from podium.model.constraints import (
    UNCONSTRAINED,
    UNSCHEDULABLE,
    Constraints,
    Gang,
    HostPort,
    PodSelector,
    PodTerm,
    Requirement,
    Spread,
    Taint,
    Toleration,
)
from podium.policies import HOLD, from_function
from podium.sim import Inflation, Order, Replay, Rounds, Setup, simulate
from podium.sim.refusal import count_reasons
from podium.sim.result import HELD_BACK

LISTED = Setup(ranks="listed")
GPU = NodeSpec("gpu", 8000, 4000, 8, "A", labels={"zone": "z1", "host": "gpu"})
APP = PodSelector((Requirement("app", "In", ("x",)),), frozenset())


def refusals(nodes, pods, protocol=None, gangs=()):
    workload = Workload.of(pods, gangs=gangs)
    result = simulate(Cluster.of(nodes), workload, "first-fit", protocol or Rounds(), LISTED)
    return {
        name: result.refusal(pod)
        for pod, name in enumerate(result.plan.arrivals.names)
        if not result.is_placed[pod]
    }


def refusal(nodes, *pods, **others):
    (found,) = refusals(nodes, pods, **others).values()
    assert sum(found.counts.values()) == len(nodes)
    return found


def node(name, **fields):
    kept = {"cpu_milli": 8000, "memory_mib": 4000, "gpu_count": 8, "gpu_model": "A"}
    return NodeSpec(name, **(kept | fields))


def labelled(name, **labels):
    return node(name, labels={"host": name, **labels})


ASKS = PodSpec("p", 1000, 1000, 1, 1000)


def asking(constraints=UNCONSTRAINED, name="p", **fields):
    kept = {"cpu_milli": 1, "memory_mib": 1}
    return PodSpec(name, **(kept | fields), constraints=constraints)


@pytest.mark.parametrize(
    ("nodes", "pod", "reason", "message"),
    [
        (
            [node("a", taints=(Taint("node-role/gpu", "yes"),)), node("b", gpu_count=0)],
            ASKS,
            "taint",
            "0/2 nodes are available: "
            "1 node(s) had untolerated taint {node-role/gpu=yes:NoSchedule}, "
            "1 Insufficient nvidia.com/gpu (0 free GPUs at most, 1 asked)",
        ),
        (
            [node("a", taints=(Taint("x"), Taint(UNSCHEDULABLE)))],
            ASKS,
            "cordoned",
            "0/1 nodes are available: 1 node(s) were unschedulable",
        ),
        (
            [labelled("a", zone="z1"), labelled("b", zone="z2")],
            asking(Constraints(node_labels=(("zone", "z3"),))),
            "selector",
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector",
        ),
        (
            [node("a", gpu_memory_mib=8192), node("b", gpu_model="B", gpu_memory_mib=16384)],
            asking(gpu_count=1, gpu_milli=1, gpu_memory_mib=20_000),
            "gpu-memory",
            "0/2 nodes are available: 2 node(s) had GPUs with too little memory "
            "(16Gi on a GPU at most, 20000Mi asked)",
        ),
        (
            [node("a", extended={"pods": 9}), node("b", extended={"rdma/hca": 1})],
            asking(Constraints(extended=(("rdma/hca", 2),))),
            "resource",
            "0/2 nodes are available: 2 Insufficient rdma/hca (1 free at most, 2 asked)",
        ),
        (
            [node("a", extended={"pods": 0})],
            asking(),
            "pods",
            "0/1 nodes are available: 1 Too many pods",
        ),
        (
            [labelled("a"), labelled("b", zone="z")],
            asking(Constraints(affinity=(PodTerm(APP, "zone"),))),
            "pod-affinity",
            "0/2 nodes are available: "
            "1 node(s) didn't match pod affinity rules (missing required label), "
            "1 node(s) didn't match pod affinity rules",
        ),
        (
            [node("a", extended={"pods": 9})],
            asking(cpu_milli=9000, memory_mib=1),
            "cpu",
            "0/1 nodes are available: 1 Insufficient cpu (8 free at most, 9 asked)",
        ),
        (
            [node("a", extended={"pods": 9})],
            asking(cpu_milli=LIMIT),
            "cpu",
            "0/1 nodes are available: 1 Insufficient cpu "
            "(8 free at most, more than any node can have asked)",
        ),
        (
            [node("a", extended={"pods": 9})],
            asking(memory_mib=5000),
            "memory",
            "0/1 nodes are available: 1 Insufficient memory (4000Mi free at most, 5000Mi asked)",
        ),
        (
            [node("a", extended={"pods": 9})],
            asking(gpu_count=1, gpu_milli=1000, gpu_spec="B|C"),
            "gpu-model",
            "0/1 nodes are available: 1 node(s) had another GPU model than B|C",
        ),
    ],
)
def test_one_pod_on_empty_nodes_is_refused_for_one_reason(nodes, pod, reason, message):
    found = refusal(nodes, pod)
    assert (found.reason, found.message) == (reason, message)
    assert not found.would_fit_empty or reason == "pod-affinity"


BUSY = Constraints(host_ports=(HostPort(80),))
APART = Constraints(anti_affinity=(PodTerm(APP, "host"),))
EVEN = Constraints(spread=(Spread(APP, "zone"),))


TOLERANT = Constraints((("pool", "x"),), tolerations=(Toleration("team", "Exists"),))


def test_pods_that_can_run_nowhere_are_refused_each_for_its_own_reason():
    pods = [ASKS, replace(ASKS, name="own", constraints=TOLERANT)]
    pods += gang("g", 2, gpu_count=1, gpu_milli=1000)
    pods += gang("h", 2, gpu_count=1, gpu_milli=1000, constraints=TOLERANT)
    nodes = [node("a", taints=(Taint("team", "web"),))]
    found = refusals(nodes, pods, gangs=[Gang("g", 2), Gang("h", 2)])
    for name in ("p", "g0"):
        assert found[name].message.endswith("1 node(s) had untolerated taint {team=web:NoSchedule}")
    for name in ("own", "h0"):
        assert found[name].message.endswith("1 node(s) didn't match Pod's node affinity/selector")


def test_pods_that_ask_for_more_memory_than_any_gpu_has_are_told_their_own_amount():
    pods = [
        asking(name=f"p{gib}", gpu_count=1, gpu_milli=1000, gpu_memory_mib=gib << 10)
        for gib in (50, 60)
    ]
    found = refusals([node("a", gpu_memory_mib=40 << 10)], pods)
    assert [found[f"p{gib}"].message.partition("most, ")[2] for gib in (50, 60)] == [
        "50Gi asked)",
        "60Gi asked)",
    ]


@pytest.mark.parametrize(
    ("first", "second", "reason", "told"),
    [
        (asking(BUSY, "q"), asking(BUSY), "host-ports", "didn't have free ports"),
        (
            asking(name="q", labels={"app": "x"}),
            asking(APART),
            "pod-anti-affinity",
            "1 node(s) didn't match pod anti-affinity rules",
        ),
        (
            asking(APART, "q"),
            asking(labels={"app": "x"}),
            "pod-anti-affinity",
            "1 node(s) didn't satisfy existing pods anti-affinity rules",
        ),
        (
            asking(name="q", gpu_count=1, gpu_milli=700),
            asking(gpu_count=1, gpu_milli=400),
            "gpu-share",
            "1 Insufficient GPU share (300 milli free on a GPU at most, 400 milli asked)",
        ),
        (
            asking(name="q", gpu_count=1, gpu_milli=1, gpu_memory_mib=12_000),
            asking(gpu_count=1, gpu_milli=1, gpu_memory_mib=8000),
            "gpu-memory",
            "Insufficient GPU memory (4",
        ),
    ],
)
def test_what_runs_keeps_another_pod_away(first, second, reason, told):
    only = NodeSpec("n", 8000, 4000, 1, "A", labels={"host": "n"}, gpu_memory_mib=16_000)
    found = refusal([only], first, second)
    assert (found.reason, found.would_fit_empty) == (reason, True)
    assert told in found.message


def test_a_spread_keeps_a_pod_out_of_the_fuller_zone():
    nodes = [labelled("a", zone="z1"), node("b", cpu_milli=0, labels={"host": "b", "zone": "z2"})]
    first, second = (asking(EVEN, name, labels={"app": "x"}) for name in "qp")
    found = refusal(nodes, first, second)
    assert found.message == (
        "0/2 nodes are available: 1 Insufficient cpu (0 free at most, 1m asked), "
        "1 node(s) didn't match pod topology spread constraints"
    )
    assert found.reason == "cpu"  # of two nodes that lack one thing each, the first filter's


def test_the_reason_is_what_most_of_the_nodes_lack_that_come_nearest():
    nodes = [
        *(node(f"t{i}", taints=(Taint("x", "y"),)) for i in range(5)),
        *(node(f"g{i}", gpu_count=2, cpu_milli=500) for i in range(2)),
        node("g2", gpu_count=2),
    ]
    found = refusal(nodes, PodSpec("p", 1000, 1, 4, 1000))
    assert found.reason == "gpu"
    assert found.message == (
        "0/8 nodes are available: 5 node(s) had untolerated taint {x=y:NoSchedule}, "
        "3 Insufficient nvidia.com/gpu (2 free GPUs at most, 4 asked)"
    )
    assert found.would_fit_empty is False


def test_cores_are_named_where_they_are_what_is_short():
    card = node("a", gpu_count=1, gpu_memory_mib=1000)
    asks = {"gpu_count": 1, "gpu_milli": 600, "gpu_memory_mib": 400}
    found = refusal([card], asking(name="q", **asks), asking(**asks))
    assert found.reason == "gpu-share"
    told = "1 Insufficient GPU cores (400 milli free on a GPU at most, 600 milli asked)"
    assert told in found.message
    more = {**asks, "gpu_memory_mib": 700}
    found = refusal([card], asking(name="q", **more), asking(**more))
    assert found.reason == "gpu-memory"
    assert "1 Insufficient GPU memory (300Mi free on a GPU at most, 700Mi" in found.message


def test_gpus_of_another_kind_are_named_as_the_pod_asks_and_decide_nothing():
    nodes = [
        node("a1", extended={"amd.com/gpu": 8}),
        *(node(f"v{i}", extended={"nvidia.com/gpu": 8}) for i in range(5)),
    ]
    asks = Constraints(extended=(("amd.com/gpu", 7),))
    more = Constraints(extended=(("amd.com/gpu", 2),))
    running = asking(asks, name="q", gpu_count=7, gpu_milli=1000)
    found = refusal(nodes, running, asking(more, gpu_count=2, gpu_milli=1000))
    assert found.reason == "gpu"
    told = "0/6 nodes are available: 6 Insufficient amd.com/gpu (1 free GPU at most, 2 asked)"
    assert found.message == told


def test_the_reason_is_that_of_nodes_which_list_what_a_pod_asks_for():
    nodes = [
        node("koord", gpu_count=1, extended={"koordinator.sh/gpu-core": 100}),
        *(node(f"w{i}", extended={"nvidia.com/gpu": 8}) for i in range(3)),
    ]
    asks = Constraints(extended=(("koordinator.sh/gpu-core", 60),))
    parts = [asking(asks, name=name, gpu_count=1, gpu_milli=600) for name in ("q", "p")]
    found = refusal(nodes, *parts)
    assert found.reason == "gpu-share"
    assert found.counts == {
        "Insufficient koordinator.sh/gpu-core": 3,
        "Insufficient GPU share": 1,
    }
    assert found.would_fit_empty


def test_devices_of_shared_gpus_are_counted_as_they_were_asked_for():
    shared = node("a", gpu_count=1, gpu_replicas=4)
    pods = [asking(name="q", gpu_count=2, gpu_milli=1000), asking(gpu_count=3, gpu_milli=1000)]
    found = refusal([shared], *pods)
    assert found.reason == "gpu"
    assert "1 Insufficient nvidia.com/gpu (2 free GPUs at most, 3 asked)" in found.message


def test_devices_that_lie_unevenly_on_shared_gpus_are_too_few_when_they_are_too_few():
    shared = node("a", gpu_count=2, gpu_replicas=4)
    running = asking(name="q", gpu_count=3, gpu_milli=1000)
    found = refusal([shared], running, asking(gpu_count=6, gpu_milli=1000))
    assert found.reason == "gpu"
    assert "1 Insufficient nvidia.com/gpu (5 free GPUs at most, 6 asked)" in found.message
    assert found.would_fit_empty


def test_what_is_free_at_most_is_told_of_all_nodes_that_lack_it():
    nodes = [
        node("a", extended={"amd.com/gpu": 3}),  # not as many as it has
        node("b", gpu_count=2, extended={"amd.com/gpu": 2}),
    ]
    asks = Constraints(extended=(("amd.com/gpu", 4),))
    found = refusal(nodes, asking(asks, gpu_count=4, gpu_milli=1000))
    assert found.message.endswith("2 Insufficient amd.com/gpu (3 free GPUs at most, 4 asked)")


def test_parts_of_several_gpus_are_told_by_how_many_gpus_have_so_much_free():
    two = node("a", gpu_count=2, gpu_memory_mib=16 << 10)
    running = asking(name="q", gpu_count=1, gpu_milli=1000)
    halves = asking(gpu_count=2, gpu_milli=500)
    found = refusal([two], running, halves)
    assert found.message.endswith("(1 GPU with 500 milli free at most, 2 asked)")
    found = refusal([two], running, replace(halves, gpu_milli=100, gpu_memory_mib=8 << 10))
    assert found.message.endswith("(1 GPU with 8Gi free at most, 2 asked)")


def gang(name, count, **fields):
    return [asking(name=f"{name}{i}", gang=name, **fields) for i in range(count)]


def test_a_gang_waits_for_members():
    found = refusals([GPU], gang("g", 3), gangs=[Gang("g", 4)])
    assert {each.message for each in found.values()} == {
        'gang "g" waits for members (3 of 4 have arrived)'
    }
    assert {each.reason for each in found.values()} == {"gang"}


def test_names_are_told_on_one_line():
    tainted = [node("a", taints=(Taint("x\ny", "\x1b[2J"),))]
    assert refusal(tainted, ASKS).message.isprintable()
    (first, *_) = refusals([GPU], gang("g\n", 3), gangs=[Gang("g\n", 4)]).values()
    assert first.message.isprintable()


def test_a_gang_that_does_not_fit_tells_how_much_of_it_would():
    found = refusals([GPU, node("b", gpu_count=2)], gang("g", 8, gpu_count=2, gpu_milli=1000))
    assert len(found) == 8
    assert {each.message for each in found.values()} == {
        'gang "g" does not fit (5 of 8 pods found a node): 0/2 nodes are available: '
        "2 Insufficient nvidia.com/gpu (0 free GPUs at most, 2 asked)"
    }


def test_a_gang_that_does_not_need_all_its_pods_tells_how_many():
    pods = gang("g", 4, gpu_count=1, gpu_milli=1000)
    found = refusals([node("a", gpu_count=2)], pods, gangs=[Gang("g", 3)])
    (message,) = {each.message for each in found.values()}
    assert message.startswith(
        'gang "g" does not fit (2 of 4 pods found a node, 3 are needed): 0/1 nodes are available'
    )


def test_a_gang_that_no_rack_holds_tells_how_much_the_best_one_does():
    nodes = [node(f"n{i}", gpu_count=2, rack=f"r{i // 2}") for i in range(5)]
    pods = gang("g", 5, gpu_count=1, gpu_milli=1000)
    (message,) = {
        each.message for each in refusals(nodes, pods, gangs=[Gang("g", 5, "rack")]).values()
    }
    assert message == (
        'no one rack holds gang "g" (4 of 5 pods found a node): 0/5 nodes are available: '
        "3 node(s) were in another rack, or in none, "
        "2 Insufficient nvidia.com/gpu (0 free GPUs at most, 1 asked)"
    )


def test_members_that_come_after_their_gang_has_started_are_refused_on_their_own():
    found = refusals([node("a", gpu_count=3)], gang("g", 4, gpu_count=1, gpu_milli=1000),
                     gangs=[Gang("g", 2)])  # fmt: skip
    (late,) = found.values()
    assert late.reason == "gpu"


def test_a_gang_of_which_members_run_already_is_tried_where_they_are():
    nodes = [node(f"n{i}", gpu_count=2, rack=f"r{i}") for i in range(2)]
    runs = asking(name="runs", gang="g", gpu_count=1, gpu_milli=1000, node="n1")
    pods = [runs, *gang("g", 2, gpu_count=1, gpu_milli=1000)]
    found = refusals(nodes, pods, gangs=[Gang("g", 3, "rack")])
    assert set(found) == {"g0", "g1"}
    assert "(1 of 2 pods found a node)" in found["g0"].message


def test_a_pod_dropped_before_its_company_came_is_judged_as_it_arrived():
    near = Constraints(affinity=(PodTerm(APP, "zone"),))
    pods = [asking(name="early"), asking(near), asking(name="app", labels={"app": "x"})]
    order = Inflation(order=Order(np.arange(3)))
    found = refusal([labelled("a", zone="z")], *pods, protocol=order)
    assert found.reason == "pod-affinity"


def holding(pod, node):
    return HOLD if pod.cpu_milli == 7 else node.cpu_milli_left


def test_a_pod_that_the_policy_held_is_not_refused_by_nodes():
    nodes = [node("a"), node("b", cpu_milli=1)]
    workload = Workload.of([PodSpec("p", 7, 1)])
    result = simulate(Cluster.of(nodes), workload, from_function(holding), Rounds(2), LISTED)
    found = result.refusal(0)
    assert (found.reason, found.message, result.reason(0)) == ("held", HELD_BACK, HELD_BACK)
    assert found.counts == {"Insufficient cpu": 1, HELD_BACK: 1}


def test_reasons_are_counted_the_commonest_first_and_placed_pods_have_none():
    pods = [
        PodSpec("fits", 1000, 1, 1, 1000, arrival_s=0, duration_s=1),
        PodSpec("b0", 9000, 1, arrival_s=0, duration_s=1),
        *(PodSpec(f"a{i}", 1, 1, 9, 1000, arrival_s=0, duration_s=1) for i in range(3)),
    ]
    result = simulate(Cluster.of([GPU]), Workload.of(pods), "first-fit", Replay(), LISTED)
    assert result.refusal(0) is None
    assert count_reasons(result) == {"gpu": 3, "cpu": 1}
