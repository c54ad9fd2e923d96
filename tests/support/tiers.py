"""Runs drawn programs in plain Python and compiled, and tells where the two part."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass

import numpy as np

from podium.errors import PolicyError
from podium.model.records import NODE_8, POD
from podium.policies import policy_of
from podium.policies.batch import score_states
from podium.policies.source import read_source
from podium.policies.states import States, random_states
from podium.search.candidate.allowlist import problems
from podium.search.candidate.verdict import Rejected
from podium.search.judging.trial import read_policy

MOST = 2**31 - 1
NO_TABLE = np.zeros(0)


@dataclass(frozen=True)
class Outcome:
    """Says how far a program came, and what was wrong on the way."""

    is_candidate: bool  # the allow-list lets it through
    is_compiled: bool = False
    wrong: str = ""
    failed: int = 0  # states on which the program fails, in both tiers alike


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
    """Leads a program through the gates, and compares its tiers on states.

    What the allow-list of candidates refuses may still be a policy file. Without compiling, it
    is translated and runs in plain Python alone, which takes a hundredth of the time.
    """
    is_candidate = not problems(ast.parse(text))
    try:
        policy = read_policy(text) if is_candidate else policy_of(read_source(text, "p"), "p")
    except (Rejected, PolicyError):
        return Outcome(is_candidate)
    if policy.not_compiled:
        return Outcome(is_candidate)
    plain = np.array([_plain(policy, view) for view in states.views()])
    if not is_compiling:
        return Outcome(is_candidate, failed=int(np.isnan(plain).sum()))
    try:
        native = policy.native(1, states.gpu_slots)
    except PolicyError as error:
        return Outcome(is_candidate, True, f"does not compile: {error}")
    found, is_changed = score_states(native, states, NO_TABLE)
    if is_changed:
        return Outcome(is_candidate, True, "writes to a record")
    differs = np.flatnonzero((plain != found) & ~(np.isnan(plain) & np.isnan(found)))
    if len(differs):
        at = int(differs[0])
        told = f"{plain[at]!r} plain, {found[at]!r} compiled, for {states.views()[at]}"
        return Outcome(is_candidate, True, told)
    return Outcome(is_candidate, True, failed=int(np.isnan(plain).sum()))


def _plain(policy, view) -> float:
    given = view if policy.takes_gpu else view[:2]
    try:
        return float(policy.function(*given))
    except Exception:  # noqa: BLE001 - a program may raise anything; compiled code says NaN
        return math.nan
