"""Sets expressions as Python text, broken over lines where they are long."""

from __future__ import annotations

from podium.search.program.expression import (
    CALLS,
    COMPARISONS,
    FUNCTIONS,
    JUNCTIONS,
    PRODUCTS,
    SUMS,
    Expression,
)

WIDTH = 100
INDENT = "    "
_ASCENDING, _DESCENDING = ("<", "<="), (">", ">=")
_PRECEDENCE = {"if": 1, "or": 2, "and": 3, "not": 4, "neg": 8, "power": 9}
_PRECEDENCE |= dict.fromkeys(COMPARISONS, 5) | dict.fromkeys(SUMS, 6) | dict.fromkeys(PRODUCTS, 7)
_ATOM = 10
_CALLED = (*CALLS, *FUNCTIONS, "call")


def text_of(expression: Expression) -> str:
    """Sets an expression on one line."""
    head, arguments = expression.head, expression.arguments
    if head in ("field", "name"):
        return str(expression.value)
    if head == "number":
        return repr(expression.value)
    if head == "hold":
        return "HOLD"
    if head in SUMS or head in PRODUCTS:
        level = _PRECEDENCE[head]
        return f"{_held(arguments[0], level)} {head} {_held(arguments[1], level + 1)}"
    if head in CALLS or head == "call":
        return f"{_callee(expression)}({', '.join(text_of(part) for part in arguments)})"
    if head in FUNCTIONS:
        return f"math.{head}({text_of(arguments[0])})"
    if head in COMPARISONS:
        return f"{_held(arguments[0], 6)} {head} {_held(arguments[1], 6)}"
    return _rare(head, arguments)


def _callee(expression: Expression) -> str:
    if expression.head == "call":
        return str(expression.value)
    return f"math.{expression.head}" if expression.head in FUNCTIONS else expression.head


def _rare(head: str, arguments: tuple[Expression, ...]) -> str:
    if head == "and":
        return " and ".join(_conjuncts(arguments))
    if head == "or":
        return " or ".join(_held(part, 3) for part in arguments)
    if head == "not":
        return f"not {_held(arguments[0], 4)}"
    if head == "neg":
        return f"-{_held(arguments[0], 8)}"
    if head == "power":
        sign = "**" if all(_is_plain(part) for part in arguments) else " ** "
        return f"{_held(arguments[0], _ATOM)}{sign}{_held(arguments[1], 8)}"
    condition, then, otherwise = arguments
    return f"{_held(then, 2)} if {_held(condition, 2)} else {_held(otherwise, 1)}"


def _is_plain(part: Expression) -> bool:
    if part.head == "number":
        return bool(part.value >= 0)
    return part.head == "name" or (part.head == "field" and "[" not in part.value)


def _held(expression: Expression, level: int) -> str:
    text = text_of(expression)
    own = _PRECEDENCE.get(expression.head, _ATOM)
    if expression.head == "number" and text.startswith("-"):
        own = _PRECEDENCE["neg"]
    return f"({text})" if own < level else text


def _conjuncts(parts: tuple[Expression, ...]) -> list[str]:
    """Joins neighbours such as `0 < a` and `a < 1` into `0 < a < 1`."""
    found: list[str] = []
    previous: Expression | None = None
    for part in parts:
        if previous is not None and _is_chain(previous, part):
            found[-1] += f" {part.head} {_held(part.arguments[1], 6)}"
        else:
            found.append(_held(part, 4))
        previous = part
    return found


def _is_chain(one: Expression, other: Expression) -> bool:
    if not any(one.head in way and other.head in way for way in (_ASCENDING, _DESCENDING)):
        return False
    return one.arguments[1] == other.arguments[0]


def statement_lines(prefix: str, expression: Expression, indent: str) -> list[str]:
    """Sets `prefix expression`, over several lines if need be."""
    line = f"{indent}{prefix}{text_of(expression)}"
    if len(line) <= WIDTH:
        return [line]
    if expression.head in _CALLED:
        return _broken(prefix, expression, indent)
    inner = indent + INDENT
    return [f"{indent}{prefix}(", *_pieces(expression, inner), f"{indent})"]


def _broken(prefix: str, expression: Expression, indent: str) -> list[str]:
    inner = indent + INDENT
    flat = ", ".join(text_of(part) for part in expression.arguments)
    if len(expression.arguments) == 1:
        content = _pieces(expression.arguments[0], inner)
    elif len(inner + flat) <= WIDTH:
        content = [inner + flat]
    else:
        content = [f"{inner}{text_of(part)}," for part in expression.arguments]
    return [f"{indent}{prefix}{_callee(expression)}(", *content, f"{indent})"]


def _pieces(expression: Expression, indent: str) -> list[str]:
    if len(indent + text_of(expression)) <= WIDTH:
        return [indent + text_of(expression)]
    if expression.head in SUMS or expression.head in PRODUCTS:
        return _chain(expression, indent)
    if expression.head in JUNCTIONS:
        level = _PRECEDENCE[expression.head] + 1
        first, *rest = expression.arguments
        lines = _operand("", first, level, indent)
        for part in rest:
            lines += _operand(f"{expression.head} ", part, level, indent)
        return lines
    if expression.head == "if":
        condition, then, otherwise = expression.arguments
        lines = _operand("", then, 2, indent) + _operand("if ", condition, 2, indent)
        return lines + _operand("else ", otherwise, 1, indent)
    return _operand("", expression, 0, indent)


def _operand(prefix: str, part: Expression, level: int, indent: str) -> list[str]:
    text = _held(part, level)
    if len(indent + prefix + text) <= WIDTH:
        return [f"{indent}{prefix}{text}"]
    if text.startswith("(") and _PRECEDENCE.get(part.head, _ATOM) < level:
        return [f"{indent}{prefix}(", *_pieces(part, indent + INDENT), f"{indent})"]
    if part.head in _CALLED:
        return _broken(prefix, part, indent)
    if part.head in PRODUCTS:
        first, *rest = _chain(part, indent)
        return [f"{indent}{prefix}{first.lstrip()}", *rest]
    return [f"{indent}{prefix}{text}"]


def _chain(expression: Expression, indent: str) -> list[str]:
    heads = SUMS if expression.head in SUMS else PRODUCTS
    level = _PRECEDENCE[expression.head]
    rest: list[list[str]] = []
    while expression.head in heads:
        operand = expression.arguments[1]
        rest.append(_operand(f"{expression.head} ", operand, level + 1, indent))
        expression = expression.arguments[0]
    lines = _operand("", expression, level, indent)
    for piece in reversed(rest):
        lines += piece
    return lines
