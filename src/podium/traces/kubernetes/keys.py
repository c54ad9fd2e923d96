"""Names the labels, annotations and resources in which manifests carry what Podium reads."""

from __future__ import annotations

# The open-gpu-share convention of the hkust scheduler simulator.
GPU_MILLI = "alibabacloud.com/gpu-milli"
GPU_COUNT = "alibabacloud.com/gpu-count"
GPU_CARD_MODEL = "alibabacloud.com/gpu-card-model"
GPU_INDEX = "alibabacloud.com/gpu-index"
CREATION_TIME = "alibabacloud.com/creation-time"
DELETION_TIME = "alibabacloud.com/deletion-time"

# The NVIDIA device plugin and GPU feature discovery.
NVIDIA_GPU = "nvidia.com/gpu"
NVIDIA_PRODUCT = "nvidia.com/gpu.product"
NVIDIA_COUNT = "nvidia.com/gpu.count"

# Parts of a GPU: HAMi, Koordinator, Volcano (percent of a GPU's cores) and KAI (a fraction).
HAMI_CORES = "nvidia.com/gpucores"
KOORDINATOR_CORE = "koordinator.sh/gpu-core"
VOLCANO_NUMBER = "volcano.sh/vgpu-number"
VOLCANO_CORES = "volcano.sh/vgpu-cores"
KAI_FRACTION = "gpu-fraction"
KAI_DEVICES = "gpu-fraction-num-devices"

MODEL_LABELS = (GPU_CARD_MODEL, NVIDIA_PRODUCT)
"""Node labels that name the GPU model, the first one found wins."""

RACK_LABELS = ("rack", "topology.kubernetes.io/rack", "network.topology.nvidia.com/leaf")
"""Node labels that name the rack, the first one found wins."""

SERVER_LABEL = "server"

GANG_KEYS = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "kueue.x-k8s.io/pod-group-name",
    "scheduling.k8s.io/group-name",
    "pod-group-name",
)
"""Labels or annotations that name the group a pod must start with, the first one found wins."""

JOB_TYPE = "app.kubernetes.io/job-type"

# Times in seconds, exactly, where a calendar time would round them or lose their origin.
ARRIVAL_S = "podium/arrival-s"
DURATION_S = "podium/duration-s"
