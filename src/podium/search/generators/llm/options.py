"""Reads the settings of how models answer, as a plan keeps them: only what is not usual."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

from podium.errors import UsageError
from podium.files.text_file import read_text
from podium.search.generators.llm.settings import OWN_PARAMETERS_SET_BY, LlmSettings

MOST_BYTES = 64 << 10
_USUAL = LlmSettings(("any",), mode="replay", cassette=Path("any"))


def read_temperatures(text: str) -> list[float]:
    """Reads one temperature or several.

    >>> read_temperatures("0.7, 1.2")
    [0.7, 1.2]
    >>> read_temperatures("none")
    []
    """
    if text.strip().lower() == "none":
        return []
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = [math.nan]
    if not all(0 <= each <= 2 for each in found):
        raise UsageError(
            f'"{text}" is not a temperature',
            hint="give a number from 0 to 2, several as in 0.7,1.2, or none",
        )
    return found


def read_parameters(text: str) -> dict[str, Any]:
    """Reads a table: JSON, TOML, or the name of a file with one.

    >>> read_parameters('{"top_p": 0.9}') == read_parameters("top_p = 0.9")
    True
    """
    written = text.strip()
    if written.endswith((".json", ".toml")) and "\n" not in written:
        written = read_text(Path(written).expanduser(), MOST_BYTES).strip()
    if not written:
        return {}
    found = _table(written)
    for name in found.keys() & OWN_PARAMETERS_SET_BY.keys():
        raise UsageError(
            f'the parameter "{name}" cannot be passed on', hint=OWN_PARAMETERS_SET_BY[name]
        )
    return found


def _table(written: str) -> dict[str, Any]:
    try:
        found = json.loads(written) if written.startswith("{") else tomllib.loads(written)
        json.dumps(found, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(
            f"the parameters of language models are not a table: {error}",
            hint="""write JSON such as {"top_p": 0.9}, or TOML such as top_p = 0.9""",
        ) from None
    return dict(found)


def unusual(options: dict[str, Any]) -> dict[str, Any]:
    """Leaves out what is as usual."""
    usual = {**_USUAL.as_object(), "temperature": [_USUAL.temperature], "prompts": ""}
    return {name: value for name, value in options.items() if value != usual[name]}
