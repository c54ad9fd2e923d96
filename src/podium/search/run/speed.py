"""Measures how fast candidates are judged, and how much of that the simulator takes.

    python -m podium.search.run.speed BATCHES

prints the figures as JSON. The candidates are bred from the seeds, and judged on the training
cases of the demo by one confined worker, one after the other.

An evaluation is everything between a candidate's text and its fitness, for a candidate that is
accepted: reading it, the gates that only read, sending it to the worker, the tiny trace, the
contract, the probe, every training case, what is measured there, its diagnosis, and the fitness.
Breeding and storing it are not counted: the search does both while workers are busy.

All times are processor time, of this process and of the worker together: a second of a core,
whoever else uses the machine. The simulator's part is the worker's, for what `podium simulate`
does too: laying out the cluster of each training case, every decision of the policy, the check
that the policy changed nothing, and the figures of the run. All the rest is overhead: the gates,
the tiny trace, the contract and the probe, the messages, the diagnosis and the fitness.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from podium.evaluation.cases import TrainingSet, demo_cases
from podium.evaluation.splits import FIRST_SEED
from podium.search.generators.genetic.breeding import breed
from podium.search.generators.genetic.seeds import seeds
from podium.search.judging.judge import Judge
from podium.search.judging.trial import read_policy
from podium.search.program.writer import write
from podium.sim.execution import execute

BATCH = 20
PARENTS = 3
PLAIN = 2
FITNESS = "inflation"
TRAINING = TrainingSet(demo_cases([FITNESS], 8))


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured, each figure the median of some batches."""

    evaluations_per_s: float  # on one core
    plain_per_s: float  # the training cases alone, in plain Python
    overhead: float  # share of an evaluation that is not the simulator's, 0 to 1


def bred_texts(count: int, seed: int = FIRST_SEED) -> list[str]:
    """Breeds candidates from the seeds."""
    rng = np.random.default_rng(seed)
    parents = list(seeds().values())
    return [
        write(breed(rng, [parents[i] for i in rng.permutation(len(parents))[:PARENTS]]).program)
        for _ in range(count)
    ]


def measure_speed(batches: int) -> Speed:
    """Judges batches of candidates, after one to warm up."""
    texts = bred_texts((batches + 1) * BATCH)
    with Judge(TRAINING, FITNESS) as judge:
        found = [judge_batch(judge, texts[i * BATCH : (i + 1) * BATCH]) for i in range(batches + 1)]
    return Speed(
        statistics.median(rate for rate, _ in found[1:]),
        plain_rate(texts[:PLAIN]),
        statistics.median(overhead for _, overhead in found[1:]),
    )


def judge_batch(judge: Judge, texts: Sequence[str]) -> tuple[float, float]:
    """Returns the evaluations per second of accepted candidates, and their overhead."""
    spent_s, simulated_s, accepted = 0.0, 0.0, 0
    for text in texts:
        began_s = time.process_time()
        judgement = judge.judge(text)
        if judgement.verdict.accepted:
            spent_s += time.process_time() - began_s + judgement.processor_s
            simulated_s += judgement.simulated_s
            accepted += 1
    return accepted / spent_s, 1.0 - simulated_s / spent_s


def plain_rate(texts: Sequence[str]) -> float:
    """Runs the training cases in plain Python, without any gate; returns candidates per second."""
    policies = [read_policy(text) for text in texts]
    plans = [case.plan(policies[0]) for case in TRAINING.cases]
    began_s = time.process_time()
    for policy in policies:
        for plan in plans:
            execute(replace(plan, policy=policy, tier="python"))
    return len(policies) / (time.process_time() - began_s)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(measure_speed(int(sys.argv[1])))))
