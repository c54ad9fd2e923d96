"""Writes a program as the Python file that a person would have written."""

from __future__ import annotations

from podium.policies.language.literal import docstring, literal
from podium.search.genetic.expression import (
    FUNCTIONS,
    REDUCTIONS,
    Expression,
    has_field,
    walk,
)
from podium.search.genetic.ingredients import NOTES
from podium.search.genetic.layout import INDENT, statement_lines, text_of
from podium.search.genetic.phrasing import comment_on
from podium.search.genetic.program import SUMMARY, Block, Constant, Guard, Program, Term, roots

SPANS = {"gpus": "node.gpu_count", "slots": "len(node.gpu_milli_left)"}
_LEFT = frozenset(["left"])
DOCSTRING = '"""Scores a pod on a node; the highest score wins."""'


def write(program: Program) -> str:
    """Gives the text of a policy file; reading it gives the same program again."""
    arguments = "pod, node, gpu" if program.takes_gpu else "pod, node"
    told = docstring((program.summary or SUMMARY).strip())
    head = [*told, *_imports(program), *_top(program)]
    body = [f"{INDENT}{DOCSTRING}", *_block(program.block, INDENT)]
    return "\n".join([*head, "", "", f"def score({arguments}):", *body, ""]).lstrip("\n")


def _imports(program: Program) -> list[str]:
    heads = {part.head for root in roots(program.block) for _, part in walk(root)}
    wanted = ["HOLD"] if "hold" in heads else []
    if any(constant.bounds for constant in program.constants):
        wanted.append("tunable")
    lines = ["", "import math"] if heads & set(FUNCTIONS) else []
    return [*lines, "", f"from podium.policies import {', '.join(wanted)}"] if wanted else lines


def _top(program: Program) -> list[str]:
    lines = [f"{name} = {literal(value)}" for name, value in program.settings]
    lines += [f"{constant.name} = {_value(constant)}" for constant in program.constants]
    return ["", *lines] if lines else []


def _value(constant: Constant) -> str:
    if constant.bounds is None:
        return repr(constant.value)
    low, high = constant.bounds
    return f"tunable({constant.value!r}, {low!r}, {high!r})"


def _block(block: Block, indent: str) -> list[str]:
    lines: list[str] = []
    loop: list[Term] = []
    for statement in block.statements:
        if isinstance(statement, Term) and statement.expression.head in REDUCTIONS:
            if loop and not _joins(statement, loop):
                lines += _loop(loop, indent)
                loop = []
            loop.append(statement)
            continue
        lines += _loop(loop, indent)
        loop = []
        if isinstance(statement, Guard):
            lines += _guard(statement, indent)
        else:
            lines += _term(statement, indent)
    lines += _loop(loop, indent)
    return [*lines, *statement_lines("return ", block.result, indent)]


def _guard(guard: Guard, indent: str) -> list[str]:
    inner = indent + INDENT
    *lines, last = statement_lines("if ", guard.condition, indent)
    return [*lines, f"{last}:", *_block(guard.block, inner)]


def _term(term: Term, indent: str) -> list[str]:
    words = NOTES.get(term.expression, "") or comment_on(term.expression)
    comment = [f"{indent}# {words}"] if words else []
    return [*comment, *statement_lines(f"{term.name} = ", term.expression, indent)]


def _joins(term: Term, loop: list[Term]) -> bool:
    if term.expression.value != loop[0].expression.value:
        return False
    return not term.expression.names & {other.name for other in loop}


def _loop(loop: list[Term], indent: str) -> list[str]:
    if not loop:
        return []
    inner = indent + INDENT
    lines: list[str] = []
    for term in loop:
        words = NOTES.get(term.expression, "") or comment_on(term.expression)
        lines += [f"{indent}# {words}"] if words else []
        lines.append(f"{indent}{term.name} = {text_of(term.expression.arguments[2])}")
    lines.append(f"{indent}for slot in range({SPANS[loop[0].expression.value]}):")
    if any(has_field(term.expression, _LEFT) for term in loop):
        lines.append(f"{inner}left = node.gpu_milli_left[slot]")
    for term in loop:
        lines += _step(term.name, term.expression, inner)
    return lines


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
