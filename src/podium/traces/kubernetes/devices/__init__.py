"""Reads GPUs and other devices of nodes and pods, in whichever convention a cluster uses."""

from podium.traces.kubernetes.devices.conventions import node_devices, pod_devices
from podium.traces.kubernetes.devices.inventory import Inventory
from podium.traces.kubernetes.devices.values import DeviceError, NodeDevices, PodDevices

__all__ = [
    "DeviceError",
    "Inventory",
    "NodeDevices",
    "PodDevices",
    "node_devices",
    "pod_devices",
]
