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

POD_GROUP = "scheduling.x-k8s.io/pod-group"

GANG_KEYS = {
    "coscheduling": (
        POD_GROUP,
        "pod-group.scheduling.sigs.k8s.io",
        "pod-group.scheduling.sigs.k8s.io/name",
    ),
    "kueue": ("kueue.x-k8s.io/pod-group-name",),
    "volcano": ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"),
    "kai": ("pod-group-name",),
}
"""Labels or annotations that name the group a pod must start with, the first one found wins."""

GANG_MINIMUMS = (
    "pod-group.scheduling.sigs.k8s.io/min-available",
    "kueue.x-k8s.io/pod-group-total-count",
)
"""Labels or annotations that say how many pods of the group must start together."""

KUEUE_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
KUEUE_SLICES = "kueue.x-k8s.io/podset-slice-required-topology"
KUEUE_WORKLOAD = "kueue.x-k8s.io/workload"
KUEUE_PODSET = "kueue.x-k8s.io/podset"
KAI_TOPOLOGY = "kai.scheduler/topology-required-placement"

LWS = "leaderworkerset.sigs.k8s.io"
JOB_SET = "jobset.sigs.k8s.io/jobset-name"
JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")
JOB_INDEX = "batch.kubernetes.io/job-completion-index"

JOB_TYPE = "app.kubernetes.io/job-type"

# Times in seconds, exactly, where a calendar time would round them or lose their origin.
ARRIVAL_S = "podium/arrival-s"
DURATION_S = "podium/duration-s"
