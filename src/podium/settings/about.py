"""Describes a setting: what it is for, how else it is called, which values it takes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.settings.folder import Rule, any_value, no_value


@dataclass(frozen=True, slots=True)
class About:
    """What a setting is for and which values it takes."""

    help: str
    short_env: str = ""  # a second, shorter environment name
    flag: str = ""  # where it is not the key's own name
    choices: tuple[str, ...] = ()
    at_least: float = -math.inf
    above: float = -math.inf
    at_most: float = math.inf
    is_secret: bool = False  # shown masked, everywhere
    is_url: bool = False  # its password is shown masked
    from_folder: Rule = no_value  # values that a folder's file may set without being trusted

    @property
    def bounds(self) -> str:
        """Describes the numbers that it takes."""
        limits = [
            (f"at least {self.at_least:g}", self.at_least > -math.inf),
            (f"more than {self.above:g}", self.above > -math.inf),
            (f"at most {self.at_most:g}", self.at_most < math.inf),
        ]
        return ", ".join(text for text, is_set in limits if is_set)

    def objection(self, value: object) -> str:
        """Explains why a value of the right type cannot be used; empty if it can."""
        if self.choices and value not in self.choices:
            return f'"{value}" is not one of {", ".join(self.choices)}'
        if isinstance(value, int | float):
            if isinstance(value, float) and not math.isfinite(value):
                return f"{value} is not a finite number"
            if value < self.at_least or value <= self.above:
                return f"{value} is too small"
            if value > self.at_most:
                return f"{value} is too large"
        return ""


def about(help: str, **details: Any) -> dict[str, About]:
    """Builds the metadata of a section's field."""
    return {"about": About(help, **details)}


def data(help: str, **details: Any) -> dict[str, About]:
    """Builds it for a setting that is data: a folder's file may choose any value of it."""
    return about(help, from_folder=any_value, **details)


def cache_folder(name: str) -> Callable[[], Path]:
    """Places a folder in the user's cache."""

    def place() -> Path:
        home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        return home / "podium" / name

    return place


def data_folder(name: str) -> Callable[[], Path]:
    """Places a folder in the user's data."""

    def place() -> Path:
        home = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser()
        return home / "podium" / name

    return place


def data_file_url(name: str) -> str:
    """Addresses a SQLite file in the folder for the user's data."""
    return f"sqlite:///{data_folder(name)()}"
