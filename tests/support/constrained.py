"""Makes small clusters and workloads with constraints, bound pods and shared GPUs."""

from dataclasses import replace

from hypothesis import strategies as st

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import (
    Constraints,
    Gang,
    HostPort,
    NodeTerm,
    PodSelector,
    PodTerm,
    Requirement,
    Spread,
    Taint,
    Toleration,
    VolumeRule,
)
from podium.model.disruption import DisruptionBudget
from support.instances import at, lists_of, named
from support.reference_cluster import SlowNode

_SHAPES = 5
ZONE, HOST, DISK = "zone", "host", "disk"
_SHAPES = 5
_MOMENTS = (0.0, 0.1, 1.0, 2.0, 2.5, 3.0, 5.0, 8.0)


def _selector(namespaces, **labels):
    return PodSelector(
        tuple(Requirement(key, "In", (value,)) for key, value in labels.items()), namespaces
    )


_OWN, _ALL = frozenset(), None
_SELECTORS = (
    _selector(_OWN, app="x"),
    _selector(_ALL, app="x"),
    _selector(_OWN, app="y"),
    _selector(frozenset({"b"}), tier="1"),
    PodSelector((Requirement("app", "Exists"),), _ALL),
    PodSelector((), _OWN),
    PodSelector(None, _ALL),
)
_PICKS = st.tuples(
    st.integers(0, _SHAPES - 1), st.sampled_from(_MOMENTS), st.sampled_from(_MOMENTS)
)
pod_terms = st.builds(PodTerm, st.sampled_from(_SELECTORS), st.sampled_from((ZONE, HOST, DISK)))
spreads = st.builds(
    Spread,
    st.sampled_from(_SELECTORS),
    st.sampled_from((ZONE, HOST)),
    max_skew=st.integers(1, 2),
    min_domains=st.sampled_from((1, 1, 3)),
    honors_affinity=st.booleans(),
    honors_taints=st.booleans(),
)
budgets = st.builds(
    lambda selector, namespace, amount, status: DisruptionBudget(
        "b", selector, namespace, **amount, **status
    ),
    st.sampled_from([replace(each, namespaces=None) for each in _SELECTORS]),
    st.sampled_from(("a", "b")),
    st.sampled_from(
        ({"min_available": "1"}, {"min_available": "60%"}, {"max_unavailable": "1"},
         {"max_unavailable": "25%"}, {"desired_healthy": 2})
    ),
    st.sampled_from(
        ({}, {}, {"disruptions_allowed": 0}, {"disruptions_allowed": 1},
         {"disruptions_allowed": 2, "disrupted": ("pod-0", "pod-1")})
    ),
)  # fmt: skip
_TERMS = (
    None,
    None,
    None,
    (NodeTerm((Requirement(ZONE, "In", ("z1",)),)),),
    (
        NodeTerm((Requirement(DISK, "DoesNotExist"),)),
        NodeTerm((Requirement("cores", "Gt", ("4",)),)),
    ),
    (NodeTerm((), (Requirement("metadata.name", "In", ("node-0", "node-1")),)),),
    (NodeTerm((Requirement(ZONE, "NotIn", ("z1",)), Requirement("cores", "Lt", ("9",)))),),
    (),
)
_TOLERATIONS = (
    (),
    (Toleration("gpu", "Equal", "yes", "NoSchedule"),),
    (Toleration("gpu", "Exists"),),
    (Toleration("", "Exists"),),
)
_PORTS = (
    (),
    (),
    (),
    (HostPort(80),),
    (HostPort(80, "UDP"), HostPort(81)),
    (HostPort(80, address="10.0.0.1"),),
    (HostPort(80, address="10.0.0.2"),),
)


_ZONES = tuple((NodeTerm((Requirement(ZONE, "In", (zone,)),)),) for zone in ("z1", "z2"))
_VOLUMES = (
    (), (), (), (VolumeRule("elsewhere", _ZONES[:1]),),
    (VolumeRule("none", (*_ZONES, None), ((0, 1), (2,))),
     VolumeRule("some", (*_ZONES, None), ((2,), (0, 2, 1)))),
    (VolumeRule("pod waits"),),
)  # fmt: skip


def few(elements):
    """Draws none, or rarely one or two."""
    return st.one_of(
        st.just(()), st.just(()), st.lists(elements, min_size=1, max_size=2).map(tuple)
    )


constraints = st.builds(
    Constraints,
    node_labels=st.sampled_from(((), (), ((ZONE, "z1"),), ((ZONE, "z2"), (DISK, "ssd")))),
    node_terms=st.sampled_from(_TERMS),
    tolerations=st.sampled_from(_TOLERATIONS),
    affinity=few(pod_terms),
    anti_affinity=few(pod_terms),
    spread=few(spreads),
    host_ports=st.sampled_from(_PORTS),
    extended=st.sampled_from(((), (), (("rdma/hca", 1),), (("rdma/hca", 2), ("x/y", 1)))),
    volumes=st.sampled_from(_VOLUMES),
    sole_claims=st.sampled_from(((), (), (), ("a/data",), ("a/data", "b/data"))),
)

_GPUS = (
    (0, 0, 0), (1, 300, 0), (1, 1000, 0), (2, 1000, 0), (2, 400, 0), (3, 1000, 0), (1, 1, 6000),
    (2, 1, 9000), (1, 500, 3000), (5, 1000, 0),
)  # fmt: skip

shapes = st.builds(
    lambda gpus, limits, namespace, labels, cpu_milli, priority, gpu_spec: PodSpec(
        "", cpu_milli, 100, gpus[0], gpus[1], gpu_spec if gpus[0] else "", priority=priority,
        gpu_memory_mib=gpus[2], namespace=namespace, labels=labels, constraints=limits,
    ),
    st.sampled_from(_GPUS),
    constraints,
    st.sampled_from(("a", "b")),
    st.sampled_from(({}, {"app": "x"}, {"app": "y"}, {"app": "x", "tier": "1"})),
    st.sampled_from((0, 500, 1000)),
    st.sampled_from((0, 0, 5)),
    st.sampled_from(("", "", "", "A", "B|A")),
)  # fmt: skip

nodes = st.builds(
    lambda gpus, labels, taints, extended, where: NodeSpec(
        "", 8000, 4000, gpus[0], gpus[1], labels=labels, gpu_memory_mib=gpus[2],
        gpu_replicas=gpus[3], taints=taints, extended=extended, rack=where[0], block=where[1],
        zone=where[2],
    ),
    st.sampled_from(
        ((0, "", 0, 1), (2, "A", 16000, 1), (4, "A", 8000, 1), (4, "B", 16000, 4),
         (1, "B", 0, 3), (9, "A", 16000, 1))
    ),
    st.sampled_from(
        ({}, {ZONE: "z1"}, {ZONE: "z1", "cores": "8"}, {ZONE: "z2", DISK: "ssd", "cores": "64"},
         {ZONE: "z3", DISK: "hdd"})
    ),
    st.sampled_from(
        ((), (), (), (Taint("gpu", "yes"),), (Taint("gpu", "no", "NoExecute"),),
         (Taint("soft", "", "PreferNoSchedule"),))
    ),
    st.sampled_from(({}, {"pods": 3}, {"pods": 9, "rdma/hca": 2}, {"rdma/hca": 3, "x/y": 1})),
    st.sampled_from((("r1", "b1", "z1"), ("r2", "b1", "z1"), ("r3", "b2", "z1"), ("", "", "z2"))),
)  # fmt: skip


def _cluster(kinds, picks, has_hosts):
    specs = named([kinds[pick % len(kinds)] for pick in picks], "node")
    if has_hosts:
        specs = [replace(spec, labels={**spec.labels, HOST: spec.name}) for spec in specs]
    return Cluster.of(specs)


clusters = st.builds(_cluster, lists_of(nodes, 4), lists_of(st.integers(0, 3), 8), st.booleans())


def _workload(kinds, picks):
    pods = [at(kinds[shape % len(kinds)], *times) for shape, *times in picks]
    return Workload.of(named(pods, "pod"))


def _gang_workload(kinds, picks, memberships, rules):
    pods = [at(kinds[shape % len(kinds)], *times) for shape, *times in picks]
    joined = [replace(pod, gang=memberships[i % len(memberships)]) for i, pod in enumerate(pods)]
    return Workload.of(named(joined, "pod"), gangs=rules)


def gang_workloads(shapes):
    """Draws workloads of which some pods belong to gangs."""
    return st.builds(
        _gang_workload,
        lists_of(shapes, _SHAPES),
        lists_of(_PICKS, 30),
        lists_of(st.sampled_from(("", "", "g1", "g2", "g3")), 12),
        st.lists(
            st.builds(
                Gang,
                st.sampled_from(("g1", "g2", "g3")),
                st.integers(1, 5),
                st.sampled_from(("", "", "rack", "block", "zone")),
            ),
            unique_by=lambda rule: rule.name,
        ),
    )


def workloads_of(shapes):
    """Draws workloads of a few shapes, and many pods of each."""
    return st.builds(_workload, lists_of(shapes, _SHAPES), lists_of(_PICKS, 30))


workloads = workloads_of(shapes)

_SHARED_CARDS = st.builds(
    lambda cards, replicas: NodeSpec(
        "", 64000, 4000, cards, "A", gpu_replicas=replicas, has_partitions=replicas == 1
    ),
    st.integers(1, 4),
    st.integers(1, 7),
)
_DEVICES = st.builds(
    lambda count, milli: PodSpec("", 100, 10, count, milli),
    st.integers(1, 9),
    st.sampled_from((1000, 1000, 1000, 428)),
)

shared_clusters = st.builds(_cluster, lists_of(_SHARED_CARDS, 2), lists_of(st.integers(0, 1), 3),
                            st.just(False))  # fmt: skip
device_workloads = st.builds(_workload, lists_of(_DEVICES, _SHAPES), lists_of(_PICKS, 30))
"""Pods that ask for several devices, on nodes that list a card as several of them."""


@st.composite
def occupied_workloads(draw, cluster, kinds=workloads):
    """Draws a workload of which some pods run already, wherever there are GPUs for them.

    Some of those are being deleted.
    """
    workload = draw(kinds)
    specs = workload.specs()
    places = draw(
        st.lists(st.integers(-3, len(cluster) - 1), min_size=len(specs), max_size=len(specs))
    )
    leaving = draw(st.lists(st.booleans(), min_size=len(specs), max_size=len(specs)))
    nodes = [SlowNode(spec, 0, 0) for spec in cluster.specs()]
    occupied = [
        replace(spec, node=cluster.names[place], arrival_s=0.0, is_terminating=leaves)
        if place >= 0 and _takes_gpus(spec, nodes[place])
        else spec
        for spec, place, leaves in zip(specs, places, leaving, strict=True)
    ]
    return Workload.of(occupied, gangs=workload.gang_rules)


def _takes_gpus(spec, node):
    """Takes the tightest GPUs for a pod, if there are enough."""
    here = node.asked_here(spec)
    slots = node.fitting_slots(here) if here is not None else []
    if here is None or len(slots) < here.gpu_count:
        return False
    slots.sort(key=lambda slot: (node.gpu_milli_left[slot], slot))
    node.start(spec, slots[: here.gpu_count])
    return True
