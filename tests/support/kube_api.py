"""Changes objects of a local control plane, and waits until a scheduler has decided."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from podium.kube.local.server import (
    AT_ONCE,
    KubeApiError,
    Manifest,
    collection,
    path_of,
    unschedulable,
)
from podium.kube.local.server import KubeApi as LocalApi

__all__ = ["AT_ONCE", "POLL_S", "KubeApi", "KubeApiError", "Manifest", "unschedulable"]

STATED = ("PersistentVolume", "PersistentVolumeClaim", "Pod", "PodDisruptionBudget")
MERGE = "application/merge-patch+json"
POLL_S = 0.01


class KubeApi(LocalApi):
    """Changes objects as well; threads may share it."""

    def create(self, manifest: Manifest) -> Any:
        """Makes an object with its status, and begins to delete it if it has a deletionTimestamp.

        The API server sets the status of a new pod itself. A bound pod that is deleted stays, with
        its deletionTimestamp, until a kubelet has stopped it; here there is none.
        """
        metadata = {**manifest["metadata"]}
        is_terminating = metadata.pop("deletionTimestamp", None) is not None
        made = self.ask("POST", collection(manifest), {**manifest, "metadata": metadata})
        if manifest["kind"] in STATED and "status" in manifest:
            made = self.patch_status(manifest, manifest["status"])
        if is_terminating:
            self.ask("DELETE", path_of(manifest))
        return made

    def replace(self, manifest: Manifest) -> Any:
        return self.ask("PUT", path_of(manifest), manifest)

    def patch(self, manifest: Manifest, change: object) -> Any:
        return self.ask("PATCH", path_of(manifest), change, MERGE)

    def patch_status(self, manifest: Manifest, status: object) -> Any:
        return self.ask("PATCH", f"{path_of(manifest)}/status", {"status": status}, MERGE)

    def delete(self, manifest: Manifest) -> None:
        """Deletes an object at once, without a grace period."""
        self.ask("DELETE", path_of(manifest), AT_ONCE)

    def clear_volumes(self) -> None:
        """Deletes all volumes, claims and storage classes."""
        for claim in self.ask("GET", "/api/v1/persistentvolumeclaims")["items"]:
            self.delete({**claim, "apiVersion": "v1", "kind": "PersistentVolumeClaim"})
        self.ask("DELETE", "/api/v1/persistentvolumes", AT_ONCE)
        self.ask("DELETE", "/apis/storage.k8s.io/v1/storageclasses", AT_ONCE)

    def nodes(self) -> list[Any]:
        return list(self.ask("GET", "/api/v1/nodes")["items"])

    def namespaces(self) -> list[Any]:
        return list(self.ask("GET", "/api/v1/namespaces")["items"])

    def wait_until_scheduled(self, pod: Manifest, timeout_s: float = 120.0) -> str:
        """Gives the node that a pod was bound to."""
        return str(self._wait(pod, lambda seen: seen["spec"].get("nodeName"), timeout_s))

    def wait_until_unschedulable(self, pod: Manifest, timeout_s: float = 120.0) -> str:
        """Gives what the scheduler says of a pod that fits nowhere."""
        return str(self._wait(pod, unschedulable, timeout_s))

    def _wait(self, pod: Manifest, answer: Callable[[Any], object], timeout_s: float) -> object:
        deadline = time.monotonic() + timeout_s
        while True:
            seen = self.get(pod)
            if found := answer(seen):
                return found
            if time.monotonic() > deadline:
                name, status = seen["metadata"]["name"], seen["status"]
                raise TimeoutError(f"pod {name} is after {timeout_s:g} s still so: {status}")
            time.sleep(POLL_S)
