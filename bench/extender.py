"""Measures how long the extender takes to answer prioritize, in the process and over a socket.

    python bench/extender.py [--nodes 1500] [--calls 2000] [--policy keep-room] [--json]

The cluster has 8 GPUs a node and runs pods of the OpenB trace until half of its GPUs are taken.
Each call brings another pod of the trace and the names of all nodes in another order, as
kube-scheduler sends them; between two calls the last pod is bound, so that the state changes.
The limits hold for the time of the processor: on a machine that is busy with other things as well,
that is what a core of its own would take.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import multiprocessing
import random
import socket
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from podium.kube import LiveState
from podium.service.components import Components, Service
from podium.service.extender.component import Extender
from podium.service.http.logs import Log
from podium.service.http.server import listen, run
from podium.settings import Settings, load_settings
from podium.traces import load_trace

LIMITS = {"p50_ms": 1.0, "p99_ms": 5.0}
WARM_CALLS = 200
WATCH_LAG_S = 0.02


def node(number: int) -> dict[str, Any]:
    """Writes a node of 8 GPUs."""
    resources = {
        "cpu": "96", "memory": "768Gi", "pods": "110",
        "alibabacloud.com/gpu-count": "8", "alibabacloud.com/gpu-milli": "8000",
    }  # fmt: skip
    labels = {"alibabacloud.com/gpu-card-model": "A10", "rack": f"rack-{number // 16}"}
    status = {"allocatable": resources, "capacity": resources}
    return {"metadata": {"name": f"node-{number:05}", "labels": labels}, "status": status}


def pods(seed: int) -> Iterator[dict[str, Any]]:
    """Writes pods of the OpenB trace, one after another, without end."""
    records = load_trace("openb").workload
    assert records is not None
    shapes = random.Random(seed)
    for number in range(10**9):
        shape = records.pods[shapes.randrange(len(records.pods))]
        requests = {"cpu": f"{shape['cpu_milli']}m", "memory": f"{shape['memory_mib']}Mi"}
        annotations = {
            "alibabacloud.com/gpu-count": str(shape["gpu_count"]),
            "alibabacloud.com/gpu-milli": str(shape["gpu_milli"]),
        }
        containers = [{"name": "main", "resources": {"requests": requests, "limits": requests}}]
        yield {
            "metadata": {
                "name": f"pod-{number}", "namespace": "default", "uid": f"uid-{number}",
                "annotations": annotations if shape["gpu_count"] else {},
            },
            "spec": {"containers": containers},
            "status": {"phase": "Pending"},
        }  # fmt: skip


def bound(pod: dict[str, Any], name: str) -> dict[str, Any]:
    """Lets a pod run."""
    return {**pod, "spec": {**pod["spec"], "nodeName": name}, "status": {"phase": "Running"}}


class Filled:
    """Is a state that half of its GPUs are taken of, and that nobody keeps current."""

    failure = None

    def age_s(self) -> float:
        """Returns that it is current."""
        return 0.0

    async def bind(self, args: Any, slots: Any) -> str:  # noqa: ARG002
        """Binds nothing."""
        return ""


@dataclass(frozen=True)
class Cluster:
    """Fills a state."""

    nodes: int
    pending: int

    @contextlib.asynccontextmanager
    async def __call__(
        self, _settings: Settings, state: LiveState, _log: Any
    ) -> AsyncIterator[Filled]:
        """Makes the nodes, and lets pods run on them at random."""
        rng, made = random.Random(1), pods(2)
        state.replace("Node", [node(number) for number in range(self.nodes)])
        taken = 0
        while taken < 4000 * self.nodes:
            pod = next(made)
            pod["metadata"]["uid"] = f"old-{pod['metadata']['uid']}"
            pod["metadata"]["name"] = f"old-{pod['metadata']['name']}"
            noted = pod["metadata"]["annotations"]
            taken += int(noted.get("alibabacloud.com/gpu-count", "0")) * int(
                noted.get("alibabacloud.com/gpu-milli", "0")
            )
            state.apply("Pod", "ADDED", bound(pod, f"node-{rng.randrange(self.nodes):05}"))
        for _, pod in zip(range(self.pending), pods(4), strict=False):
            state.apply("Pod", "ADDED", pod)  # the watch shows a pod before kube-scheduler asks
        yield Filled()


def bodies(nodes: int, calls: int) -> list[tuple[dict[str, Any], bytes]]:
    """Writes what kube-scheduler sends."""
    names, rng = [f"node-{number:05}" for number in range(nodes)], random.Random(3)
    found = []
    for _, pod in zip(range(calls), pods(4), strict=False):
        rng.shuffle(names)
        body = {"Pod": pod, "Nodes": None, "NodeNames": names}
        found.append((pod, json.dumps(body).encode()))
    return found


def made_component(nodes: int, calls: int, policy: str) -> Extender:
    """Makes the component on a filled cluster."""
    chosen = {"extender.policy": policy, "extender.decisive_points": 1, "serve.port": 0}
    settings = load_settings(chosen, environ={})
    return Extender(settings, Log(io.StringIO()).logger, Cluster(nodes, calls))


def in_process(
    nodes: int, calls: int, policy: str, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Times the handler itself, in milliseconds; the watch shows a bind after each call."""
    component, latencies = made_component(nodes, calls + WARM_CALLS, policy), []

    async def ask() -> None:
        await component.start()
        for pod, body in bodies(nodes, calls + WARM_CALLS):
            started = clock()
            answer = component.verbs.prioritize(body)
            latencies.append((clock() - started) * 1000)
            given = {each["Host"]: each["Score"] for each in json.loads(answer)}
            best = max(component.state.names, key=lambda name: given.get(name, 0))
            component.state.apply("Pod", "MODIFIED", bound(pod, best))
            await asyncio.sleep(0)
        await component.stop()

    asyncio.run(ask())
    return latencies[WARM_CALLS:]


def serve(nodes: int, calls: int, policy: str, port: Any) -> None:
    """Serves the component in a process of its own."""
    component = bound_later(made_component(nodes, calls, policy), calls)
    settings = load_settings({"serve.port": 0}, environ={})
    log = Log(io.StringIO()).logger
    listener = listen(settings.serve)
    port.send(listener.getsockname()[1])
    run(Service(settings, Components([component], log), log), listener)


def bound_later(component: Extender, calls: int) -> Extender:
    """Lets the watch show the bind of each pod a moment after it was scored."""
    waiting = (pod for _, pod in zip(range(calls), pods(4), strict=False))
    prioritize = component.verbs.prioritize

    def show(pod: dict[str, Any]) -> None:
        assumed = component.assumed.get(pod["metadata"]["uid"])
        if assumed is not None:
            component.state.apply("Pod", "MODIFIED", bound(pod, assumed.node))

    def answered(body: bytes) -> bytes:
        answer = prioritize(body)
        asyncio.get_running_loop().call_later(WATCH_LAG_S, show, next(waiting))
        return answer

    component.verbs.prioritize = answered  # type: ignore[method-assign]
    return component


def over_socket(nodes: int, calls: int, policy: str) -> list[float]:
    """Times whole requests, one after another on one connection, in milliseconds."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(nodes, calls + WARM_CALLS, policy, there)
    )
    server.start()
    port = here.recv()
    try:
        wait_until_ready(port)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            found = [
                timed(connection, b"/extender/prioritize", body)
                for _, body in bodies(nodes, calls + WARM_CALLS)
            ]
    finally:
        server.terminate()
        server.join()
    return found[WARM_CALLS:]


def wait_until_ready(port: int) -> None:
    """Waits until the cluster is filled and the policy compiled."""
    for _ in range(1200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as asked:
            asked.sendall(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            if b"200 OK" in asked.recv(65536):
                return
        time.sleep(0.1)
    raise TimeoutError("the service is not ready after two minutes")


def timed(connection: socket.socket, path: bytes, body: bytes) -> float:
    """Sends one request and reads the whole answer."""
    head = b"POST %s HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n" % path
    sent = head + b"content-length: %d\r\n\r\n" % len(body) + body
    started = time.perf_counter()
    connection.sendall(sent)
    received = bytearray()
    while (end := received.find(b"\r\n\r\n")) < 0:
        received += connection.recv(2**20)
    length = int(received[:end].lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(received) < end + 4 + length:
        received += connection.recv(2**20)
    return (time.perf_counter() - started) * 1000


def figures(latencies_ms: list[float]) -> dict[str, float]:
    """Sums latencies up."""
    cuts = statistics.quantiles(latencies_ms, n=100, method="inclusive")
    return {"p50_ms": cuts[49], "p99_ms": cuts[98], "max_ms": max(latencies_ms)}


def main() -> int:
    """Measures and compares with the limits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1500)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--policy", default="keep-room")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    size = (given.nodes, given.calls, given.policy)
    found = {
        "in_process": figures(in_process(*size)),
        "processor": figures(in_process(*size, clock=time.thread_time)),
        "over_socket": figures(over_socket(*size)),
    }
    if given.json:
        print(json.dumps({"nodes": given.nodes, "policy": given.policy, **found}))
    else:
        for name, row in found.items():
            print(name, " ".join(f"{key}={value:.2f}" for key, value in row.items()))
    is_met = all(found["processor"][key] <= limit for key, limit in LIMITS.items())
    return 0 if is_met else 1


if __name__ == "__main__":
    raise SystemExit(main())
