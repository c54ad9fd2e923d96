"""Compares the agent with other rules for placing jobs, in families of drawn worlds.

    python bench/online.py [--family NAME ...] [--rule NAME ...] [--seeds 12] [--first 0]
                           [--processes 1] [--json] [--check]

Every rule places the same jobs, with the same luck, under the same cap on exploration. Regret is
the expected time of all choices above that of the best ones, as a share of the latter: of all
decisions, and of the last 200. Intervals contain the mean with 95 % over worlds; differences are
paired. With --check, targets that are missed are named and the exit code is 1.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from online_calibration import DESIGNS, Coverage, coverage
from online_rivals import RIVALS, Rule, rival
from online_worlds import FAMILIES, Array, World, draw

from podium.online import Agent, Observation, Parameters, Place, Request

LATE = 200
AGENT = "podium"
CALIBRATION = "calibration"

BEFORE = {
    "mixed": (0.081, 0.025), "additive": (0.045, 0.016), "independent": (0.174, 0.042),
    "clustered": (0.210, 0.142), "noise50": (0.123, 0.020), "hetnoise": (0.085, 0.019),
    "drift": (0.084, 0.023), "late": (0.056, 0.010), "late_odd": (0.161, 0.109),
    "gpu3": (0.049, 0.018), "gpu20": (0.216, 0.036), "zipf": (0.080, 0.019),
}  # fmt: skip
"""Regret, and half of its interval, of the agent before it learned from neighbours and failures."""

MOST_LATE = 0.03
"""In every family without delay."""

MOST_BESIDE, MOST_LATE_BESIDE = 0.10, 0.02
MOST_REPEATED_FAILURES = 0.03
"""Share of a job type's decisions, after ten failures, on the GPU type where it always fails."""

COVERED = (0.85, 0.95)
"""By intervals of 90 %, whatever the noise, from the first run on."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a rule lost in one world."""

    regret: float
    late: float
    repeated_failures: float
    seconds: float = field(compare=False)


class PodiumRule:
    """Podium's agent, which is told all that callers know."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._agent = Agent(_parameters(world))
        self._gpu_types = tuple(f"gpu-{gpu}" for gpu in range(world.plan.gpu_types))

    def choose(self, number: int) -> int:
        """Asks the agent."""
        world = self._world
        places = tuple(
            Place(gpu_type, _named(beside))
            for gpu_type, beside in zip(self._gpu_types, world.beside[number], strict=True)
        )
        request = Request(
            f"job-{world.job_type[number]}",
            self._gpu_types,
            world.features[number],
            places[0].colocated_job_types,
            places if world.plan.beside_by_gpu else (),
            str(number),
        )
        return self._gpu_types.index(self._agent.score(request).chosen_gpu_type)

    def learn(self, number: int, gpu: int) -> None:
        """Tells the agent of a run."""
        world = self._world
        self._agent.observe(
            Observation(
                f"job-{world.job_type[number]}",
                self._gpu_types[gpu],
                float(world.observed_s[number, gpu]),
                world.features[number],
                _named(world.beside[number][gpu]),
                not world.fails[number, gpu],
                str(number),
            )
        )


def _named(job_types: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"job-{each}" for each in job_types)


def _parameters(world: World) -> Parameters:
    if not world.plan.beside:
        return Parameters()
    return Parameters(enable_interference=True, gamma_interference=1.0)


def play(world: World, rule: Rule) -> Result:
    """Lets a rule place all jobs of a world."""
    started = time.perf_counter()
    chosen = np.zeros(len(world), dtype=np.intp)
    running: list[tuple[float, int]] = []
    now_s = 0.0
    for number in range(len(world)):
        if running and len(running) >= world.plan.in_flight:
            now_s, done = heapq.heappop(running)
            rule.learn(done, int(chosen[done]))
        gpu = chosen[number] = rule.choose(number)
        if world.plan.in_flight:
            heapq.heappush(running, (now_s + float(world.observed_s[number, gpu]), number))
        else:
            rule.learn(number, gpu)
    return _result(world, chosen, time.perf_counter() - started)


def _result(world: World, chosen: np.ndarray[Any, Any], seconds: float) -> Result:
    own, best = world.expected_s[np.arange(len(world)), chosen], world.best_s
    failed = world.fails[np.arange(len(world)), chosen]
    after = np.flatnonzero(np.cumsum(failed) >= 10)
    concerned = world.fails.any(axis=1)[after[0] + 1 :] if len(after) else np.zeros(0, dtype=bool)
    repeated = float(failed[after[0] + 1 :][concerned].mean()) if concerned.any() else 0.0
    return Result(
        float(own.sum() / best.sum() - 1.0),
        float(own[-LATE:].sum() / best[-LATE:].sum() - 1.0),
        repeated,
        seconds,
    )


def results_of(
    family: str, rules: Sequence[str], seeds: Sequence[int], processes: int = 1
) -> dict[str, list[Result]]:
    """Plays a family with every rule."""
    task = partial(_of_seed, family, tuple(rules))
    if processes == 1:
        rows = [task(seed) for seed in seeds]
    else:
        with ProcessPoolExecutor(processes) as pool:
            rows = list(pool.map(task, seeds))
    return {name: [row[at] for row in rows] for at, name in enumerate(rules)}


def _of_seed(family: str, rules: Sequence[str], seed: int) -> list[Result]:
    world = draw(FAMILIES[family], seed)
    return [
        play(world, PodiumRule(world) if name == AGENT else rival(name, world, seed))
        for name in rules
    ]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over worlds, and half of the width of its 95 % interval."""

    value: float
    half: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Takes the interval of Student's t."""
        sample: Array = np.array(values)
        if len(sample) < 2:
            return cls(float(sample.mean()), 0.0)
        error = float(sample.std(ddof=1)) / np.sqrt(len(sample))
        return cls(float(sample.mean()), float(error * _t(len(sample) - 1)))

    def __str__(self) -> str:
        return f"{100 * self.value:6.1f} ± {100 * self.half:4.1f}"


def _t(freedom: int) -> float:
    """Returns the 97.5 % point of Student's t, by the expansion of Cornish and Fisher."""
    z = 1.959964
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / freedom + second / freedom**2 + third / freedom**3


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a target is met."""

    is_met: bool
    text: str


def verdicts(family: str, found: dict[str, list[Result]]) -> Iterator[Verdict]:
    """Judges the agent in a family.

    What should be no worse than something else may be so by less than the interval of the mean.
    """
    if AGENT not in found:
        return
    own = found[AGENT]
    regret, late = Mean.of([each.regret for each in own]), Mean.of([each.late for each in own])
    if family in BEFORE:
        most, half = BEFORE[family]
        gap = Mean(regret.value - most, math.hypot(regret.half, half))
        yield _at_most(f"{family}: regret {regret}, above what it was", gap, 0.0)
    if family in ("beside50", "beside90", "beside100"):
        yield Verdict(regret.value <= MOST_BESIDE, f"{family}: regret {regret}, at most 10")
        yield Verdict(late.value <= MOST_LATE_BESIDE, f"{family}: last 200 {late}, at most 2")
    elif not FAMILIES[family].in_flight:
        text = f"{family}: last 200 {late}, at most {100 * MOST_LATE:.0f}"
        yield Verdict(late.value <= MOST_LATE, text)
    if FAMILIES[family].in_flight and "pooled-thompson" in found:
        other = found["pooled-thompson"]
        gap = Mean.of([a.regret - b.regret for a, b in zip(own, other, strict=True)])
        yield _at_most(f"{family}: above pooled Thompson sampling", gap, 0.0)
    if FAMILIES[family].failing:
        share = Mean.of([each.repeated_failures for each in own])
        text = f"{family}: decisions that fail again {share}, at most 3"
        yield Verdict(share.value <= MOST_REPEATED_FAILURES, text)


def _at_most(what: str, found: Mean, most: float) -> Verdict:
    return Verdict(found.value - found.half <= most, f"{what} {found}, at most {100 * most:.1f}")


def coverage_verdicts(rows: Sequence[Coverage]) -> Iterator[Verdict]:
    """Judges the 90 % intervals, give or take what the number of pairs allows to tell."""
    for row in rows:
        if not row.design.startswith("noise") or not row.count:
            continue
        for name, share in (("mean", row.mean[0.9]), ("next run", row.next_run[0.9])):
            half = 1.96 * (0.09 / row.pairs) ** 0.5
            is_met = COVERED[0] - half <= share <= COVERED[1] + half
            text = f"{row.design}, {row.count} runs: 90 % interval of the {name} covers"
            yield Verdict(is_met, f"{text} {100 * share:.0f} %, from 85 to 95")


def table(family: str, found: dict[str, list[Result]]) -> str:
    """Writes a family's figures in percent."""
    lines = [
        f"{family}: {FAMILIES[family].title}",
        f"{'rule':<20} {'regret, %':>13} {'last 200, %':>14} {'podium - rule':>20}"
        + ("   fails again, %" if FAMILIES[family].failing else ""),
    ]
    own = found.get(AGENT)
    for name, played in found.items():
        line = f"{name:<20} {Mean.of([each.regret for each in played])}"
        line += f"  {Mean.of([each.late for each in played])}"
        if own and name != AGENT:
            gaps = [a.regret - b.regret for a, b in zip(own, played, strict=True)]
            line += f"        {Mean.of(gaps)}"
        if FAMILIES[family].failing:
            share = Mean.of([each.repeated_failures for each in played])
            line = f"{line:<70} {share}"
        lines.append(f"{line:<90} {sum(each.seconds for each in played):6.1f} s")
    return "\n".join(lines) + "\n"


def coverage_table(rows: Sequence[Coverage]) -> str:
    """Writes how much the intervals of 50 and 90 % cover."""
    lines = [f"{'intervals of 50 / 90 %':<24} {'runs':>5} {'pairs':>6} {'mean':>9} {'next run':>9}"]
    for row in rows:
        mean, next_run = (
            " / ".join(f"{100 * value:.0f}" for value in part.values())
            for part in (row.mean, row.next_run)
        )
        lines.append(f"{row.design:<24} {row.count:>5} {row.pairs:>6} {mean:>9} {next_run:>9}")
    return "\n".join(lines) + "\n"


def parsed() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    families, rules = [*FAMILIES, CALIBRATION], [AGENT, *RIVALS]
    parser.add_argument("--family", action="append", choices=families, help="by default all")
    parser.add_argument("--rule", action="append", choices=rules, help="by default all")
    parser.add_argument("--seeds", type=int, default=12, help="worlds of each family")
    parser.add_argument("--first", type=int, default=0, help="seed of the first world")
    parser.add_argument("--processes", type=int, default=1, help="that play at once")
    parser.add_argument("--json", action="store_true", help="print data as JSON")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    return parser.parse_args()


def main() -> int:
    """Plays, prints every figure and, if asked, judges them."""
    given = parsed()
    data: dict[str, Any] = {}
    judged: list[Verdict] = []
    seeds = range(given.first, given.first + given.seeds)
    for family in given.family or [*FAMILIES, CALIBRATION]:
        if family == CALIBRATION:
            rows = [row for design in DESIGNS for row in coverage(design, seeds)]
            data[family] = [asdict(row) for row in rows]
            judged += coverage_verdicts(rows)
            shown = coverage_table(rows)
        else:
            rules = given.rule or [AGENT, *RIVALS]
            found = results_of(family, rules, seeds, given.processes)
            data[family] = {name: [asdict(each) for each in row] for name, row in found.items()}
            judged += verdicts(family, found)
            shown = table(family, found)
        if not given.json:
            print(shown, flush=True)
    if given.json:
        print(json.dumps({"seeds": list(seeds), "families": data}))
    if not given.check:
        return 0
    for each in judged:
        print(f"{'ok  ' if each.is_met else 'FAIL'}  {each.text}", file=sys.stderr)
    return 0 if all(each.is_met for each in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
