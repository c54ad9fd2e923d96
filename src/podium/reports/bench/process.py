"""Measures whole processes: start-up, a cold cache, memory, environments and a search at work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from podium.errors import MissingError

SIMULATE = ["-m", "podium", "simulate", "--policy", "best-fit", "--cluster", "openb:16", "--json"]

_MEMORY = """
from pathlib import Path
from podium.policies import load
from podium.reports.bench.cases import dense_workload, uniform_cluster
from podium.sim import simulate
simulate(uniform_cluster({nodes}), dense_workload(60_000), load("best-fit"))
status = Path("/proc/self/status").read_text()
print(status.partition("VmHWM:")[2].split()[0])
"""


def seconds(arguments: list[str], environment: dict[str, str] | None = None) -> float:
    """Times a Python process."""
    began = time.perf_counter()
    run(arguments, environment)
    return time.perf_counter() - began


def cold_seconds() -> float:
    """Times a simulation in a process whose compile cache is empty."""
    with tempfile.TemporaryDirectory() as folder:
        return seconds(SIMULATE, {"PODIUM_COMPILE_CACHE": folder})


def peak_megabytes(nodes: int) -> float:
    """Returns the peak memory of simulating 100,000 pods on so many nodes."""
    printed = run(["-c", _MEMORY.format(nodes=nodes)])
    kilobytes = int(printed.split()[-1])
    return kilobytes * 1024 / 1e6


def search_speed(batches: int) -> dict[str, float]:
    """Returns what `podium.search.run.speed` measures; its docstring says what is counted."""
    measured: dict[str, float] = json.loads(run(["-m", "podium.search.run.speed", str(batches)]))
    return measured


def environment_speed(repeats: int) -> dict[str, float]:
    """Returns what `podium.rl.environment.speed` measures."""
    measured: dict[str, float] = json.loads(
        run(["-m", "podium.rl.environment.speed", str(repeats)])
    )
    return measured


def run(arguments: list[str], environment: dict[str, str] | None = None) -> str:
    """Runs a Python process and returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise MissingError(f"a measured process failed: {done.stderr.strip()[-300:]}")
    return done.stdout
