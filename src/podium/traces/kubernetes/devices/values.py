"""Holds what conventions are asked about, nodes and pods, and what they answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from podium.model.records import GPU_MILLI as WHOLE_GPU
from podium.traces.fields import FieldError
from podium.traces.kubernetes import keys

if TYPE_CHECKING:
    from podium.traces.kubernetes.devices.inventory import Inventory

MOST_GPUS = 16
MIB = 1024**2

Resources = Mapping[str, Fraction]


class DeviceError(FieldError):
    """The devices of one object cannot be read; it is left out, the rest of the file is not."""


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """Describes the GPUs of a node and whatever else it has a bounded number of."""

    count: int = 0  # physical GPUs
    model: str = ""
    memory_mib: int = 0  # of one GPU, 0 = unknown
    replicas: int = 1  # as how many devices one GPU is advertised
    extended: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()  # what has no place in the description


@dataclass(frozen=True, slots=True)
class Ties:
    """Says what ties a pod to a node: devices that it shares with other pods, or was given."""

    node: str = ""  # where they are
    led: tuple[str, ...] = ()  # claims whose devices it takes, while others share them
    followed: tuple[str, ...] = ()  # claims whose devices another pod takes


UNTIED = Ties()


@dataclass(frozen=True, slots=True)
class PodDevices:
    """Describes the GPUs that a pod asks for and whatever else it asks for."""

    count: int = 0
    milli: int = 0  # of each GPU
    memory_mib: int = 0  # of each GPU, 0 = not asked
    models: tuple[str, ...] = ()  # empty = any
    slots: tuple[int, ...] = ()  # the GPUs on which it runs, empty = not known
    extended: tuple[tuple[str, int], ...] = ()
    ties: Ties = UNTIED
    remarks: tuple[str, ...] = ()  # what has no place in the description


NO_DEVICES = PodDevices()


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Holds what a Node object says and a convention may look at."""

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    resources: Resources
    inventory: Inventory

    def amount(self, *names: str) -> Fraction:
        """Sums allocatable resources."""
        return sum((self.resources.get(name, Fraction(0)) for name in names), Fraction(0))

    def number(self, name: str) -> int:
        """Reads a label as a number, 0 where there is none."""
        text = self.labels.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0

    def label(self, *names: str) -> str:
        """Gives the first label there is, empty where there is none."""
        return next((self.labels[name] for name in names if self.labels.get(name)), "")


@dataclass(frozen=True, slots=True, eq=False)
class PodFacts:
    """Holds what a Pod object says and a convention may look at.

    Pods of which nothing but the resources tells of devices share one object.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    resources: Resources  # of the pod as a whole
    containers: tuple[Resources, ...]
    claims: tuple[Mapping[str, Any], ...]  # spec.resourceClaims
    claim_names: Mapping[str, str]  # of generated claims, by the name in the pod
    node: str  # where it runs, empty = nowhere, or not any more
    is_finished: bool
    inventory: Inventory
    is_plain: bool = False  # nothing but the resources tells of devices


@dataclass(frozen=True, slots=True)
class Cards:
    """Is what a convention finds on a node."""

    count: int
    model: str = ""
    memory_mib: int = 0
    replicas: int = 1
    ids: tuple[str, ...] = ()  # names of the cards in the order of their slots
    shared: tuple[str, ...] = ()  # resources that count devices, several on a card
    bounds: Mapping[str, int] = field(default_factory=dict)  # of resources that status lacks
    serves: tuple[str, ...] = (keys.KAI_SHARING,)  # conventions of pods that ask for no resource


@dataclass(frozen=True, slots=True)
class Share:
    """Is what a convention finds that a pod asks for."""

    count: int
    milli: int
    memory_mib: int = 0
    models: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    needs: tuple[tuple[str, int], ...] = ()  # devices by resource, where no record holds so many
    ties: Ties = UNTIED


def require_whole(resource: str, amount: Fraction) -> None:
    """Refuses a part of an extended resource, as the API server does: there is no half a device."""
    if amount.denominator != 1 and "/" in resource:
        what = "a whole number of GPUs" if "gpu" in resource else "a whole number"
        raise DeviceError(resource, f"{what} is expected, not {float(amount):g}")


def whole_gpus(amount: Fraction, field: str) -> int:
    """Reads a number of whole GPUs that one node can have."""
    if amount.denominator != 1 or not 0 <= amount <= MOST_GPUS:
        shown = f"{int(amount)}" if amount.denominator == 1 else f"{float(amount):g}"
        raise FieldError(field, f"0 to {MOST_GPUS} whole GPUs are expected, not {shown}")
    return int(amount)


def asked_gpus(amount: Fraction, field: str) -> int:
    """Reads a number of GPUs that a pod asks for, as no more than one node can have.

    The pod's resources still bound it by the true amount: `Inventory.settled` sees to that.
    """
    if amount.denominator != 1 or amount < 0:
        raise FieldError(field, f"a whole number of GPUs is expected, not {float(amount):g}")
    return min(int(amount), MOST_GPUS)


def listed_gpus(cards: int, field: str) -> int:
    """Checks the number of cards that a node's devices come to."""
    if cards > MOST_GPUS:
        raise FieldError(
            field,
            f"0 to {MOST_GPUS} whole GPUs are expected, not {cards}; if each is listed several "
            "times (time slicing, MIG, partitions), no label says so",
        )
    return cards


def share_of(count: int, part: Fraction, field: str, memory_mib: int = 0) -> Share:
    """Reads a part of each of some GPUs; one GPU many times over is that many GPUs."""
    if part > 1 and part.denominator == 1 and count == 1:
        return Share(asked_gpus(part, field), WHOLE_GPU, memory_mib)
    if not 0 <= part <= 1 or not (part or memory_mib):
        raise FieldError(field, f"{float(part):g} of a GPU is asked for; 0 to 1 is expected")
    # Rounded down, so that three thirds still fit one GPU.
    return Share(count, max(1, int(part * WHOLE_GPU)), memory_mib)


def sliced(parts: Iterable[Fraction]) -> Share:
    """Packs slices of cards, such as MIG devices, onto as few cards as could hold them."""
    # Rounded down, so that seven sevenths still fit one card.
    millis = [int(part * WHOLE_GPU) for part in parts]
    count = math.ceil(Fraction(sum(millis), WHOLE_GPU))
    return Share(count, math.ceil(Fraction(sum(millis), count or 1)))


def mib_of(amount: Fraction, unit: int = 1) -> int:
    """Reads an amount of GPU memory in units of bytes as MiB, rounded up."""
    return math.ceil(amount * unit / MIB)


def slots_of(ids: Iterable[str], known: tuple[str, ...]) -> tuple[int, ...]:
    """Finds the slots of named cards; empty if one of them is not known."""
    wanted = dict.fromkeys(ids)
    if not all(each in known for each in wanted):
        return ()
    return tuple(sorted(known.index(each) for each in wanted))
