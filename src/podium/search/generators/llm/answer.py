"""Reads a thought and a program out of whatever a language model answered."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.search.candidate.text import parse_text
from podium.search.generators.llm.exchange import (
    CUT,
    answer_text,
    first_choice,
    first_message,
    reasoning_text,
    shortened,
)

LONGEST_THOUGHT = 300
LONGEST_ANSWER = 100_000

_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"^\W*thought\W*[:\-]\W*(?P<thought>.+)$", re.IGNORECASE | re.MULTILINE)
_CODE_LINE = re.compile(r"(import |from \w[\w.]* import |def \w+\(|[A-Z][A-Z0-9_]* *=|\"\"\"|''')")
_HAS_SCORE = re.compile(r"^\s*def\s+score\s*\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an answer contains: a program with its thought, or the reason why there is none."""

    text: str = ""
    thought: str = ""
    problem: str = ""


LONGER_ANSWERS = "allow longer answers with --max-tokens (search.max_tokens)"
_CUT_OFF = Answer(problem=f"the answer was cut off within the program; {LONGER_ANSWERS}")
_CODE_KEYS = ("code", "program", "policy", "python")


@dataclass(frozen=True, slots=True)
class _Block:
    text: str = ""
    is_closed: bool = True

    @property
    def has_score(self) -> bool:
        return bool(_HAS_SCORE.search(self.text))

    @property
    def rank(self) -> tuple[bool, bool]:
        return self.has_score, _tree(self.text) is not None


def read_body(body: Any) -> Answer:
    """Reads the body of a chat completion."""
    if not isinstance(body, Mapping) or not first_choice(body):
        return Answer(problem="the answer has no choices")
    message, finish = first_message(body), str(first_choice(body).get("finish_reason"))
    refusal, text = message.get("refusal"), answer_text(body)
    if isinstance(refusal, str) and refusal.strip():
        return Answer(problem=f"the model refused: {shortened(refusal, LONGEST_THOUGHT)}")
    if finish == "content_filter":
        return Answer(problem="the service's content filter withheld the answer")
    is_cut = finish in ("length", CUT)
    found = read_answer(text, is_cut) if text.strip() else _empty(finish)
    if found.text:
        return found
    # Some models, or services, leave the answer among what they thought.
    thought_out = read_answer(reasoning_text(body), is_cut=True)
    return thought_out if thought_out.text else found


def _empty(finish: str) -> Answer:
    reason = finish
    if finish == "length":
        reason = f"the limit on its length was reached first; {LONGER_ANSWERS}"
    return Answer(problem=f"the answer is empty ({reason})")


def read_answer(text: str, is_cut: bool = False) -> Answer:
    """Reads a program out of a text: fenced in any way, or bare, with prose around it or none."""
    plain = _plain(text[:LONGEST_ANSWER])
    said = _THINKING.sub("", plain).strip()
    answer = (
        _read_object(said) or _read_fenced(said, is_cut) or _read_bare(said, is_cut)
        # Nothing but thinking: perhaps the program is in it.
        or (_read_fenced(plain, is_cut=True) if not said else None)
    )  # fmt: skip
    if answer is None:
        quoted = shortened(said, 120) or "only thinking"
        reason = "was cut off before a program came" if is_cut else "holds no program"
        return Answer(problem=f'the answer {reason}: "{quoted}"')
    return answer


def _plain(text: str) -> str:
    # Half characters and zeros are what JSON can say and no file or database can hold.
    whole = text.encode(errors="replace").decode()
    return whole.replace("\r\n", "\n").replace("\0", "")


def _read_object(text: str) -> Answer | None:
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    named = (found.get(key) for key in _CODE_KEYS)
    code = next((each for each in named if isinstance(each, str) and each.strip()), None)
    thought = found.get("thought")
    if code is None:
        return None
    inner = read_answer(code) if _fenced(code)[1] else Answer(_tidy(code))
    return Answer(inner.text, _one_line(str(thought or "")), inner.problem)


def _read_fenced(text: str, is_cut: bool) -> Answer | None:
    before, blocks = _fenced(text)
    objects = [_read_object(block.text.strip()) for block in blocks if block.is_closed]
    written = [each for each in objects if each is not None and each.text]
    if written and not any(block.has_score for block in blocks):
        thought = written[-1].thought or _thought(before, text, "")
        return Answer(written[-1].text, thought)
    # Models show a parent before their own program, and an example of its use after it.
    best = max(enumerate(blocks), key=lambda row: (row[1].rank, row[0]), default=(0, _Block()))[1]
    if not (best.has_score or _looks_like_code(best.text)):
        return None
    if not best.is_closed and is_cut:
        return _CUT_OFF
    code = best.text if best.is_closed else _without_prose_after(best.text.split("\n"))
    return Answer(_tidy(code), _thought(before, text, best.text))


def _read_bare(text: str, is_cut: bool) -> Answer | None:
    lines = [line for line in text.split("\n") if not _FENCE.match(line)]
    starts = [i for i, line in enumerate(lines) if _CODE_LINE.match(line)]
    if not starts or not _HAS_SCORE.search(text):
        return None
    if is_cut:
        return _CUT_OFF
    before = "\n".join(lines[: starts[0]])
    code = _without_prose_after(lines[starts[0] :])
    return Answer(_tidy(code), _thought(before, text, code))


def _without_prose_after(lines: list[str]) -> str:
    left = lines
    while left:
        tree, line = _parsed("\n".join(left))
        if tree is not None or not line:
            break
        left = left[: min(line, len(left)) - 1]
    code = "\n".join(left)
    return code if _HAS_SCORE.search(code) else "\n".join(lines)


def _fenced(text: str) -> tuple[str, list[_Block]]:
    """Splits a text into what stands before its first fence, and its blocks."""
    before: list[str] = []
    blocks: list[_Block] = []
    inside: list[str] | None = None
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if inside is None and match:
            inside, fence = [], match["fence"]
        elif inside is None:
            before += [line] if not blocks else []
        elif match and match["fence"].startswith(fence) and not match["info"].strip():
            blocks.append(_Block(textwrap.dedent("\n".join(inside)), True))
            inside = None
        else:
            inside.append(line)
    if inside is not None:
        blocks.append(_Block(textwrap.dedent("\n".join(inside)), False))
    return "\n".join(before), blocks


def _looks_like_code(text: str) -> bool:
    return any(_CODE_LINE.match(line) for line in text.split("\n"))


def _thought(before: str, text: str, code: str) -> str:
    named = _THOUGHT.search(before) or _THOUGHT.search(text.replace(code, ""))
    if named:
        return _one_line(named["thought"])
    first = next((line for line in before.split("\n") if line.strip(" #*`")), "")
    if first:
        return _one_line(first)
    tree = _tree(code)
    return _one_line(((ast.get_docstring(tree) if tree else "") or "").split("\n")[0])


def _one_line(text: str) -> str:
    return shortened(text.strip(" *#_`\"'\n\t"), LONGEST_THOUGHT)


def _tidy(code: str) -> str:
    return code.strip("\n").rstrip() + "\n"


def _tree(text: str) -> ast.Module | None:
    return _parsed(text)[0]


def _parsed(text: str) -> tuple[ast.Module | None, int]:
    """Parses a text, or gives the line where that fails; 0 is no line in particular."""
    try:
        return parse_text(text), 0
    except SyntaxError as error:
        return None, error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return None, 0
