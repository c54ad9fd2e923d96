"""Reads the devices that device plugins of NVIDIA, AMD and Intel list, whole, shared or sliced."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction

from podium.model.records import GPU_MILLI as WHOLE_GPU
from podium.traces.fields import FieldError, quantity_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.devices.partitions import (
    MigProfile,
    amd_share,
    mig_profile,
    partition_share,
)
from podium.traces.kubernetes.devices.products import amd_product, known_memory_mib
from podium.traces.kubernetes.devices.values import (
    MIB,
    MOST_GPUS,
    Cards,
    NodeFacts,
    PodFacts,
    Resources,
    Share,
    asked_gpus,
    listed_gpus,
    sliced,
)

NVIDIA = (keys.NVIDIA_GPU, keys.NVIDIA_SHARED)
INTEL = (keys.INTEL_I915, keys.INTEL_XE)
WHOLE_DEVICES = (*NVIDIA, keys.AMD_GPU, *INTEL, keys.VOLCANO_NUMBER)
"""Resources that count devices: cards, or replicas of cards where a node shares them."""

_MOST_SLICES = 128  # eight on each of sixteen cards

UNKNOWN_SHARING = (
    f"{keys.NVIDIA_SHARED} without the label {keys.NVIDIA_REPLICAS} or {keys.NVIDIA_COUNT} "
    "is read as whole GPUs"
)


def nvidia_cards(node: NodeFacts) -> Cards | None:
    """Reads whole cards, time slicing, MPS and both strategies of MIG."""
    devices = _devices(node, *NVIDIA)
    slices = _slices(node, "nvidia.com/mig-")
    if not devices and not slices:
        return None
    replicas = _nvidia_replicas(node, devices)
    cards = math.ceil(Fraction(devices, replicas))
    if slices:
        # Feature discovery counts cards with MIG too; their slices may leave some of it unused.
        cards = max(cards + math.ceil(slices), node.number(keys.NVIDIA_COUNT))
    is_shared = replicas > 1 or bool(slices)
    return Cards(
        count=listed_gpus(cards, keys.NVIDIA_GPU),
        model=node.label(*keys.MODEL_LABELS) or _cloud_model(node),
        memory_mib=_nvidia_memory_mib(node, replicas),
        replicas=replicas,
        shared=NVIDIA if is_shared else (),
        serves=(keys.KAI_SHARING,) if devices else (),
    )


def amd_cards(node: NodeFacts) -> Cards | None:
    """Reads whole cards and compute partitions."""
    devices = _devices(node, keys.AMD_GPU)
    slices = _slices(node, "amd.com/")
    if not devices and not slices:
        return None
    mode = amd_share(f"amd.com/{node.label(keys.AMD_PARTITION).lower()}") or Fraction(1)
    replicas = mode.denominator if devices else 1
    cards = math.ceil(Fraction(devices, replicas)) + math.ceil(slices)
    return Cards(
        count=listed_gpus(cards, keys.AMD_GPU),
        model=node.label(*keys.MODEL_LABELS) or amd_product(node.label(*keys.AMD_DEVICE)),
        memory_mib=_vram_mib(node.label(*keys.AMD_MEMORY)),
        replicas=replicas,
        shared=(keys.AMD_GPU,) if replicas > 1 or slices else (),
    )


def intel_cards(node: NodeFacts) -> Cards | None:
    """Reads cards, each listed `shared-dev-num` times, which labels of discovered cards tell."""
    devices = _devices(node, *INTEL)
    if not devices:
        return None
    counts = (key for key in node.labels if _is_intel_count(key))
    cards = node.number(keys.INTEL_COUNT) or sum(node.number(key) for key in counts)
    replicas = devices // cards if cards and devices % cards == 0 else 1
    return Cards(
        count=listed_gpus(devices // replicas, keys.INTEL_I915),
        model=node.label(*keys.MODEL_LABELS),
        replicas=replicas,
        shared=INTEL if replicas > 1 else (),
    )


def plugin_share(pod: PodFacts) -> Share | None:
    """Reads numbers of devices; a slice of a card is a part of it."""
    slices = list(_asked_slices(pod.resources))
    classes = pod.inventory.class_resources
    vendors, classed = Counter[str](), 0
    for name, amount in pod.resources.items():
        if name in WHOLE_DEVICES:
            vendors[name.partition("/")[0]] += asked_gpus(amount, name)
        elif is_counted(name, classes):
            classed += asked_gpus(amount, name)
    # Of two vendors, one is what the GPUs of a node are; resources bound the other.
    whole = max(vendors.values(), default=0) + classed
    found = sliced(slices)
    if whole:
        # Beside whole cards a slice counts as one more: a pod has the same of each of its GPUs.
        return Share(min(whole + found.count, MOST_GPUS), WHOLE_GPU)
    return Share(min(found.count, MOST_GPUS), found.milli) if slices else None


def _devices(node: NodeFacts, *names: str) -> int:
    amount = node.amount(*names)
    if amount.denominator != 1:
        raise FieldError(names[0], f"whole GPUs are expected, not {float(amount):g}")
    return int(amount)


def _nvidia_replicas(node: NodeFacts, devices: int) -> int:
    """Counts the devices that one card is listed as."""
    replicas = _sharing(node)
    profile = _single_profile(node)
    if profile:
        # A device with media extensions is there once a card, whatever its size.
        is_media = _single_profile_text(node).endswith((".me", "+me"))
        return replicas * (1 if is_media else profile.most_on_card(_product_memory_mib(node)))
    counts = (keys.NVIDIA_COUNT, keys.GKE_COUNT, keys.KARPENTER_COUNT)
    cards = next((node.number(name) for name in counts if node.number(name)), 0)
    if replicas == 1 and cards and devices > cards and devices % cards == 0:
        return devices // cards
    if node.amount(keys.NVIDIA_SHARED) and replicas == 1 and not cards:
        node.inventory.remark(UNKNOWN_SHARING)
    return replicas


def _cloud_model(node: NodeFacts) -> str:
    """Names the model as feature discovery does: with the MIG profile of its devices."""
    partition = node.label(keys.GKE_PARTITION)
    return node.label(*keys.CLOUD_MODELS) + (f"-MIG-{partition}" if partition else "")


def _sharing(node: NodeFacts) -> int:
    """Counts the clients of one card, or of one MIG device."""
    return max(1, node.number(keys.NVIDIA_REPLICAS) or node.number(keys.GKE_CLIENTS))


def _nvidia_memory_mib(node: NodeFacts, replicas: int) -> int:
    memory_mib = node.number(keys.NVIDIA_MEMORY)
    if not memory_mib:
        return node.number(keys.KARPENTER_MEMORY)
    if not _single_profile(node):
        return memory_mib
    # With the single strategy of MIG, the label is the memory of a slice.
    per_card = replicas // _sharing(node)
    return _product_memory_mib(node) or memory_mib * per_card


def _single_profile(node: NodeFacts) -> MigProfile | None:
    return mig_profile(_single_profile_text(node))


def _single_profile_text(node: NodeFacts) -> str:
    product = node.label(keys.NVIDIA_PRODUCT)
    without_sharing = product.partition("-MIG-")[2].removesuffix("-SHARED")
    return without_sharing or node.label(keys.GKE_PARTITION)


def _product_memory_mib(node: NodeFacts) -> int:
    product = node.label(keys.NVIDIA_PRODUCT, *keys.CLOUD_MODELS)
    return known_memory_mib(product.partition("-MIG-")[0])


def _slices(node: NodeFacts, prefix: str) -> Fraction:
    """Sums the parts of cards that partitions take."""
    total = Fraction(0)
    for name, amount in node.resources.items():
        share = partition_share(name) if name.startswith(prefix) else None
        if share is not None:
            replicas = max(1, node.number(f"{name.removesuffix('.shared')}.replicas"))
            total += share * amount / replicas
    return total


def _asked_slices(resources: Resources) -> Iterator[Fraction]:
    for name, amount in resources.items():
        share = partition_share(name)
        if share is not None:
            if amount.denominator != 1:
                raise FieldError(name, f"whole devices are expected, not {float(amount):g}")
            # The resource bounds the pod by the true amount.
            yield from [share] * min(int(amount), _MOST_SLICES)


def _is_intel_count(key: str) -> bool:
    return key.startswith(keys.INTEL_DEVICE) and key.endswith(".count")


def _vram_mib(text: str) -> int:
    # The labeller of AMD counts in units of 1024 and calls GiB G.
    binary = f"{text}i" if text[-1:] in ("K", "M", "G", "T") else text
    return int(quantity_of(binary, keys.AMD_MEMORY[0]) / MIB) if text else 0


def is_counted(resource: str, classes: Mapping[str, str]) -> bool:
    """Tells whether a resource counts GPUs or replicas of them."""
    is_class = resource in classes or resource.startswith(keys.CLASS_RESOURCE)
    return resource in WHOLE_DEVICES or is_class
