"""Writes a program as the Python file that a person would have written, with comments."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from podium.policies.language.literal import comment, docstring, literal
from podium.search.program.expression import (
    COMPARISONS,
    FUNCTIONS,
    PRODUCTS,
    REDUCTIONS,
    SUMS,
    Expression,
    has_field,
    number,
    walk,
)
from podium.search.program.ingredients import NOTES
from podium.search.program.layout import INDENT, WIDTH, statement_lines, text_of
from podium.search.program.program import (
    SUMMARY,
    Block,
    Constant,
    Function,
    Guard,
    Program,
    Term,
    roots,
    terms,
)
from podium.search.program.units import FIELDS

LONGEST = 84
"""Longer phrases explain nothing."""

_COMPARED = {
    "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least", "==": "is exactly",
    "!=": "is not",
}  # fmt: skip
_BETWEEN = {
    "+": "plus", "-": "less", "*": "times", "/": "over", "//": "in whole times of",
    "%": "beyond whole times of",
}  # fmt: skip
_BEFORE = {"neg": "minus", "abs": "the size of", "int": "whole steps of", "not": "not"}
_OPEN = ("neg", "abs", "int", "min", "max", "power", "call", *FUNCTIONS)
"""Whose words would take in what follows them."""

_NUMBERS, _TESTS = (*SUMS, *PRODUCTS, *_OPEN), (*COMPARISONS, "not")
# What needs no brackets on the left and on the right of an operation, and inside of others.
_SIDES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "+": (("neg", *SUMS, *PRODUCTS), (*SUMS, *PRODUCTS)),
    "-": (("neg", *SUMS, *PRODUCTS), PRODUCTS),
    **dict.fromkeys(PRODUCTS, (PRODUCTS, ())), "*": (PRODUCTS, ("*", "/")),
}  # fmt: skip
_INSIDE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(COMPARISONS, _NUMBERS), **dict.fromkeys(("min", "max"), (*SUMS, *PRODUCTS)),
    "neg": ("*", "/"), "not": COMPARISONS, "and": _TESTS, "or": (*_TESTS, "and"),
    "if": (*_NUMBERS, *_TESTS),
}  # fmt: skip
_REDUCED = {
    "sum": "Sums up", "smallest": "Finds the smallest of", "largest": "Finds the largest of",
}  # fmt: skip


def comment_on(expression: Expression) -> str:
    """Writes a comment of at most one line, or none."""
    if any(part.head == "call" and len(part.arguments) > 1 for _, part in walk(expression)):
        return ""  # the function says what it does
    words = _reduction(expression) if expression.head in _REDUCED else phrase(expression)
    return words[0].upper() + words[1:] + "." if 0 < len(words) <= LONGEST else ""


def _reduction(expression: Expression) -> str:
    value, condition, _ = expression.arguments
    is_count = expression.head == "sum" and value.head == "number"
    words = "Counts GPUs" if is_count else f"{_REDUCED[expression.head]} {phrase(value)} of GPUs"
    return words if condition.head == "always" else f"{words} where {phrase(condition)}"


def phrase(expression: Expression) -> str:
    """Describes an expression in words, with brackets where they would be read otherwise.

    Words that need none keep their every letter: the texts of seeds are part of plans.
    """
    head, arguments = expression.head, expression.arguments
    if head in PRODUCTS and not (arguments[0].is_leaf or arguments[0].head == "if"):
        right = _operand(arguments[1], (*_SIDES[head][1], *_OPEN))
        return f"{phrase(arguments[0])}, {_BETWEEN[head]} {right}"  # a comma says the same
    return _inner(expression)


def _inner(expression: Expression, *, is_last: bool = True) -> str:
    """Describes an expression; another word of the same formula may follow unless it is last."""
    head, arguments = expression.head, expression.arguments
    if head == "number":
        return repr(expression.value)
    if head == "field":
        return FIELDS[expression.value].phrase
    if head == "name":
        return str(expression.value).lower().replace("_", " ")
    if head in _BETWEEN:
        plain, plain_right = _SIDES[head]
        left = _operand(arguments[0], plain, is_last=False)
        right = (*plain_right, *_OPEN) if is_last else plain_right
        return f"{left} {_BETWEEN[head]} {_operand(arguments[1], right, is_last=is_last)}"
    words = [_operand(part, _INSIDE.get(head, ())) for part in arguments]
    if head in COMPARISONS:
        return f"{words[0]} {_COMPARED[head]} {words[1]}"
    if head in _BEFORE:
        return f"{_BEFORE[head]} {words[0]}"
    return _called(expression, words) if head == "call" else _rest(head, words)


def _operand(part: Expression, plain: Collection[str], *, is_last: bool = True) -> str:
    """Describes a part, in brackets unless it is of a kind that needs none at its place."""
    is_square = part.head == "power" and part.arguments[1] == number(2)
    if part.is_leaf or is_square or part.head in plain:
        return _inner(part, is_last=is_last)
    return f"({_inner(part)})"


def _rest(head: str, words: list[str]) -> str:
    if head in ("and", "or"):
        return f" {head} ".join(words)
    if head in ("min", "max"):
        return f"the {'least' if head == 'min' else 'most'} of {' and '.join(words)}"
    if head == "if":
        return f"{words[1]} where {words[0]}, else {words[2]}"
    if head == "power":
        return f"{words[0]} squared" if words[1] == "2" else f"{words[0]} to the power {words[1]}"
    if head in FUNCTIONS:
        return f"the {head} of {words[0]}"
    return head


def _called(expression: Expression, words: list[str]) -> str:
    return f"the {str(expression.value).replace('_', ' ')} of {' and '.join(words)}"


SPANS = {"gpus": "node.gpu_count", "slots": "len(node.gpu_milli_left)"}
_LEFT = frozenset(["left"])
DOCSTRING = '"""Scores a pod on a node; the highest score wins."""'


def write(program: Program, notes: Mapping[str, str] | None = None) -> str:
    """Writes the text of a policy file; reading it gives the same program again.

    `notes` are comments on constants and terms by name. Without them, terms get a comment that
    says what they are made of: texts that language models have seen keep their every letter.
    """
    arguments = "pod, node, gpu" if program.takes_gpu else "pod, node"
    lines = docstring((program.summary or SUMMARY).strip())
    told = _described(program) if notes is None else notes
    head = [*lines, *_imports(program), *_top(program, told)]
    for function in program.functions:
        head += ["", "", *_function(function)]
    body = [f"{INDENT}{DOCSTRING}", *_Body(told).block(program.block, INDENT)]
    return "\n".join([*head, "", "", f"def score({arguments}):", *body, ""]).lstrip("\n")


def _function(function: Function) -> list[str]:
    """Writes a function, with one return for each case that it tells apart."""
    lines = [f"def {function.name}({', '.join(function.parameters)}):"]
    if function.summary:
        lines.append(f'{INDENT}"""{function.summary}"""')
    rest = function.expression
    while rest.head == "if":
        condition, then, rest = rest.arguments
        *first, last = statement_lines("if ", condition, INDENT)
        lines += [*first, f"{last}:", *statement_lines("return ", then, INDENT + INDENT)]
    return [*lines, *statement_lines("return ", rest, INDENT)]


def _described(program: Program) -> dict[str, str]:
    return {
        term.name: NOTES.get(term.expression, "") or comment_on(term.expression)
        for term in terms(program.block)
    }


def _imports(program: Program) -> list[str]:
    every = (*roots(program.block), *(each.expression for each in program.functions))
    heads = {part.head for root in every for _, part in walk(root)}
    wanted = ["HOLD"] if "hold" in heads else []
    if any(constant.bounds for constant in program.constants):
        wanted.append("tunable")
    lines = ["", "import math"] if heads & set(FUNCTIONS) else []
    return [*lines, "", f"from podium.policies import {', '.join(wanted)}"] if wanted else lines


def _top(program: Program, notes: Mapping[str, str]) -> list[str]:
    lines = [f"{name} = {literal(value)}" for name, value in program.settings]
    for constant in program.constants:
        lines += comment(notes.get(constant.name, ""), width=WIDTH)
        lines.append(f"{constant.name} = {_value(constant)}")
    return ["", *lines] if lines else []


def _value(constant: Constant) -> str:
    if constant.bounds is None:
        return repr(constant.value)
    low, high = constant.bounds
    return f"tunable({constant.value!r}, {low!r}, {high!r})"


@dataclass(frozen=True, slots=True)
class _Body:
    notes: Mapping[str, str]

    def block(self, block: Block, indent: str) -> list[str]:
        lines: list[str] = []
        loop: list[Term] = []
        for statement in block.statements:
            if isinstance(statement, Term) and statement.expression.head in REDUCTIONS:
                if loop and not _joins(statement, loop):
                    lines += self._loop(loop, indent)
                    loop = []
                loop.append(statement)
                continue
            lines += self._loop(loop, indent)
            loop = []
            if isinstance(statement, Guard):
                lines += self._guard(statement, indent)
            else:
                lines += self._term(statement, indent)
        lines += self._loop(loop, indent)
        return [*lines, *statement_lines("return ", block.result, indent)]

    def _guard(self, guard: Guard, indent: str) -> list[str]:
        *lines, last = statement_lines("if ", guard.condition, indent)
        return [*lines, f"{last}:", *self.block(guard.block, indent + INDENT)]

    def _term(self, term: Term, indent: str) -> list[str]:
        written = statement_lines(f"{term.name} = ", term.expression, indent)
        return [*self._comment(term, indent), *written]

    def _comment(self, term: Term, indent: str) -> list[str]:
        words = self.notes.get(term.name, "")
        return [f"{indent}# {words}"] if words else []

    def _loop(self, loop: list[Term], indent: str) -> list[str]:
        if not loop:
            return []
        inner = indent + INDENT
        lines: list[str] = []
        for term in loop:
            lines += self._comment(term, indent)
            lines.append(f"{indent}{term.name} = {text_of(term.expression.arguments[2])}")
        lines.append(f"{indent}for slot in range({SPANS[loop[0].expression.value]}):")
        if any(has_field(term.expression, _LEFT) for term in loop):
            lines.append(f"{inner}left = node.gpu_milli_left[slot]")
        for term in loop:
            lines += _step(term.name, term.expression, inner)
        return lines


def _joins(term: Term, loop: list[Term]) -> bool:
    if term.expression.value != loop[0].expression.value:
        return False
    return not term.expression.names & {other.name for other in loop}


def _step(name: str, expression: Expression, indent: str) -> list[str]:
    value, condition, _ = expression.arguments
    lines: list[str] = []
    if condition.head != "always":
        lines.append(f"{indent}if {text_of(condition)}:")
        indent += INDENT
    if expression.head == "sum":
        return [*lines, *statement_lines(f"{name} += ", value, indent)]
    call = "min" if expression.head == "smallest" else "max"
    return [*lines, f"{indent}{name} = {call}({name}, {text_of(value)})"]
