"""Lists the conventions in which clusters describe GPUs, and reads nodes and pods by them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

from podium.model.classes import PODS
from podium.model.cluster import GpuKind
from podium.model.shares import share_on
from podium.traces.fields import FieldError
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.devices.alibaba import (
    gpushare_cards,
    gpushare_share,
    open_gpu_share,
    open_gpu_share_cards,
)
from podium.traces.kubernetes.devices.claims import claimed_cards, claimed_share
from podium.traces.kubernetes.devices.kai import kai_share
from podium.traces.kubernetes.devices.koordinator import koordinator_cards, koordinator_share
from podium.traces.kubernetes.devices.plugins import (
    amd_cards,
    intel_cards,
    nvidia_cards,
    plugin_share,
)
from podium.traces.kubernetes.devices.values import (
    MOST_GPUS,
    NO_DEVICES,
    Cards,
    DeviceError,
    NodeDevices,
    NodeFacts,
    PodDevices,
    PodFacts,
    Share,
)
from podium.traces.kubernetes.devices.vgpu import (
    hami_cards,
    hami_share,
    indices,
    old_volcano_cards,
    old_volcano_share,
    volcano_cards,
    volcano_share,
)

UNLISTED_GPUS = "the label nvidia.com/gpu.count without the resource nvidia.com/gpu gives no GPUs"
PINNED = f"{keys.GPU_INDEX} is not honoured"

Facts = TypeVar("Facts", NodeFacts, PodFacts)
Found = TypeVar("Found", Cards, Share)


@dataclass(frozen=True, slots=True)
class Support:
    """Says what of a convention is read; an empty text is what the convention does not have."""

    node: str = ""
    pod: str = ""
    share: str = ""
    memory: str = ""
    several: str = ""
    partitions: str = ""


@dataclass(frozen=True, slots=True)
class Convention:
    """Is one way to describe GPUs: how nodes and pods are read, and what of it is read."""

    name: str
    cards: Callable[[NodeFacts], Cards | None] | None
    share: Callable[[PodFacts], Share | None]
    support: Support
    is_own: bool = False  # Podium writes it: what is wrong with it is an error in the file


CONVENTIONS = (
    Convention(
        "open-gpu-share",
        open_gpu_share_cards,
        open_gpu_share,
        Support(
            node="`alibabacloud.com/gpu-count`, `gpu-milli`; label `gpu-card-model`",
            pod="annotation `alibabacloud.com/gpu-count`; slots by `gpu-index`",
            share="annotation `gpu-milli`",
            memory="annotation `podium/gpu-memory-mib`",
            several="`gpu-count` with `gpu-milli`",
        ),
        is_own=True,
    ),
    Convention(
        "KAI",
        None,
        kai_share,
        Support(
            node="as the device plugin lists it",
            pod="`nvidia.com/gpu`; reservation and scaling pods hold no GPU of their own",
            share="annotation `gpu-fraction`",
            memory="annotation `gpu-memory`, MiB",
            several="annotation `gpu-fraction-num-devices`",
        ),
    ),
    Convention(
        "DRA",
        claimed_cards,
        claimed_share,
        Support(
            node="ResourceSlices of GPU drivers: v1, v1beta2, v1beta1",
            pod="ResourceClaims and templates, `extendedResourceName`; slots by allocation",
            share="consumed capacity",
            memory="capacity `memory` of devices and requests",
            several="`count` and several requests",
            partitions="MIG and partitionable devices as parts of their card",
        ),
    ),
    Convention(
        "HAMi",
        hami_cards,
        hami_share,
        Support(
            node="annotation `hami.io/node-nvidia-register`, text or JSON",
            pod="`nvidia.com/gpu`; slots by `hami.io/vgpu-devices-allocated`",
            share="`nvidia.com/gpucores`, `gpumem-percentage`",
            memory="`nvidia.com/gpumem`, MiB; without it all of the card",
            several="`nvidia.com/gpu` cards, each with that share",
        ),
    ),
    Convention(
        "Volcano vGPU",
        volcano_cards,
        volcano_share,
        Support(
            node="annotation `volcano.sh/node-vgpu-register`, or `vgpu-number`",
            pod="`volcano.sh/vgpu-number`; slots by `volcano.sh/vgpu-ids-new`",
            share="`vgpu-cores`, `vgpu-memory-percentage`",
            memory="`vgpu-memory`, in the blocks of the device plugin",
            several="`vgpu-number` cards, each with that share",
        ),
    ),
    Convention(
        "Koordinator",
        koordinator_cards,
        koordinator_share,
        Support(
            node="`koordinator.sh/gpu-core`, 100 a card; Device objects",
            pod="`koordinator.sh/gpu`; slots by `device-allocated`",
            share="`gpu-core`, `gpu-memory-ratio`",
            memory="`gpu-memory`",
            several="`gpu.shared`, or 200 percent and more",
        ),
    ),
    Convention(
        "gpushare",
        gpushare_cards,
        gpushare_share,
        Support(
            node="`aliyun.com/gpu-count`, `gpu-mem`",
            pod="`aliyun.com/gpu-mem`; slot by `ALIYUN_COM_GPU_MEM_IDX`",
            share="`gpu-core.percentage`",
            memory="`gpu-mem`, GiB or MiB",
            several="`gpu-count`, `gpu-mem` spread over them",
        ),
    ),
    Convention(
        "Volcano before 1.9",
        old_volcano_cards,
        old_volcano_share,
        Support(
            node="`volcano.sh/gpu-number`, `gpu-memory`",
            pod="`volcano.sh/gpu-number`; slot by `volcano.sh/gpu-index`",
            memory="`gpu-memory`, MiB of one card",
            several="`gpu-number` whole cards",
        ),
    ),
    Convention(
        "NVIDIA device plugin",
        nvidia_cards,
        plugin_share,
        Support(
            node="`nvidia.com/gpu`, `gpu.shared`; labels `gpu.product`, `gpu.count`, or those of "
            "GKE and EKS",
            pod="`nvidia.com/gpu`, `gpu.shared`",
            share="time slicing and MPS by label `gpu.replicas`, or "
            "`gke-max-shared-clients-per-gpu`",
            memory="label `gpu.memory`",
            several="several devices",
            partitions="MIG single (product, or `gke-gpu-partition-size`) and mixed "
            "(`nvidia.com/mig-1g.5gb`)",
        ),
    ),
    Convention(
        "AMD device plugin",
        amd_cards,
        plugin_share,
        Support(
            node="`amd.com/gpu`; labels `gpu.product-name`, `gpu.device-id`",
            pod="`amd.com/gpu`",
            memory="label `amd.com/gpu.vram`",
            several="several devices",
            partitions="label `compute-memory-partition`, `amd.com/cpx_nps4` and the like",
        ),
    ),
    Convention(
        "Intel device plugin",
        intel_cards,
        plugin_share,
        Support(
            node="`gpu.intel.com/i915`, `xe`; label `gpu.intel.com/product`",
            pod="`gpu.intel.com/i915`, `xe`",
            share="`shared-dev-num`, by labels that count the cards",
            several="several devices",
        ),
    ),
)
"""In the order in which they are tried: the first that finds GPUs counts."""

_MODELLED = frozenset(
    {"cpu", "memory", keys.GPU_COUNT, keys.GPU_MILLI, keys.HAMI_MEMORY, keys.HAMI_PERCENTAGE,
     keys.HAMI_CORES, keys.VOLCANO_MEMORY, keys.VOLCANO_PERCENTAGE, keys.VOLCANO_CORES,
     keys.GPUSHARE_CORES}
)  # fmt: skip
_UNLISTED = frozenset({keys.HAMI_PRIORITY})  # nodes never list what only an extender looks at
_LARGEST = 2**62


def node_devices(node: NodeFacts) -> NodeDevices:
    """Describes the devices of a node; devices that count GPUs stay in `extended` for now.

    `Inventory.settled` drops them once all objects are read.
    """
    inventory = node.inventory
    inventory.has_hostnames &= keys.HOSTNAME in node.labels
    inventory.resources.update(node.resources)
    inventory.remarks.clear()
    listed = keys.OPEN_GPU_SHARE & node.resources.keys()
    inventory.open_shares[node.name] = {name: int(node.resources[name]) for name in listed}
    cards = _read(node, [(each, each.cards) for each in CONVENTIONS if each.cards]) or Cards(0)
    extended = dict(cards.bounds) | {
        name: min(int(amount), _LARGEST)
        for name, amount in node.resources.items()
        if name not in _MODELLED and (amount >= 1 or name == PODS)
    }
    if extended.get(PODS) == keys.UNBOUNDED_PODS:
        del extended[PODS]
    if not cards.count:
        if keys.NVIDIA_COUNT in node.labels:
            inventory.remark(UNLISTED_GPUS)
        return NodeDevices(extended=extended, remarks=inventory.drained())
    inventory.take_cards(node.name, cards, extended)
    return NodeDevices(
        count=cards.count,
        model=cards.model,
        memory_mib=cards.memory_mib,
        replicas=cards.replicas,
        extended=extended,
        remarks=inventory.drained(),
    )


def pod_devices(pod: PodFacts) -> PodDevices:
    """Describes the devices that a pod asks for, and the GPUs on which it runs."""
    known = pod.inventory.known
    if pod not in known:
        found = _pod_devices(pod)
        supposed = pod.inventory.supposed.get(pod)
        known[pod] = supposed if supposed is not None and supposed == found else found
    return known[pod]


def _pod_devices(pod: PodFacts) -> PodDevices:
    pod.inventory.remarks.clear()
    share = _read(pod, [(each, each.share) for each in CONVENTIONS]) or Share(0, 0)
    slots = _slots(pod, share)
    for name in sorted(pod.resources):
        if _is_unlisted(name, pod):
            pod.inventory.remark(f"the resource {name} is not modelled")
    for name in keys.UNHONOURED_ANNOTATIONS:
        if name in pod.annotations and share.count:
            pod.inventory.remark(f"{name} is not honoured")
    if pod.annotations.get(keys.GPU_INDEX) and not slots:
        pod.inventory.remark(PINNED)
    found = PodDevices(
        count=share.count,
        milli=share.milli,
        memory_mib=share.memory_mib,
        models=share.models,
        slots=slots,
        extended=tuple(
            (name, min(math.ceil(amount), _LARGEST))
            for name, amount in sorted(pod.resources.items())
            if amount and _is_extended(name, pod)
        )
        + share.needs,
        ties=share.ties,
        remarks=pod.inventory.drained(),
    )
    return NO_DEVICES if found == NO_DEVICES else found


def support_table() -> str:
    """Writes the conventions as a table in Markdown."""
    columns = [field.name for field in fields(Support)]
    lines = [f"| convention | {' | '.join(columns)} |", f"|{'---|' * (len(columns) + 1)}"]
    for each in CONVENTIONS:
        cells = [getattr(each.support, column) or "-" for column in columns]
        lines.append(f"| {each.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _slots(pod: PodFacts, share: Share) -> tuple[int, ...]:
    """Names the GPUs on which a bound pod runs: those of its convention, else those of a note.

    Podium's extender notes them when it binds a pod, whatever the convention of the pod.
    """
    if not pod.node or not share.count:
        return ()
    most = pod.inventory.counts.get(pod.node, MOST_GPUS)
    noted = indices(pod.annotations.get(keys.GPU_INDEX, ""))
    for slots, count in ((share.slots, share.count), (noted, _cards(pod, share))):
        if len(slots) == count and max(slots) < most:
            return slots
    return ()


def _cards(pod: PodFacts, share: Share) -> int:
    """Counts the cards of its node that a pod takes: each may be listed as several devices."""
    if share.memory_mib:
        return share.count
    kind = GpuKind("", 0, pod.inventory.replicas.get(pod.node, 1))
    return share_on(share.count, share.milli, 0, kind)[0]


def _is_extended(name: str, pod: PodFacts) -> bool:
    if name in keys.OPEN_GPU_SHARE:
        # An annotation asks for GPUs; as a resource it is one more that nodes list or do not.
        pod.inventory.asked_shares.add(name)
        return True
    if name in _MODELLED or _is_unlisted(name, pod):
        return False
    return pod.inventory.bounded(name)


def _is_unlisted(name: str, pod: PodFacts) -> bool:
    """Tells whether only an extender of the scheduler looks at a resource."""
    if name in _UNLISTED:
        return True
    return bool(keys.HAMI_OTHERS.fullmatch(name)) and name not in pod.inventory.resources


def _read(
    facts: Facts, readers: list[tuple[Convention, Callable[[Facts], Found | None]]]
) -> Found | None:
    for convention, reader in readers:
        try:
            found = reader(facts)
        except FieldError as error:
            if convention.is_own:
                raise
            raise DeviceError(error.field, str(error)) from error
        if found is not None:
            return found
    return None
