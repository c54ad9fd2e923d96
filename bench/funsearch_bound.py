"""Says how much of the FunSearch score is left to gain by packing parts of GPUs better.

    python bench/funsearch_bound.py [POLICY ...]

By its rules the score is the use of the cluster less fragmentation, which is looked at whenever a
pod fails to find a node. On its trace pods ask for more GPUs than there are eleven times, so some
fail under any policy. For each failed attempt of a policy this finds the fewest GPUs that could
hold the parts in use at that moment if they were all moved about, which no scheduler can do: with
the same pods failing, no placement scores more than what is printed as `at_most`. It needs
PODIUM_TRACES, and prints a JSON object for each policy.
"""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np

from podium.model.records import GPU_MILLI
from podium.policies import load
from podium.settings import load_settings
from podium.sim.funsearch import FunsearchCase
from podium.sim.funsearch.events import CREATED, DELETED
from podium.traces.catalogue import EMBEDDED_16, LoadOptions, load_trace

STEPS = 20_000
"""After so many the search for fewer GPUs ends, and a lower bound is taken instead."""


class Packing:
    """Finds the fewest GPUs that hold some parts, by branch and bound."""

    def __init__(self, parts: list[int]) -> None:
        self.parts = sorted(parts, reverse=True)
        self.most, self.steps = len(parts), 0
        self.fewest_possible = -(-sum(parts) // GPU_MILLI)
        self._place(0, [])

    def gpus(self) -> int:
        """Returns how many GPUs there are at least."""
        return self.most if self.steps <= STEPS else self.fewest_possible

    def _place(self, index: int, left: list[int]) -> None:
        self.steps += 1
        missing = sum(self.parts[index:]) - sum(left)
        if self.steps > STEPS or len(left) + max(0, -(-missing // GPU_MILLI)) >= self.most:
            return
        if index == len(self.parts):
            self.most = len(left)
            return
        part = self.parts[index]
        fitting = sorted({free for free in left if free >= part})
        for free in fitting:
            slot = left.index(free)
            left[slot] -= part
            self._place(index + 1, left)
            left[slot] += part
        self._place(index + 1, [*left, GPU_MILLI - part])


def measure(case: FunsearchCase, name: str) -> dict[str, object]:
    """Measures a policy, and what it would score if parts were packed as tightly as they can be."""
    policy, pods = load(name), case.workload.pods
    log, found = case.log(policy), case.run(policy)
    running: dict[int, int] = {}
    waiting: dict[int, int] = {}
    least: list[int] = []
    for number, kind in zip(log.pod.tolist(), log.kind.tolist(), strict=True):
        gpus, milli = int(pods[number]["gpu_count"]), int(pods[number]["gpu_milli"])
        if kind == CREATED:
            waiting.pop(number, None)
            if gpus == 1 and milli < GPU_MILLI:
                running[number] = milli
        elif kind == DELETED:
            running.pop(number, None)
        else:
            waiting |= {number: milli} if gpus else {}
            least.append(_least(list(running.values()), min(waiting.values(), default=0)))
    fragmentation = float(np.mean(least or [0])) / case.cluster.gpu_milli_total
    scores = (found.score, found.score_without_retries)
    return {
        "policy": name, "score": round(found.score, 4),
        "without_retries": round(found.score_without_retries, 4),
        "wait_mean_s": round(found.wait_mean_s, 1), "failed": found.failed_attempts,
        "fragmentation": round(found.fragmentation, 4), "least": round(fragmentation, 4),
        "at_most": [round(each + found.fragmentation - fragmentation, 4) for each in scores],
    }  # fmt: skip


def _least(parts: list[int], smallest: int) -> int:
    """Returns the milli that are lost at least; where a part waits, perhaps none."""
    return Packing(parts).gpus() * GPU_MILLI - sum(parts) if smallest == GPU_MILLI else 0


def main() -> None:
    """Reads which policies, and prints what is left to gain with each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policies", nargs="*", default=["funsearch-best-fit"])
    options = LoadOptions(folder=load_settings().traces.folder)
    cluster = load_trace(EMBEDDED_16, options).cluster
    workload = load_trace("openb:default", options).workload
    case = FunsearchCase.of(cluster, workload)
    for name in parser.parse_args().policies:
        sys.stdout.write(json.dumps(measure(case, name)) + "\n")


if __name__ == "__main__":
    main()
