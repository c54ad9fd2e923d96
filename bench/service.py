"""Measures the service over HTTP on the loopback interface, beside references of the same run.

    python bench/service.py [--seconds 3] [--json]

The service runs in a process on one core, the load comes from this process on another. References
are an empty route of FastAPI on the same server, and one commit after another on the same disk.
Peaks are requests in a second of the server's processor: on a machine that is busy with other
things as well, that is what a core of its own would give.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

RATE, OBSERVE_RATE, CONNECTIONS = 300, 50, 32
ROUNDS = 3
JOBS = [f"job-{number}" for number in range(10)]
GPUS = ["A100-80GB", "A100-40GB", "L4-24GB", "H100-80GB", "V100M32"]
LIMITS = {
    "score_p50_ms": ("at most", 1.5),
    "score_p99_ms": ("at most", 10.0),
    "mixed_score_p50_ms": ("at most", 1.5),
    "mixed_score_p99_ms": ("at most", 10.0),
    "peak_over_empty": ("at least", 0.6),
    "unlike_over_empty": ("at least", 0.6),
    "observe_per_s": ("at least", 500.0),
}
EMPTY = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/empty")
async def empty():
    return {}
uvicorn.run(app, port=int(sys.argv[1]), log_config=None, access_log=False, server_header=False)
"""

Make = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Target:
    """Names a server: where it listens and its process."""

    port: int
    pid: int


class Connection(asyncio.Protocol):
    """Sends one request after another and notes how long each answer takes."""

    def __init__(self, make: Make, latencies_s: list[float]) -> None:
        self._make = make
        self._latencies_s = latencies_s
        self._due: deque[float] = deque()
        self._received = bytearray()
        self.is_endless = False
        self.failures = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the open connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def ask(self, due_s: float) -> None:
        """Sends a request that was due at a time; a late answer counts from then."""
        self._due.append(due_s)
        self.transport.write(self._make())

    def data_received(self, data: bytes) -> None:
        """Takes answers apart."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:end]).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(self._received) < end + 4 + length:
                return
            del self._received[: end + 4 + length]
            now = time.perf_counter()
            self.failures += not head.startswith(b"http/1.1 200")
            self._latencies_s.append(now - self._due.popleft())
            if self.is_endless:
                self.ask(now)


async def connect(port: int, make: Make, count: int) -> tuple[list[Connection], list[float]]:
    """Opens connections that share a list of latencies."""
    loop, latencies = asyncio.get_running_loop(), list[float]()
    made = [
        (await loop.create_connection(lambda: Connection(make, latencies), "127.0.0.1", port))[1]
        for _ in range(count)
    ]
    return made, latencies


async def at_rate(port: int, make: Make, rate: float, seconds: float) -> list[float]:
    """Sends requests on a fixed schedule, whatever the answers do."""
    connections, latencies = await connect(port, make, CONNECTIONS)
    start = time.perf_counter()
    for number, connection in zip(
        range(int(rate * seconds)), itertools.cycle(connections), strict=False
    ):
        due = start + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        connection.ask(due)
    await asyncio.sleep(0.5)
    check(connections)
    return latencies


@dataclass(frozen=True, slots=True)
class Peak:
    """Requests a second, and a second of the server's processor."""

    per_s: float
    per_cpu_s: float


def cpu_s(pid: int) -> float:
    """Returns the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def at_peak(target: Target, make: Make, seconds: float, count: int = CONNECTIONS) -> Peak:
    """Sends the next request as soon as an answer is there."""
    port = target.port
    connections, latencies = await connect(port, make, count)
    start, cpu_start = time.perf_counter(), cpu_s(target.pid)
    for connection in connections:
        connection.is_endless = True
        connection.ask(start)
    await asyncio.sleep(seconds)
    for connection in connections:
        connection.is_endless = False
    done = len(latencies)
    peak = Peak(
        done / (time.perf_counter() - start), done / max(cpu_s(target.pid) - cpu_start, 0.01)
    )
    await asyncio.sleep(0.3)
    check(connections)
    return peak


def check(connections: list[Connection]) -> None:
    """Raises on failed requests: failures are not measured."""
    failures = sum(connection.failures for connection in connections)
    for connection in connections:
        connection.transport.close()
    if failures:
        sys.exit(f"{failures} requests failed")


def posted(path: str, body: object) -> bytes:
    """Writes a request with a body."""
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


def scores(seed: int, sizes: int = 4) -> Make:
    """Asks for scores of jobs; a job type is run in a few sizes, as people do, or in many."""
    draw = random.Random(seed)
    texts = [
        posted(
            "/v1/score",
            {
                "job_type": draw.choice(JOBS),
                "features": {"gpu_mem_gb": 40, "batch_size": draw.randint(1, sizes) * 8},
                "candidate_gpu_types": sorted(draw.sample(GPUS, 3)),
                "colocated_job_types": [],
            },
        )
        for _ in range(2000)
    ]
    return itertools.cycle(texts).__next__


def observations(seed: int) -> Make:
    """Makes requests that observe runs."""
    draw = random.Random(seed)
    texts = [
        posted(
            "/v1/observe",
            {
                "job_type": draw.choice(JOBS),
                "gpu_type": draw.choice(GPUS),
                "measured_runtime_s": draw.lognormvariate(4, 0.3),
                "colocated_job_types": [],
            },
        )
        for _ in range(2000)
    ]
    return itertools.cycle(texts).__next__


@contextmanager
def server(command: list[str], port: int, core: int) -> Iterator[Target]:
    """Runs a server on one core until the block ends."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        os.sched_setaffinity(process.pid, {core})
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        time.sleep(1.0)
        yield Target(port, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def free_port() -> int:
    """Finds a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def commits_per_s(folder: Path, seconds: float) -> float:
    """Commits single rows one after another, each safe on the disk."""
    connection = sqlite3.connect(folder / "reference.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (job TEXT, gpu TEXT, seconds REAL)")
    count, start = 0, time.perf_counter()
    while (took := time.perf_counter() - start) < seconds:
        connection.execute("INSERT INTO rows VALUES ('job', 'gpu', 1.0)")
        count += 1
    connection.close()
    return count / took


def empty_requests() -> bytes:
    """Asks for nothing."""
    return b"GET /empty HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def share(ordered: list[float], below: float) -> float:
    """Returns the value that a share of all values is below."""
    return ordered[int(len(ordered) * below)]


async def measured(service: Target, empty: Target, seconds: float) -> dict[str, float]:
    """Measures everything that goes over HTTP."""
    await at_peak(service, observations(1), 0.5, 4)
    await at_peak(service, scores(2), 0.5)
    await at_peak(empty, empty_requests, 0.5)
    empty_latencies = sorted(await at_rate(empty.port, empty_requests, RATE, seconds))
    latencies = sorted(await at_rate(service.port, scores(3), RATE, seconds))
    mixed, told = await asyncio.gather(
        at_rate(service.port, scores(6), RATE, seconds),
        at_rate(service.port, observations(7), OBSERVE_RATE, seconds),
    )
    mixed.sort()
    pairs = [
        (
            await at_peak(empty, empty_requests, seconds / 2),
            await at_peak(service, scores(seed), seconds / 2),
        )
        for seed in range(ROUNDS)
    ]
    unlike = [
        (
            await at_peak(empty, empty_requests, seconds / 2),
            await at_peak(service, scores(seed, sizes=10_000), seconds / 2),
        )
        for seed in range(ROUNDS, 2 * ROUNDS)
    ]
    observed = await at_peak(service, observations(4), seconds, 64)
    return {
        "score_p50_ms": share(latencies, 0.5) * 1e3,
        "score_p99_ms": share(latencies, 0.99) * 1e3,
        "mixed_score_p50_ms": share(mixed, 0.5) * 1e3,
        "mixed_score_p99_ms": share(mixed, 0.99) * 1e3,
        "mixed_observe_p99_ms": share(sorted(told), 0.99) * 1e3,
        "empty_p50_ms": share(empty_latencies, 0.5) * 1e3,
        "empty_p99_ms": share(empty_latencies, 0.99) * 1e3,
        "score_per_s": statistics.median(score.per_s for _, score in pairs),
        "score_per_cpu_s": statistics.median(score.per_cpu_s for _, score in pairs),
        "empty_per_cpu_s": statistics.median(empty.per_cpu_s for empty, _ in pairs),
        "peak_over_empty": statistics.median(
            score.per_cpu_s / empty.per_cpu_s for empty, score in pairs
        ),
        "unlike_over_empty": statistics.median(
            score.per_cpu_s / empty.per_cpu_s for empty, score in unlike
        ),
        "observe_per_s": observed.per_s,
        "observe_per_cpu_s": observed.per_cpu_s,
    }


def main() -> int:
    """Measures, prints every figure with its bound, and returns whether all bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each measurement")
    parser.add_argument("--json", action="store_true", help="print data as JSON")
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    port, empty_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = str(folder / "bench.db")
        command = [sys.executable, "-m", "podium", "--quiet", "serve", "--port", str(port)]
        with (
            server([*command, "--store", store], port, cores[0]) as service,
            server([sys.executable, "-c", EMPTY, str(empty_port)], empty_port, cores[0]) as empty,
        ):
            figures = asyncio.run(measured(service, empty, given.seconds))
        figures["commits_per_s"] = commits_per_s(folder, min(given.seconds, 2.0))
    figures["observe_over_commits"] = figures["observe_per_s"] / figures["commits_per_s"]
    if given.json:
        print(json.dumps(figures))
        return 0
    failed = 0
    for figure, value in figures.items():
        bound, limit = LIMITS.get(figure, ("", 0.0))
        is_met = not bound or (value <= limit if bound == "at most" else value >= limit)
        failed += not is_met
        print(f"{'ok  ' if is_met else 'FAIL'}  {figure:<22} {value:10.2f}  {bound} {limit or ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
