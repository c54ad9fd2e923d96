"""Measures policies on cases that no search has seen: other seeds, other traces, other nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from podium.errors import PolicyError, UnknownName, UsageError
from podium.evaluation.cases import VALIDATION, Case
from podium.evaluation.measures import INFLATION, Values, contradictions, measure_case
from podium.policies import Policy, load, policy_of
from podium.policies.source import read_source
from podium.search.candidate.gates import read_candidate
from podium.search.candidate.verdict import Verdict
from podium.search.judging.scrutiny import Held
from podium.search.promotion.sheet import Sheet
from podium.sim import Result
from podium.sim.execution import execute
from podium.sim.load_curve import arrived_ratio
from podium.sim.metrics import POD_CLASSES, class_of
from podium.sim.plan import Plan
from podium.sim.recount import Recount, recount, require_possible
from podium.sim.tiers import choose_tier
from podium.traces.catalogue import EMBEDDED, EMBEDDED_16
from podium.traces.openb.files import found_traces

BASELINES = ("fgd", "first-fit", "best-fit")
"""What every candidate is measured beside."""

EXPERIMENT = (
    "default", "cpu050", "cpu100", "cpu200", "cpu250", "gpushare40", "gpushare60", "gpushare80",
    "gpushare100", "gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33", "multigpu20", "multigpu30",
    "multigpu40", "multigpu50",
)  # fmt: skip
"""The traces of Weng et al., "Beware of Fragmentation", USENIX ATC 2023."""

LOADS = (100, 130)
"""Percent of the GPUs that were asked for, at which placed pods are counted."""

Progress = Callable[[int, int], None]
"""Hears how many of how many runs are done."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Says which held-out cases there are."""

    seeds: int = len(VALIDATION)
    folder: str = ""  # of original traces; those of the FGD experiment that lie there are used
    traces: tuple[str, ...] = ()  # only these, as they are named everywhere; none: all
    nodes: int | None = None  # of the embedded trace
    pods: int | None = None
    replay_pods: int = 400
    replay_load: float = 50.0  # packing policies keep the queue busy two fifths of the time

    def __post_init__(self) -> None:
        if not 1 <= self.seeds <= len(VALIDATION):
            raise UsageError(
                f"{self.seeds} seeds of validation are asked for",
                hint=f"there are {len(VALIDATION)}, from {VALIDATION.start}",
            )

    def cases(self) -> tuple[Case, ...]:
        """Lists every trace with the cluster as it is and perturbed, seed by seed."""
        embedded = Case(EMBEDDED, self.nodes, self.pods)
        originals = [Case(f"openb:{name}", folder=self.folder) for name in self._originals()]
        replay = Case(EMBEDDED_16, None, self.replay_pods, "replay", load=self.replay_load)
        every = {case.trace: case for case in (embedded, *originals, replay)}
        for name in self.traces:
            if name not in every:
                raise UnknownName.among("held-out trace", name, every)
        return tuple(
            replace(case, seed=seed, is_perturbed=is_perturbed)
            for case in every.values()
            if not self.traces or case.trace in self.traces
            for is_perturbed in (False, True)
            for seed in VALIDATION[: self.seeds]
        )

    def _originals(self) -> list[str]:
        found = found_traces(Path(self.folder) if self.folder else None)
        return [name for name in EXPERIMENT if name in found]


def checked_policy(text: str, name: str) -> Policy:
    """Makes an ordinary policy of a candidate's text, which passes the reading gates again."""
    read = read_candidate(text)
    if isinstance(read, Verdict):
        raise PolicyError(read.reason, where=name, hint=f"it fails at the gate {read.gate}")
    return policy_of(read_source(text, f"{name}.py"), name)


def baselines(names: Sequence[str] = BASELINES) -> dict[str, Policy]:
    """Loads the policies that candidates are measured beside."""
    return {name: load(name) for name in names}


def validate(
    policies: Mapping[str, Policy], cases: Sequence[Case], progress: Progress | None = None,
    jobs: int = 0,
) -> Sheet:  # fmt: skip
    """Runs every policy on every case, all on the same pods and ties, spread over threads."""
    found: dict[str, list[Values]] = {name: [] for name in policies}
    held: dict[str, list[Held]] = {name: [] for name in policies}
    total = len(policies) * len(cases)
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        for done, plan in enumerate(_plans(cases), 1):
            runs = [pool.submit(_measured, plan, policy) for policy in policies.values()]
            for name, run in zip(policies, runs, strict=True):
                values, decisions = run.result()
                found[name].append(values)
                held[name].append(decisions)
            if progress is not None:
                progress(done * len(policies), total)
    figures = {name: tuple(values) for name, values in found.items()}
    return Sheet(tuple(cases), figures, {name: tuple(each) for name, each in held.items()})


def _plans(cases: Sequence[Case]) -> Iterator[Plan]:
    stand_in = load("first-fit")
    trace, reference = None, ""
    for case in cases:
        is_drawn = case.trace in (EMBEDDED, EMBEDDED_16)  # afresh for every seed
        if trace is None or is_drawn or case.trace != reference:
            trace, reference = case.read(), case.trace
        yield case.plan_on(trace, stand_in)


def _measured(plan: Plan, policy: Policy) -> tuple[dict[str, float], Held]:
    tier = choose_tier("auto", policy, plan.arrivals, plan.protocol, plan.cluster)
    result = execute(replace(plan, policy=policy, tier=tier))
    require_possible(recount(result), policy.name)
    figures = measure_case(result)
    require_possible(Recount(tuple(contradictions(result, figures))), policy.name)
    return {**figures, **placed_shares(result)}, (result.held_decisions, result.decisions)


def placed_shares(result: Result) -> dict[str, float]:
    """Gives the percent of arrived pods of each class that run at 100 % and 130 % arrived load."""
    if result.plan.protocol.name != INFLATION:
        return {}
    classes, arrived = class_of(result.plan.arrivals.pods), arrived_ratio(result)
    found: dict[str, float] = {}
    for load_percent in LOADS:
        count = int(np.searchsorted(arrived, load_percent / 100 + 1e-9, side="right"))
        running = np.zeros(len(classes), bool)
        changes = result.changes[: result.changes_after[max(0, count - 1)]]
        running[changes[changes > 0] - 1] = True
        for index, name in enumerate(POD_CLASSES):
            own = classes[:count] == index
            if own.any():
                found[f"placed_{load_percent}_{name}"] = 100 * float(running[:count][own].mean())
    return found
