"""Checks that a policy decides alike in every tier of the simulator, and how long it takes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from podium.errors import PodiumError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import PairPolicy, Policy
from podium.sim import Inflation, Protocol, Replay, Result, Rounds, Setup, simulate
from podium.sim.recount import recount
from podium.sim.result import unnamed_hold
from podium.sim.tiers import Tier
from podium.testing.attempt import RUN_STEPS, Attempt
from podium.testing.report import Finding

NUM_PODS = 240
NUM_NODES = 24
PLACES = "places alike in every tier"
HOLDS = "holds only if it names HOLD"
TIME = "time per decision"

_TIERS: dict[Tier, str] = {"python": "in plain Python", "cached": "cached", "scan": "scanned"}
_PROTOCOLS: tuple[Protocol, ...] = (Replay(), Inflation(ratio=1.2), Rounds(max_rounds=3))


def check_tiers(policy: Policy, seed: int, attempt: Attempt, *, can_compile: bool) -> list[Finding]:
    """Runs small instances under every protocol and compares the digests."""
    cluster, workload = random_instance(seed)
    tiers: list[Tier] = [*_TIERS] if can_compile else ["python"]
    if not isinstance(policy, PairPolicy):
        tiers = ["scan", "scan"]
    runs: list[Result] = []
    for protocol in _PROTOCOLS:
        for tier in tiers:
            attempt.at(partial("in a run ({}, {})".format, protocol.name, tier), RUN_STEPS)
            try:
                runs.append(simulate(cluster, workload, policy, protocol, Setup(seed, tier)))
            except PodiumError as error:
                return [Finding(PLACES, False, f"{protocol.name}, {tier}: {error}")]
        problem = _problem(tiers, runs[-len(tiers) :])
        if problem:
            return [Finding(PLACES, False, f"{protocol.name}: {problem}")]
    last = dict(zip(tiers, runs[-len(tiers) :], strict=True))
    return [
        Finding(PLACES, True, _ran(tiers)),
        _held(policy, runs),
        Finding(TIME, True, _times(last)),
    ]


def _problem(tiers: list[Tier], runs: list[Result]) -> str:
    digests = [run.digest for run in runs]
    return _unequal(tiers, digests) if len(set(digests)) > 1 else recount(runs[0]).refusal


def _held(policy: Policy, runs: list[Result]) -> Finding:
    held, decisions = sum(run.held_decisions for run in runs), sum(run.decisions for run in runs)
    problem = unnamed_hold(held, decisions, is_named=policy.may_hold)
    return Finding(HOLDS, not problem, problem or f"{held:,} of {decisions:,} decisions held")


def random_instance(seed: int) -> tuple[Cluster, Workload]:
    """Draws a crowded little cluster and pods of all kinds, some of which recur."""
    random = np.random.default_rng(seed)
    counts = random.choice([0, 1, 2, 4, 8], NUM_NODES)
    nodes = [
        NodeSpec(
            name=f"node-{i}",
            cpu_milli=int(1000 * random.integers(8, 65)),
            memory_mib=int(1024 * random.integers(16, 257)),
            gpu_count=int(count),
            gpu_model=f"model-{random.integers(3)}" if count else "",
        )
        for i, count in enumerate(counts)
    ]
    kinds = [_pod(i, random) for i in range(NUM_PODS // 6)]
    return Cluster.of(nodes), Workload.of(_arriving(kinds, random))


def _pod(i: int, random: np.random.Generator) -> PodSpec:
    gpu_count = int(random.choice([0, 1, 1, 1, 2, 4]))
    is_share = gpu_count == 1 and random.integers(2) > 0
    return PodSpec(
        name=f"kind-{i}",
        cpu_milli=int(500 * random.integers(1, 25)),
        memory_mib=int(512 * random.integers(1, 65)),
        gpu_count=gpu_count,
        gpu_milli=int(10 * random.integers(1, 100)) if is_share else 1000 * (gpu_count > 0),
        gpu_spec=f"model-{random.integers(3)}" if gpu_count and random.integers(4) == 0 else "",
        priority=int(random.integers(2)),
    )


def _arriving(kinds: list[PodSpec], random: np.random.Generator) -> list[PodSpec]:
    arrivals = np.cumsum(random.integers(0, 3, NUM_PODS))
    return [
        replace(
            kinds[random.integers(len(kinds))],
            name=f"pod-{i}",
            arrival_s=float(arrivals[i]),
            duration_s=float(random.integers(1, 200)),
        )
        for i in range(NUM_PODS)
    ]


def _unequal(tiers: list[Tier], digests: list[str]) -> str:
    if tiers[0] == tiers[1]:
        return "two runs with one seed differ"
    first = next(i for i, digest in enumerate(digests) if digest != digests[0])
    return f"the tiers {tiers[0]} and {tiers[first]} differ"


def _ran(tiers: list[Tier]) -> str:
    names = ", ".join(dict.fromkeys(tiers))
    return f"{names}: {NUM_PODS} pods, {NUM_NODES} nodes, {len(_PROTOCOLS)} protocols"


def _times(runs: dict[Tier, Result]) -> str:
    times = [
        f"{1e6 * run.wall_s / max(1, run.decisions):.1f} us {_TIERS[tier]}"
        for tier, run in runs.items()
    ]
    return ", ".join(times) + f" ({NUM_NODES} nodes)"
