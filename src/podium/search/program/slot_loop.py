"""Reads a loop over GPU slots as what it adds up, or the smallest or largest that it finds."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass

from podium.search.program.expression import ALWAYS, Expression, apply, name, number
from podium.search.program.translation import Environment, refuse, translated
from podium.search.program.translation import condition as condition_of

_SPANS = {
    "range(node.gpu_count)": "gpus",
    "range(len(node.gpu_milli_left))": "slots",
    "range(8)": "slots",
    "node.gpu_milli_left": "slots",
    "node.gpu_milli_left[:node.gpu_count]": "gpus",
}


@dataclass(frozen=True, slots=True)
class Update:
    """What a loop does to one accumulator."""

    name: str
    head: str  # of the reduction
    value: Expression
    condition: Expression


def span_of(node: ast.For) -> str:
    """Returns which slots a loop runs over."""
    text = ast.unparse(node.iter)
    if text not in _SPANS or not isinstance(node.target, ast.Name) or node.orelse:
        raise refuse(node, f"a loop over {text}")
    return _SPANS[text]


def read_updates(node: ast.For, environment: Environment) -> list[Update]:
    """Lists what a loop does to each accumulator, one update each."""
    inner = environment.unsure().copy()
    title = node.target.id if isinstance(node.target, ast.Name) else ""
    is_slot = ast.unparse(node.iter).startswith("range")
    inner.loop = (title, "") if is_slot else ("", title)
    stored = {each.id for each in _targets(node)}
    if sum(each.id == title for each in _targets(node)) > 1:
        raise refuse(node, f'a loop that sets "{title}" itself')
    for each in stored & set(environment.names):
        # Not to be read in the loop, only updated.
        inner.names[each] = name(f"{each}@")
    return _merged(_updates(node.body, inner, ALWAYS), node, environment)


def _targets(node: ast.stmt) -> list[ast.Name]:
    """Lists the names that are set, as often as they are."""
    return [
        each for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]  # fmt: skip


def _updates(body: list[ast.stmt], inner: Environment, condition: Expression) -> list[Update]:
    found: list[Update] = []
    for index, node in enumerate(body):
        if isinstance(node, ast.If) and _is_continue(node.body):
            test = apply("not", condition_of(node.test, inner))
            inner.passing.append(test)
            rest = [*node.orelse, *body[index + 1 :]]
            return found + _updates(rest, inner, _both(condition, test))
        if isinstance(node, ast.If):
            found += _branches(node, inner, condition)
        elif isinstance(node, ast.Assign | ast.AugAssign):
            found += _update(node, inner, condition)
        else:
            raise refuse(node, "this statement in a loop")
    return found


def _branches(node: ast.If, inner: Environment, condition: Expression) -> list[Update]:
    extreme = _compared_extreme(node, inner, condition)
    if extreme is not None:
        return [extreme]
    test = condition_of(node.test, inner)
    inner.passing.append(test)
    found = _updates(node.body, inner.copy(), _both(condition, test))
    found += _updates(node.orelse, inner.copy(), _both(condition, apply("not", test)))
    for each in _targets(node):
        if inner.names.get(each.id) != name(f"{each.id}@"):
            inner.names.pop(each.id, None)  # set in this case only: not to be read any more
    return found


def _compared_extreme(node: ast.If, inner: Environment, condition: Expression) -> Update | None:
    """Reads `if value < least: least = value`."""
    if node.orelse or len(node.body) != 1 or not isinstance(node.body[0], ast.Assign):
        return None
    target = node.body[0].targets[0]
    is_one = isinstance(target, ast.Name) and len(node.body[0].targets) == 1
    if not is_one or not isinstance(target, ast.Name) or target.id not in inner.names:
        return None
    test = condition_of(node.test, inner)
    value = translated(node.body[0].value, inner)
    accumulator = name(f"{target.id}@")
    for head, orders in (("smallest", ("<", ">")), ("largest", (">", "<"))):
        if test in (apply(orders[0], value, accumulator), apply(orders[1], accumulator, value)):
            return Update(target.id, head, value, condition)
    return None


def _update(
    node: ast.Assign | ast.AugAssign, inner: Environment, condition: Expression
) -> list[Update]:
    targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
    target = targets[0]
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        parts = _parted(node, target.elts, node.value.elts)
        return [update for part in parts for update in _update(part, inner, condition)]
    if not isinstance(target, ast.Name) or len(targets) > 1:
        raise refuse(node, "this assignment in a loop")
    value = translated(node.value, inner)
    own = name(f"{target.id}@")
    if isinstance(node, ast.AugAssign):
        signed = value if isinstance(node.op, ast.Add) else apply("neg", value)
        if not isinstance(node.op, ast.Add | ast.Sub):
            raise refuse(node, "a loop that multiplies")
        if inner.names.get(target.id) != own:
            raise refuse(node, f'a loop that gives "{target.id}" a new value')
        return [Update(target.id, "sum", signed, condition)]
    if inner.names.get(target.id) != own:
        inner.names[target.id] = value
        inner.passing.append(value)
        return []
    return [_assigned_update(node, target.id, value, condition)]


def _parted(node: ast.stmt, targets: list[ast.expr], values: list[ast.expr]) -> list[ast.Assign]:
    """Parts an assignment of several names, none of which the values of the others read."""
    titles = {getattr(each, "id", "") for each in targets}
    if len(targets) != len(values):
        raise refuse(node, "this assignment in a loop")
    for one, value in zip(targets, values, strict=True):
        read = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
        if read & titles - {getattr(one, "id", "")}:
            raise refuse(node, "this assignment in a loop")
    pairs = zip(targets, values, strict=True)
    return [ast.copy_location(ast.Assign([one], value), node) for one, value in pairs]


def _assigned_update(
    node: ast.stmt, title: str, value: Expression, condition: Expression
) -> Update:
    own = name(f"{title}@")
    heads = {"min": "smallest", "max": "largest", "+": "sum"}
    if value.head in heads and len(value.arguments) == 2 and own in value.arguments:
        other = value.arguments[1] if value.arguments[0] == own else value.arguments[0]
        return Update(title, heads[value.head], other, condition)
    raise refuse(node, f'a loop that gives "{title}" a new value')


def _merged(updates: list[Update], node: ast.For, environment: Environment) -> list[Update]:
    by_name: dict[str, list[Update]] = {}
    for update in updates:
        if any("@" in each for each in update.value.names | update.condition.names):
            raise refuse(node, "a loop that reads what it changes")
        by_name.setdefault(update.name, []).append(update)
    return [_joined(each, node, environment) for each in by_name.values()]


def _joined(updates: list[Update], node: ast.For, environment: Environment) -> Update:
    """Joins what a loop adds in several places; fractional numbers only where one is reached."""
    if len(updates) == 1:
        return updates[0]
    title = updates[0].name
    if any(each.head != "sum" for each in updates):
        raise refuse(node, f'a loop that changes "{title}" in two ways')
    pairs = itertools.combinations([each.condition for each in updates], 2)
    start = environment.names.get(title)
    values = [each.value for each in updates]
    are_whole = start is not None and all(map(environment.is_whole, [start, *values]))
    if not are_whole and not all(_exclude(*each) for each in pairs):
        raise refuse(node, f'a loop that adds to "{title}" twice')
    value = _conditional(updates[0])
    for update in updates[1:]:
        value = apply("+", value, _conditional(update))
    return Update(title, "sum", value, ALWAYS)


def _exclude(one: Expression, other: Expression) -> bool:
    """Returns whether two conditions are those of different arms."""
    here, there = _conjuncts(one), _conjuncts(other)
    return any(
        each.head == "not" and set(_conjuncts(each.arguments[0])) <= conjuncts
        for own, conjuncts in ((here, there), (there, here)) for each in own
    )  # fmt: skip


def _conjuncts(condition: Expression) -> set[Expression]:
    return set(condition.arguments) if condition.head == "and" else {condition}


def _conditional(update: Update) -> Expression:
    if update.condition == ALWAYS:
        return update.value
    return apply("if", update.condition, update.value, number(0))


def _both(one: Expression, other: Expression) -> Expression:
    return other if one == ALWAYS else apply("and", one, other)


def _is_continue(body: list[ast.stmt]) -> bool:
    return len(body) == 1 and isinstance(body[0], ast.Continue)
