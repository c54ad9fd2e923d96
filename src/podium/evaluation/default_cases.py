"""The cases that candidates are trained on where no trace is named: workload families, in stages.

What is good on 200 nodes is not always good on 1,213: small clusters tell bad candidates from good
ones, and say little about the good ones among themselves. So they only decide who goes on, and who
is compiled and run at full size is judged there.
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
    "openb-share-only", EMBEDDED, "openb-model-bound", "openb-cpu-heavy", "openb-multi-gpu",
    "openb-share-heavy",
)  # fmt: skip
"""The families: the first two together predict full size best, and the CPU-heavy one alone least.

Who is best where CPU is scarce is below the others elsewhere: it must not decide alone.
"""

NODES, FULL_NODES = 200, 1213
FIRST_CASES = 2
FIRST_KEEP, KEEP = 0.5, 0.3
"""The shares of the candidates that go on after the first stage, and after the second."""

SEEDS = 2
"""Orders of every family at full size, unless somebody asks for another number."""

DRAWN = 1.35
"""Pods are drawn for so many times the GPUs: those of an inflation to 130 % are all different."""

OTHER_SEEDS = 8
"""Cases of each other kind, unless somebody asks for another number."""


def default_training(kinds: Sequence[str], seeds: int | None = None) -> TrainingSet:
    """Builds the training set of some kinds of cases, with a number of seeds for each."""
    if tuple(kinds) == (INFLATION,):
        return _in_stages(seeds or SEEDS)
    others = [kind for kind in kinds if kind != INFLATION]
    families = _round(NODES, seeds or 1) if INFLATION in kinds else ()
    return TrainingSet((*families, *demo_cases(others, seeds or OTHER_SEEDS)))


def _in_stages(seeds: int) -> TrainingSet:
    small, full = _round(NODES, 1), _round(FULL_NODES, seeds, 1)
    ends = [FIRST_CASES, len(small), len(small) + len(full)]
    stages = (
        Stage(0, ends[0], FIRST_KEEP), Stage(ends[0], ends[1], KEEP), Stage(ends[1], ends[2]),
    )  # fmt: skip
    return TrainingSet((*small, *full), stages=stages, is_judged_last=True)


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
