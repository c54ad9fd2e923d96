"""Runs drawn programs in every form, and tells where they part from Python itself."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, replace

import numpy as np

from podium.errors import PolicyError
from podium.model.records import NODE_8, POD
from podium.policies import PairPolicy, policy_of
from podium.policies.batch import score_states
from podium.policies.language.arithmetic import BAD_POWER, BAD_SHIFT, OUTSIDE, TOO_LARGE
from podium.policies.source import read_source
from podium.policies.states import States, random_states
from podium.search.candidate.allowlist import problems
from podium.search.candidate.verdict import Rejected
from podium.search.judging.form import form_for
from podium.search.judging.machine_code import Library, Parted
from podium.search.judging.trial import read_policy
from podium.search.program.bounds import is_within
from support.written import written

MOST = 2**31 - 1
REFUSED = (TOO_LARGE, OUTSIDE, BAD_SHIFT, BAD_POWER)
"""What a policy may not do, though Python would go on."""


@dataclass(frozen=True)
class Outcome:
    """Says how far a program came, and what was wrong on the way."""

    is_candidate: bool  # the allow-list lets it through
    is_compiled: bool = False
    wrong: str = ""
    failed: int = 0  # states on which the program fails, in every form alike
    is_interpreted: bool = False


def states_for_programs(seed: int, count: int = 24) -> States:
    """Draws states, and adds extreme ones."""
    drawn = random_states(count, seed).with_slots(8)
    pods, nodes, gpus = drawn.pods.copy(), drawn.nodes.copy(), drawn.gpus.copy()
    extreme_pods, extreme_nodes = np.zeros(3, POD), np.zeros(3, NODE_8)
    extreme_pods["cpu_milli"] = [0, MOST, 9810]
    extreme_pods["gpu_models"] = [-1, 2**53 - 1, 1]
    extreme_pods["priority"] = [-MOST, MOST, 0]
    extreme_pods["gpu_count"] = [0, 8, 1]
    extreme_pods["gpu_milli"] = [0, 1000, 1]
    for name in ("cpu_milli_left", "cpu_milli_total", "memory_mib_left", "memory_mib_total"):
        extreme_nodes[name] = [0, MOST, 1]
    extreme_nodes["gpu_count"] = [0, 8, 8]
    extreme_nodes["rack"] = [-1, MOST, 0]
    extreme_nodes["gpu_milli_left"][1:] = 1000
    return States(
        np.concatenate([pods, extreme_pods]),
        np.concatenate([nodes, extreme_nodes]),
        np.concatenate([gpus, np.array([-1, -1, 7], gpus.dtype)]),
    )


def tried(text: str, states: States, *, is_compiling: bool = True) -> Outcome:
    """Leads a program through the gates, and compares its forms with Python on states.

    What the allow-list of candidates refuses may still be a policy file. Without compiling, it
    is translated, interpreted where it can be, and runs in plain Python alone, which takes a
    hundredth of the time.
    """
    is_candidate = not problems(ast.parse(text))
    try:
        policy = read_policy(text) if is_candidate else policy_of(read_source(text, "p"), "p")
    except (Rejected, PolicyError):
        return Outcome(is_candidate)
    if policy.not_compiled:
        return Outcome(is_candidate)
    plain, wrong = _compared(text, policy, states)
    failed = int(np.isnan(plain).sum())
    found = Outcome(is_candidate, False, wrong, failed)
    engine = interpreter_of(text)
    if engine is not None and not wrong:
        usual = _usual(states)
        own = native_scores(engine, States(*(each[usual] for each in _columns(states))))
        found_there = plain.copy()
        found_there[usual] = own
        wrong = _parted(plain, found_there, states, "interpreted")
        found = replace(found, is_interpreted=True, wrong=wrong)
    if not is_compiling or wrong:
        return found
    try:
        code = native_scores(policy, states)
        shared = native_scores(Library().of(Parted.of(text), policy), states)
    except PolicyError as error:
        return replace(found, is_compiled=True, wrong=f"does not compile: {error}")
    wrong = _parted(plain, code, states, "compiled") or _parted(plain, shared, states, "shared")
    return replace(found, is_compiled=True, wrong=wrong)


def interpreter_of(text: str) -> PairPolicy | None:
    """Builds the form in which a search runs small cases, where there is one."""
    policy = read_policy(text)
    form = form_for(text, policy, [], is_compiled=False)
    return form.policy if form.is_interpreted else None


def native_scores(policy: PairPolicy, states: States):
    """Scores states by machine code."""
    table = policy.table(states.shapes())
    found, is_changed = score_states(policy.native(table.ndim, states.gpu_slots), states, table)
    assert not is_changed, "it writes to a record"
    return found


def _columns(states: States):
    return states.pods, states.nodes, states.gpus


def _usual(states: States):
    rows = zip(states.pods, states.nodes, strict=True)
    return np.array([
        is_within(np.array([pod]), "pod") and is_within(np.array([node]), "node")
        for pod, node in rows
    ])  # fmt: skip


def _compared(text: str, policy: PairPolicy, states: States):
    """Scores states in plain Python; says where Python itself scores otherwise."""
    found, score = [], written(text)["score"]
    wrong = ""
    for view in states.views():
        given = view if policy.takes_gpu else view[:2]
        own = _answer(policy.function, given)
        found.append(math.nan if isinstance(own, Exception) else own)
        if isinstance(own, Exception) and str(own) in REFUSED:
            continue  # named, and not asked for: Python may count for ever
        real = _answer(score, given)
        are_same = own == real or (own != own and real != real)
        if not are_same and not (isinstance(own, Exception) and isinstance(real, Exception)):
            wrong = wrong or f"{own!r} translated, {real!r} in Python, for {view}"
    return np.array(found), wrong


def _parted(plain, found, states: States, form: str) -> str:
    differs = np.flatnonzero((plain != found) & ~(np.isnan(plain) & np.isnan(found)))
    if not len(differs):
        return ""
    at = int(differs[0])
    return f"{plain[at]!r} plain, {found[at]!r} {form}, for {states.views()[at]}"


def _answer(function, given):
    try:
        return float(function(*given))
    except Exception as error:  # noqa: BLE001 - a program may raise anything; compiled code says NaN
        return error
