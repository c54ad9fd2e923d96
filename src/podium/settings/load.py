"""Composes the settings: flag > environment > ./podium.toml > the user's podium.toml > default.

What ./podium.toml sets beyond data counts only where the user trusts it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from podium.errors import SettingsError
from podium.settings.key import keys, sections
from podium.settings.secret import Secrets, is_secret_name, known_secrets
from podium.settings.sections import Settings
from podium.settings.sources import Reading, Refusal
from podium.settings.toml import Document, read_document
from podium.settings.trust import UNTRUSTED, Trusted, doubt_own

FILE = "podium.toml"


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Reads every source and says where each value came from.

    Args:
        flags: values given on the command line by path ("simulate.seed"); None is not given.
        environ: the environment; the process's own unless given.
        folder: where podium.toml is looked for; the working folder unless given.

    Raises:
        SettingsError: something is unknown or cannot be used; all problems are shown together.
    """
    settings, refused = inspect_settings(flags, environ=environ, folder=folder)
    if refused:
        raise refusal(list(refused.values()))
    return settings


def inspect_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> tuple[Settings, Mapping[str, Refusal]]:
    """Reads every source; what a file may not set does not count, and is told beside."""
    variables = os.environ if environ is None else environ
    user_file, file = user_folder(variables) / FILE, (folder or Path()) / FILE
    reading = Reading()
    reading.add_file(user_file, str(user_file), doubt_own)
    if not (file.exists() and user_file.exists() and file.samefile(user_file)):
        reading.add_file(file, FILE, Trusted.of(variables).doubt_of)
    reading.add_environment(variables)
    reading.add_flags(flags or {})
    if reading.problems:
        raise together(reading.problems)
    return _settings(reading), reading.refused


def wishes(folder: Path) -> tuple[Document, list[Refusal]]:
    """Reads the file of a folder, and lists what it sets beyond data.

    Raises:
        SettingsError: there is none, or it is wrong.
    """
    path = folder / FILE
    if not path.exists():
        hint = f"go to the folder whose {FILE} you trust"
        raise SettingsError(f"there is no {FILE} in this folder", where=str(path), hint=hint)
    document, reading = read_document(path, FILE), Reading()
    reading.add_document(document, UNTRUSTED)
    if reading.problems:
        raise together(reading.problems)
    return document, list(reading.refused.values())


def refusal(refused: Sequence[Refusal]) -> SettingsError:
    """Builds the error for what files may not set: which keys, where, and the two ways out."""
    first = refused[0]
    count = f"{len(refused)} settings are" if len(refused) > 1 else f"{first.key.path} is"
    names = ", ".join(each.key.env_names[0] for each in refused)
    return SettingsError(
        f"{count} not taken from {first.file}: {first.doubt.reason}",
        where="\n".join(f"{each.place}, [{each.key.section}] {each.key.name}" for each in refused),
        hint=f"{first.doubt.advice}; or set {names}, or the flag",
    )


def configured_secrets(words: Sequence[str] = (), folder: Path | None = None) -> Secrets:
    """Gathers what is secret in every source, also where the settings themselves are at fault."""
    files = (user_folder(os.environ) / FILE, (folder or Path()) / FILE)
    found: list[tuple[str, str]] = []
    for path in files:
        with contextlib.suppress(SettingsError):
            found += texts_of(read_document(path, path.name).data)
    tokens = [text for name, text in found if is_secret_name(name)]
    return known_secrets(os.environ, [*words, *(text for _, text in found)], tokens)


def texts_of(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Lists the texts in a table with their keys."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from texts_of(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each, name)


def user_folder(environ: Mapping[str, str]) -> Path:
    """Names the folder of the user's own podium.toml."""
    return Path(environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "podium"


def together(problems: list[SettingsError]) -> SettingsError:
    """Joins many errors into one: one line for each place, with what is wrong there."""
    if len(problems) == 1:
        return problems[0]
    lines = [f"{p.where}: {p.message}" + (f"; {p.hint}" if p.hint else "") for p in problems]
    return SettingsError(
        f"{len(problems)} settings cannot be used",
        where="\n".join(lines),
        hint="correct them all; podium config then shows every value and its origin",
    )


def default_settings() -> Settings:
    """Returns every default, without reading any source."""
    return _settings(Reading())


def _settings(reading: Reading) -> Settings:
    values: dict[str, dict[str, Any]] = {name: {} for name in sections()}
    origins = dict.fromkeys(keys(), "default")
    for path, entry in reading.entries.items():
        section, name = path.split(".")
        values[section][name] = entry.value
        origins[path] = entry.origin
    made = {name: cls(**values[name]) for name, cls in sections().items()}
    return Settings(**made, origins=origins)
