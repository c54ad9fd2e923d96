"""Sends an hour's worth of requests as fast as they are answered, and watches the memory.

    python bench/service_memory.py [--requests 1080000] [--json]

An hour at 300 requests a second: nine scores in ten, of jobs in a few sizes and in many, and one
observation in ten. Callers also name job types and GPU types that nobody has seen. The service
must not need more memory at the end than after the first sixth, but for a little.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import sys
import tempfile
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
    """Gives the memory that a process holds."""
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
    """Gives the memory after each part of the load."""
    found = []
    for step in range(STEPS):
        asyncio.run(send(target, mixed(step), requests // STEPS))
        found.append(resident_mib(target.pid))
        print(
            f"{(step + 1) * requests // STEPS:10,} requests {found[-1]:8.1f} MiB", file=sys.stderr
        )
    return found


def main() -> int:
    """Sends, prints the memory and tells whether it stayed flat."""
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
    growth = found[-1] / found[STEPS // 6 - 1]
    if given.json:
        print(json.dumps({"requests": given.requests, "memory_mib": found, "growth": growth}))
        return 0
    print(
        f"{'ok  ' if growth <= LIMIT else 'FAIL'}  memory at the end over the first sixth "
        f"{growth:.3f}  at most {LIMIT}"
    )
    return growth > LIMIT


if __name__ == "__main__":
    sys.exit(main())
