"""Converts what a source provides to the type that a key declares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podium.errors import UnknownName
from podium.settings.key import Key, masked
from podium.settings.url import MASK

EXPECTED: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
}
_ACCEPTED: Mapping[type, tuple[type, ...]] = {
    bool: (bool,),
    int: (int,),
    float: (int, float),
    str: (str,),
    Path: (str, Path),
}
_TRUTH = {
    "true": True, "1": True, "yes": True, "on": True,
    "false": False, "0": False, "no": False, "off": False,
}  # fmt: skip


def from_text(key: Key, text: str) -> Any:
    """Reads an environment variable's text as the key's type; raises ValueError in words."""
    try:
        if key.kind is bool:
            return _TRUTH[text.strip().lower()]
        return key.kind(text)
    except (ValueError, KeyError):
        raise ValueError(_complaint(key, f'"{text}"')) from None


def checked(key: Key, value: Any, folder: Path) -> Any:
    """Accepts a typed value; raises ValueError in words. Paths are relative to the folder."""
    accepted = _ACCEPTED[key.kind]
    if not isinstance(value, accepted) or (isinstance(value, bool) and key.kind is not bool):
        raise ValueError(_complaint(key, _quoted(value)))
    if key.kind is Path:
        return folder / Path(str(value)).expanduser()
    try:
        result = key.kind(value)
    except OverflowError:
        raise ValueError(f"the whole number is too large for {EXPECTED[float]}") from None
    if key.about.choices and str(result).lower() in key.about.choices:
        result = str(result).lower()
    objection = key.about.objection(result)
    if objection:
        raise ValueError(_complaint(key, MASK) if key.about.is_secret else objection)
    return result


def advice(key: Key, given: object) -> str:
    """Describes what the key takes, with the closest choice first."""
    if key.about.choices:
        return UnknownName.among(key.name, str(given), key.about.choices).hint
    wanted = (
        f"{EXPECTED[key.kind]} of {key.about.bounds}" if key.about.bounds else EXPECTED[key.kind]
    )
    return f"give {wanted} ({key.about.help})"


def _complaint(key: Key, given: str) -> str:
    seen = MASK if key.about.is_secret or key.about.is_url else masked(key, given)
    return f"{seen} is not {EXPECTED[key.kind]}"


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value}"
