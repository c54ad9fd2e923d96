"""Cleans a syntax tree after a cut: what nothing reads any more goes too."""

from __future__ import annotations

import ast
import pickle
from collections import Counter
from collections.abc import Iterator

from podium.search.candidate.allowlist import is_docstring
from podium.search.promotion.folding import Folder

ROUNDS = 8
_ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign)


def tidied(tree: ast.Module) -> ast.Module:
    """Folds and prunes a tree in place until nothing changes."""
    before = b""
    for _ in range(ROUNDS):
        Folder().visit(tree)
        for function in _functions(tree):
            _cut_unreachable(function)
            _inline(function, tree)
            _drop_unread(function)
        _drop_unused(tree)
        after = pickle.dumps(tree)
        if after == before:
            break
        before = after
    return ast.fix_missing_locations(tree)


def size(tree: ast.Module) -> int:
    """Counts the statements and expressions of a tree, without docstrings and imports."""
    waiting: list[ast.AST] = [*_told(tree.body)]
    count = 0
    while waiting:
        node = waiting.pop()
        count += isinstance(node, ast.stmt | ast.expr)
        body = node.body if isinstance(node, ast.FunctionDef) else None
        waiting += _told(body) if body is not None else ast.iter_child_nodes(node)
    return count


def _told(body: list[ast.stmt]) -> list[ast.stmt]:
    left_out = (ast.Import, ast.ImportFrom)
    return [e for e in body if not isinstance(e, left_out) and not is_docstring(e, body)]


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Lists the blocks of statements within a statement, the outer ones first."""
    for name in ("body", "orelse"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
            for statement in block:
                yield from blocks(statement)


def _cut_unreachable(function: ast.FunctionDef) -> None:
    for block in blocks(function):
        for index, statement in enumerate(block):
            if _ends(statement):
                del block[index + 1 :]
                break


def _ends(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Return | ast.Break | ast.Continue):
        return True
    if not isinstance(statement, ast.If) or not statement.orelse:
        return False
    return _ends(statement.body[-1]) and _ends(statement.orelse[-1])


def _names(node: ast.AST) -> tuple[Counter[str], Counter[str]]:
    """Counts how often each name is read, and how often it is given a value."""
    read: Counter[str] = Counter()
    given: Counter[str] = Counter()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            (read if isinstance(each.ctx, ast.Load) else given)[each.id] += 1
    return read, given


def _targets(statement: ast.Assign | ast.AugAssign | ast.AnnAssign) -> list[str]:
    waiting = statement.targets[:] if isinstance(statement, ast.Assign) else [statement.target]
    found: list[str] = []
    while waiting:
        target = waiting.pop()
        if isinstance(target, ast.Tuple):
            waiting += target.elts
        elif isinstance(target, ast.Name):
            found.append(target.id)
    return found


def _inline(function: ast.FunctionDef, tree: ast.Module) -> None:
    """Puts numbers and other names in the place of names that only repeat them."""
    _, stored = _names(function)
    arguments = {argument.arg for argument in function.args.args}
    at_top = {name for each in tree.body if isinstance(each, ast.Assign) for name in _targets(each)}
    values: dict[str, ast.expr] = {}
    for statement in function.body:
        name = _alias(statement)
        if not name or stored[name] > 1 or name in arguments:
            continue
        value = statement.value  # type: ignore[attr-defined]
        source = value.id if isinstance(value, ast.Name) else ""
        if not source or stored[source] == (source not in arguments | at_top):
            values[name] = values.get(source, value)
    if values:
        Inliner(values).visit(function)


def _alias(statement: ast.stmt) -> str:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target, value = statement.targets[0], statement.value
    is_simple = isinstance(value, ast.Constant) or (
        isinstance(value, ast.Name) and value.id not in ("pod", "node")
    )
    return target.id if isinstance(target, ast.Name) and is_simple else ""


class Inliner(ast.NodeTransformer):
    """Puts expressions in the place of names that are read."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replaces one name."""
        if isinstance(node.ctx, ast.Load) and node.id in self.values:
            return self.values[node.id]
        return node


def _drop_unread(function: ast.FunctionDef) -> None:
    read, _ = _names(function)
    for statement in (each for block in blocks(function) for each in block):
        if isinstance(statement, _ASSIGNMENTS) and statement.value is not None:
            # Where a name only keeps itself up to date, nothing reads it.
            own, within = _targets(statement), _names(statement.value)[0]
            read.subtract({name: within[name] for name in own})
    for block in blocks(function):
        block[:] = [each for each in block if not _is_idle(each, read)]
        for statement in block:
            if isinstance(statement, ast.If):
                _turn_round(statement, read)
    if not function.body:
        function.body.append(ast.Pass())


def _turn_round(choice: ast.If, read: Counter[str]) -> None:
    if all(_is_idle(each, read) for each in choice.body):
        choice.test = ast.UnaryOp(ast.Not(), choice.test)
        choice.body, choice.orelse = choice.orelse, []


def _is_idle(statement: ast.stmt, read: Counter[str]) -> bool:
    if isinstance(statement, _ASSIGNMENTS):
        return all(read[name] <= 0 for name in _targets(statement))
    if isinstance(statement, ast.For | ast.While | ast.If):
        inner = [*statement.body, *statement.orelse]
        return all(_is_idle(each, read) for each in inner)
    return isinstance(statement, ast.Pass)


def _drop_unused(tree: ast.Module) -> None:
    body = tree.body
    used, _ = _names(tree)
    kept: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            statement.names = [each for each in statement.names if used[each.name]]
            kept += [statement] if statement.names else []
        elif isinstance(statement, ast.Assign):
            names = _targets(statement)
            is_read = any(used[name] or name in ("TIES", "GPU_CHOICE") for name in names)
            kept += [statement] if is_read else []
        elif isinstance(statement, ast.FunctionDef):
            is_called = statement.name in ("score", "prepare") or used[statement.name]
            kept += [statement] if is_called else []
        else:
            kept.append(statement)
    body[:] = kept
