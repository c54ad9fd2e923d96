"""Tries one candidate inside a worker: tiny trace, contract, compilation, training cases."""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import PodiumError, PolicyError
from podium.model.records import Node, Pod
from podium.policies import PairPolicy, load
from podium.policies.arithmetic import Rewriter
from podium.policies.source import Source
from podium.search.engine import Engine, engine_as_written, engine_for
from podium.search.fitness import BASELINE, Fitness, Outcome
from podium.search.losses import Losses, Usual, measure_losses
from podium.search.measurement import Values, measure_case
from podium.search.probe import Decisions, Probe
from podium.search.training import FIRST_SEED, Case, TrainingSet
from podium.search.verdict import COMPILE, CONTRACT, NOVELTY, RACE, TINY, TRAINING
from podium.sim import Result
from podium.sim.execution import execute
from podium.sim.plan import Plan
from podium.sim.tiers import Tier
from podium.testing.native import score_compiled
from podium.testing.states import States, random_states

CANDIDATE = "candidate"
NUM_STATES = 160
RACE_MARGIN = 0.5
"""Points of fitness by which a candidate may trail the incumbent and still go on."""

REWRITTEN = ("**", "pow", "hypot")
"""A text without any of them has no arithmetic that must be rewritten."""

_NO_TABLE = np.zeros(0)
_TINY = Case(nodes=4, pods=50, seed=FIRST_SEED)
View = tuple[Pod, Node, int]
Tell = Callable[[dict[str, Any]], None]


class Rejected(Exception):  # noqa: N818 - reads as the sentence it makes
    """A gate refuses the candidate."""


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """Holds everything that candidates are tried on, built once."""

    tiny: Plan
    plans: tuple[Plan, ...]
    is_compiled: bool
    states: States  # in records of 8 slots
    views: tuple[View, ...]
    wide_views: tuple[View, ...]  # the same in records of 16
    probe: Probe
    probed: tuple[View, ...]  # the states of the probe
    usual: tuple[Usual, ...]  # what pods of each case ask for

    @classmethod
    def of(cls, training: TrainingSet) -> Bench:
        """Builds the cases; the policy in the plans only stands in for candidates."""
        stand_in = load("first-fit")
        wide = random_states(NUM_STATES, FIRST_SEED)
        wide = _picked(wide, wide.nodes["gpu_count"] <= 8)
        plans = tuple(case.plan(stand_in) for case in training.cases)
        states = wide.with_slots(8)
        views, wide_views = tuple(states.views()), tuple(wide.views())
        tiny, probe = _TINY.plan(stand_in), Probe.build()
        probed, usual = tuple(probe.states.views()), tuple(Usual.of(plan.trace) for plan in plans)
        return cls(
            tiny, plans, training.is_compiled, states, views, wide_views, probe, probed, usual
        )

    def baseline(self) -> Sequence[tuple[Values, Losses]]:
        """Measures fgd on every case, and what it loses there."""
        policy, found = load(BASELINE), []
        for plan, usual in zip(self.plans, self.usual, strict=True):
            result = execute(replace(plan, policy=policy, tier="scan"))
            found.append((measure_case(result), measure_losses(result, usual)))
        return found


@dataclass(frozen=True, slots=True)
class Parent:
    """Is the way to the process that asked."""

    tell: Tell
    wants: Callable[[Decisions], bool]  # whether a candidate with such decisions is still wanted


def try_candidate(
    bench: Bench, text: str, race: Sequence[Outcome], fitness: Fitness, parent: Parent
) -> None:
    """Leads a candidate through the gates of the worker; raises Rejected at one of them.

    `race` holds the incumbent's outcomes on the first cases, or nothing.
    """
    tell = parent.tell
    tell({"gate": TINY})
    policy = read_policy(text)
    _run(bench.tiny, policy, "python")
    tell({"gate": CONTRACT})
    scores = check_contract(policy, bench)
    tell({"gate": NOVELTY})
    engine = engine_for(text, policy, bench.plans, bench.is_compiled)
    if not is_proven(engine, bench, scores):
        engine = engine_as_written(policy, bench.plans, bench.is_compiled)
    if not parent.wants(decisions_of(policy, bench, engine)):
        raise Rejected("it decides like a candidate that was judged before, on every probed state")
    if engine.is_compiled:
        tell({"gate": COMPILE})
        check_compiled(policy, bench)
    tell({"gate": RACE if race else TRAINING})
    found: list[Outcome] = []
    results: list[Result] = []
    for index, values in enumerate(_measured(bench, engine, tell, results)):
        if index < len(race):
            incumbent = race[index]
            found.append(Outcome(incumbent.kind, values, incumbent.baseline))
            check_race(found, race, fitness)
        if index + 1 == len(race):
            tell({"gate": TRAINING})
    for index, (result, usual) in enumerate(zip(results, bench.usual, strict=True)):
        tell({"losses": index, "values": measure_losses(result, usual)})


def is_proven(engine: Engine, bench: Bench, scores: npt.NDArray[np.float64]) -> bool:
    """Tells whether an interpreted candidate scores the states of the contract as it is written."""
    if not engine.is_interpreted:
        return True
    return np.array_equal(_interpreted(engine, bench.states), scores)


def decisions_of(policy: PairPolicy, bench: Bench, engine: Engine) -> Decisions:
    """Asks a candidate for its decisions on the states of the probe."""
    if engine.is_interpreted:
        scores = _interpreted(engine, bench.probe.states)
    else:
        scores = _plain(policy, bench.probed)
    _refuse_any(_is_wrong(scores), bench.probed, "the score is NaN or infinite")
    return bench.probe.decide(scores, takes_gpu=policy.takes_gpu)


def _interpreted(engine: Engine, states: States) -> npt.NDArray[np.float64]:
    table = engine.policy.table(states.shapes())
    return score_compiled(engine.policy.native(table.ndim, states.gpu_slots), states, table)[0]


def _measured(bench: Bench, engine: Engine, tell: Tell, results: list[Result]) -> Iterator[Values]:
    """Runs case after case, and keeps what is looked at again if all of them are done."""
    for index, plan in enumerate(bench.plans):
        began_s = time.thread_time()
        result = _run(plan, engine.policy, engine.tier(plan))
        values = measure_case(result)
        simulated_s = time.thread_time() - began_s
        tell({"case": index, "values": values, "simulated_s": simulated_s})
        results.append(replace(result, derived={}))
        yield values


def read_policy(text: str) -> PairPolicy:
    """Makes a policy of a candidate's text."""
    # The allow-list, which the text has passed, is stricter than the check of any policy file.
    tree = runnable = ast.parse(text)
    if any(word in text for word in REWRITTEN):
        runnable = ast.fix_missing_locations(Rewriter().visit(ast.parse(text)))
    source = Source(CANDIDATE, text, tree, compile(runnable, CANDIDATE, "exec"))
    try:
        return PairPolicy.of(source, CANDIDATE)
    except PodiumError as error:
        raise Rejected(_told(error)) from error


def _run(plan: Plan, policy: PairPolicy, tier: Tier) -> Result:
    try:
        return execute(replace(plan, policy=policy, tier=tier))
    except PolicyError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from error
        raise Rejected(_told(error)) from error


def check_contract(policy: PairPolicy, bench: Bench) -> npt.NDArray[np.float64]:
    """Refuses scores that are no numbers, or that depend on more than the pod and the node.

    Gives the scores of the states.
    """
    scores = _plain(policy, bench.views)
    _refuse_any(_is_wrong(scores), bench.views, "the score is NaN or infinite")
    again = _plain(policy, bench.views[::-1])[::-1]
    _refuse_any(again != scores, bench.views, "the score differs when it is asked for again")
    other = _plain(policy, bench.wide_views)
    _refuse_any(
        other != scores, bench.views,
        "the score depends on GPU slots that the node does not have; loop over "
        "range(node.gpu_count)",
    )  # fmt: skip
    return scores


def _plain(policy: PairPolicy, views: Sequence[View]) -> npt.NDArray[np.float64]:
    function, takes_gpu = policy.function, policy.takes_gpu
    found = np.empty(len(views))
    for i, (pod, node, gpu) in enumerate(views):
        try:
            found[i] = function(pod, node, gpu) if takes_gpu else function(pod, node)
        except MemoryError:
            raise
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            raise Rejected(f"{told}: for {pod} on {node}, gpu {gpu}") from error
    return found


def check_compiled(policy: PairPolicy, bench: Bench) -> None:
    """Refuses what does not compile, or scores otherwise when it is compiled."""
    try:
        native = policy.native(_NO_TABLE.ndim, bench.states.gpu_slots)
    except PolicyError as error:
        raise Rejected(_told(error)) from error
    found, is_changed = score_compiled(native, bench.states, _NO_TABLE)
    if is_changed:
        raise Rejected("the compiled policy writes to the pod or the node")
    _refuse_any(
        found != _plain(policy, bench.views), bench.views,
        "the compiled score differs from that of plain Python; are integers beyond 2**63 involved?",
    )  # fmt: skip


def check_race(found: Sequence[Outcome], incumbent: Sequence[Outcome], fitness: Fitness) -> None:
    """Refuses a candidate that trails the incumbent on the same cases, beyond what is chance."""
    apart = [
        fitness.score([own]) - fitness.score([best])
        for own, best in zip(found, incumbent, strict=False)
    ]
    if hopeful(apart) < -RACE_MARGIN:
        own, best = fitness.score(found), fitness.score(incumbent[: len(found)])
        raise Rejected(
            f"trails the incumbent after {_cases(len(found))}: fitness {own:.2f} against {best:.2f}"
        )


def hopeful(apart: Sequence[float]) -> float:
    """Gives how large the mean of paired differences may well be: two standard errors above.

    One difference says little of its own error, and is trusted to a third.
    """
    mean = sum(apart) / len(apart)
    if len(apart) == 1:
        return mean / 3
    variance = sum((each - mean) ** 2 for each in apart) / (len(apart) - 1)
    return mean + 2 * math.sqrt(variance / len(apart))


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def _is_wrong(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.isnan(scores) | (scores == math.inf))


def _refuse_any(wrong: Any, views: Sequence[View], told: str) -> None:
    where = np.flatnonzero(wrong)
    if len(where):
        pod, node, gpu = views[int(where[0])]
        raise Rejected(f"{told}: for {pod} on {node}, gpu {gpu}")


def _picked(states: States, which: Any) -> States:
    return States(states.pods[which], states.nodes[which], states.gpus[which])


def _told(error: PodiumError) -> str:
    return f"{error}; {error.hint}" if error.hint else str(error)
