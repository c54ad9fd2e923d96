"""Writes a candidate as the policy file that ships: with names, functions and notes."""

from __future__ import annotations

import ast
from dataclasses import replace

from podium.model.records import GPU_MILLI
from podium.policies.language.literal import docstring as docstring_lines
from podium.search.candidate.allowlist import is_docstring
from podium.search.program.expression import (
    ALWAYS,
    REDUCTIONS,
    Expression,
    name,
    replaced,
    walk,
)
from podium.search.program.ingredients import CONSTANT_NOTES, NOTES
from podium.search.program.layout import WIDTH, text_of
from podium.search.program.program import (
    Block,
    Constant,
    Program,
    Statement,
    Term,
    fresh,
    names_given,
    roots,
    terms,
    with_roots,
)
from podium.search.program.writer import SPANS, comment_on, write
from podium.search.promotion.ablation import addends
from podium.search.promotion.reduction import Reduced

_MILLI = "MILLI"
_MILLI_NOTE = "Thousandths of a GPU or of a CPU."


def policy_text(reduced: Reduced, docstring: str) -> str:
    """Writes a program with notes on what its quantities mean; another text stays as it is."""
    if reduced.program is None:
        return _with_docstring(reduced.text, docstring)
    whole = with_named_terms(replace(reduced.program, summary=docstring.strip()))
    program, notes = _with_milli(whole)
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
    return _with_helpers(replace(program, constants=tuple(fixed)), notes, reduced.program)


def with_named_terms(program: Program) -> Program:
    """Names the terms that a score is the sum of, so that it reads, and is explained, as a sum."""
    found = list(addends(program.block.result))
    if len([addend for _, addend, _ in found if addend.head != "number"]) < 2:
        return program
    taken, result, named = names_given(program), program.block.result, []
    for path, addend, _ in found:
        if addend.is_leaf:
            continue
        title = fresh(_title(addend), taken)
        taken.add(title)
        named.append(Term(title, addend))
        result = replaced(result, path, name(title))
    statements = (*program.block.statements, *named)
    return replace(program, block=Block(statements, result))


def _title(addend: Expression) -> str:
    """Names a term after the first quantity in it."""
    parts = [part for _, part in walk(addend) if part.head in ("name", "field")]
    titles = [str(part.value) for part in parts if not str(part.value).isupper()]
    stem = titles[0].partition("[")[0].replace(".", "_") if titles else "constant"
    kind = "steps" if any(part.head == "int" for _, part in walk(addend)) else "score"
    return f"{stem}_{kind}"


def _with_helpers(program: Program, notes: dict[str, str], bare: Program) -> str:
    """Writes loops over GPUs as functions with a docstring each, and the rest below them."""
    given, taken = {term.name for term in terms(program.block)}, names_given(program)
    meant = {term.name: term.expression for term in terms(bare.block)}
    helpers: list[str] = []
    statements: list[Statement] = []
    for each in program.block.statements:
        if isinstance(each, Term) and _is_helper(each, given):
            told = notes.pop(each.name, "") or comment_on(meant.get(each.name, each.expression))
            call, lines = _helper(each, told or "Looks at every GPU of the node.", taken)
            if max(map(len, lines)) <= WIDTH:
                helpers += ["", "", *lines]
                each = Term(each.name, name(call))
        statements.append(each)
    text = write(replace(program, block=Block(tuple(statements), program.block.result)), notes)
    head, mark, body = text.partition("\n\n\ndef score(")
    return "\n".join([head, *helpers]) + mark + body if helpers else text


def _is_helper(term: Term, given: set[str]) -> bool:
    return term.expression.head in REDUCTIONS and not term.expression.names & given


def _helper(term: Term, note: str, taken: set[str]) -> tuple[str, list[str]]:
    """Writes a loop as a function; returns the call, and the lines of the function."""
    value, condition, start = term.expression.arguments
    is_sum = term.expression.head == "sum"
    fields = term.expression.fields
    takes = [each for each in ("pod", "gpu") if any(f.split(".")[0] == each for f in fields)]
    arguments = ", ".join(sorted({"node", *takes}, key=["pod", "node", "gpu"].index))
    title = fresh(f"{'sum' if is_sum else 'find'}_{term.name}", taken)
    taken.add(title)
    call = f"{title}({arguments})"
    lines = [f"def {call}:", f'    """{note}"""', f"    found = {text_of(start)}"]
    lines.append(f"    for slot in range({SPANS[term.expression.value]}):")
    if "left" in fields:
        lines.append("        left = node.gpu_milli_left[slot]")
    indent = "        "
    if condition != ALWAYS:
        lines.append(f"{indent}if {text_of(condition)}:")
        indent += "    "
    choice = {"sum": f"found += {text_of(value)}",
              "smallest": f"found = min(found, {text_of(value)})",
              "largest": f"found = max(found, {text_of(value)})"}  # fmt: skip
    return call, [*lines, indent + choice[term.expression.head], "    return found"]


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
