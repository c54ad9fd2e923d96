"""Asks the API server of a local control plane, in JSON over connections that stay open."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

Manifest = Mapping[str, Any]

PLURALS = {
    "CSIDriver": "csidrivers",
    "CSINode": "csinodes",
    "CSIStorageCapacity": "csistoragecapacities",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Namespace": "namespaces",
    "Node": "nodes",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PodGroup": "podgroups",
    "PriorityClass": "priorityclasses",
    "RuntimeClass": "runtimeclasses",
    "StorageClass": "storageclasses",
    "VolumeAttachment": "volumeattachments",
}
NAMESPACED = frozenset(
    {"CSIStorageCapacity", "PersistentVolumeClaim", "Pod", "PodDisruptionBudget", "PodGroup"}
)
# No kubelet says that the containers are gone.
AT_ONCE = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
AT_A_TIME = 8
ANSWER_S = 120.0  # a busy machine may take long
IDLE_S = 45.0  # kube-apiserver drops connections that idle for 90 s


class KubeApiError(Exception):
    """Tells that the API server refused a request."""

    def __init__(self, request: str, status: int, message: str) -> None:
        super().__init__(f"{request} was answered with {status}: {message}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Server:
    """Says where an API server is, whom it takes the caller for and how to trust it."""

    port: int
    token: str
    certificate: Path

    def kubeconfig(self) -> dict[str, Any]:
        """Writes the same down as clients of Kubernetes read it."""
        cluster = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority": str(self.certificate),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        }


class KubeApi:
    """Makes, lists and deletes objects; threads may share it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._trust = ssl.create_default_context(cafile=str(server.certificate))
        self._idle: list[tuple[http.client.HTTPSConnection, float]] = []
        self._pool = ThreadPoolExecutor(AT_A_TIME)

    def close(self) -> None:
        """Closes all connections."""
        self._pool.shutdown()
        self.forget_connections()

    def forget_connections(self) -> None:
        """Closes the connections to a server that is no longer there."""
        while self._idle:
            self._idle.pop()[0].close()

    def ask(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> Any:
        """Sends one request and gives the answer, read from JSON where it is JSON."""
        headers = {"Authorization": f"Bearer {self._server.token}", "Content-Type": content_type}
        sent = None if body is None else json.dumps(body).encode()
        connection = self._connection()
        try:
            connection.request(method, path, sent, headers)
            reply = connection.getresponse()
            text = reply.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append((connection, time.monotonic()))
        is_json = reply.getheader("Content-Type", "").startswith("application/json")
        content: Any = json.loads(text) if is_json else text.decode()
        if reply.status >= HTTPStatus.BAD_REQUEST:
            message = content["message"] if is_json else content
            raise KubeApiError(f"{method} {path}", reply.status, message)
        return content

    def _connection(self) -> http.client.HTTPSConnection:
        with contextlib.suppress(IndexError):
            connection, since_s = self._idle.pop()
            if time.monotonic() - since_s < IDLE_S:
                return connection
            connection.close()
            self.forget_connections()  # the others are idle for longer
        return http.client.HTTPSConnection(
            "127.0.0.1", self._server.port, timeout=ANSWER_S, context=self._trust
        )

    def create_all(self, manifests: Iterable[Manifest]) -> list[Any]:
        """Makes objects several at a time, in no order; has tried all before it fails."""
        tried = [self._pool.submit(self.create, manifest) for manifest in manifests]
        wait(tried)
        return [each.result() for each in tried]

    def create(self, manifest: Manifest) -> Any:
        """Makes an object; nodes have their status at once."""
        return self.ask("POST", collection(manifest), manifest)

    def get(self, manifest: Manifest) -> Any:
        """Reads an object as it is now."""
        return self.ask("GET", path_of(manifest))

    def pods(self, namespace: str | None = None) -> list[Any]:
        """Lists the pods of a namespace, or all."""
        where = "" if namespace is None else f"/namespaces/{namespace}"
        return list(self.ask("GET", f"/api/v1{where}/pods")["items"])

    def clear(self, kept_nodes: Iterable[str] = (), kept_namespaces: Iterable[str] = ()) -> None:
        """Deletes all pods, then all nodes, but those that are kept."""
        for namespace in {pod["metadata"]["namespace"] for pod in self.pods()}:
            if namespace not in set(kept_namespaces):
                self.ask("DELETE", f"/api/v1/namespaces/{namespace}/pods", AT_ONCE)
        kept = ",".join(f"metadata.name!={name}" for name in kept_nodes)
        self.ask("DELETE", f"/api/v1/nodes?{urlencode({'fieldSelector': kept})}", AT_ONCE)


def unschedulable(pod: Manifest) -> str | None:
    """Gives the scheduler's message where it found no node for a pod."""
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition['reason']}: {condition.get('message', '')}"
    return None


def collection(manifest: Manifest) -> str:
    """Gives the path under which objects like this one are made and listed."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    if kind in NAMESPACED:
        root = f"{root}/namespaces/{manifest['metadata'].get('namespace', 'default')}"
    return f"{root}/{PLURALS[kind]}"


def path_of(manifest: Manifest) -> str:
    """Gives the path of one object."""
    return f"{collection(manifest)}/{manifest['metadata']['name']}"
