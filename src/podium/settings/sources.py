"""Reads the sources of settings: TOML files, the environment and flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.errors import SettingsError, UnknownName
from podium.settings.key import Key, keys, masked, sections
from podium.settings.toml import Document, read_document
from podium.settings.trust import Doubt
from podium.settings.value import advice, checked, from_text

OTHER_NAMES = ("PODIUM_DEBUG", "PODIUM_LLM_KEY")
"""Environment variables of Podium that are no settings."""

# Kubernetes sets such names in every pod, for each service whose name starts with "podium".
_SERVICE_LINK = re.compile(
    r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One value from a source."""

    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A value that reaches beyond data, in a file that does not speak for the user."""

    key: Key
    shown: Any  # the value, as it may be printed
    place: str
    file: str
    doubt: Doubt


@dataclass(slots=True)
class Reading:
    """Gathers values by path, later sources over earlier ones, and every problem met."""

    entries: dict[str, Entry] = field(default_factory=dict)
    problems: list[SettingsError] = field(default_factory=list)
    refused: dict[str, Refusal] = field(default_factory=dict)

    def add_file(
        self, path: Path, label: str, doubt_of: Callable[[Document], Doubt | None]
    ) -> None:
        """Reads a TOML file, if it is there; where it is in doubt, it may set data alone."""
        try:
            document = read_document(path, label)
        except SettingsError as problem:
            self.problems.append(problem)
            return
        self.add_document(document, doubt_of(document) if document.data else None)

    def add_document(self, document: Document, doubt: Doubt | None) -> None:
        """Takes what a file sets; where it is in doubt, data alone."""
        for section, table in document.data.items():
            if section in sections() and isinstance(table, dict):
                self._add_table(document, section, table, doubt)
            else:
                self.problems.append(_stray(document, section, table))

    def _add_table(
        self, document: Document, section: str, table: dict[str, Any], doubt: Doubt | None
    ) -> None:
        known = {key.name: key for key in keys().values() if key.section == section}
        for name, value in table.items():
            place = document.place(section, name)
            if name not in known:
                where = f"{place}, [{section}]"
                self.problems.append(_unknown("setting", name, list(known), where))
                continue
            key = known[name]
            if doubt is None or key.about.from_folder(value, document.folder):
                self._take(key, value, place, document.folder)
            else:
                self._refuse(key, value, document, doubt)

    def add_environment(self, environ: Mapping[str, str]) -> None:
        """Reads the PODIUM_ names, and the customary NO_COLOR; an empty value is no value."""
        if environ.get("NO_COLOR"):
            self.entries["display.color"] = Entry("never", "environment NO_COLOR")
        known = {name: key for key in keys().values() for name in key.env_names}
        for name in _podium_names(environ):
            if name not in known:
                place = f"environment {name}"
                self.problems.append(_unknown("environment variable", name, list(known), place))
        heard = {**_in_capitals(environ), **environ}
        for key in keys().values():
            self._add_variable(key, heard)

    def _add_variable(self, key: Key, environ: Mapping[str, str]) -> None:
        found = {name: environ[name] for name in key.env_names if _is_given(environ, name)}
        # Names that others gave a setting, such as SCHEDULER_SQLITE_PATH, yield to Podium's own.
        own = {name: text for name, text in found.items() if name.startswith("PODIUM_")}
        given = own or found
        if len(set(given.values())) > 1:
            names = " and ".join(given)
            self.problems.append(
                SettingsError(f"{names} differ", where="environment", hint="set only one of them")
            )
        for name, text in list(given.items())[:1]:
            try:
                value = from_text(key, text)
            except ValueError as problem:
                self._reject(key, text, problem, f"environment {name}")
            else:
                self._take(key, value, f"environment {name}", Path())

    def add_flags(self, flags: Mapping[str, Any]) -> None:
        """Adds values from the command line, by path; None means not given."""
        for path, value in flags.items():
            key = keys()[path]
            if value is not None:
                self._take(key, value, f"flag {key.flag}", Path())

    def _take(self, key: Key, value: Any, origin: str, folder: Path) -> None:
        try:
            self.entries[key.path] = Entry(checked(key, value, folder), origin)
            self.refused.pop(key.path, None)  # what outranks it is said by the user
        except ValueError as problem:
            self._reject(key, value, problem, origin)

    def _refuse(self, key: Key, value: Any, document: Document, doubt: Doubt) -> None:
        place = document.place(key.section, key.name)
        try:
            shown = masked(key, checked(key, value, document.folder))
        except ValueError as problem:
            self._reject(key, value, problem, place)
        else:
            self.refused[key.path] = Refusal(key, shown, place, document.label, doubt)

    def _reject(self, key: Key, value: Any, problem: ValueError, origin: str) -> None:
        where = f"{origin}, [{key.section}] {key.name}"
        hint = advice(key, value)
        self.problems.append(SettingsError(str(problem), where=where, hint=hint))


def _is_given(environ: Mapping[str, str], name: str) -> bool:
    # In a pod, PODIUM_SERVE_PORT may be the address of a service "podium-serve", not a port.
    is_link = _SERVICE_LINK.search(name) and "://" in environ.get(name, "")
    return bool(environ.get(name)) and not (is_link and "KUBERNETES_SERVICE_HOST" in environ)


def _in_capitals(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the names of `AGENT_NAMES` in capitals: the agent read them in any case."""
    names = {name: name.upper() for name in environ}
    return {upper: environ[name] for name, upper in names.items() if upper.startswith("SCHEDULER_")}


def _podium_names(environ: Mapping[str, str]) -> Iterator[str]:
    is_pod = "KUBERNETES_SERVICE_HOST" in environ
    for name in sorted(environ):
        if not name.startswith("PODIUM_") or name in OTHER_NAMES:
            continue
        if not (is_pod and _SERVICE_LINK.search(name)):
            yield name


def _unknown(kind: str, name: str, known: list[str], where: str) -> SettingsError:
    guess = UnknownName.among(kind, name, known)
    return SettingsError(guess.message, where=where, hint=guess.hint)


def _stray(document: Document, name: str, value: Any) -> SettingsError:
    place = document.place(name)
    homes = [key.section for key in keys().values() if key.name == name]
    if isinstance(value, dict) or (name not in sections() and not homes):
        return _unknown("section", name, list(sections()), place)
    hint = " or ".join(f"[{section}]" for section in homes)
    return SettingsError(
        f'"{name}" is outside any section',
        where=place,
        hint=f"move it below {hint or f'[{name}]'}",
    )
