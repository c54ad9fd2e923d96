"""Compares the MLP scorer with other policies at many loads, on seeds that nothing trained on.

PODIUM_TRACES or --folder names the folder of the original files (podium traces fetch openb).

python bench/mlp_scorer.py                                      # the six traces
python bench/mlp_scorer.py --traces openb:multigpu30 openb:multigpu40 openb:multigpu50
python bench/mlp_scorer.py --perturbed --seeds 3
python bench/mlp_scorer.py --traces openb:default --cluster small.csv
python bench/mlp_scorer.py --replay --nodes 400                 # pods come and go
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.evaluation.cases import Case
from podium.evaluation.default_cases import FULL_NODES, pods_for
from podium.evaluation.measures import last_within
from podium.evaluation.paired import Difference
from podium.model.workload import gpu_demand
from podium.policies import Policy, load
from podium.sim import Result
from podium.sim.execution import execute
from podium.traces.catalogue import is_drawn
from podium.traces.trace import Trace

SIX = tuple(
    f"openb:{name}"
    for name in ("default", "cpu250", "gpushare60", "gpushare100", "gpuspec33", "multigpu20")
)
TIMED = ("openb", "openb-share-heavy", "openb-multi-gpu", "openb-multi-heavy")
"""Traces that say when pods come and how long they run; most of the originals do not."""

LOADS = (0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.3)
PEAKS = (0.8, 0.9, 0.95)
"""The most GPUs that are asked for at a time in a replay, as a share of all."""

TURNOVER = 3
FIRST_SEED = 5000
Array = npt.NDArray[np.float64]


def main() -> None:
    """Reads the options and prints a table for each trace."""
    options = _options()
    policies = {name: load(name) for name in (options.policy, *options.others)}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    every: dict[str, list[Array]] = {name: [] for name in policies}
    for name in options.traces or (TIMED if options.replay else SIX):
        case = Case(
            name, options.nodes, pods_of(name, options), is_perturbed=options.perturbed,
            folder=options.folder, cluster=options.cluster,
        )  # fmt: skip
        found = (replayed if options.replay else inflated)(policies, case, seeds)
        print(f"\n{case.title}")
        for line in (_waits if options.replay else _gains)(found):
            print(line, flush=True)
        for each, values in found.items():
            every[each].append(values)
    if len(every[options.policy]) > 1 and not options.replay:
        print("\nmean")
        for line in _gains({name: np.mean(each, axis=0) for name, each in every.items()}):
            print(line)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", default="mlp")
    parser.add_argument("--others", nargs="+", default=["fgd", "fed-gpu", "usable-gpu"])
    parser.add_argument("--traces", nargs="+")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--cluster", default="", help="nodes of another trace or file")
    parser.add_argument("--folder", default=os.environ.get("PODIUM_TRACES", ""))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--perturbed", action="store_true")
    parser.add_argument("--replay", action="store_true")
    return parser.parse_args()


def pods_of(trace: str, options: argparse.Namespace) -> int | None:
    """Returns how many pods are drawn: in a replay, many times what fits at once."""
    if not is_drawn(trace):
        return None
    return (TURNOVER if options.replay else 1) * pods_for(trace, options.nodes or FULL_NODES)


def inflated(policies: dict[str, Policy], case: Case, seeds: Sequence[int]) -> dict[str, Array]:
    """Returns (seeds, loads) of percent of the GPUs in use, by policy."""
    trace, found = case.read(), {}
    for name, policy in policies.items():
        runs = (_run(replace(case, seed=seed), trace, policy) for seed in seeds)
        found[name] = np.array([_curve(run) for run in runs])
    return found


def replayed(policies: dict[str, Policy], case: Case, seeds: Sequence[int]) -> dict[str, Array]:
    """Returns (seeds, peaks, 2): percent of the pods that wait, and their mean wait in seconds."""
    trace, found = case.read(), {}
    cases = [[_at_peak(case, trace, seed, peak) for peak in PEAKS] for seed in seeds]
    for name, policy in policies.items():
        found[name] = np.array(
            [[_waiting(_run(each, trace, policy)) for each in row] for row in cases]
        )
    return found


def _run(case: Case, trace: Trace, policy: Policy) -> Result:
    own = case.read() if case.is_drawn else trace
    return execute(replace(case.plan_on(own, policy), tier="cached"))


def _curve(result: Result) -> list[float]:
    placed = np.cumsum(np.where(result.is_placed, gpu_demand(result.pods), 0))
    total = result.plan.cluster.gpu_milli_total
    return [100 * float(placed[last_within(result, load)]) / total for load in LOADS]


def _waiting(result: Result) -> tuple[float, float]:
    waits_s = (result.start_s - result.arrival_s)[result.is_placed]
    return 100 * float((waits_s > 0).mean()), float(waits_s.mean())


def _at_peak(case: Case, trace: Trace, seed: int, peak: float) -> Case:
    """Compresses arrivals until pods that all start at once ask for so much of the GPUs."""
    case = replace(case, protocol="replay", seed=seed)
    plan = case.plan_on(case.read() if case.is_drawn else trace, load("first-fit"))
    wanted, low, high = peak * plan.cluster.gpu_milli_total, 1.0, 1e7
    for _ in range(40):
        middle = (low * high) ** 0.5
        is_enough = _most_asked(plan.arrivals, middle) >= wanted
        low, high = (low, middle) if is_enough else (middle, high)
    return replace(case, load=high)


def _most_asked(arrivals: Any, compression: float) -> float:
    demand, start_s = gpu_demand(arrivals.pods), arrivals.arrival_s / compression
    times_s = np.concatenate([start_s, start_s + arrivals.duration_s])
    changes = np.concatenate([demand, -demand])
    return float(np.cumsum(changes[np.argsort(times_s, kind="stable")]).max())


def _gains(found: dict[str, Array]) -> Iterator[str]:
    own, *others = found
    yield f"{'at load':24}" + "".join(f"{load:>24.0%}" for load in LOADS)
    yield f"{own:24}" + "".join(f"{each:24.2f}" for each in found[own].mean(axis=0))
    for name in others:
        cells = []
        for column in (found[own] - found[name]).T:
            gap = Difference.of(column, np.random.default_rng(0))
            cells.append(f"{gap.mean:+.2f} ({gap.low:+.2f} to {gap.high:+.2f})")
        yield f"{'above ' + name:24}" + "".join(f"{cell:>24}" for cell in cells)


def _waits(found: dict[str, Array]) -> Iterator[str]:
    yield f"{'most asked at a time':24}" + "".join(f"{peak:>24.0%}" for peak in PEAKS)
    for name, values in found.items():
        cells = [f"{part:.2f} % wait, {wait_s:.1f} s" for part, wait_s in values.mean(axis=0)]
        yield f"{name:24}" + "".join(f"{cell:>24}" for cell in cells)


if __name__ == "__main__":
    main()
