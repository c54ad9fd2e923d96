"""Takes a score apart into the terms that it is the sum of, where a policy is written as a sum."""

from __future__ import annotations

import ast
import functools
import math
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError
from podium.model.fit import fitting_nodes
from podium.model.records import node_view, pod_view
from podium.policies.mixture import Mixture
from podium.policies.policy import ClusterPolicy, PairPolicy, Policy
from podium.policies.session import ClusterSession, PairSession
from podium.policies.source import read_source

Session = PairSession | ClusterSession


def term_values(
    policy: Policy, session: Session, pod: np.void, nodes: npt.NDArray[Any], at: int
) -> dict[str, float]:
    """Gives what each named term adds to the score of one node, in the order of the policy.

    Empty where the policy is no sum of named terms, or where they do not add up to the score:
    it may have returned early, or drawn lots.

    Args:
        policy: that scores.
        session: with the table of the time.
        pod: that is scored.
        nodes: all that were scored; a mixture compares them.
        at: which of them.
    """
    if isinstance(policy, ClusterPolicy):
        return _mixed(policy, pod, nodes, at)
    assert isinstance(session, PairSession)
    parts = _summands(policy)
    if not parts:
        return {}
    found = session.scores(pod, nodes[at : at + 1])
    score, slot = float(found.scores[0]), int(found.gpu_slots[0])
    if not math.isfinite(score):
        return {}
    views = pod_view(pod), node_view(nodes[at])
    try:
        values = {part.name: part.term.score_pair(*views, slot, session.table) for part in parts}
    except PolicyError:
        return {}
    return values if math.isclose(sum(values.values()), score, abs_tol=1e-9) else {}


def _mixed(
    policy: ClusterPolicy, pod: np.void, nodes: npt.NDArray[Any], at: int
) -> dict[str, float]:
    if not policy.terms:
        return {}  # a chooser may take long to make
    chooser, feasible = policy.chooser(0), fitting_nodes(pod, nodes)
    if not isinstance(chooser, Mixture) or len(chooser.terms) != len(policy.terms):
        return {}
    if not feasible[at] or any(term.scale == "chance" for term in chooser.terms):
        return {}
    place = int(feasible[:at].sum())
    added = chooser.contributions(pod_view(pod), nodes, feasible)
    return {name: float(values[place]) for name, values in zip(policy.terms, added, strict=True)}


@dataclass(frozen=True, slots=True)
class _Summand:
    name: str
    term: PairPolicy  # scores by this term alone


@functools.lru_cache(maxsize=32)
def _summands(policy: PairPolicy) -> tuple[_Summand, ...]:
    """Makes a policy of each term of a sum; none where there are fewer than two, or no names."""
    if policy.source is None:
        return ()
    operands = _operands(_result(policy.source.tree))
    names = policy.terms or tuple(each.id for each in map(_bare, operands) if each is not None)
    if len(operands) < 2 or len(set(names)) != len(operands):
        return ()
    try:
        return tuple(
            _Summand(name, _alone(policy, operand))
            for name, operand in zip(names, operands, strict=True)
        )
    except PolicyError:
        return ()


def _result(tree: ast.Module) -> ast.expr | None:
    """Finds the expression with which the score function ends."""
    for each in tree.body:
        if isinstance(each, ast.FunctionDef) and each.name == "score":
            last = each.body[-1]
            return last.value if isinstance(last, ast.Return) else None
    return None


def _operands(expression: ast.expr | None) -> list[ast.expr]:
    """Lists what is added up; what is subtracted is added with its sign turned."""
    if expression is None:
        return []
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
        return [*_operands(expression.left), *_operands(expression.right)]
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Sub):
        return [*_operands(expression.left), *map(_negated, _operands(expression.right))]
    return [expression]


def _negated(expression: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.USub(), expression)


def _bare(expression: ast.expr) -> ast.Name | None:
    if isinstance(expression, ast.UnaryOp):
        return _bare(expression.operand)
    return expression if isinstance(expression, ast.Name) else None


def _alone(policy: PairPolicy, operand: ast.expr) -> PairPolicy:
    """Rewrites a policy so that its score is one of the terms."""
    assert policy.source is not None
    tree = deepcopy(policy.source.tree)
    (function,) = [
        each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "score"
    ]
    function.body[-1] = ast.Return(deepcopy(operand))
    text = ast.unparse(ast.fix_missing_locations(tree))
    return PairPolicy.of(read_source(text, policy.source.path), policy.name)
