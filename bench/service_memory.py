"""Sends an hour's worth of requests as fast as they are answered, and watches the memory.

    python bench/service_memory.py [--requests 1080000] [--json]

An hour at 300 requests a second: nine scores in ten, of jobs in a few sizes and in many, and one
observation in ten. Callers also name job types and GPU types that nobody has seen. The service
must not need more memory at the end than after the first sixth, but for a little. After that,
strangers send heads without an end, and requests whose answers they do not read: the most memory
that is needed meanwhile must not be much more either.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import socket
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from service import (
    Make,
    Target,
    check,
    connect,
    free_port,
    observations,
    posted,
    scores,
    server,
)

HOUR = 300 * 3600
STEPS = 12
CONNECTIONS = 32
LIMIT = 1.1
"""Memory at the end over memory after the first sixth."""

HARASSED_LIMIT = 1.5
"""The most memory while strangers harass the service over memory before."""

POURED_BYTES = 60 * 2**20
HARASSMENTS = (
    (b"GET / HTTP/1.1\r\n", b"a:b\r\n" * 13_000, 1),
    (b"GET / HTTP/1.1\r\nX-Long: ", b"a" * 2**16, 1),
    (b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 500, 20),
)
"""What each connection begins with, what it then sends for ever, and how many there are."""


def strangers(seed: int) -> Make:
    """Asks for job types and GPU types under ever new names."""
    draw = random.Random(seed)

    def make() -> bytes:
        names = [f"{draw.randrange(10**9)}-gpu" for _ in range(3)]
        body = {"job_type": f"{draw.randrange(10**9)}-job", "candidate_gpu_types": names}
        return posted("/v1/score", body)

    return make


def mixed(seed: int) -> Make:
    """Makes scores of all kinds and one observation in ten."""
    kinds = [*[scores(seed)] * 5, *[scores(seed, sizes=10_000)] * 3, strangers(seed)]
    turns = itertools.cycle([*kinds, observations(seed)])
    return lambda: next(turns)()


def resident_mib(pid: int) -> float:
    """Returns the memory that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def send(target: Target, make: Make, count: int) -> None:
    """Sends so many requests, each connection the next as soon as it is answered."""
    connections, latencies = await connect(target.port, make, CONNECTIONS)
    for connection in connections:
        connection.is_endless = True
        connection.ask(0.0)
    while len(latencies) < count:
        await asyncio.sleep(0.05)
    for connection in connections:
        connection.is_endless = False
    await asyncio.sleep(0.5)
    check(connections)


def measured(target: Target, requests: int) -> list[float]:
    """Returns the memory after each part of the load."""
    found = []
    for step in range(STEPS):
        asyncio.run(send(target, mixed(step), requests // STEPS))
        found.append(resident_mib(target.pid))
        print(
            f"{(step + 1) * requests // STEPS:10,} requests {found[-1]:8.1f} MiB", file=sys.stderr
        )
    return found


def pour(connection: socket.socket, begin: bytes, data: bytes) -> None:
    """Sends as much as is taken, without a look at answers."""
    connection.settimeout(1.0)
    sent = 0
    with suppress(OSError):
        connection.sendall(begin)
        while sent < POURED_BYTES:
            sent += connection.send(data)


def harassed(target: Target) -> float:
    """Returns the most memory while strangers send what has no end."""
    most = 0.0
    for begin, data, count in HARASSMENTS:
        with ExitStack() as kept:
            for _ in range(count):
                address = ("127.0.0.1", target.port)
                connection = kept.enter_context(socket.create_connection(address))
                pour(connection, begin, data)
                most = max(most, resident_mib(target.pid))
    print(f"{'':10} harassed {most:8.1f} MiB", file=sys.stderr)
    return most


def main() -> int:
    """Sends, prints the memory and returns whether it stayed flat."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=HOUR, help="to send in all")
    parser.add_argument("--json", action="store_true", help="print data as JSON")
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "bench.db")
        command = [sys.executable, "-m", "podium", "--quiet", "serve", "--port", str(port)]
        with server([*command, "--store", store], port, cores[0]) as service:
            found = measured(service, given.requests)
            most = harassed(service)
    growth, excess = found[-1] / found[STEPS // 6 - 1], most / found[-1]
    if given.json:
        told = {"memory_mib": found, "growth": growth, "harassed_mib": most, "excess": excess}
        print(json.dumps({"requests": given.requests, **told}))
        return 0
    show("memory at the end over the first sixth", growth, LIMIT)
    show("memory under harassment over that before", excess, HARASSED_LIMIT)
    return growth > LIMIT or excess > HARASSED_LIMIT


def show(what: str, value: float, limit: float) -> None:
    """Prints a figure with its bound."""
    print(f"{'ok  ' if value <= limit else 'FAIL'}  {what:<42} {value:.3f}  at most {limit}")


if __name__ == "__main__":
    sys.exit(main())
