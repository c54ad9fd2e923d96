"""Measures how much of their time the workers of a search spend evaluating.

    python bench/search_workers.py [--workers 8] [--evaluations 1500] [--evaluation-ms 100]
                                   [--answer-s 0] [--share 0.1] [--ahead 8]

Candidates are bred, stored and planned as in any search, but a worker only sleeps for as long as
an evaluation may take: about one in forty candidates takes ten times as long as the others. So
the figure does not depend on the cores of this machine, and says what the loop leaves unused.
With `--answer-s`, a share of the candidates is written by a program that takes so long to answer.
It prints the share of worker time that was spent evaluating, as JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from podium.compute.local import ThreadExecutor
from podium.compute.worker import WorkerSpec
from podium.evaluation.cases import Case, TrainingSet
from podium.experiments.search_plan import DEEPER, FIRST
from podium.search.candidate.verdict import TRAINING, Decisions, Judgement, Verdict
from podium.search.generators.command import CommandSettings, open_command
from podium.search.generators.genetic.generator import GeneticGenerator
from podium.search.run.executor import (
    BASELINE,
    JUDGEMENT,
    MISSING_WALLS,
    JudgingExecutor,
    judgement_as_object,
)
from podium.search.run.folder import PLAN, SearchFolder
from podium.search.run.loop import Parts, Search
from podium.search.run.plan import Budget, Pipeline, RunPlan, Tuning
from podium.search.run.setup import starters_of
from podium.search.sandbox.limits import Limits
from podium.store import RunRecord, open_store

CASES = 4
SLOW, SLOWER = 40, 10
"""One candidate in so many is slow, and so many times slower than the others."""

WRITER = """sleep {answer_s}
echo 'def score(pod, node):'
echo "    return -node.cpu_milli_left - sum(node.gpu_milli_left) * 0.1$PODIUM_SEED"
"""


class Sleeper:
    """Stands in for workers: takes its time, and makes figures up from the text."""

    def __init__(self, evaluation_s: float) -> None:
        self.evaluation_s = evaluation_s
        self.spans: list[float] = []

    def get_ready(self) -> dict[str, Any]:
        """Makes up what fgd reaches."""
        figures = {"allocation_130": 90.0, "allocation_100": 89.0}
        return {BASELINE: [dict(figures) for _ in range(CASES)], MISSING_WALLS: []}

    def perform(self, task: Mapping[str, Any], _shared: Mapping[str, Any]) -> dict[str, Any]:
        """Sleeps as long as an evaluation takes."""
        digest = hashlib.sha256(task["text"].encode()).hexdigest()
        rng = np.random.default_rng(int(digest[:12], 16))
        is_slow = rng.random() < 1 / SLOW
        began_s = time.perf_counter()
        time.sleep(self.evaluation_s * rng.uniform(0.5, 1.5) * (SLOWER if is_slow else 1))
        self.spans.append(time.perf_counter() - began_s)
        fitness = float(rng.normal(90, 1))
        scores = {"fitness": fitness, "mean": {}, "may_hold": False,
                  "cases": [{"case": str(i), "score": fitness} for i in range(CASES)]}  # fmt: skip
        found = Judgement(
            Verdict(True, TRAINING), scores, number=task["number"], text=task["text"],
            cases=({"allocation_130": fitness},) * CASES,
            decisions=Decisions(digest[:16], tuple(rng.random(4).round(4).tolist())),
        )  # fmt: skip
        return {JUDGEMENT: judgement_as_object(found), MISSING_WALLS: []}

    def close(self) -> None:
        """Holds nothing."""


def open_sleeper(setup: Mapping[str, Any], _threads: int) -> Sleeper:
    """Builds the stand-in."""
    return Sleeper(setup["evaluation_s"])


def measure(given: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Runs a search, and returns the share of worker time that was spent evaluating."""
    training = TrainingSet(tuple(Case(nodes=8, pods=60, seed=1000 + i) for i in range(CASES)))
    tuning = Tuning(deep=DEEPER * Tuning().evaluations, first=FIRST)  # as runs have it
    plan = RunPlan(training, tuning=tuning, pipeline=Pipeline(ahead=given.ahead))
    generators: dict[str, Any] = {"genetic": GeneticGenerator()}
    if given.answer_s:
        writer = folder / "writer.sh"
        writer.write_text(WRITER.format(answer_s=given.answer_s))
        settings = CommandSettings(f"sh {writer}")
        generators["command"] = open_command(settings, {"PATH": "/usr/bin:/bin"})
        weights = (("genetic", 1 - given.share), ("command", given.share))
        plan = replace(plan, generators=weights)
    setup = {"evaluation_s": given.evaluation_ms / 1000}
    spec = WorkerSpec(f"{Path(__file__).stem}:open_sleeper", setup)
    executor = JudgingExecutor(
        spec, Limits(), lambda spec, welcome: ThreadExecutor(spec, given.workers, welcome)
    )
    run = SearchFolder(folder / "run")
    run.write(PLAN, plan.as_object())
    with open_store(f"sqlite:///{folder / 'runs.db'}") as store:
        store.runs.create(RunRecord("run", "search", "bench", 0.0, folder=str(run.path)))
        search = Search("run", plan, Parts(store, run, executor, generators, starters_of(plan)))
        search.get_ready()
        began_s = time.perf_counter()
        search.go(Budget(given.evaluations))
        wall_s = time.perf_counter() - began_s
        tally = search.tally
    busy_s = sum(executor.workers.worker.spans)
    executor.close()
    return {
        "workers": given.workers, "evaluations": tally.evaluations, "calls": tally.calls,
        "seconds": round(wall_s, 2), "busy": round(busy_s / (given.workers * wall_s), 3),
    }  # fmt: skip


def main() -> None:
    """Reads what to measure, and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--evaluations", type=int, default=1500)
    parser.add_argument("--evaluation-ms", type=float, default=100.0)
    parser.add_argument("--answer-s", type=float, default=0.0)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--ahead", type=int, default=8)
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(json.dumps(measure(parser.parse_args(), Path(folder))) + "\n")


if __name__ == "__main__":
    main()
