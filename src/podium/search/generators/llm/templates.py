"""Reads prompt templates, Podium's own or the user's, and fills their placeholders.

`{{name}}` stands for a value. A paragraph whose placeholders are all empty is left out: a heading
stands in one paragraph with what it is about.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from podium.errors import InputError, UnknownName
from podium.files.text_file import read_text

SYSTEM, START_TEMPLATE, IMPROVE, REPAIR_TEMPLATE = (
    "system.md",
    "start.md",
    "improve.md",
    "repair.md",
)
SENTENCES = "operators.toml"
FILES = (SYSTEM, START_TEMPLATE, IMPROVE, REPAIR_TEMPLATE, SENTENCES)
"""Every prompt is `system.md` and one of the next three; the last has what `operator` says."""

PLACEHOLDERS = {
    "forms": "the forms that score may have",
    "holding": "whether a policy may hold pods back, and how",
    "fields": "every field of pod and node, with its meaning",
    "rules": "what a policy may contain",
    "example": "a policy that passes the gates",
    "workload": "pods by class and GPU demand, CPU per GPU asked for and there, kinds of nodes",
    "fitness": "the formula of the fitness in words",
    "losses": "where GPUs are lost under fgd, and under the best program so far",
    "legend": "what the figures of programs mean; empty where there are none",
    "programs": "earlier programs with their thoughts, fitness and figures, the best last",
    "notes": "what the run has learned so far",
    "stagnant": "a sentence where the search has found nothing better for long",
    "operator": "what is asked for this time, a sentence of operators.toml",
    "text": "the program to repair",
    "gate": "the gate that refused it",
    "reason": "why",
}
"""What a template may name, and what stands there instead."""

MOST_BYTES = 200_000
_PLACEHOLDER = re.compile(r"\{\{\s*(\w*)\s*\}\}")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class Templates:
    """The texts of all files, by name; and the sentences of operators, by operator."""

    texts: Mapping[str, str]
    operators: Mapping[str, str]

    @classmethod
    def read(cls, folder: Path | None = None) -> Templates:
        """Reads Podium's own files, and those of a folder in their place.

        Raises:
            InputError: the folder has none of them.
            UnknownName: a file or a placeholder has the name of none.
        """
        own = _own_texts()
        if folder is None:
            return cls(own, _sentences(own[SENTENCES], "", {}))
        known = _sentences(own[SENTENCES], "", {})
        given = {name: read_text(folder / name, MOST_BYTES) for name in _present(folder)}
        for name, text in given.items():
            if name != SENTENCES:
                _check(text, str(folder / name))
        written = given.get(SENTENCES, "")
        return cls({**own, **given}, _sentences(written, str(folder / SENTENCES), known))

    @property
    def digest(self) -> str:
        """Digests all texts."""
        text = json.dumps([dict(self.texts), dict(self.operators)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def fill(self, name: str, values: Mapping[str, str]) -> str:
        """Writes a template with values in the place of its placeholders."""
        paragraphs = _PARAGRAPHS.split(self.texts[name].strip("\n"))
        kept = [each for each in paragraphs if not _is_empty(each, values)]
        return _PLACEHOLDER.sub(lambda found: values.get(found[1], ""), "\n\n".join(kept))


def _is_empty(paragraph: str, values: Mapping[str, str]) -> bool:
    named = [found[1] for found in _PLACEHOLDER.finditer(paragraph)]
    return bool(named) and not any(values.get(each) for each in named)


@functools.cache
def _own_texts() -> Mapping[str, str]:
    folder = resources.files("podium.search.generators.llm").joinpath("prompts")
    return {name: folder.joinpath(name).read_text("utf-8") for name in FILES}


def _present(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise InputError.at(folder, "no such folder of prompt templates", hint="name a folder")
    for path in sorted(folder.iterdir()):
        if path.name not in FILES and _looks_like_a_template(path):
            raise UnknownName.among("prompt template", path.name, FILES, where=str(path))
    found = [name for name in FILES if (folder / name).is_file()]
    if not found:
        raise InputError.at(
            folder, "the folder has no prompt templates", hint=f"known: {', '.join(FILES)}"
        )
    return found


def _looks_like_a_template(path: Path) -> bool:
    """Tells whether whoever wrote a file may take it for one that is read."""
    is_beside = path.name.startswith(".") or path.stem.casefold() == "readme"
    return path.suffix.casefold() in (".md", ".toml") and not is_beside and path.is_file()


def _check(text: str, where: str) -> None:
    for found in _PLACEHOLDER.finditer(text):
        if found[1] not in PLACEHOLDERS:
            line = text[: found.start()].count("\n") + 1
            place = f"{where}, line {line}"
            raise UnknownName.among("placeholder", found[1], PLACEHOLDERS, where=place)


def _sentences(text: str, where: str, known: Mapping[str, str]) -> dict[str, str]:
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = 'write lines such as modify = "Change the best program above."'
        raise InputError(f"not TOML: {error}", where=where, hint=hint) from error
    for name, sentence in given.items():
        if known and name not in known:
            raise UnknownName.among("operator", name, known, where=where)
        if not isinstance(sentence, str) or not sentence.strip():
            raise InputError(f"{name} is not a sentence", where=where, hint="give a text")
    return {**known, **given}
