"""Whatever labels, annotations and objects say about devices, a dump is read or refused."""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.errors import PodiumError
from podium.traces import load_trace
from podium.traces.kubernetes import keys

NODE_KEYS = [
    keys.NVIDIA_COUNT, keys.NVIDIA_MEMORY, keys.NVIDIA_PRODUCT, keys.NVIDIA_REPLICAS,
    keys.AMD_PRODUCT, *keys.AMD_DEVICE, *keys.AMD_MEMORY, keys.AMD_PARTITION, keys.INTEL_COUNT,
    "gpu.intel.com/device-id.0300-9a49.count", keys.HAMI_REGISTER, keys.VOLCANO_REGISTER,
    keys.GPU_MEMORY_MIB, keys.GPU_REPLICAS, keys.GPU_CARD_MODEL,
]  # fmt: skip
POD_KEYS = [*sorted(keys.DEVICE_ANNOTATIONS), keys.GPUSHARE_COUNT, keys.KAI_GROUP, "app"]
RESOURCES = [
    keys.NVIDIA_GPU, keys.NVIDIA_SHARED, "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb.me",
    keys.AMD_GPU, "amd.com/cpx_nps4", keys.INTEL_I915, keys.INTEL_XE, keys.HAMI_MEMORY,
    keys.HAMI_PERCENTAGE, keys.HAMI_CORES, keys.VOLCANO_NUMBER, keys.VOLCANO_MEMORY,
    keys.VOLCANO_CORES, keys.VOLCANO_OLD_MEMORY, keys.VOLCANO_OLD_NUMBER, keys.GPUSHARE_MEMORY,
    keys.GPUSHARE_COUNT, keys.KOORDINATOR_CORE, "koordinator.sh/gpu", "koordinator.sh/gpu.shared",
    "koordinator.sh/gpu-memory", keys.GPU_COUNT, keys.GPU_MILLI, "rdma/hca", "pods",
]  # fmt: skip

cards = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.one_of(st.integers(-1, 2**70), st.text(max_size=4), st.none(), st.booleans())
            for name in ("id", "count", "devmem", "type", "health", "index", "minor")
        },
    ),
    max_size=3,
)
texts = st.one_of(
    st.sampled_from(["", "1", "0", "4", "100", "-1", "1.5", "GPU-a,10,15360,100,T4,0,true:",
                     "Tesla-T4-SHARED", "A100-MIG-1g.5gb", "cpx_nps4", "192G", "0-1", "9" * 5000]),
    st.text(max_size=8),
    cards.map(json.dumps),
    cards.map(lambda rows: json.dumps({"gpu": rows})),
)  # fmt: skip
amounts = st.sampled_from(["0", "1", "2", "8", "16", "17", "100", "1600", "250m", "1Gi", "x", "-1"])
FIELDS = st.sampled_from(
    ["devices", "requests", "exactly", "firstAvailable", "deviceClassName", "count", "selectors",
     "cel", "expression", "allocation", "results", "driver", "pool", "device", "name", "attributes",
     "capacity", "memory", "value", "type", "string", "nodeName", "generation", "consumesCounters",
     "counterSet", "basic", "spec", "resources", "health", "minor", "extendedResourceName"]
)  # fmt: skip
trees = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-1, 2**70), st.text(max_size=4)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=12,
)
others = st.builds(
    lambda kind, spec, status: {
        "apiVersion": "scheduling.koordinator.sh/v1" if kind == "Device" else "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "n", "namespace": "default"},
        "spec": spec,
        "status": status,
    },
    st.sampled_from(
        ["ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "Device"]
    ),
    st.dictionaries(FIELDS, trees, max_size=4) | st.just({"driver": "gpu.nvidia.com"}),
    trees,
)


@st.composite
def dumps(draw):
    marks = draw(st.dictionaries(st.sampled_from(NODE_KEYS), texts, max_size=4))
    pod_marks = draw(st.dictionaries(st.sampled_from(POD_KEYS), texts, max_size=4))
    listed = draw(st.dictionaries(st.sampled_from(RESOURCES), amounts, max_size=4))
    asked = draw(st.dictionaries(st.sampled_from(RESOURCES), amounts, max_size=4))
    node = {
        "kind": "Node",
        "metadata": {"name": "n", "labels": marks, "annotations": marks},
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", **listed}},
    }
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "labels": pod_marks, "annotations": pod_marks},
        "spec": {
            "nodeName": draw(st.sampled_from(["", "n"])),
            "containers": [{"resources": {"limits": asked}}],
            "resourceClaims": [{"name": "c", "resourceClaimName": "n"}],
        },
    }
    plain = {"kind": "Pod", "metadata": {"name": "plain"}, "spec": {}}
    return {"kind": "List", "items": [node, pod, plain, *draw(st.lists(others, max_size=2))]}


@given(dumps())
@settings(deadline=None, max_examples=150)
def test_any_description_of_devices_is_read_or_refused(dump):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.json"
        path.write_text(json.dumps(dump))
        try:
            trace = load_trace(str(path))
        except PodiumError:
            return
    assert trace.workload.names[-1].endswith("plain")
    for spec in trace.workload.specs():
        assert (spec.gpu_count == 0) == (spec.gpu_milli == 0)
        assert all(0 <= slot < 16 for slot in spec.gpu_slots)
