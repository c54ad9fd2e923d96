"""Reads GPUs and other devices of nodes and pods, in whichever convention a cluster uses."""

from podium.traces.kubernetes.devices.conventions import node_devices, pod_devices
from podium.traces.kubernetes.devices.facts import node_facts, pod_facts
from podium.traces.kubernetes.devices.inventory import Inventory
from podium.traces.kubernetes.devices.values import (
    NO_DEVICES,
    DeviceError,
    NodeDevices,
    NodeFacts,
    PodDevices,
    PodFacts,
    require_whole,
)

__all__ = [
    "NO_DEVICES",
    "DeviceError",
    "Inventory",
    "NodeDevices",
    "NodeFacts",
    "PodDevices",
    "PodFacts",
    "node_devices",
    "node_facts",
    "pod_devices",
    "pod_facts",
    "require_whole",
]
