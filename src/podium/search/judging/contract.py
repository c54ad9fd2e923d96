"""Checks a candidate's scores of single states: are they numbers, and the same every time?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError
from podium.policies import PairPolicy
from podium.policies.batch import score_states
from podium.policies.states import States
from podium.search.candidate.verdict import Decisions, Rejected
from podium.search.judging.fixtures import Fixtures, View
from podium.search.judging.form import Form


def check_contract(policy: PairPolicy, fixtures: Fixtures) -> npt.NDArray[np.float64]:
    """Refuses scores that are no numbers, or that depend on more than the pod and the node.

    Returns the scores of the states.
    """
    scores = _plain(policy, fixtures.views)
    _refuse_any(_is_wrong(scores), fixtures.views, "the score is NaN or infinite")
    again = _plain(policy, fixtures.views[::-1])[::-1]
    _refuse_any(again != scores, fixtures.views, "the score differs when it is asked for again")
    other = _plain(policy, fixtures.wide_views)
    _refuse_any(
        other != scores, fixtures.views,
        "the score depends on GPU slots that the node does not have; loop over "
        "range(node.gpu_count)",
    )  # fmt: skip
    return scores


def check_compiled(policy: PairPolicy, fixtures: Fixtures, code: PairPolicy | None = None) -> None:
    """Refuses what does not compile, or scores otherwise when it is compiled.

    What is compiled is the policy itself, or the code that it shares with others.
    """
    code = code or policy
    table = code.table(fixtures.states.shapes())
    try:
        native = code.native(table.ndim, fixtures.states.gpu_slots)
    except PolicyError as error:
        raise Rejected.by(error) from error
    found, is_changed = score_states(native, fixtures.states, table)
    if is_changed:
        raise Rejected("the compiled policy writes to the pod or the node")
    _refuse_any(
        found != _plain(policy, fixtures.views), fixtures.views,
        "the compiled score differs from that of plain Python; are integers beyond 2**63 involved?",
    )  # fmt: skip


def is_proven(form: Form, fixtures: Fixtures, scores: npt.NDArray[np.float64]) -> bool:
    """Returns whether an interpreted candidate scores the contract's states like plain Python."""
    if not form.is_interpreted:
        return True
    return np.array_equal(_interpreted(form, fixtures.states), scores)


def decisions_of(policy: PairPolicy, fixtures: Fixtures, form: Form) -> Decisions:
    """Asks a candidate for its decisions on the states of the probe."""
    if form.is_interpreted:
        scores = _interpreted(form, fixtures.probe.states)
    else:
        scores = _plain(policy, fixtures.probed)
    _refuse_any(_is_wrong(scores), fixtures.probed, "the score is NaN or infinite")
    return fixtures.probe.decide(scores, takes_gpu=policy.takes_gpu)


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


def _interpreted(form: Form, states: States) -> npt.NDArray[np.float64]:
    table = form.policy.table(states.shapes())
    return score_states(form.policy.native(table.ndim, states.gpu_slots), states, table)[0]


def _is_wrong(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.isnan(scores) | (scores == math.inf))


def _refuse_any(wrong: Any, views: Sequence[View], told: str) -> None:
    where = np.flatnonzero(wrong)
    if len(where):
        pod, node, gpu = views[int(where[0])]
        raise Rejected(f"{told}: for {pod} on {node}, gpu {gpu}")
