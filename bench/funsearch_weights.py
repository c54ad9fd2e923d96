"""Finds whole-number weights for a policy by the FunSearch score, on the recorded trace itself.

    python bench/funsearch_weights.py [--evaluations 4096] [--seed 11]

People wrote the terms below, one list for each class of pods. An evolution strategy of few lines
chooses the weights, from those of `gather.py` in docs/search.md on: sampled around a centre, the
better half moves it, and terms that are of no use are taken out now and then. The score is the
lesser one of those with and without failed attempts as events, less what `funsearch:40` charges for
waiting, and a little for each term. It needs PODIUM_TRACES, and prints a line for each improvement.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from podium.evaluation.cases import Case
from podium.policies import PairPolicy, load
from podium.settings import load_settings
from podium.sim.funsearch import FunsearchCase, FunsearchResult
from podium.traces.catalogue import EMBEDDED_16

Array = NDArray[np.float64]

CLASSES = ("CPU", "SHARE", "WHOLE")
TERMS = {
    "GPUS": "gpus", "SIZE": "cpu_total", "CPU_LEFT": "cpu_left", "MEMORY_LEFT": "memory_left",
    "FREE": "free / 8", "BROKEN": "broken / 8", "BROKEN_GPUS": "broken_gpus",
    "ROOM": "cpu_left * cpu_total", "UNTOUCHED": "untouched",
}  # fmt: skip
OF_GPU = ("IN_USE", "BEHIND")
NAMES = (*(f"{kind}_{term}" for kind in CLASSES for term in TERMS), *OF_GPU)
GATHER = {
    "CPU_GPUS": -160, "CPU_SIZE": -10, "CPU_CPU_LEFT": -4, "SHARE_GPUS": 8, "SHARE_SIZE": -10,
    "SHARE_CPU_LEFT": -4, "WHOLE_GPUS": -160, "WHOLE_SIZE": -10, "WHOLE_CPU_LEFT": -4,
    "IN_USE": 40, "BEHIND": -45,
}  # fmt: skip

POLICY = """
def prepare(shapes):
    return [0.0]


def score(pod, node, gpu, table):
    broken, free, broken_gpus = 0, 0, 0.0
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        if left == 1000:
            free += 1
        elif left > 0:
            broken += 1
            broken_gpus += left / 1000
    gpus, cpu_total = node.gpu_count / 8, node.cpu_milli_total / 128000
    cpu_left = (node.cpu_milli_left - pod.cpu_milli) / node.cpu_milli_total
    memory_left = (node.memory_mib_left - pod.memory_mib) / node.memory_mib_total
    untouched = 1 if free == node.gpu_count else 0
    kind = 0 if pod.gpu_milli == 0 else (1 if pod.gpu_milli < 1000 else 2)
    first, total = KINDS * kind, 0.0
SUMS
    if kind == 1 and gpu >= 0:
        here = node.gpu_milli_left[gpu]
        if here < 1000:
            total += table[LAST - 1]
        total += table[LAST] * (here - pod.gpu_milli) / 1000
    return total
"""

POPULATION = 16
PATIENCE = 25
"""Generations without a better one after which the strategy begins anew around the best."""

PER_TERM = 2e-5
WAIT_S, PER_DOUBLING = 40.0, 0.02


class Scorer:
    """Judges weights on the recorded trace."""

    def __init__(self, policy: PairPolicy) -> None:
        self.weights: list[float] = []
        self._policy = replace(policy, prepare=lambda _shapes: self.weights)
        case = Case(
            "openb:default", protocol="funsearch", folder=str(load_settings().traces.folder),
            cluster=EMBEDDED_16,
        )  # fmt: skip
        self._case = FunsearchCase.of(*case.drawn_on(case.read()))

    def run(self, weights: Array) -> FunsearchResult:
        """Plays the trace with weights, rounded to whole numbers."""
        self.weights = np.round(weights).tolist()
        return self._case.run(self._policy)

    def worth(self, weights: Array) -> float:
        """Returns what weights are worth; more is better."""
        found = self.run(weights)
        charged = PER_DOUBLING * max(0.0, math.log2(max(found.wait_mean_s, 1.0) / WAIT_S))
        terms = PER_TERM * np.count_nonzero(self.weights)
        return min(found.score, found.score_without_retries) - charged - terms


def evolve(scorer: Scorer, evaluations: int, seed: int) -> Iterator[tuple[int, Array]]:
    """Yields every better list of weights with the number of evaluations so far."""
    rng, size = np.random.default_rng(seed), len(NAMES)
    best = np.array([float(GATHER.get(name, 0)) for name in NAMES])
    most, done = scorer.worth(best), 1
    ranks = np.log(POPULATION / 2 + 0.5) - np.log(np.arange(1, POPULATION // 2 + 1))
    ranks /= ranks.sum()
    while done < evaluations:
        centre, spread = best.copy(), np.full(size, rng.choice([1.5, 4.0, 10.0]))
        stale, locally = 0, -math.inf
        while stale < PATIENCE and done < evaluations:
            drawn = sample(rng, centre, spread)
            worths = np.array([scorer.worth(each) for each in drawn])
            done += POPULATION
            chosen = drawn[np.argsort(-worths)[: POPULATION // 2]]
            spread = np.sqrt(0.8 * spread**2 + 0.2 * ranks @ (chosen - centre) ** 2) + 1e-3
            centre = ranks @ chosen
            stale, locally = (0, worths.max()) if worths.max() > locally else (stale + 1, locally)
            if worths.max() > most:
                most, best = worths.max(), drawn[worths.argmax()].copy()
                yield done, best


def sample(rng: np.random.Generator, centre: Array, spread: Array) -> Array:
    """Draws weights around a centre; every second time most stay, and a few are taken out."""
    shape = (POPULATION, len(centre))
    drawn = centre + spread * rng.standard_normal(shape)
    if rng.random() < 0.5:
        drawn = np.where(rng.random(shape) < 0.25, drawn, centre)
    return np.where(rng.random(shape) < 0.02, 0.0, drawn)


def compiled() -> PairPolicy:
    """Loads the policy whose table holds the weights."""
    sums = "\n".join(
        f"    total += table[first + {at}] * ({term})" for at, term in enumerate(TERMS.values())
    )
    text = POLICY.replace("SUMS", sums).replace("KINDS", str(len(TERMS)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weigh.py"
        path.write_text(text.replace("LAST", str(len(NAMES) - 1)), encoding="utf-8")
        return load(str(path))


def main() -> None:
    """Reads the options and prints every improvement as a JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args()
    scorer = Scorer(compiled())
    for done, weights in evolve(scorer, given.evaluations, given.seed):
        found = scorer.run(weights)
        named = {
            name: int(weight)
            for name, weight in zip(NAMES, np.round(weights), strict=True)
            if weight
        }
        told = {"evaluations": done, "score": round(found.score, 4),
                "without_retries": round(found.score_without_retries, 4),
                "wait_mean_s": round(found.wait_mean_s, 1), "weights": named}  # fmt: skip
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
