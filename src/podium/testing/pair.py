"""Checks what a pair policy promises of its scores."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError
from podium.policies import PairPolicy
from podium.policies.source import no_number
from podium.policies.states import States, random_states
from podium.testing.attempt import Attempt
from podium.testing.report import Finding, described

NUM_STATES = 3000
RAISES = "raises nothing"
FINITE = "gives finite scores"
REPEATS = "gives the same score again"
SIZES = "scores alike in both record sizes"
READS = "leaves records alone"
COMPILES = "scores alike plain and compiled"

Table = npt.NDArray[np.float64]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """The scores of plain Python, NaN where it raised, and the first thing it raised."""

    scores: Scores
    has_raised: npt.NDArray[np.bool_]
    error: str


def check_pair(policy: PairPolicy, seed: int, attempt: Attempt) -> list[Finding]:
    """Calls the policy on random states, plain and compiled."""
    wide = random_states(NUM_STATES, seed)
    narrow = wide.with_slots(8)
    attempt.at(lambda: "in prepare")
    try:
        table = policy.table(narrow.shapes())
    except Exception as error:  # noqa: BLE001 - prepare is the user's own code
        return [Finding(RAISES, False, f"prepare: {described(policy, error)}")]
    plain = {
        states.gpu_slots: score_plain(policy, states, table, attempt) for states in (narrow, wide)
    }
    raised = plain[8].error or plain[16].error
    if plain[8].has_raised.all() and plain[16].has_raised.all():
        return [Finding(RAISES, False, raised)]  # nothing else can be judged
    findings = [
        Finding(RAISES, not raised, raised),
        _judged(_finite(plain[16], wide), plain[16]),
        _judged(_repeated(policy, narrow, table, plain[8], attempt), plain[8]),
        _judged(_sized(plain, wide), plain[8]),
    ]
    small = _compiled(policy, narrow, table, plain[8].scores, attempt)
    if all(each.is_ok for each in small):
        return [*findings, *_compiled(policy, wide, table, plain[16].scores, attempt)]
    return [*findings, *small]


def _judged(finding: Finding, plain: Plain) -> Finding:
    """Counts the states that were judged, where the policy raised in the others."""
    total, raised = len(plain.scores), int(plain.has_raised.sum())
    if not finding.is_ok or not raised:
        return finding
    return replace(finding, detail=f"judged in {total - raised:,} of {total:,} states")


def score_plain(policy: PairPolicy, states: States, table: Table, attempt: Attempt) -> Plain:
    """Scores the states in plain Python, as the simulator's Python tier does."""
    found, has_raised, first = np.full(len(states), math.nan), np.zeros(len(states), bool), ""
    for i, (pod, node, gpu) in enumerate(states.views()):
        arguments = {"pod": pod, "node": node, "gpu": gpu, "table": table}
        attempt.at(partial("for {} on {}, gpu {}".format, pod, node, gpu))
        try:
            score = policy.function(*(arguments[name] for name in policy.form))
            found[i] = _number(score)
        except Exception as error:  # noqa: BLE001 - the policy is the user's own code
            has_raised[i] = True
            first = first or f"{described(policy, error)} for {pod} on {node}"
    attempt.aside()
    return Plain(found, has_raised, first)


def _number(score: object) -> float:
    if not isinstance(score, numbers.Real | np.bool_):
        raise no_number(score)
    return float(score)


def _finite(plain: Plain, states: States) -> Finding:
    scores = plain.scores
    wrong = np.flatnonzero((np.isnan(scores) & ~plain.has_raised) | (scores == math.inf))
    case = str(scores[wrong[0]]) if len(wrong) else ""
    return Finding(FINITE, not len(wrong), _case(states, wrong, case))


def _repeated(
    policy: PairPolicy, states: States, table: Table, first: Plain, attempt: Attempt
) -> Finding:
    backwards = States(states.pods[::-1], states.nodes[::-1], states.gpus[::-1])
    again = score_plain(policy, backwards, table, attempt).scores[::-1]
    wrong = _differing(first.scores, again)
    case = f"{first.scores[wrong[0]]}, then {again[wrong[0]]}" if len(wrong) else ""
    return Finding(REPEATS, not len(wrong), _case(states, wrong, case))


def _sized(plain: dict[int, Plain], wide: States) -> Finding:
    same = wide.nodes["gpu_count"] <= 8
    small, large = plain[8].scores, plain[16].scores[same]
    wrong = _differing(small, large)
    case = f"{small[wrong[0]]} with 8 slots, {large[wrong[0]]} with 16" if len(wrong) else ""
    states = States(wide.pods[same], wide.nodes[same], wide.gpus[same])
    detail = _case(states, wrong, case)
    hint = "; it reads slots that the node does not have" if detail else ""
    return Finding(SIZES, not len(wrong), detail + hint)


def _compiled(
    policy: PairPolicy, states: States, table: Table, plain: Scores, attempt: Attempt
) -> list[Finding]:
    from podium.policies.batch import score_states

    attempt.aside()
    try:
        native = policy.native(table.ndim, states.gpu_slots)
    except PolicyError as error:
        return [Finding(COMPILES, True, f"it runs in plain Python only: {error.message}")]
    score_states(native, States(states.pods[:0], states.nodes[:0], states.gpus[:0]), table)
    attempt.at(lambda: f"compiled, in {len(states):,} states in which plain Python ends")
    found, is_changed = score_states(native, states, table)
    attempt.aside()
    wrong = _differing(plain, found)
    case = f"{plain[wrong[0]]} plain, {found[wrong[0]]} compiled" if len(wrong) else ""
    changed = "the compiled policy writes to the pod, the node or the table" if is_changed else ""
    return [
        Finding(READS, not is_changed, changed),
        Finding(COMPILES, not len(wrong), _case(states, wrong, case) or f"{NUM_STATES:,} states"),
    ]


def _differing(one: Scores, other: Scores) -> npt.NDArray[np.int64]:
    return np.flatnonzero((one != other) & ~(np.isnan(one) & np.isnan(other)))


def _case(states: States, wrong: npt.NDArray[np.int64], problem: str) -> str:
    if not len(wrong):
        return ""
    first = int(wrong[0])
    pod, node, gpu = States(
        states.pods[first : first + 1], states.nodes[first : first + 1],
        states.gpus[first : first + 1],
    ).views()[0]  # fmt: skip
    return f"{problem} for {pod} on {node}, gpu {gpu} ({len(wrong):,} of {len(states):,} states)"
