"""Reads the rack, block and zone of a node from its labels, by keys that clouds and tools use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from podium.errors import UnknownName, UsageError, close_names
from podium.model.cluster import NodeSpec
from podium.traces.kubernetes import keys

Level = Literal["rack", "block", "zone"]
LEVELS: tuple[Level, ...] = ("rack", "block", "zone")

_ZONE = "topology.kubernetes.io/zone"
_AWS = "topology.k8s.aws/network-node-layer-"
_GCP = "cloud.google.com/gce-topology-"
_OCI = "oci.oraclecloud.com/host."
_TOPOGRAPH = "fabric.topograph.run/tier-"
_CLIQUE = "nvidia.com/gpu.clique"  # <cluster UUID>.<clique>: an NVLink domain, one NVL72 rack

PRESETS: Mapping[str, tuple[str, ...]] = {
    "aws": (f"{_AWS}3", f"{_AWS}2", f"{_AWS}1"),
    # gce-topology-host is one machine: it parts nothing that nodes do not part already.
    "gcp": (f"{_GCP}subblock", f"{_GCP}block", _ZONE),
    "oci": (f"{_OCI}rack_id", f"{_OCI}network_block_id", _ZONE),
    "nvlink": (_CLIQUE, "", _ZONE),
    "topograph": (f"{_TOPOGRAPH}0", f"{_TOPOGRAPH}1", f"{_TOPOGRAPH}2"),
    "kubernetes": ("topology.kubernetes.io/rack", "topology.kubernetes.io/block", _ZONE),
}
"""Names for lists of label keys: that of the rack, that of the block, that of the zone."""


@dataclass(frozen=True, slots=True)
class Domains:
    """Says by which labels nodes belong together; of each level the first label found counts."""

    rack: tuple[str, ...]
    block: tuple[str, ...]
    zone: tuple[str, ...]

    def of(self, labels: Mapping[str, str]) -> dict[Level, str]:
        """Names the rack, block and zone of a node, empty where no label does."""
        named: dict[Level, tuple[str, ...]]
        named = {"rack": self.rack, "block": self.block, "zone": self.zone}
        return {
            level: next((labels[key] for key in named[level] if labels.get(key)), "")
            for level in LEVELS
        }


KNOWN = Domains(
    rack=(
        *keys.RACK_LABELS, f"{_TOPOGRAPH}0", f"{_AWS}3", f"{_GCP}subblock", f"{_OCI}rack_id",
        "cloud.provider.com/topology-rack", _CLIQUE,
    ),
    block=(
        "topology.kubernetes.io/block", "network.topology.nvidia.com/spine", f"{_TOPOGRAPH}1",
        f"{_AWS}2", f"{_GCP}block", f"{_OCI}network_block_id", "cloud.provider.com/topology-block",
    ),
    zone=(_ZONE, "failure-domain.beta.kubernetes.io/zone"),
)  # fmt: skip
"""What is read where nobody says otherwise."""


LEVEL_LABELS: Mapping[str, str] = {
    "rack": KNOWN.rack[0], "block": KNOWN.block[0], "zone": KNOWN.zone[0],
}  # fmt: skip
"""Labels under which a level is written."""


def chosen_domains(topology: tuple[str, ...]) -> Domains:
    """Gives the domains of a preset, or of up to three label keys from the narrowest on.

    An empty key leaves its level out.
    """
    if not topology:
        return KNOWN
    names = topology
    if len(topology) == 1 and "/" not in topology[0]:
        # The key of a label may be any word; one that is nearly a preset is a slip.
        if topology[0] not in PRESETS and close_names(topology[0], PRESETS):
            raise UnknownName.among("topology", topology[0], PRESETS)
        names = PRESETS.get(topology[0], topology)
    if len(names) > len(LEVELS):
        raise UsageError(
            f"{len(names)} label keys are more than there are domains",
            where=f"topology {','.join(topology)}",
            hint=f"give the keys of {', '.join(LEVELS)} in this order, or {_preset_names()}",
        )
    rack, block, zone = ((key,) if key else () for key in (*names, "", "", "")[: len(LEVELS)])
    return Domains(rack, block, zone)


def level_of(key: str, nodes: Iterable[NodeSpec]) -> Level | None:
    """Finds the level that parts the nodes with a label exactly as the label does."""
    labelled = [node for node in nodes if key in node.labels]
    for level in LEVELS if labelled else ():
        pairs = {(node.labels[key], str(getattr(node, level))) for node in labelled}
        values = {value for value, _ in pairs}
        names = {name for _, name in pairs}
        if "" not in names and len(pairs) == len(values) == len(names):
            return level
    return None


def _preset_names() -> str:
    *first, last = PRESETS
    return f"one of {', '.join(first)} and {last}"
