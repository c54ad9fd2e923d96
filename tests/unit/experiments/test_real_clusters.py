"""Dumps as real clusters have them, with what is true of them, worked out by hand."""

from pathlib import Path

import pytest

from podium import fit
from podium.traces import load_trace

CLUSTERS = Path(__file__).parent / "clusters"

pytestmark = [
    pytest.mark.usefixtures("_warm_cache"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # notes
]

# Cluster: GPUs by node; pending pods, what they ask for and where they fit, or why nowhere.
TRUE = {
    "aks": (
        {"aks-gpu-0": (2, "")},
        {"ml/spot": ("2", "aks-gpu-0"), "ml/no-spot": ("1", "taint")},
    ),
    "dra-beside-device-plugin": (
        # Claims are served where there are ResourceSlices, nvidia.com/gpu where it is listed.
        {"plug": (2, "A100"), "d1": (2, "NVIDIA-H100-80GB-HBM3")},
        {
            "ml/x1": ("1", "d1"),
            "ml/x2": ("1", "d1"),
            "ml/x3": ("1", "gpu"),
            "ml/y1": ("1", "plug"),
            "ml/y2": ("1", "plug"),
            "ml/y3": ("1", "gpu"),
        },
    ),
    "dra-extended-resource": (
        # A GPU is tainted, and the other one in use.
        {"h1": (1, "NVIDIA-H100-80GB-HBM3")},
        {"ml/ext": ("1", "gpu"), "ml/ext2": ("1", "gpu")},
    ),
    "eks": (
        {"ip-10-0-1-1.ec2.internal": (8, "a100"), "ip-10-0-1-2.ec2.internal": (0, "")},
        {
            "ml/train": ("8", "ip-10-0-1-1.ec2.internal"),
            "ml/inf": ("6 x neuron", "ip-10-0-1-2.ec2.internal"),
            "ml/mem": ("10,000 MiB", "gpu-memory"),
        },
    ),
    "gke": (
        # Two L4 for four clients each, an A100 as seven devices, eight H100.
        {
            "gke-shared": (2, "nvidia-l4"),
            "gke-mig": (1, "nvidia-tesla-a100-MIG-1g.5gb"),
            "gke-h100": (8, "nvidia-h100-80gb"),
        },
        {
            "ml/infer": ("1 replica", "gke-shared"),
            "ml/slice": ("1 MIG device", "gke-mig"),
            "ml/slices": ("7 MIG devices", "gpu"),
            "ml/train": ("8", "gke-h100"),
        },
    ),
    "gpu-operator": (
        {"dgx-1": (8, "NVIDIA-H100-80GB-HBM3")},
        {"ml/eval-0": ("1", "dgx-1"), "ml/eval-1": ("1", "gpu")},
    ),
    "hami-beside-device-plugin": (
        # HAMi knows the cards of nodes that its own device plugin registers.
        {"hami": (1, "NVIDIA-V100"), "whole": (1, "NVIDIA-A100-SXM4-40GB")},
        {"ml/h1": ("20,000 MiB", "hami"), "ml/h2": ("20,000 MiB", "gpu-memory")},
    ),
    "hami-two-vendors": (
        {"nv": (2, "NVIDIA-Tesla-T4"), "ascend": (0, "")},
        # HAMi would place the first: 30 % of the cores of a card leave 80 % of its memory.
        {"ml/u": ("2 x 12,000 MiB", "gpu-memory"), "ml/npu": ("1 x Ascend910B3", "ascend")},
    ),
    "jobset": (
        {"n1": (8, "NVIDIA-H100-80GB-HBM3"), "n2": (8, "NVIDIA-H100-80GB-HBM3")},
        {"ml/js-w-0-0-abcde": ("4", "n2"), "ml/js-w-1-0-fghij": ("4", "n1")},
    ),
    "kai-beside-mig": (
        # KAI shares whole cards; this one is given out as MIG devices.
        {"mig": (1, "NVIDIA-H100-80GB-HBM3")},
        {"ml/k": ("0.5", "resource"), "ml/whole": ("1", "gpu")},
    ),
    "kai-reservations": (
        {"a100": (2, "NVIDIA-A100-SXM4-40GB")},
        {
            "kai-scale-adjust/scale-pod": ("0", "a100"),
            "ml/frac2": ("0.5", "a100"),
            "ml/whole": ("1", "a100"),
        },
    ),
    "kuberay": ({"n1": (4, "NVIDIA-A10G")}, {"ml/rc-gpu-worker-b": ("1", "n1")}),
    "kueue": ({"n1": (8, "NVIDIA-H100-80GB-HBM3")}, {"ml/admitted": ("4", "n1")}),
    "mig-mixed": (
        {"dgx-a100": (8, "NVIDIA-A100-SXM4-40GB")},
        {
            "ml/whole": ("4", "dgx-a100"),
            "ml/small": ("14 x mig-1g.5gb", "dgx-a100"),
            "ml/two-g": ("3 x mig-2g.10gb", "dgx-a100"),
        },
    ),
    "volcano-queue": (
        {"v1": (2, "NVIDIA-Tesla-V100-SXM2-32GB")},
        {
            "ml/a-0": ("20,000 MiB", "v1"),
            "ml/a-1": ("20,000 MiB", "v1"),
            "ml/b": ("20,000 MiB", "gpu-memory"),
        },
    ),
}

NOTES = {
    "dra-extended-resource": "GPUs with a taint are left out, whoever tolerates it or runs there",
    "hami-two-vendors": "the resource huawei.com/Ascend910B3-memory is not modelled: 1 pod",
    "kueue": "wait for their gates (spec.schedulingGates), so left out: 1 pod",
    "volcano-queue": "Queue is not read: 1 object",
}


@pytest.mark.parametrize("cluster", sorted(path.stem for path in CLUSTERS.glob("*.yaml")))
def test_a_cluster_is_read_as_it_is(cluster):
    nodes, pods = TRUE[cluster]
    path = str(CLUSTERS / f"{cluster}.yaml")
    described = load_trace(path).cluster.specs()
    assert {spec.name: (spec.gpu_count, spec.gpu_model) for spec in described} == nodes
    found = fit(path)
    rows = {name: (asked, node or reason) for name, asked, node, reason in found.rows()}
    assert rows == pods
    expected = NOTES.get(cluster)
    assert expected is None or any(note.startswith(expected) for note in found.notes)
