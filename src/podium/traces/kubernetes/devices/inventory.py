"""Collects what a dump tells of devices beside its nodes and pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from podium.model.cluster import NodeSpec
from podium.traces.fields import FieldError, mapping_at, mappings_at, text_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.devices.claims import (
    claim_users,
    held_devices,
    is_allocated,
)
from podium.traces.kubernetes.devices.koordinator import described_cards
from podium.traces.kubernetes.devices.plugins import is_counted
from podium.traces.kubernetes.devices.products import known_memory_mib
from podium.traces.kubernetes.devices.slices import Card, Slice, cards_of, read_slices
from podium.traces.kubernetes.devices.values import (
    MOST_GPUS,
    Cards,
    DeviceError,
    PodDevices,
    PodFacts,
    Resources,
)

KNOWN_MEMORY = "the GPU memory that a node does not say is taken from a list of known products"
UNKNOWN_MEMORY = "a node does not say how much memory its GPUs have, and some pods ask in MiB"

_OWN_UNITS = (
    frozenset(prefix + name for prefix in keys.KOORDINATOR
              for name in ("gpu", "gpu.shared", "gpu-core", "gpu-memory", "gpu-memory-ratio")),
    frozenset({keys.GPUSHARE_MEMORY, keys.GPUSHARE_COUNT}),
    frozenset({keys.VOLCANO_OLD_MEMORY, keys.VOLCANO_OLD_NUMBER}),
)  # fmt: skip
"""Resources that nodes of one project list: percent, MiB or numbers of GPUs."""

IN_OWN_UNITS = frozenset().union(*_OWN_UNITS)

_UNITS = {
    prefix + name: 100
    for prefix in keys.KOORDINATOR
    for name in ("gpu", "gpu-core", "gpu-memory-ratio")
}  # of one GPU, else 1
_MEMORY = frozenset(name for name in IN_OWN_UNITS if name.endswith(("-memory", "-mem")))

_MOST_SERVED = 1_000_000  # the GPUs bound how many pods a node serves

_GROUPS = ("resource.k8s.io/", "scheduling.koordinator.sh/")
_KINDS = frozenset(
    {"ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "Device"}
)


MORE_CORES, MORE_MEMORY = "asks for more cores than memory", "asks for more memory than cores"
FOLDED = (
    "the larger part of a GPU, by cores or by memory, counts for both: a GPU may hold more pods "
    "than that, where some ask for more cores and others for more memory"
)


def folded(remarks: Counter[str]) -> Counter[str]:
    """Says that cores and memory are one part of a GPU where that may refuse a pod."""
    both = (remarks[MORE_CORES], remarks[MORE_MEMORY])
    told = Counter(
        {text: n for text, n in remarks.items() if text not in (MORE_CORES, MORE_MEMORY)}
    )
    # Where one is the larger for all pods, it alone decides, and nothing is lost.
    if all(both):
        told[FOLDED] = sum(both)
    return told


@dataclass(frozen=True, slots=True)
class Overuse:
    """Says that pods on a node have more devices than it lists, as after one of them failed."""

    node: str
    resource: str
    listed: int
    given: int

    def __str__(self) -> str:
        return (
            f"node {self.node} lists {self.listed} {self.resource}, and the pods on it have "
            f"{self.given}: it takes no other until enough of them have left"
        )


Running = Iterable[tuple[str, PodFacts]]
"""Pods that run, each with the name of its node."""


@dataclass(slots=True)
class Inventory:
    """Holds ResourceSlices, claims, device classes and Device objects, and facts of all nodes."""

    slices: dict[str, list[Slice]] = field(default_factory=dict)  # by node
    claims: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    allocated: set[tuple[str, str]] = field(default_factory=set)  # claims that hold GPUs
    templates: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    classes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    class_resources: dict[str, str] = field(default_factory=dict)  # extended resource: class
    device_cards: dict[str, Cards] = field(default_factory=dict)  # by node
    # What reading the nodes finds out, and reading the pods needs.
    counts: dict[str, int] = field(default_factory=dict)  # of cards, by node
    replicas: dict[str, int] = field(default_factory=dict)  # devices of a card, by node
    ids: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of cards, by node
    open_shares: dict[str, dict[str, int]] = field(default_factory=dict)  # as resources, by node
    asked_shares: set[str] = field(default_factory=set)  # the same, that pods ask for as resources
    models: set[str] = field(default_factory=set)  # of all nodes
    resources: set[str] = field(default_factory=set)  # that any node lists
    memory_mib: set[int] = field(default_factory=set)  # of the cards of all nodes, as far as known
    groups: dict[str, dict[str, int]] = field(default_factory=dict)  # that share a card, by node
    shared: set[str] = field(default_factory=set)  # resources of which a card has several
    listed: set[frozenset[str]] = field(default_factory=set)  # devices that GPU nodes list
    volcano_factor: int = 1  # MiB in a unit of volcano.sh/vgpu-memory
    gpushare_unit_mib: int = 0  # MiB in a unit of aliyun.com/gpu-mem, 0 = not known
    users: dict[tuple[str, str], list[PodFacts]] = field(default_factory=dict)  # of claims
    held: set[tuple[str, ...]] = field(default_factory=set)  # devices of claims without pods
    has_hostnames: bool = True  # every node has the label by which pods find each other
    large_classes: set[str] = field(default_factory=set)  # of which a pod asks for very many
    overused: list[Overuse] = field(default_factory=list)  # devices that nodes have lost
    serving: dict[str, set[str]] = field(default_factory=dict)  # nodes by whom they serve
    exclusive: set[str] = field(default_factory=set)  # what only some of the GPU nodes serve
    required: set[str] = field(default_factory=set)  # the same, as far as pods ask for it
    remarks: list[str] = field(default_factory=list)  # on the object that is being read
    plain: dict[frozenset[Any], PodFacts] = field(default_factory=dict)  # by resources alone
    known: dict[PodFacts, PodDevices] = field(default_factory=dict)
    supposed: dict[PodFacts, PodDevices] = field(default_factory=dict)  # before all was read
    _cards: dict[str, tuple[Card, ...]] = field(default_factory=dict)
    _places: dict[tuple[str, ...], str] | None = None  # nodes by device, once all are read

    def takes(self, value: Mapping[str, Any]) -> bool:
        """Tells whether an object describes devices."""
        kind, group = value.get("kind"), str(value.get("apiVersion", ""))
        return isinstance(kind, str) and kind in _KINDS and group.startswith(_GROUPS)

    def add(self, value: Mapping[str, Any]) -> None:
        """Keeps an object that describes devices."""
        takers: dict[Any, Callable[[Mapping[str, Any]], None]] = {
            "ResourceSlice": self._take_slice,
            "ResourceClaim": self._take_claim,
            "ResourceClaimTemplate": self._take_template,
            "DeviceClass": self._take_class,
            "Device": self._take_device,
        }
        try:
            takers[value["kind"]](value)
        except FieldError as error:
            raise DeviceError(error.field, str(error)) from error

    def compare(self, cores: Fraction, memory: Fraction, memory_mib: int) -> None:
        """Remarks which part of a GPU is the larger one, by cores or by memory; it counts for both.

        Beside a pod that has all of the one, no other has room: that is told exactly.
        """
        parts = {Fraction(memory_mib, each) for each in self.memory_mib} if memory_mib else {memory}
        if any(cores > part for part in parts) and cores < 1:
            self.remark(MORE_CORES)
        if any(cores < part < 1 for part in parts):
            self.remark(MORE_MEMORY)

    def restart(self) -> None:
        """Forgets what reading nodes and pods found out, so that they can be read again."""
        for found in (
            self.counts, self.replicas, self.ids, self.models, self.resources, self.memory_mib,
            self.open_shares, self.asked_shares, self.groups, self.shared, self.listed,
            self.large_classes, self.remarks, self._cards, self.serving, self.exclusive,
            self.required, self.held, self.overused,
        ):  # fmt: skip
            found.clear()
        self.users = {}
        self._places = None
        self.has_hostnames = True
        self.supposed, self.known = self.known, {}
        self.volcano_factor, self.gpushare_unit_mib = 1, 0

    def remark(self, text: str) -> None:
        """Says what of the object that is being read has no place in its description."""
        self.remarks.append(text)

    def drained(self) -> tuple[str, ...]:
        """Gives away the remarks on one object, each once."""
        found = tuple(dict.fromkeys(self.remarks))
        self.remarks.clear()
        return found

    def take_cards(self, node: str, cards: Cards, extended: Mapping[str, int]) -> None:
        """Keeps what the GPUs of a node mean for all pods."""
        self.counts[node] = cards.count
        self.replicas[node] = cards.replicas
        self.ids[node] = cards.ids
        self.models.add(cards.model)
        self.memory_mib.update({cards.memory_mib} - {0})
        self.shared.update(cards.shared)
        self.listed.add(frozenset(name for name in extended if self._counts(name)))
        for name in cards.serves:
            self.serving.setdefault(name, set()).add(node)

    def served_by(self, name: str, node: str) -> tuple[tuple[str, int], ...]:
        """Gives what keeps a pod to the nodes of its convention, where GPU nodes have several.

        A pod that runs elsewhere shows that its node does serve it.
        """
        if name not in self.exclusive or (node and node not in self.serving.get(name, ())):
            return ()
        self.required.add(name)
        return ((name, 1),)

    def group_slot(self, node: str, group: str) -> int:
        """Numbers the cards of a node by the groups of pods that share them.

        Which card it is nobody says; cards of one node are alike.
        """
        groups = self.groups.setdefault(node, {})
        return groups.setdefault(group, len(groups))

    def cards(self, node: str) -> tuple[Card, ...]:
        """Lists the cards that ResourceSlices describe on a node."""
        if node not in self._cards:
            self._cards[node] = cards_of(self.slices.get(node, ()), self.held)
        return self._cards[node]

    def place_of(self, device: tuple[str, ...]) -> str:
        """Finds the node of a device by its driver, pool and name; empty where nobody lists it."""
        if self._places is None:
            self._places = {}
            for node in self.slices:
                for each in (each for card in self.cards(node) for each in card.devices):
                    self._places.setdefault(each.key, node)
        return self._places.get(device, "")

    def fewest_cards(self) -> int:
        """Counts the cards of the smallest node with ResourceSlices, at least one."""
        return min((len(self.cards(node)) for node in self.slices), default=1) or 1

    def is_gpu_class(self, name: str) -> bool:
        """Tells device classes of GPUs from others, by name or by their selectors."""
        if "gpu" in name or name.startswith("mig."):
            return True
        return any("gpu" in text for text in self.expressions(name))

    def expressions(self, name: str) -> list[str]:
        """Lists the selectors of a device class."""
        spec = mapping_at(self.classes.get(name, {}), "spec", "spec")
        selectors = mappings_at(spec, "selectors", "spec.selectors")
        cels = (mapping_at(selector, "cel", "spec.selectors.cel") for selector in selectors)
        return [text_of(cel.get("expression"), "spec.selectors.cel.expression") for cel in cels]

    def bounded(self, resource: str) -> bool:
        """Tells whether a resource bounds pods by itself, beside the GPUs that it stands for."""
        return resource in self.shared or not self._counts(resource)

    def settled(
        self, nodes: Iterable[NodeSpec], pods: Iterable[PodFacts], running: Running = ()
    ) -> list[NodeSpec]:
        """Drops from nodes the devices that their GPUs alone bound, once all objects are read.

        Where pods that run have more devices than their node lists, those are counted.
        """
        asking = list(pods)
        self.users = claim_users(asking)
        idle = self.allocated - self.users.keys()
        self.held = {device for key in idle for device in held_devices(self.claims[key])}
        self._cards.clear()
        self._places = None
        described = list(nodes)
        self.supposed, self.known = self.known, {}
        self.exclusive = set(self._served_by_some())
        plugin_devices = {listed - IN_OWN_UNITS for listed in self.listed}
        scarce = self._scarce(asking) if self.listed else set()
        if len(plugin_devices) > 1 or scarce:
            # Who asks for amd.com/gpu gets no GPU of NVIDIA.
            self.shared.update(scarce, *plugin_devices)
        self._count_overuse(described, running)
        return [
            replace(spec, extended={k: v for k, v in spec.extended.items() if self.bounded(k)})
            for spec in described
        ]

    def _count_overuse(self, nodes: Iterable[NodeSpec], running: Running) -> None:
        """Finds devices that a node gave to its pods and does not list any more."""
        given = Counter[tuple[str, str]]()
        for node, pod in running:
            given.update({(node, name): int(n) for name, n in pod.resources.items() if "/" in name})
        names = frozenset().union(*self.listed)
        for spec in nodes:
            # A node with GPUs that does not list the resource has them by another name.
            for name in names & spec.extended.keys() if spec.gpu_count else names:
                has, gives = spec.extended.get(name, 0), given[spec.name, name]
                if gives > has:
                    self.shared.add(name)
                    self.overused.append(Overuse(spec.name, name, has, gives))

    def _served_by_some(self) -> Iterator[str]:
        for name, nodes in {keys.KAI_SHARING: set[str](), **self.serving}.items():
            # A dump may lack what tells the nodes: ResourceSlices, or annotations.
            is_known = bool(nodes) or name == keys.KAI_SHARING
            if is_known and len(nodes) < len(self.counts):
                yield name

    def bounding(self, nodes: Iterable[NodeSpec]) -> list[NodeSpec]:
        """Says what else bounds pods, once they are read: devices of a class, conventions."""
        if not self.large_classes and not self.required and not self.asked_shares:
            return list(nodes)
        found = []
        for spec in nodes:
            count = spec.gpu_count if self.slices.get(spec.name) else 0
            devices = dict.fromkeys(self.large_classes, count) if count else {}
            nodes_of = self.serving
            served = [each for each in sorted(self.required) if spec.name in nodes_of.get(each, ())]
            listed = self.open_shares.get(spec.name, {})
            devices |= {name: listed[name] for name in listed if name in self.asked_shares}
            extended = {**spec.extended, **devices, **dict.fromkeys(served, _MOST_SERVED)}
            found.append(replace(spec, extended=extended))
        return found

    def idle_claims(self) -> int:
        """Counts claims that hold parts of GPUs, or unknown ones, for no pod of the dump."""
        cards = [card for node in self.slices for card in self.cards(node) if card.is_held]
        left_out = {device.key for card in cards for device in card.devices}
        idle = self.allocated - self.users.keys()
        return sum(not left_out.issuperset(held_devices(self.claims[key])) for key in idle)

    def _counts(self, resource: str) -> bool:
        return resource in IN_OWN_UNITS or is_counted(resource, self.class_resources)

    def _scarce(self, pods: Iterable[PodFacts]) -> set[str]:
        """Finds resources of which pods ask for more than the GPUs of some node stand for."""
        is_listed = any(self.listed)
        # Where no node lists devices, annotations of open-gpu-share say it all.
        asking = (
            pod.resources
            for pod in set(pods)
            if is_listed or keys.OPEN_GPU_SHARE.isdisjoint(pod.annotations)
        )
        return {name for asked in asking for name in self._scarce_for(asked)}

    def _scarce_for(self, asked: Resources) -> Iterator[str]:
        # What a device class alone names, no node lists.
        names = [
            name
            for name, amount in asked.items()
            if amount and self._counts(name) and not name.startswith(keys.CLASS_RESOURCE)
        ]
        counts = (asked[name] / _UNITS.get(name, 1) for name in names if name not in _MEMORY)
        is_many = max(counts, default=0) > MOST_GPUS
        for name in names:
            kin = next((kin for kin in _OWN_UNITS if name in kin), frozenset({name}))
            by_kin = [listed for listed in self.listed if listed & kin]
            # Webhooks turn one resource of a project into others: koordinator.sh/gpu into gpu-core.
            is_renamed = any(name not in listed for listed in by_kin)
            is_everywhere = len(by_kin) == len(self.listed)
            if not is_renamed and (is_many or not is_everywhere):
                yield name

    def _take_slice(self, value: Mapping[str, Any]) -> None:
        for found in read_slices(value):
            self.slices.setdefault(found.node, []).append(found)

    def _take_claim(self, value: Mapping[str, Any]) -> None:
        self.claims[_key(value)] = value
        if is_allocated(value):
            self.allocated.add(_key(value))

    def _take_template(self, value: Mapping[str, Any]) -> None:
        # A template wraps the claim that will be made of it.
        self.templates[_key(value)] = mapping_at(value, "spec", "spec")

    def _take_class(self, value: Mapping[str, Any]) -> None:
        name = _key(value)[1]
        self.classes[name] = value
        spec = mapping_at(value, "spec", "spec")
        resource = text_of(spec.get("extendedResourceName"), "spec.extendedResourceName")
        if resource and self.is_gpu_class(name):
            self.class_resources[resource] = name

    def _take_device(self, value: Mapping[str, Any]) -> None:
        name, cards = described_cards(value)
        self.device_cards[name] = cards


def with_known_memory(nodes: Iterable[NodeSpec], remarks: Counter[str]) -> list[NodeSpec]:
    """Fills in the GPU memory of known products, for pods that ask for an amount of it."""
    filled = []
    for spec in nodes:
        if spec.gpu_count and not spec.gpu_memory_mib:
            memory_mib = known_memory_mib(spec.gpu_model)
            remarks[KNOWN_MEMORY if memory_mib else UNKNOWN_MEMORY] += 1
            filled.append(replace(spec, gpu_memory_mib=memory_mib))
        else:
            filled.append(spec)
    return filled


def _key(value: Mapping[str, Any]) -> tuple[str, str]:
    metadata = mapping_at(value, "metadata", "metadata")
    namespace = text_of(metadata.get("namespace"), "metadata.namespace")
    return namespace or "default", text_of(metadata.get("name"), "metadata.name")
