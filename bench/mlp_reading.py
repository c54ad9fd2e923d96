"""Prints what a person can read out of the MLP scorer: what it takes, what parts are worth to it.

python bench/mlp_reading.py
python bench/mlp_reading.py --weights best.npz     # in the folder of a run
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from net_reading import (
    agreement,
    decisions_of,
    distilled,
    read_net,
    tendencies,
    worths_of,
)

import podium.policies
from podium.evaluation.cases import Case
from podium.policies.networks.mlp import FEATURES, shapes_of_arrays
from podium.rl.mlp.algorithm import WorkloadSection
from podium.rl.mlp.imitation import Decisions
from podium.rl.mlp.parameters import Arrays, flat
from podium.rl.mlp.trials import AT_130, LOADS, Trials, inflation_case
from podium.traces.catalogue import LoadOptions, load_trace

SHIPPED = Path(podium.policies.__file__).parent / "trained" / "mlp.npz"
PARTS_MILLI = (50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000)
WATCHED = {
    "behind_on_gpu": (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0),
    "opens_gpu": (0, 0.5, 1.0),
    "starved_gpu_2": (-8, -0.001, 0.001, 8),
    "whole_gpus_after": (0, 0.0625, 0.5, 0.86, 0.89, 1.0),
    "cpu_per_gpu_after": (0, 0.25, 0.5, 0.6, 0.75, 1.0),
}
"""Features, and the edges of the ranges that are told apart; CPU per GPU is 1/2 at 8 cores,
and with 7 of 8 whole GPUs after it a pod has mostly broken up a free node."""


def main() -> None:
    """Prints all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=SHIPPED)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with np.load(options.weights, allow_pickle=False) as found:
        arrays = {name: found[name] for name in shapes_of_arrays(len(found["bias"]))}
    trials = Trials(len(arrays["bias"]), options.workers)
    for part in (taken(arrays), worths(arrays), lost(arrays, trials), formulas(arrays, trials)):
        for line in part:
            print(line, flush=True)
        print()
    trials.close()


def taken(arrays: Arrays) -> Iterator[str]:
    """Says which places the net takes where it has a choice, against chance."""
    decisions = _decisions(arrays, every=5)
    yield f"what would remain, in {len(decisions.seen):,} decisions    taken   by chance"
    for feature, edges in WATCHED.items():
        for each in tendencies(decisions, feature, edges):
            told = f"{feature} {each.low:g} to {each.high:g}"
            yield f"{told:40}{each.taken:10.0%}{each.chance:10.0%}  in {each.offered:,}"


def worths(arrays: Arrays) -> Iterator[str]:
    """Says what free parts of a GPU are worth to the net, and which CPU it keeps beside a GPU."""
    for name in ("openb", "openb-cpu-heavy", "openb-multi-heavy"):
        workload = load_trace(name, LoadOptions(seed=1500)).workload
        found = worths_of(arrays, workload.shapes())
        yield f"{name}: worth of a free part"
        yield "  milli    " + "".join(f"{milli:7}" for milli in PARTS_MILLI)
        yield "  by size  " + "".join(f"{found.by_size[each]:7.2f}" for each in PARTS_MILLI)
        yield "  by demand" + "".join(f"{found.by_demand[each]:7.2f}" for each in PARTS_MILLI)
        yield "  cores beside a GPU: " + " ".join(f"{each:.1f}" for each in found.cpus_per_gpu)


def lost(arrays: Arrays, trials: Trials) -> Iterator[str]:
    """Says what the net loses if it does not see a feature."""
    cases = _cases(200, [1501, 1502])
    yield "without                       points at 130 %     slope"
    for each in read_net(arrays, trials, cases, _decisions(arrays, every=5))[:14]:
        sign = "" if each.is_steady else "  (either sign)"
        yield f"{each.feature:30}{each.lost:16.2f}{each.slope:+10.2f}{sign}"


def formulas(arrays: Arrays, trials: Trials) -> Iterator[str]:
    """Fits sums of features to what the net takes, and runs them."""
    decisions, rng = _decisions(arrays, every=5), np.random.default_rng(0)
    named = {"all": FEATURES, **{f"best {count}": None for count in (3, 6, 10)}}
    order: list[str] = []
    nets, texts = [flat(arrays)], ["the net"]
    for title, features in named.items():
        chosen = order[: int(title.split()[1])] if features is None else list(features)
        net = distilled(arrays, chosen, decisions, rng)
        spread = decisions.seen[decisions.mask].std(axis=0)
        if features is not None:
            order = [FEATURES[i] for i in np.argsort(-np.abs(net["linear"] * spread))]
        text = " ".join(f"{net['linear'][FEATURES.index(name)]:+.1f} {name}" for name in chosen)
        nets.append(flat(net))
        texts.append(f"{title}, agrees in {agreement(net, decisions):.0%}: {text[:300]}")
    found = trials.run([*nets, "fgd", "fed-gpu"], _cases(400, [1501])).mean(axis=1)
    for text, row in zip([*texts, "fgd", "fed-gpu"], found, strict=True):
        yield f"{row[AT_130]:.2f} at 130 %, {row[LOADS.index(0.95)]:.2f} at 95 %: {text}"


def _cases(nodes: int, seeds: Sequence[int]) -> list[Case]:
    return [inflation_case(each, nodes, s) for s in seeds for each in WorkloadSection().traces]


def _decisions(arrays: Arrays, every: int) -> Decisions:
    return decisions_of(arrays, _cases(200, [1500]), every, np.random.default_rng(0))


if __name__ == "__main__":
    main()
