"""Podium and the real kube-scheduler agree on devices of which a card has several."""

import json
from collections import Counter

import numpy as np
import pytest

from podium.traces import load_trace
from support.manifests import bound, node, pod
from support.present import feasible_nodes

WORLDS = 40
GPU, AMD = "nvidia.com/gpu", "amd.com/gpu"
MIG = ("nvidia.com/mig-3g.40gb", "nvidia.com/mig-4g.40gb", "nvidia.com/mig-1g.10gb")
T4 = {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}
GKE = {"cloud.google.com/gke-accelerator": "nvidia-l4",
       "cloud.google.com/gke-max-shared-clients-per-gpu": "3"}  # fmt: skip
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
KINDS = (
    ({**T4, "nvidia.com/gpu.count": "2"}, {GPU: 8}),
    ({**T4, "nvidia.com/gpu.count": "4"}, {GPU: 16}),
    (GKE, {GPU: 6}),
    ({"amd.com/compute-memory-partition": "dpx_nps1"}, {AMD: 16}),
    ({**A100, "nvidia.com/gpu.count": "2"}, {MIG[0]: 2, MIG[1]: 2}),
    ({**A100, "nvidia.com/gpu.count": "4"}, {GPU: 2, MIG[0]: 2, MIG[1]: 1, MIG[2]: 1}),
)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_devices_are_free_on_the_same_nodes(oracle, tmp_path, seed):
    rng = np.random.default_rng([20_262, seed])
    cluster = list(drawn_cluster(rng))
    asked = [request(rng, (GPU, AMD, *MIG)) for _ in range(6)]
    pending = [pod(f"p{i}", requests={name: str(n)}) for i, (name, n) in enumerate(asked)]
    verdicts = oracle.verdicts(pending, cluster)
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"kind": "List", "items": [*cluster, *pending]}))
    trace = load_trace(str(file))
    for each, verdict in zip(pending, verdicts, strict=True):
        assert feasible_nodes(trace, each["metadata"]["name"]) == verdict.nodes, (each, cluster)


def drawn_cluster(rng):
    for number in range(3):
        labels, listed = KINDS[int(rng.integers(len(KINDS)))]
        name = f"n{number}"
        made = node(name, labels)
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        amounts |= {name: str(count) for name, count in listed.items()}
        made["status"] = {"capacity": amounts, "allocatable": amounts}
        yield made
        left = Counter(listed)
        for at in range(int(rng.integers(0, 7))):
            resource, count = request(rng, tuple(listed))
            if count <= left[resource]:
                left[resource] -= count
                yield bound(pod(f"b{number}-{at}", requests={resource: str(count)}), name)


def request(rng, names):
    name = names[int(rng.integers(len(names)))]
    return name, 1 if "mig" in name else int(rng.choice([1, 1, 2, 3, 4, 5, 7, 8]))
