"""Says how much of the FunSearch score is left to gain by packing parts of GPUs better.

    python bench/funsearch_bound.py [POLICY ...] [--versions 20]

By its rules the score is the use of the cluster less fragmentation, which is looked at whenever a
pod fails to find a node. On its trace pods ask for more GPUs than there are eleven times, so some
fail under any policy. For each failed attempt of a policy this finds the fewest GPUs that could
hold the parts in use at that moment if they were all moved about, which no scheduler can do: with
the same pods failing, no placement scores more than what is printed as `at_most`. With
`--versions`, it prints the means over so many versions of the trace (validation seeds) instead. It
needs PODIUM_TRACES, and prints a JSON object for each policy.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace

import numpy as np

from podium.evaluation.cases import Case
from podium.evaluation.splits import SHIFT_S, VALIDATION
from podium.model.records import GPU_MILLI
from podium.policies import load
from podium.settings import load_settings
from podium.sim.funsearch import (
    FUNSEARCH_POLICIES,
    FunsearchCase,
    FunsearchResult,
    run_funsearch,
)
from podium.sim.funsearch.events import CREATED, DELETED
from podium.traces.catalogue import EMBEDDED_16

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


def measure_versions(versions: list[FunsearchCase], name: str) -> dict[str, object]:
    """Averages over versions of the trace; one long wait moves a mean, so the median is there."""
    found = [_run(case, name) for case in versions]
    waits_s = [each.wait_mean_s for each in found]
    means = {
        key: round(float(np.mean([getattr(each, key) for each in found])), 4)
        for key in ("score", "score_without_retries", "fragmentation")
    }
    middle = {"wait_mean_s": round(float(np.mean(waits_s)), 1),
              "wait_median_s": round(float(np.median(waits_s)), 1)}  # fmt: skip
    return {"policy": name, "versions": len(found), **means, **middle}


def _run(case: FunsearchCase, name: str) -> FunsearchResult:
    """Runs a policy; those of the published table, by their names there, to the last digit."""
    if name in FUNSEARCH_POLICIES:
        return run_funsearch(case.cluster, case.workload, FUNSEARCH_POLICIES[name])
    return case.run(load(name))


def main() -> None:
    """Reads which policies, and prints what is left to gain with each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policies", nargs="*", default=["funsearch-best-fit"])
    parser.add_argument("--versions", type=int, default=0)
    given = parser.parse_args()
    case = Case(
        "openb:default", protocol="funsearch", folder=str(load_settings().traces.folder),
        cluster=EMBEDDED_16,
    )  # fmt: skip
    trace = case.read()
    recorded = FunsearchCase.of(*case.drawn_on(trace))
    versions = [
        FunsearchCase.of(*replace(case, seed=seed, shift_s=SHIFT_S).drawn_on(trace))
        for seed in VALIDATION[: given.versions]
    ]
    for name in given.policies:
        found = measure_versions(versions, name) if versions else measure(recorded, name)
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
