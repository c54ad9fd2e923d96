"""Names the labels, annotations and resources in which manifests carry what Podium reads."""

from __future__ import annotations

import re

# The open-gpu-share convention of the hkust scheduler simulator.
GPU_MILLI = "alibabacloud.com/gpu-milli"
GPU_COUNT = "alibabacloud.com/gpu-count"
OPEN_GPU_SHARE = frozenset({GPU_MILLI, GPU_COUNT})
GPU_CARD_MODEL = "alibabacloud.com/gpu-card-model"
GPU_INDEX = "alibabacloud.com/gpu-index"
CREATION_TIME = "alibabacloud.com/creation-time"
DELETION_TIME = "alibabacloud.com/deletion-time"
UNBOUNDED_PODS = 1001
"""The number of pods that the published node manifests list, where it never binds."""

# The NVIDIA device plugin and GPU feature discovery.
NVIDIA_GPU = "nvidia.com/gpu"
NVIDIA_SHARED = "nvidia.com/gpu.shared"
NVIDIA_PRODUCT = "nvidia.com/gpu.product"
NVIDIA_COUNT = "nvidia.com/gpu.count"
NVIDIA_MEMORY = "nvidia.com/gpu.memory"
NVIDIA_REPLICAS = "nvidia.com/gpu.replicas"

# What clouds say of a node's GPUs, where no feature discovery runs.
GKE_MODEL = "cloud.google.com/gke-accelerator"
GKE_COUNT = "cloud.google.com/gke-accelerator-count"
GKE_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
GKE_PARTITION = "cloud.google.com/gke-gpu-partition-size"
KARPENTER_MODEL = "karpenter.k8s.aws/instance-gpu-name"
KARPENTER_COUNT = "karpenter.k8s.aws/instance-gpu-count"
KARPENTER_MEMORY = "karpenter.k8s.aws/instance-gpu-memory"
CLOUD_MODELS = (GKE_MODEL, KARPENTER_MODEL, "k8s.amazonaws.com/accelerator")

# The device plugins of AMD and Intel, and the labels of their node labellers.
AMD_GPU = "amd.com/gpu"
AMD_PRODUCT = "amd.com/gpu.product-name"
AMD_DEVICE = ("amd.com/gpu.device-id", "beta.amd.com/gpu.device-id")
AMD_MEMORY = ("amd.com/gpu.vram", "beta.amd.com/gpu.vram")
AMD_PARTITION = "amd.com/compute-memory-partition"
INTEL_I915 = "gpu.intel.com/i915"
INTEL_XE = "gpu.intel.com/xe"
INTEL_PRODUCT = "gpu.intel.com/product"
INTEL_COUNT = "gpu.intel.com/device.count"
INTEL_DEVICE = "gpu.intel.com/device-id."

# HAMi: resources of pods, cards of nodes, cards of running pods.
HAMI_MEMORY = "nvidia.com/gpumem"
HAMI_PERCENTAGE = "nvidia.com/gpumem-percentage"
HAMI_CORES = "nvidia.com/gpucores"
HAMI_PRIORITY = "nvidia.com/priority"
HAMI_REGISTER = "hami.io/node-nvidia-register"
HAMI_HANDSHAKE = "hami.io/node-handshake"
HAMI_ALLOCATED = "hami.io/vgpu-devices-allocated"
HAMI_TYPES = "nvidia.com/use-gputype"
HAMI_OTHER_TYPES = "nvidia.com/nouse-gputype"

# Of other vendors, only its extender knows cores and memory: devices are what nodes list.
HAMI_OTHERS = re.compile(
    r"huawei\.com/Ascend\w+-(memory|core)|cambricon\.com/mlu\.smlu\.v(memory|core)"
    r"|hygon\.com/[dh]cu(mem|cores)|iluvatar\.ai/.+[.-](vMem|vCore|memory|core)"
    r"|mthreads\.com/sgpu-(memory|core)|metax-tech\.com/v(memory|core)"
    r"|enflame\.com/vgcu-percentage|kunlunxin\.com/vxpu-memory"
)

# Accelerators that are no GPUs: nodes list them, and pods ask for whole ones.
ACCELERATORS = re.compile(
    r"google\.com/tpu|aws\.amazon\.com/neuron\w*|habana\.ai/gaudi\d?|huawei\.com/Ascend\w+"
    r"|cambricon\.com/mlu\w*|qualcomm\.com/qaic|rebellions\.ai/ATOM|furiosa\.ai/\w+"
)

# Volcano: vGPUs, and the sharing of GPUs before 1.9.
VOLCANO_NUMBER = "volcano.sh/vgpu-number"
VOLCANO_MEMORY = "volcano.sh/vgpu-memory"
VOLCANO_PERCENTAGE = "volcano.sh/vgpu-memory-percentage"
VOLCANO_CORES = "volcano.sh/vgpu-cores"
VOLCANO_REGISTER = "volcano.sh/node-vgpu-register"
VOLCANO_ALLOCATED = "volcano.sh/vgpu-ids-new"
VOLCANO_OLD_MEMORY = "volcano.sh/gpu-memory"
VOLCANO_OLD_NUMBER = "volcano.sh/gpu-number"
VOLCANO_OLD_INDEX = "volcano.sh/gpu-index"

# Koordinator; the first releases had the prefix kubernetes.io.
KOORDINATOR = ("koordinator.sh/", "kubernetes.io/")
KOORDINATOR_CORE = "koordinator.sh/gpu-core"
KOORDINATOR_MODEL = "node.koordinator.sh/gpu-model"
KOORDINATOR_ALLOCATED = "scheduling.koordinator.sh/device-allocated"

# The gpushare extender of Alibaba Cloud.
GPUSHARE_MEMORY = "aliyun.com/gpu-mem"
GPUSHARE_COUNT = "aliyun.com/gpu-count"
GPUSHARE_CORES = "aliyun.com/gpu-core.percentage"
GPUSHARE_INDEX = "ALIYUN_COM_GPU_MEM_IDX"

# KAI, and Run:ai before it.
KAI_FRACTION = "gpu-fraction"
KAI_MEMORY = "gpu-memory"
KAI_DEVICES = "gpu-fraction-num-devices"
KAI_GROUP = "runai-gpu-group"
KAI_RESERVATIONS = frozenset({"kai-resource-reservation", "runai-reservation"})
KAI_SHARING = "kai.scheduler/gpu-fraction"
"""What nodes have whose GPUs KAI can share, in a cluster where some have MIG devices alone."""
KAI_SCALING = frozenset({"kai-scale-adjust", "runai-scale-adjust"})

# Dynamic resource allocation: pods may name a device class as if it were a resource.
CLASS_RESOURCE = "deviceclass.resource.kubernetes.io/"
HOSTNAME = "kubernetes.io/hostname"
RESOURCE_SLICES = "resource.k8s.io/resourceslices"
"""What nodes with ResourceSlices have, in a cluster where others give out GPUs in another way."""
CLAIM_LABEL = "claim.podium/"
"""What the label of a pod begins with that takes the devices of a claim for others, too."""

# What Podium writes beside the convention of the hkust simulator, which knows no memory of GPUs.
GPU_MEMORY_MIB = "podium/gpu-memory-mib"
GPU_REPLICAS = "podium/gpu-replicas"

UNHONOURED_ANNOTATIONS = (
    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid",
    "volcano.sh/vgpu-mode",
    "scheduling.koordinator.sh/device-allocate-hint",
    "scheduling.koordinator.sh/device-joint-allocate",
    "scheduling.koordinator.sh/gpu-partition-spec",
)
"""Annotations of pods that narrow the choice of GPUs in ways that Podium does not follow."""

DEVICE_ANNOTATIONS = frozenset(
    {GPU_COUNT, GPU_MILLI, GPU_INDEX, GPU_MEMORY_MIB, KAI_FRACTION, KAI_MEMORY, KAI_DEVICES,
     HAMI_ALLOCATED, HAMI_TYPES, HAMI_OTHER_TYPES, VOLCANO_ALLOCATED, VOLCANO_OLD_INDEX,
     KOORDINATOR_ALLOCATED, GPUSHARE_INDEX, *UNHONOURED_ANNOTATIONS}
)  # fmt: skip
"""Annotations of pods that say something about devices."""

MODEL_LABELS = (GPU_CARD_MODEL, NVIDIA_PRODUCT, AMD_PRODUCT, INTEL_PRODUCT)
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

# What storage controllers write, and what was a label or an annotation before it was a field.
STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
DEFAULT_STORAGE_CLASS = "storageclass.kubernetes.io/is-default-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
VOLUME_MARKS = (STORAGE_CLASS, DEFAULT_STORAGE_CLASS, SELECTED_NODE, BIND_COMPLETED)
"""Annotations of claims, volumes and storage classes."""

VOLUMES = "podium/volumes"
"""Where the volumes of a pod let it run, as Podium writes it."""

# Times in seconds, exactly, where a calendar time would round them or lose their origin.
ARRIVAL_S = "podium/arrival-s"
DURATION_S = "podium/duration-s"
AGE_S = "podium/age-s"

# How the run of a recorded pod ended: completed, failed, deleted, or so that it might have gone on.
EXIT = "podium/exit"
