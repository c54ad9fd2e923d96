"""Checks the statements and expressions of a candidate's functions, one construct at a time."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from podium.search.candidate import vocabulary
from podium.search.candidate.constants import number_of
from podium.search.candidate.text import children
from podium.search.candidate.vocabulary import GPU_LIST, RECORDS, RESERVED, said

Problem = tuple[int, str]
Problems = Iterator[Problem]

_ANNOTATIONS = frozenset(["bool", "float", "int"])
_KNOWN = frozenset(vocabulary.EXPRESSIONS + vocabulary.OPERATORS)


def walk_problems(statement: ast.stmt, known: set[str]) -> Problems:
    """Yields (line, reason) for problems of a statement and everything inside it."""
    parents: dict[ast.AST, ast.AST] = {}
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        found = list(_node_problems(node, parents.get(node), known))
        yield from found
        if found:  # one reason is enough for a construct and all that it holds
            continue
        for child in _looked_into(node):
            parents[child] = node
            waiting.append(child)


def _looked_into(node: ast.AST) -> Iterator[ast.AST]:
    for child in children(node):
        is_annotation = isinstance(node, ast.AnnAssign) and child is node.annotation
        if not is_annotation and not isinstance(child, ast.expr_context):
            yield child


def _node_problems(node: ast.AST, parent: ast.AST | None, known: set[str]) -> Problems:
    if isinstance(node, ast.stmt):
        check = _STATEMENT_CHECKS.get(type(node))
        if not isinstance(node, vocabulary.STATEMENTS):
            yield node.lineno, f"uses {said(node)}, which a score function does not need"
        elif check is not None:
            yield from check(node)
    elif isinstance(node, ast.Name):
        yield from _name_problems(node, parent, known)
    elif isinstance(node, ast.Attribute):
        yield from _attribute_problems(node, parent)
    elif isinstance(node, ast.Subscript):
        yield from _subscript_problems(node)
    else:
        yield from expression_problem(node, parent)


def expression_problem(node: ast.AST, parent: ast.AST | None = None) -> Problems:
    """Judges an operator, a literal or a plain expression by itself."""
    line = int(getattr(node, "lineno", getattr(parent, "lineno", 0)))
    if isinstance(node, ast.Constant):
        yield from _literal_problems(node)
    elif type(node) not in _KNOWN:
        yield line, f"uses {said(node)}, which a score function does not need"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        exponent = number_of(node.right)
        if exponent is not None and abs(exponent) > vocabulary.LARGEST_EXPONENT:
            most = vocabulary.LARGEST_EXPONENT
            yield line, f"raises to the power {exponent:g}; exponents reach {most} at most"


def _literal_problems(node: ast.Constant) -> Problems:
    value = node.value
    if isinstance(value, str | bytes):
        yield node.lineno, "holds a string; only docstrings may be strings"
    elif type(value) not in (bool, int, float):
        yield node.lineno, f"holds {value!r}; a candidate computes with numbers"
    elif isinstance(value, int) and abs(value) > vocabulary.LARGEST_INTEGER:
        yield node.lineno, "holds an integer beyond 2**53, which a score cannot hold exactly"
    elif value in (float("inf"), float("-inf")):
        yield node.lineno, "holds an infinite number; write HOLD to refuse a node"


def _name_problems(node: ast.Name, parent: ast.AST | None, known: set[str]) -> Problems:
    name = node.id
    if not isinstance(node.ctx, ast.Load):
        yield from target_problems([node])
    elif name in RECORDS and not isinstance(parent, ast.Attribute | ast.Call):
        yield node.lineno, f"uses the record {name} itself; read one of its fields"
    elif name.startswith("__"):
        yield node.lineno, f"uses {name}; names with two underscores are out of bounds"
    elif name not in known:
        yield node.lineno, f"uses {name}, which is defined nowhere and is not allowed"
    elif name in vocabulary.BUILTINS | {"range"} and not _is_called(node, parent):
        yield node.lineno, f"uses {name} without calling it"


def target_problems(targets: Sequence[ast.expr]) -> Problems:
    """Refuses targets of assignments other than free names."""
    for target in targets:
        if isinstance(target, ast.Tuple):
            yield from target_problems(target.elts)
        elif isinstance(target, ast.Attribute | ast.Subscript):
            yield (
                target.lineno,
                f"changes `{shortened(target)}`; a policy only reads the pod and the node",
            )
        elif not isinstance(target, ast.Name):
            yield target.lineno, f"assigns to {said(target)}; assign to names"
        elif target.id in RESERVED or target.id.startswith("_"):
            yield target.lineno, f"assigns to {target.id}, which is reserved"


def _attribute_problems(node: ast.Attribute, parent: ast.AST | None) -> Problems:
    base = node.value.id if isinstance(node.value, ast.Name) else ""
    if not isinstance(node.ctx, ast.Load):
        yield from target_problems([node])
    elif base == "math":
        allowed = vocabulary.MATH_FUNCTIONS | vocabulary.MATH_NUMBERS
        if node.attr not in allowed:
            yield node.lineno, f"uses math.{node.attr}; allowed are {', '.join(sorted(allowed))}"
        elif node.attr in vocabulary.MATH_FUNCTIONS and not _is_called(node, parent):
            yield node.lineno, f"uses math.{node.attr} without calling it"
    elif base not in RECORDS:
        yield (
            node.lineno,
            f"reads `{shortened(node)}`; attributes are the fields of pod and node, and math's",
        )
    elif node.attr not in RECORDS[base]:
        fields = ", ".join(sorted(RECORDS[base]))
        yield node.lineno, f"reads {base}.{node.attr}; the fields of {base} are {fields}"
    elif node.attr == GPU_LIST and not _reads_list(node, parent):
        yield node.lineno, f"uses the list {base}.{GPU_LIST} itself; read one slot or loop over it"


def _subscript_problems(node: ast.Subscript) -> Problems:
    if not isinstance(node.ctx, ast.Load):
        yield from target_problems([node])
    elif is_gpu_list(node.value):
        return
    elif not isinstance(node.value, ast.Name) or node.value.id in RESERVED:
        yield (
            node.lineno,
            f"indexes `{shortened(node.value)}`; only node.{GPU_LIST} and tuples are indexed",
        )


def is_gpu_list(node: ast.AST) -> bool:
    """Returns whether an expression is the list of a node's GPUs."""
    if not isinstance(node, ast.Attribute) or node.attr != GPU_LIST:
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "node"


def _reads_list(node: ast.Attribute, parent: ast.AST | None) -> bool:
    if isinstance(parent, ast.Subscript):
        return parent.value is node
    if isinstance(parent, ast.For):
        return parent.iter is node
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return parent.func.id in vocabulary.LIST_READERS and len(parent.args) == 1
    return False


def _is_called(node: ast.AST, parent: ast.AST | None) -> bool:
    return isinstance(parent, ast.Call) and parent.func is node


def _check_assignment(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> Problems:
    yield from target_problems(node.targets if isinstance(node, ast.Assign) else [node.target])
    if isinstance(node, ast.AnnAssign):
        yield from annotation_problems(node.annotation)


def _check_expression(node: ast.Expr) -> Problems:
    yield node.lineno, f"computes `{shortened(node.value)}` and drops it"


def _check_for(node: ast.For) -> Problems:
    yield from target_problems([node.target])
    called = node.iter.func if isinstance(node.iter, ast.Call) else None
    is_range = isinstance(called, ast.Name) and called.id == "range"
    if node.orelse or not (is_range or is_gpu_list(node.iter)):
        yield node.lineno, f"loops over more than range(...) or node.{GPU_LIST}, or has an else"


def _check_while(node: ast.While) -> Problems:
    has_compare = any(isinstance(each, ast.Compare) for each in ast.walk(node.test))
    if node.orelse or not has_compare:
        yield node.lineno, f"loops while `{shortened(node.test)}`; a while compares two values"


_STATEMENT_CHECKS: dict[type[ast.AST], Callable[..., Problems]] = {
    ast.Assign: _check_assignment,
    ast.AnnAssign: _check_assignment,
    ast.AugAssign: _check_assignment,
    ast.Expr: _check_expression,
    ast.For: _check_for,
    ast.While: _check_while,
}


def annotation_problems(annotation: ast.expr | None) -> Problems:
    """Refuses annotations other than the names of numbers."""
    if annotation is None or getattr(annotation, "id", "") in _ANNOTATIONS:
        return
    reason = f"annotates with `{shortened(annotation)}`; only bool, float and int"
    yield annotation.lineno, reason


def shortened(node: ast.AST) -> str:
    """Quotes source in one short line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."
