"""Writes a candidate as the clean policy file that ships."""

from __future__ import annotations

import ast
from dataclasses import replace

from podium.model.records import GPU_MILLI
from podium.policies.language.literal import docstring as docstring_lines
from podium.search.candidate.allowlist import is_docstring
from podium.search.program.expression import Expression, name
from podium.search.program.ingredients import CONSTANT_NOTES, NOTES
from podium.search.program.program import (
    Constant,
    Program,
    fresh,
    names_given,
    roots,
    terms,
    with_roots,
)
from podium.search.program.writer import write
from podium.search.promotion.reduction import Reduced

_MILLI = "MILLI"
_MILLI_NOTE = "Thousandths of a GPU or of a CPU."


def policy_text(reduced: Reduced, docstring: str) -> str:
    """Writes a program with notes on what its quantities mean; another text stays as it is."""
    if reduced.program is None:
        return _with_docstring(reduced.text, docstring)
    program, notes = _with_milli(replace(reduced.program, summary=docstring.strip()))
    notes |= {
        term.name: NOTES[term.expression]
        for term in terms(reduced.program.block)
        if term.expression in NOTES
    }
    notes |= {each.name: _constant_note(each) for each in program.constants if each.bounds}
    # A tuned constant is a float, however it was written.
    fixed = (
        Constant(each.name, float(each.value)) if each.bounds else each
        for each in program.constants
    )
    return write(replace(program, constants=tuple(fixed)), notes)


def _constant_note(constant: Constant) -> str:
    assert constant.bounds is not None
    low, high = constant.bounds
    meaning = CONSTANT_NOTES.get(constant.name, "").rstrip(".")
    tuned = f"uned within {low:g} and {high:g}"
    return f"{meaning} (t{tuned})." if meaning else f"T{tuned}."


def _with_milli(program: Program) -> tuple[Program, dict[str, str]]:
    """Names the number 1000 wherever a program counts in thousandths."""
    title = fresh(_MILLI, names_given(program))
    changed = [_milli_named(root, title) for root in roots(program.block)]
    if changed == list(roots(program.block)):
        return program, {}
    block = with_roots(program.block, iter(changed))
    constants = (*program.constants, Constant(title, GPU_MILLI))
    return replace(program, block=block, constants=constants), {title: _MILLI_NOTE}


def _milli_named(part: Expression, title: str) -> Expression:
    if part.head == "number":
        is_milli = part.value == GPU_MILLI and isinstance(part.value, int)
        return name(title) if is_milli else part
    if part.head == "power" or not part.arguments:
        return part
    arguments = [_milli_named(each, title) for each in part.arguments]
    if part.head in ("sum", "smallest", "largest"):
        arguments[2] = part.arguments[2]  # what a loop begins with is a number
    return Expression(part.head, tuple(arguments), part.value)


def _with_docstring(text: str, docstring: str) -> str:
    """Writes a text with another docstring, and without words of its own.

    A candidate's own claims about its results are not evidence.
    """
    tree = ast.parse(text)
    for each in ast.walk(tree):
        if isinstance(each, ast.Module | ast.FunctionDef):
            each.body = [line for line in each.body if not is_docstring(line, each.body)]
    rest = ast.unparse(tree).strip("\n").replace("\n\ndef ", "\n\n\ndef ")
    blank = "\n\n" if rest.startswith("def ") else "\n"
    return "\n".join(docstring_lines(docstring.strip())) + f"\n{blank}{rest}\n"
