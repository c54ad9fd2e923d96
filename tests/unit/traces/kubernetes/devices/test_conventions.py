"""Dumps in each project's documented form; every cell of the table in the docs is checked."""

from dataclasses import fields
from pathlib import Path

import pytest

from podium.traces import load_trace
from podium.traces.kubernetes.devices.claims import MISSING_CLAIMS
from podium.traces.kubernetes.devices.conventions import CONVENTIONS, Support, support_table
from podium.traces.kubernetes.manifest import read_manifests
from podium.traces.kubernetes.writer import write_manifests
from podium.traces.rejects import Rejects

DUMPS = Path(__file__).parent / "dumps"
DOCS = Path(__file__).parents[5] / "docs" / "traces.md"
FOLDED = (
    "the larger part of a GPU, by cores or by memory, counts for both: a GPU may hold more pods "
    "than that, where some ask for more cores and others for more memory"
)
UNRELATED = ("spec.schedulerName ", "spec.nodeName ")

# Convention, column: dump, object, what is read of it.
# A node is GPUs, model, MiB, replicas; a pod is GPUs, milli, MiB, slots.
CELLS = {
    ("open-gpu-share", "node"): ("open-gpu-share", "openb", (2, "V100M32", 32768, 1)),
    ("open-gpu-share", "pod"): ("open-gpu-share", "part", (1, 460, 0, (1,))),
    ("open-gpu-share", "share"): ("open-gpu-share", "part", (1, 460, 0, (1,))),
    ("open-gpu-share", "memory"): ("open-gpu-share", "memory", (2, 1, 4096, ())),
    ("open-gpu-share", "several"): ("open-gpu-share", "memory", (2, 1, 4096, ())),
    ("KAI", "node"): ("kai", "a100", (4, "NVIDIA-A100-SXM4-40GB", 40960, 1)),
    ("KAI", "pod"): ("kai", "gpu-reservation-a100-x7k2p", (0, 0, 0, ())),
    ("KAI", "share"): ("kai", "fraction", (1, 500, 0, (0,))),
    ("KAI", "memory"): ("kai", "memory", (1, 1, 2000, ())),
    ("KAI", "several"): ("kai", "several", (2, 250, 0, ())),
    ("DRA", "node"): ("dra", "h100", (2, "NVIDIA-H100-80GB-HBM3", 81559, 1)),
    ("DRA", "pod"): ("dra", "running", (1, 1000, 0, (0,))),
    ("DRA", "share"): ("dra-mig", "first-of-claim", (1, 250, 0, (2,))),
    ("DRA", "memory"): ("dra", "part", (1, 1, 10240, ())),
    ("DRA", "several"): ("dra", "pending", (2, 1000, 0, ())),
    ("DRA", "partitions"): ("dra-mig", "running", (1, 428, 0, (1,))),
    ("HAMi", "node"): ("hami", "t4", (2, "NVIDIA-Tesla-T4", 15360, 1)),
    ("HAMi", "pod"): ("hami", "by-memory", (1, 1, 3000, (1,))),
    ("HAMi", "share"): ("hami", "by-cores", (2, 500, 0, ())),
    ("HAMi", "memory"): ("hami", "whole-memory", (1, 1000, 0, ())),
    ("HAMi", "several"): ("hami", "two-containers", (2, 1, 3000, ())),
    ("Volcano vGPU", "node"): (
        "volcano", "registered", (2, "NVIDIA-Tesla-V100-SXM2-32GB", 32768, 1)),
    ("Volcano vGPU", "pod"): ("volcano", "whole", (1, 1000, 0, ())),
    ("Volcano vGPU", "share"): ("volcano", "by-percentage", (1, 250, 0, ())),
    ("Volcano vGPU", "memory"): ("volcano", "by-memory", (1, 1, 3000, (1,))),
    ("Volcano vGPU", "several"): ("volcano", "by-cores", (2, 500, 3000, ())),
    ("Koordinator", "node"): ("koordinator", "host04", (2, "NVIDIA-A10", 23040, 1)),
    ("Koordinator", "pod"): ("koordinator", "whole", (1, 1000, 0, ())),
    ("Koordinator", "share"): ("koordinator", "half", (1, 500, 0, (1,))),
    ("Koordinator", "memory"): ("koordinator", "memory", (1, 100, 1024, ())),
    ("Koordinator", "several"): ("koordinator", "shared-two", (2, 500, 0, ())),
    ("gpushare", "node"): ("gpushare", "ack", (2, "", 15360, 1)),
    ("gpushare", "pod"): ("gpushare", "part", (1, 1, 3072, (1,))),
    ("gpushare", "share"): ("gpushare", "with-cores", (1, 300, 3072, ())),
    ("gpushare", "memory"): ("gpushare", "part", (1, 1, 3072, (1,))),
    ("gpushare", "several"): ("gpushare", "over-two", (2, 1, 4096, ())),
    ("Volcano before 1.9", "node"): ("volcano-old", "old", (2, "", 11179, 1)),
    ("Volcano before 1.9", "pod"): ("volcano-old", "part", (1, 1, 1024, (1,))),
    ("Volcano before 1.9", "memory"): ("volcano-old", "part", (1, 1, 1024, (1,))),
    ("Volcano before 1.9", "several"): ("volcano-old", "two", (2, 1000, 0, ())),
    ("NVIDIA device plugin", "node"): (
        "nvidia-whole", "dgx-a", (8, "NVIDIA-A100-SXM4-80GB", 81920, 1)),
    ("NVIDIA device plugin", "pod"): ("nvidia-time-slicing", "infer-shared", (1, 1000, 0, ())),
    ("NVIDIA device plugin", "share"): (
        "nvidia-time-slicing", "sliced", (2, "Tesla-T4-SHARED", 15360, 4)),
    ("NVIDIA device plugin", "memory"): (
        "nvidia-time-slicing", "renamed", (8, "NVIDIA-L40S", 46068, 4)),
    ("NVIDIA device plugin", "several"): ("nvidia-whole", "train", (4, 1000, 0, ())),
    ("NVIDIA device plugin", "partitions"): (
        "nvidia-mig", "single", (2, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 40960, 7)),
    ("AMD device plugin", "node"): ("amd", "by-id", (8, "MI300X", 195584, 1)),
    ("AMD device plugin", "pod"): ("amd", "rocm", (4, 1000, 0, ())),
    ("AMD device plugin", "memory"): ("amd", "mi300x", (8, "AMD_Instinct_MI300X_OAM", 196608, 1)),
    ("AMD device plugin", "several"): ("amd", "rocm", (4, 1000, 0, ())),
    ("AMD device plugin", "partitions"): ("amd", "cpx", (8, "AMD_Instinct_MI300X_OAM", 0, 8)),
    ("Intel device plugin", "node"): ("intel", "max", (4, "Max_1550", 0, 1)),
    ("Intel device plugin", "pod"): ("intel", "transcode", (1, 1000, 0, ())),
    ("Intel device plugin", "share"): ("intel", "flex", (2, "Flex_170", 0, 10)),
    ("Intel device plugin", "several"): ("intel", "hpc", (2, 1000, 0, ())),
}  # fmt: skip

# What the table has no cell for: other forms of the same.
MORE = [
    ("hami", "v100", (2, "NVIDIA-Tesla-V100-PCIE-32GB", 32768, 1)),
    ("hami", "plain", (1, 1000, 0, ())),
    ("kai", "whole", (2, 1000, 0, ())),
    ("volcano", "unregistered", (1, "", 89424, 1)),
    ("nvidia-time-slicing", "unlabelled-replicas", (2, "Tesla-T4", 0, 3)),
    ("nvidia-time-slicing", "whole", (2, "Tesla-T4", 15360, 1)),
    ("nvidia-time-slicing", "infer", (1, 1000, 0, ())),
    ("nvidia-mig", "single-h100", (8, "NVIDIA-H100-80GB-HBM3-MIG-1g.20gb", 81559, 4)),
    ("nvidia-mig", "mixed", (4, "NVIDIA-A100-SXM4-40GB", 40960, 1)),
    ("nvidia-mig", "small", (1, 142, 0, ())),
    ("nvidia-mig", "three-small", (1, 426, 0, ())),
    ("nvidia-mig", "many", (2, 642, 0, ())),
    ("amd", "cpx-mixed", (8, "AMD_Instinct_MI300X_OAM", 0, 1)),
    ("amd", "partition", (1, 250, 0, ())),
    ("dra", "best", (2, 1000, 0, ())),
    ("dra", "monitor", (0, 0, 0, ())),
    ("dra", "by-resource", (1, 1000, 0, ())),
    ("dra", "by-class", (2, 1000, 0, ())),
    ("dra-mig", "a100", (3, "NVIDIA-A100-SXM4-40GB", 40960, 1)),
    ("dra-mig", "second-of-claim", (0, 0, 0, ())),
    ("dra-mig", "pending", (1, 284, 0, ())),
    ("dra-mig", "claimless", (0, 0, 0, ())),
]


def trace_of(dump):
    return load_trace(str(DUMPS / f"{dump}.yaml"))


def specs_of(trace):
    return {spec.name: spec for spec in [*trace.cluster.specs(), *trace.workload.specs()]}


def devices_of(spec):
    if hasattr(spec, "gpu_replicas"):
        return spec.gpu_count, spec.gpu_model, spec.gpu_memory_mib, spec.gpu_replicas
    return spec.gpu_count, spec.gpu_milli, spec.gpu_memory_mib, spec.gpu_slots


@pytest.mark.parametrize(
    ("dump", "name", "expected"),
    [*CELLS.values(), *MORE],
    ids=[
        *(f"{convention} {column}" for convention, column in CELLS),
        *(f"{m[0]} {m[1]}" for m in MORE),
    ],
)
def test_dumps_are_read_as_their_projects_mean_them(dump, name, expected):
    assert devices_of(specs_of(trace_of(dump))[name]) == expected


def test_every_cell_of_the_table_is_checked():
    columns = [field.name for field in fields(Support)]
    claimed = {
        (each.name, column)
        for each in CONVENTIONS
        for column in columns
        if getattr(each.support, column)
    }
    assert claimed == set(CELLS)
    assert support_table() in DOCS.read_text()


@pytest.mark.parametrize(
    ("dump", "name", "expected"),
    [
        ("nvidia-whole", "dgx-a", {"ephemeral-storage": 1796937352448, "pods": 110,
                                   "hugepages-2Mi": 2**30, "rdma/hca": 8}),
        ("nvidia-whole", "train", {"ephemeral-storage": 10 * 2**30, "hugepages-2Mi": 2**29,
                                   "rdma/hca": 4}),
        ("kai", "a100", {"pods": 110}),
        ("kai", "whole", {}),
        # Where one card is several devices, devices bound pods as kube-scheduler counts them.
        ("nvidia-time-slicing", "sliced", {"pods": 110, "nvidia.com/gpu": 8}),
        ("nvidia-time-slicing", "whole", {"pods": 110, "nvidia.com/gpu": 2}),
        ("nvidia-time-slicing", "infer", {"nvidia.com/gpu": 1}),
        ("nvidia-time-slicing", "infer-shared", {"nvidia.com/gpu.shared": 1}),
        ("nvidia-mig", "mixed", {"pods": 110, "nvidia.com/gpu": 2, "nvidia.com/mig-1g.5gb": 7,
                                 "nvidia.com/mig-3g.20gb": 2}),
        ("nvidia-mig", "small", {"nvidia.com/mig-1g.5gb": 1}),
        ("nvidia-mig", "whole", {"nvidia.com/gpu": 1}),
        ("hami", "t4", {"pods": 110, "nvidia.com/gpu": 20}),
        ("hami", "by-cores", {"nvidia.com/gpu": 2}),
        ("volcano", "by-cores", {"volcano.sh/vgpu-number": 2}),
        ("koordinator", "host04", {"pods": 220, "koordinator.sh/rdma": 100}),
        ("koordinator", "whole", {"koordinator.sh/rdma": 25}),
        ("dra", "h100", {"pods": 110}),
        ("open-gpu-share", "openb", {}),
    ],
)  # fmt: skip
def test_other_resources_and_shared_devices_are_bounds(dump, name, expected):
    spec = specs_of(trace_of(dump))[name]
    found = spec.extended if hasattr(spec, "extended") else spec.constraints.extended
    assert dict(found) == expected


@pytest.mark.parametrize(
    ("dump", "notes"),
    [
        ("nvidia-whole", []),
        ("nvidia-time-slicing", []),
        ("nvidia-mig", []),
        ("amd", []),
        ("intel", []),
        ("hami", [f"{FOLDED}: 3 pods"]),
        ("kai", []),
        ("koordinator", []),
        ("gpushare", [f"{FOLDED}: 3 pods"]),
        ("volcano-old", []),
        ("volcano", ["volcano.sh/vgpu-number without the annotation volcano.sh/node-vgpu-register"
                     " is read as ten vGPUs a GPU: 1 node", f"{FOLDED}: 3 pods"]),
        ("dra", ["of the alternatives of a resource claim the first is read: 1 pod"]),
        ("dra-mig", ["a resource claim of several pods takes GPUs for the first of them alone:"
                     " 1 pod",
                     f"{MISSING_CLAIMS}: 1 pod"]),
    ],
)  # fmt: skip
def test_what_is_not_read_as_it_stands_is_noted(dump, notes):
    found = [note for note in trace_of(dump).notes if not note.startswith(UNRELATED)]
    assert found == notes


@pytest.mark.parametrize("dump", sorted(path.stem for path in DUMPS.glob("*.yaml")))
def test_devices_survive_being_written_and_read_again(tmp_path, dump):
    once = trace_of(dump)
    write_manifests(once, tmp_path / "again.yaml")
    again = read_manifests(tmp_path / "again.yaml", Rejects())
    for before, after in zip(once.cluster.specs(), again.cluster.specs(), strict=True):
        assert devices_of(after) == devices_of(before)
        assert dict(after.extended) == dict(before.extended)
    for before, after in zip(once.workload.specs(), again.workload.specs(), strict=True):
        assert devices_of(after)[:3] == devices_of(before)[:3]
        assert after.constraints.extended == before.constraints.extended
