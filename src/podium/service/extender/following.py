"""Follows a real cluster through its API server; binds pods and writes Events there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from structlog.typing import FilteringBoundLogger

from podium.kube.access import Access, Target
from podium.kube.client import KubeClient, KubeError
from podium.kube.feed import Feed
from podium.kube.state import LiveState
from podium.kube.watch import ClusterWatch
from podium.service.extender.wire import BindingArgs
from podium.service.http.logs import KIND
from podium.settings import Settings
from podium.traces.kubernetes.keys import GPU_INDEX

SAID_S = 5.0
"""Seconds between warnings while the cluster cannot be listed."""


@asynccontextmanager
async def follow_cluster(
    settings: Settings, state: LiveState, log: FilteringBoundLogger
) -> AsyncIterator[LiveCluster]:
    """Keeps a state current with the cluster that the settings name.

    Raises:
        PodiumError: no cluster is configured, or nodes and pods may not be read.
    """
    own = settings.extender
    kubeconfig = Path(own.kubeconfig).expanduser() if own.kubeconfig else None
    async with (
        KubeClient(Access(Target(kubeconfig, own.context))) as client,
        ClusterWatch(client, Feed(state)) as watch,
    ):
        await _synced(watch, log)
        for problem in watch.refused():
            log.warning("some objects are not read", problem=problem)
        telling = asyncio.create_task(_tell_problems(watch, state, log))
        try:
            yield LiveCluster(client, watch)
        finally:
            telling.cancel()


async def _synced(watch: ClusterWatch, log: FilteringBoundLogger) -> None:
    while True:
        try:
            async with asyncio.timeout(SAID_S):
                await watch.synced()
        except TimeoutError:
            problems = [each.problem for each in watch.health().values() if each.problem]
            known = watch.problem or next(iter(problems), None)
            facts = {"problem": str(known or "it takes long"), KIND: "unreachable cluster"}
            log.warning("the cluster is not known yet", **facts)
        else:
            return


async def _tell_problems(watch: ClusterWatch, state: LiveState, log: FilteringBoundLogger) -> None:
    """Logs what is not heard of for a while, and each object that is left out."""
    named, before = set[tuple[str, str]](), set[str]()
    while True:
        for kind, health in watch.health().items():
            for name, problem in list(health.left_out.items()):
                if (kind, name) not in named:
                    named.add((kind, name))
                    facts = {"object": f"{kind} {name}", "problem": problem, KIND: "left out"}
                    log.warning("an object cannot be read and is left out", **facts)
        for name, problem in list(state.unmodelled_nodes.items()):
            if ("Node", name) not in named:
                named.add(("Node", name))
                facts = {"node": name, "problem": problem, KIND: "unmodelled nodes"}
                log.warning("a node cannot be modelled: no pod is scored on it", **facts)
        problems = set(watch.problems())
        for problem in problems & before:
            facts = {"problem": problem, KIND: "watches that fail"}
            log.warning("the cluster is not followed as it should be", **facts)
        before = problems
        await asyncio.sleep(SAID_S)


class LiveCluster:
    """Is a cluster that is followed."""

    def __init__(self, client: KubeClient, watch: ClusterWatch) -> None:
        self._client = client
        self._watch = watch

    def age_s(self) -> float:
        """Returns the seconds since the API server was last heard of."""
        return self._watch.age_s

    def lists(self) -> int:
        """Returns how often objects were listed: once for each kind while watches go on."""
        return sum(each.lists for each in self._watch.health().values())

    def problems(self) -> list[str]:
        """Says of which kinds the API server is not heard now, and why."""
        return self._watch.problems()

    def unreadable(self) -> int:
        """Returns how many objects were left out since they cannot be read."""
        return sum(each.unreadable for each in self._watch.health().values())

    @property
    def failure(self) -> Exception | None:
        """Returns what ended a watch for good, if one has ended."""
        return self._watch.failure

    async def bind(self, args: BindingArgs, slots: tuple[int, ...]) -> str:
        """Binds a pod; its GPUs are noted on it by the same request.

        The API server takes over annotations of a Binding. Returns what went wrong, or nothing.
        """
        metadata = {"name": args.pod_name, "namespace": args.pod_namespace, "uid": args.pod_uid}
        noted = {"annotations": {GPU_INDEX: "-".join(map(str, slots))}} if slots else {}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {**metadata, **noted},
            "target": {"apiVersion": "v1", "kind": "Node", "name": args.node},
        }
        namespace, pod = (quote(name, safe="") for name in (args.pod_namespace, args.pod_name))
        return await self._create(f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", binding)

    async def write_event(self, event: Mapping[str, Any]) -> str:
        """Creates an Event; returns what went wrong, or nothing."""
        namespace = quote(event["metadata"]["namespace"], safe="")
        return await self._create(f"/api/v1/namespaces/{namespace}/events", event)

    async def _create(self, path: str, value: Mapping[str, Any]) -> str:
        try:
            await self._client.post(path, msgspec.json.encode(value))
        except KubeError as error:
            return str(error)
        return ""
