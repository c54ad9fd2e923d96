"""The cases that candidates are trained on where no trace is named: workload families, in stages.

Clusters of 32 nodes with one workload rank candidates otherwise than 1,213 nodes do. Six families
at 200 nodes rank them alike, and a tenth of the candidates is worth twice as many nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.evaluation.cases import Case, Stage, TrainingSet, demo_cases
from podium.evaluation.measures import INFLATION
from podium.evaluation.splits import FIRST_SEED
from podium.traces.catalogue import EMBEDDED
from podium.traces.openb.families import pods_asking
from podium.traces.openb.profile import openb_profile

ORDER = (
    "openb-cpu-heavy", "openb-model-bound", "openb-share-only", "openb-multi-gpu", EMBEDDED,
    "openb-share-heavy",
)  # fmt: skip
"""The families: those that tell candidates apart the best come first, and each unlike the next."""

FIRST_NODES, NODES, LARGE_NODES = 100, 200, 400
FIRST_CASES = 2
FIRST_KEEP, KEEP = 0.5, 0.1
"""The shares of the candidates that go on after the first stage, and after the second."""

DRAWN = 1.35
"""Pods are drawn for so many times the GPUs: those of an inflation to 130 % are all different."""

OTHER_SEEDS = 8
"""Cases of each other kind, unless somebody asks for another number."""


def default_training(kinds: Sequence[str], seeds: int | None = None) -> TrainingSet:
    """Builds the training set of some kinds of cases, with a number of seeds for each."""
    if tuple(kinds) == (INFLATION,):
        return _in_stages(seeds or 1)
    others = [kind for kind in kinds if kind != INFLATION]
    families = _round(NODES, seeds or 1) if INFLATION in kinds else ()
    return TrainingSet((*families, *demo_cases(others, seeds or OTHER_SEEDS)))


def _in_stages(seeds: int) -> TrainingSet:
    first = _round(FIRST_NODES, 1)[:FIRST_CASES]
    second, third = _round(NODES, seeds, 1), _round(LARGE_NODES, 1, seeds + 1)
    ends = [len(first), len(first) + len(second), len(first) + len(second) + len(third)]
    stages = (
        Stage(0, ends[0], FIRST_KEEP), Stage(ends[0], ends[1], KEEP), Stage(ends[1], ends[2]),
    )  # fmt: skip
    return TrainingSet((*first, *second, *third), stages=stages)


def _round(nodes: int, seeds: int, first: int = 0) -> tuple[Case, ...]:
    """Lists the families in turn, seed by seed."""
    return tuple(
        Case(name, nodes, pods_for(name, nodes), seed=FIRST_SEED + i)
        for i in range(first, first + seeds)
        for name in ORDER
    )


def pods_for(name: str, nodes: int) -> int:
    """Returns how many pods of a family ask for more than 130 % of the GPUs of so many nodes."""
    profile = openb_profile()
    gpus = profile.node_counts @ profile.nodes["gpu_count"] / profile.node_total
    return pods_asking(profile, name, DRAWN * gpus * nodes)
