"""Configurations of trainings: documented TOML, read into frozen dataclasses.

Each way to learn has a package below `podium.rl` with a module `algorithm` that defines

    Configuration                                   a frozen dataclass of sections (dataclasses)
    make_learner(configuration, seed, device)       -> Learner
    make_judge(configuration)                       -> Judge, on validation seeds

Importing that module is cheap: what only training needs is imported inside `make_learner`.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

from podium.errors import InputError, SettingsError, UnknownName, UsageError
from podium.files.excerpt import excerpt
from podium.rl.learner import Learner
from podium.rl.training import Judge, Limits
from podium.settings.toml import Document, read_document

ALGORITHMS = ("qtable", "mlp", "ppo")
Device = Literal["cpu", "gpu"]

_HELP = "help"
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class Algorithm(Protocol):
    """What the module `algorithm` of a way to learn defines."""

    Configuration: type[Any]

    def make_learner(self, configuration: Any, seed: int, device: Device) -> Learner:
        """Makes the learner of a configuration."""

    def make_judge(self, configuration: Any) -> Judge:
        """Makes the judge of what it learns."""


def option(default: Any, help: str) -> Any:
    """Declares a key of a section: its default, and what a template says about it."""
    if isinstance(default, list | dict):
        return field(default_factory=lambda: default, metadata={_HELP: help})
    return field(default=default, metadata={_HELP: help})


def section(kind: type[Any], **changes: Any) -> Any:
    """Declares a section of a configuration, with defaults that differ from those of its kind."""
    return field(default_factory=lambda: kind(**changes))


@dataclass(frozen=True, slots=True)
class TrainingSection:
    """When the training saves, validates and ends."""

    episodes: int = option(1000, "Episodes in all; --episodes overrides it.")
    minutes: float = option(0.0, "Ends the training after so many minutes; 0: no limit.")
    save_interval: int = option(100, "Episodes between two checkpoints, each with a validation.")
    patience: int = option(0, "Ends after so many validations without a better one; 0: never.")

    def limits(self) -> Limits:
        """Returns the limits of the loop."""
        return Limits(
            self.episodes or None, 60 * self.minutes or None, max(1, self.save_interval),
            self.patience or None,
        )  # fmt: skip


def algorithm_named(name: str) -> Algorithm:
    """Imports a way to learn."""
    if name not in ALGORITHMS:
        raise UnknownName.among("way to learn", name, ALGORITHMS)
    return typing.cast("Algorithm", import_module(f"podium.rl.{name}.algorithm"))


def create_config(algorithm: str, **sections: Mapping[str, Any]) -> Any:
    """Makes a configuration in Python; keys that are left out have their defaults.

    create_config("qtable", training={"episodes": 200}, learning={"aim": "compact"})
    """
    return configuration_of(algorithm_named(algorithm).Configuration, sections)


def read_configuration(algorithm: str, path: Path) -> Any:
    """Reads a configuration from a TOML file."""
    if not path.is_file():
        hint = f"podium train template {algorithm} > {path.name} writes one"
        raise InputError.at(path, "no such file", hint=hint)
    document = read_document(path, str(path))
    return configuration_of(algorithm_named(algorithm).Configuration, document.data, document)


def configuration_of(
    kind: type[Any], sections: Mapping[str, Any], document: Document | None = None
) -> Any:
    """Builds a configuration of nested mappings; an unknown key is an error with a suggestion."""
    return _built(kind, sections, (), document)


def with_changes(configuration: Any, changes: Sequence[str]) -> Any:
    """Changes single keys, each written as section.key=value with a value as in TOML."""
    sections: dict[str, dict[str, Any]] = as_object(configuration)
    for change in changes:
        path, mark, text = change.partition("=")
        name, dot, key = path.strip().partition(".")
        if not (mark and dot and key):
            raise UsageError(f'"{change}" changes nothing', hint="write section.key=value")
        if not isinstance(sections.setdefault(name, {}), dict):
            raise UnknownName.among("section", name, sections)
        sections[name][key] = _parsed(text.strip())
    return configuration_of(type(configuration), sections) if changes else configuration


def _parsed(text: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text  # a text without quotes


def as_object(configuration: Any) -> dict[str, Any]:
    """Writes a configuration as nested mappings of JSON types."""
    written: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(configuration)))
    return written


def template(configuration: Any) -> str:
    """Writes a configuration as TOML, each key below the words that describe it."""
    blocks = []
    for name in _fields(type(configuration)):
        shown = getattr(configuration, name)
        lines = [f"# {(type(shown).__doc__ or '').strip().splitlines()[0]}", f"[{name}]"]
        for key, each in _fields(type(shown)).items():
            lines += [f"# {each.metadata.get(_HELP, '')}", f"{key} = {_toml(getattr(shown, key))}"]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)  # TOML writes texts, numbers, true as JSON does


def _fields(kind: type[Any]) -> dict[str, dataclasses.Field[Any]]:
    return {each.name: each for each in dataclasses.fields(kind)}


def _types(kind: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _built(kind: type[Any], given: Any, path: tuple[str, ...], document: Document | None) -> Any:
    if not isinstance(given, Mapping):
        raise _wrong(path, given, "a section", document)
    known = _types(kind)
    for key in given:
        if key not in known:
            what = "section" if not path else f"key of [{'.'.join(path)}]"
            raise UnknownName.among(what, str(key), known, where=_place((*path, key), document))
    values = {key: _value(known[key], each, (*path, key), document) for key, each in given.items()}
    if not path:  # a section that is given in part keeps the defaults of this configuration
        values = {key: _merged(kind, key, each, given[key]) for key, each in values.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise SettingsError(str(error), where=_place(path, document)) from error


def _merged(kind: type[Any], key: str, built: Any, given: Any) -> Any:
    factory: Any = _fields(kind)[key].default_factory
    if not dataclasses.is_dataclass(built) or factory is dataclasses.MISSING:
        return built
    return dataclasses.replace(factory(), **{name: getattr(built, name) for name in given})


def _value(kind: Any, given: Any, path: tuple[str, ...], document: Document | None) -> Any:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _built(kind, given, path, document)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if given not in inner:
            raise UnknownName.among("value", str(given), inner, where=_place(path, document))
        return given
    if origin in (typing.Union, types.UnionType):
        return given
    if origin is tuple:
        if not isinstance(given, list | tuple):
            raise _wrong(path, given, "a list", document)
        return tuple(_value(inner[0], each, path, document) for each in given)
    if origin in (dict, Mapping):
        if not isinstance(given, Mapping):
            raise _wrong(path, given, "a table", document)
        return {str(key): _value(inner[1], each, path, document) for key, each in given.items()}
    return _plain(kind, given, path, document)


def _plain(kind: Any, given: Any, path: tuple[str, ...], document: Document | None) -> Any:
    if kind is float and isinstance(given, int) and not isinstance(given, bool):
        return float(given)
    if kind in _KINDS and type(given) is not kind:
        raise _wrong(path, given, _KINDS[kind], document)
    return given


def _wrong(
    path: tuple[str, ...], given: Any, wanted: str, document: Document | None
) -> SettingsError:
    return SettingsError(
        f"{'.'.join(path)} is {excerpt(given)}, but must be {wanted}",
        where=_place(path, document),
    )


def _place(path: tuple[str, ...], document: Document | None) -> str:
    return ".".join(path) if document is None else document.place(*path)
