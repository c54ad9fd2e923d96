"""Makes small and large instances: clusters, workloads, protocols."""

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.sim import Holding, Inflation, Order, Replay, Rounds

MODELS = ("A", "B", "C")
GPU_SPECS = ("", "", "", "", "", "A", "B|A", "A|B", "B|B", "C", "Z")
GPU_REQUESTS = (
    (0, 0), (0, 0), (1, 1), (1, 300), (1, 500), (1, 500), (1, 700), (1, 999), (1, 1000), (1, 1000),
    (2, 1000), (4, 1000), (8, 1000), (12, 1000),
)  # fmt: skip


# One draw per node, shape or pod: hypothesis spends its time on drawing.
_NODES = [
    NodeSpec("", cpu_milli, memory_mib, gpu_count, gpu_model, rack)
    for gpu_count in (4, 0, 1, 2, 3, 8, 11, 16)
    for cpu_milli in (9000, 8000, 4000, 1000, 0)
    for memory_mib in (9000, 4000, 500)
    for gpu_model in MODELS
    for rack in ("", "r1", "r2")
]
_SMALL_NODES = [node for node in _NODES if node.gpu_count <= 8]
_SHAPES = [
    PodSpec("", cpu_milli, memory_mib, *gpus, gpu_spec, priority=priority, gang=gang)
    for gpus in GPU_REQUESTS
    for cpu_milli in (500, 0, 1000, 3000)
    for memory_mib in (100, 0, 1500)
    for gpu_spec in GPU_SPECS
    for priority in (0, 0, 0, -1, 7)
    for gang in ("", "", "g1", "g2")
]
PLAIN_SHAPES = [replace(shape, gang="") for shape in _SHAPES]
_MOMENTS = (0.0, 0.1, 1.0, 2.0, 2.5, 3.0, 5.0, 8.0, 13.0)
_PODS = list(itertools.product(range(6), _MOMENTS, _MOMENTS))


def lists_of(elements, largest):
    """Draws the size first, which gives longer lists than ending them by a coin."""
    sizes = st.integers(1, largest)
    return sizes.flatmap(lambda size: st.lists(elements, min_size=size, max_size=size))


def _cluster(kinds, picks):
    return Cluster.of(named([kinds[pick % len(kinds)] for pick in picks], "node"))


def _workload(shapes, pods):
    chosen = [at(shapes[shape % len(shapes)], *times) for shape, *times in pods]
    return Workload.of(named(chosen, "pod"))


# A few kinds and several nodes of them, so that ties are common.
clusters = st.builds(
    _cluster,
    st.one_of(lists_of(st.sampled_from(_SMALL_NODES), 4), lists_of(st.sampled_from(_NODES), 4)),
    lists_of(st.integers(0, 3), 8),
)

# A few shapes and many pods of them, so that twins meet in the queue.
workloads = st.builds(
    _workload, lists_of(st.sampled_from(_SHAPES), 6), lists_of(st.sampled_from(_PODS), 60)
)

# The same without gangs, whose pods start at moments that are not their own.
single_workloads = st.builds(
    _workload, lists_of(st.sampled_from(PLAIN_SHAPES), 6), lists_of(st.sampled_from(_PODS), 60)
)

holdings = st.builds(
    Holding, hold_limit=st.sampled_from((1, 2, 5, 100)), max_holds=st.sampled_from((0, 1, 3, 1000))
)
replays = st.builds(Replay, load=st.sampled_from((1.0, 0.3, 2.0)), holding=holdings)
rounds = st.builds(Rounds, max_rounds=st.sampled_from((1, 2, 5, 20)), holding=holdings)


@st.composite
def inflations(draw, cluster, workload):
    """Draws an order with repeated and missing pods, and node ranks."""
    arrivals = draw(lists_of(st.integers(0, len(workload) - 1), 60))
    ranks = draw(st.permutations(range(len(cluster))))
    order = Order(np.array(arrivals, np.int64), np.array(ranks, np.int64))
    return Inflation(order=order, holding=draw(holdings))


def named(specs, kind):
    """Numbers the names of specs."""
    return [type(spec)(**{**fields(spec), "name": f"{kind}-{i}"}) for i, spec in enumerate(specs)]


def at(shape, arrival_s, duration_s):
    """Gives a pod of a shape its times."""
    return PodSpec(**{**fields(shape), "arrival_s": arrival_s, "duration_s": duration_s})


def fields(spec):
    """Lists a spec's fields with their values."""
    return {name: getattr(spec, name) for name in spec.__dataclass_fields__}


def random_cluster(num_nodes, random, *, largest_gpu_count=8):
    """Makes a cluster of mixed nodes, a third of them alike."""
    counts = [count for count in (0, 1, 2, 4, 8, 16) if count <= largest_gpu_count]
    return Cluster.of(
        NodeSpec(
            name=f"node-{i}",
            cpu_milli=8000 if i % 3 == 0 else int(random.choice((2000, 4000, 16000))),
            memory_mib=8000 if i % 3 == 0 else int(random.integers(1000, 9000)),
            gpu_count=4 if i % 3 == 0 else int(random.choice(counts)),
            gpu_model="A" if i % 3 == 0 else str(random.choice(MODELS)),
            rack=f"r{i % 7}",
        )
        for i in range(num_nodes)
    )


def random_workload(num_pods, random, *, num_shapes=25, pods_alive=100):
    """Makes a workload that keeps about so many pods alive once it has warmed up."""
    shapes = []
    for _ in range(num_shapes):
        gpu_count, gpu_milli = GPU_REQUESTS[random.integers(len(GPU_REQUESTS))]
        shapes.append(
            PodSpec(
                name="",
                cpu_milli=int(random.choice((100, 500, 1000, 3000))),
                memory_mib=int(random.choice((0, 100, 1500))),
                gpu_count=gpu_count,
                gpu_milli=gpu_milli,
                gpu_spec=str(random.choice(GPU_SPECS)),
                priority=int(random.choice((0, 0, 0, 5))),
            )
        )
    return Workload.of(
        named(
            [
                at(
                    shapes[random.integers(num_shapes)],
                    float(random.integers(num_pods)),
                    float(random.integers(2 * pods_alive)),
                )
                for _ in range(num_pods)
            ],
            "pod",
        )
    )


def thoroughly(examples):
    """Tries so many examples, however long they take."""
    return settings(
        max_examples=examples, deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
