"""Measures the processor time that Podium takes for a pod, without a cluster.

    python bench/extender_cost.py [--nodes 500] [--pods 1000] [--rounds 3] [--profile FILE]

A small API server plays one pod after another: it comes (a watch event), is asked about with the
names of all nodes over a socket, as kube-scheduler does, and is bound to a node (another event).
The processor time is that of the whole process as it is installed: HTTP, answers, watch, twins, and
the deletion of all pods between two rounds. --profile writes what cProfile finds.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from extender import timed, wait_until_ready
from extender_throughput import nodes, pods
from faults import INSTALLED, environment

from support.fake_api import event, kubeconfig

LAG_S = 0.002
"""Between an answer and the event that shows the pod bound."""

_LISTED = '{"metadata": {"resourceVersion": "1"}, "items": %s}'


class Api:
    """Lists nodes, and sends events of pods to who watches them."""

    def __init__(self, count: int) -> None:
        self._nodes = nodes(count)
        self._loop = asyncio.new_event_loop()
        self._watchers: list[asyncio.StreamWriter] = []
        started = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
        )
        self.port = started.sockets[0].getsockname()[1]
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def send(self, *lines: bytes) -> None:
        """Sends events of pods."""
        self._loop.call_soon_threadsafe(self._send, b"".join(lines))

    def _send(self, lines: bytes) -> None:
        for writer in self._watchers:
            writer.write(b"%x\r\n%s\r\n" % (len(lines), lines))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            while (await reader.readline()).strip():
                pass
            url = urlsplit(line.split()[1].decode())
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                b"transfer-encoding: chunked\r\n\r\n"
            )
            if "watch" in parse_qs(url.query):
                if url.path.endswith("/pods"):
                    self._watchers.append(writer)
                await writer.drain()
                continue
            items = self._nodes if url.path.endswith("/nodes") else []
            body = b'{"groups": []}'
            if url.path != "/apis":
                body = (_LISTED % json.dumps(items)).encode()
            writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
            await writer.drain()


def known(pod: dict[str, Any], uid: str) -> dict[str, Any]:
    """Gives a pod as an API server that has taken it shows it."""
    owned = {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:containers": {}}}
    tolerated = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]  # fmt: skip
    metadata = {
        **pod["metadata"], "uid": uid, "name": uid, "creationTimestamp": "2026-11-15T10:00:00Z",
        "resourceVersion": "100", "managedFields": [{"manager": "x", "fieldsV1": owned}],
    }  # fmt: skip
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "tolerations": tolerated},
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    }


def bound(pod: dict[str, Any], node: str) -> dict[str, Any]:
    """Gives a pod as it is once it is bound."""
    condition = {
        "type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-15T10:00:01Z"
    }  # fmt: skip
    status = {**pod["status"], "conditions": [condition]}
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status}


def asked(pod: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Writes what kube-scheduler asks: its nodes are in another order each time."""
    return {"Pod": pod, "Nodes": None, "NodeNames": random.sample(names, len(names))}


def processor_ms(pid: int) -> float:
    """Gives the time that all threads of a process were on a processor."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e6


@contextmanager
def podium(api: Api, profile: Path | None, policy: str) -> Iterator[tuple[int, int]]:
    """Runs Podium as it is installed; gives its process id and its port."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        given = {**INSTALLED, "policy": policy, "kubeconfig": kubeconfig(Path(folder), api.port)}
        traced = ["-m", "cProfile", "-o", str(profile)] if profile else []
        process = subprocess.Popen(
            [sys.executable, *traced, "-m", "podium", "serve", "--port", str(port)],
            env={**os.environ, **environment(given)}, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            while True:
                try:
                    wait_until_ready(port)
                    break
                except ConnectionError:
                    time.sleep(0.1)
            yield process.pid, port
        finally:
            process.terminate()
            process.wait()


def played(api: Api, pid: int, port: int, given: argparse.Namespace, uids: Iterator[str]) -> Any:
    """Plays pods one after another; gives milliseconds of the processor and of waiting for each."""
    names = [f"node-{number:05}" for number in range(given.nodes)]
    made = [known(pod, next(uids)) for pod in pods(given.pods)]
    bodies = [json.dumps(asked(each, names), separators=(",", ":")).encode() for each in made]
    began_ms, waited = processor_ms(pid), []
    api.send(*(event("ADDED", each) for each in made))
    time.sleep(0.5)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number, (pod, body) in enumerate(zip(made, bodies, strict=True)):
            waited.append(timed(connection, b"/extender/prioritize", body))
            made[number] = bound(pod, names[number % len(names)])
            api.send(event("MODIFIED", made[number]))
            time.sleep(LAG_S)
    api.send(*(event("DELETED", each) for each in made))
    time.sleep(0.5)
    return (processor_ms(pid) - began_ms) / given.pods, statistics.median(waited)


def main() -> int:
    """Prints the figures of each round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--policy", default="keep-room")
    parser.add_argument("--profile", type=Path)
    given = parser.parse_args()
    api, uids = Api(given.nodes), (f"pod-{number:06}" for number in itertools.count())
    with podium(api, given.profile, given.policy) as (pid, port):
        for _ in range(given.rounds):
            spent_ms, waited_ms = played(api, pid, port, given, uids)
            print(
                f"{given.nodes} nodes: {spent_ms:.2f} ms of the processor a pod, "
                f"{waited_ms:.2f} ms until it was answered",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
