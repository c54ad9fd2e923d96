"""Configurations of trainings: documented TOML, read into frozen dataclasses.

Each algorithm has a package below `podium.rl` with a module `algorithm` that defines

    Configuration                                   a frozen dataclass of sections (dataclasses)
    DEVICES                                         where it can be trained: cpu, gpu
    make_learner(configuration, seed, device)       -> Learner
    make_judge(configuration)                       -> Judge, on validation seeds

Importing that module is cheap: what only training needs is imported inside `make_learner`.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

from podium.errors import InputError, PodiumError, SettingsError, UnknownName, UsageError
from podium.files.excerpt import excerpt
from podium.rl.learner import Learner
from podium.rl.training import Judge, Limits
from podium.settings.toml import Document, read_document

ALGORITHMS = ("qtable", "mlp", "ppo")
Device = Literal["cpu", "gpu"]

_HELP, _RULE = "help", "rule"
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class Algorithm(Protocol):
    """What the module `algorithm` of an algorithm's package defines."""

    Configuration: type[Any]
    DEVICES: tuple[Device, ...]

    def make_learner(self, configuration: Any, seed: int, device: Device) -> Learner:
        """Makes the learner of a configuration."""

    def make_judge(self, configuration: Any) -> Judge:
        """Makes the judge of what it learns."""


class Unfit(ValueError):  # noqa: N818 - reads as the sentence it makes
    """A key does not fit others: raised by `__post_init__` of a section or a configuration."""

    def __init__(self, key: str, given: Any, wanted: str) -> None:
        super().__init__(f"{key} is {excerpt(given)}; expected {wanted}")
        self.key, self.given, self.wanted = key, given, wanted


@dataclass(frozen=True, slots=True)
class _Rule:
    """What values of a key may be, beside their type; in a list it holds for each of them."""

    least: float | None = None
    most: float | None = None
    among: Collection[str] = ()  # looked up when a value is read: more may be added
    fewest: int = 1  # values in a list
    is_policy: bool = False  # a policy that can be loaded, or an empty text where that is usual

    def allows(self, number: float) -> bool:
        """Tells whether a number is within the range; NaN is in none."""
        return self.least is None or self.most is None or self.least <= number <= self.most

    def wanted(self, kind: Any) -> str:
        """Describes what a key must be."""
        words = _KINDS.get(kind, "a value")
        if self.least is None or self.most is None:
            return words
        return f"{words} from {_number(self.least)} to {_number(self.most)}"


_ANYTHING = _Rule()


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def option(  # noqa: PLR0913 - all that is said about a key
    default: Any, help: str, *, least: float | None = None, most: float | None = None,
    among: Collection[str] = (), fewest: int = 1, is_policy: bool = False,
) -> Any:  # fmt: skip
    """Declares a key of a section: its default, what a template says, and what it may be.

    Args:
        default: the value where none is given.
        help: the line above the key in a template.
        least: the smallest number.
        most: the largest number.
        among: the texts that are known.
        fewest: the smallest number of values in a list.
        is_policy: the text names a policy.
    """
    told = {_HELP: help, _RULE: _Rule(least, most, among, fewest, is_policy)}
    if isinstance(default, list | dict):
        return field(default_factory=lambda: default, metadata=told)
    return field(default=default, metadata=told)


@dataclass(frozen=True, slots=True)
class TrainingSection:
    """When the training saves, validates and ends."""

    episodes: int = option(
        1000, "Episodes in all, in whole iterations; 0: until another limit, or ctrl-C.",
        least=0, most=10**9,
    )  # fmt: skip
    minutes: float = option(
        0.0, "Ends the training after so many minutes; 0: no limit.", least=0, most=10**6
    )
    save_interval: int = option(
        100, "Episodes between two checkpoints, each with a validation.", least=1, most=10**9
    )
    patience: int = option(
        0, "Ends after so many validations without a better one; 0: never.", least=0, most=10**6
    )

    def limits(self) -> Limits:
        """Returns the limits of the loop."""
        return Limits(
            self.episodes or None, 60 * self.minutes or None, self.save_interval,
            self.patience or None,
        )  # fmt: skip


def algorithm_named(name: str) -> Algorithm:
    """Imports an algorithm."""
    if name not in ALGORITHMS:
        raise UnknownName.among("algorithm", name, ALGORITHMS)
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
        raise InputError.at(path, "not a file" if path.exists() else "no such file", hint=hint)
    document = read_document(path, str(path))
    return configuration_of(algorithm_named(algorithm).Configuration, document.data, document)


def configuration_of(
    kind: type[Any], sections: Mapping[str, Any], document: Document | None = None
) -> Any:
    """Builds a configuration of nested mappings; an unknown key is an error with a suggestion."""
    return _built(kind, sections, _Place((), document))


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
    except (ValueError, RecursionError):  # brackets without end are no list either
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands: its path, and the file if there is one."""

    path: tuple[str, ...]
    document: Document | None

    def below(self, *keys: str) -> _Place:
        return _Place((*self.path, *keys), self.document)

    def __str__(self) -> str:
        own = ".".join(self.path)
        return own if self.document is None else self.document.place(*self.path)

    def refusal(self, given: Any, wanted: str) -> SettingsError:
        message = f"{'.'.join(self.path)} is {excerpt(given)}"
        where = "" if self.document is None else str(self)  # the message names the key
        return SettingsError(message, where=where, hint=wanted)


def _built(kind: type[Any], given: Any, place: _Place) -> Any:
    if not isinstance(given, Mapping):
        raise place.refusal(given, f"a section: [{'.'.join(place.path)}] and keys below it")
    known, fields = _types(kind), _fields(kind)
    for key in given:
        if key not in known:
            what = "section" if not place.path else f"key of [{'.'.join(place.path)}]"
            raise UnknownName.among(what, str(key), known, where=str(place.below(str(key))))
    values = {
        key: _value(known[key], each, fields[key].metadata.get(_RULE, _ANYTHING), place.below(key))
        for key, each in given.items()
    }
    if not place.path:  # a section that is given in part keeps the defaults of this configuration
        values = {key: _merged(kind, key, each, given[key]) for key, each in values.items()}
    try:
        return kind(**values)
    except Unfit as error:
        raise place.below(*error.key.split(".")).refusal(error.given, error.wanted) from error


def _merged(kind: type[Any], key: str, built: Any, given: Any) -> Any:
    factory: Any = _fields(kind)[key].default_factory
    if not dataclasses.is_dataclass(built) or factory is dataclasses.MISSING:
        return built
    return dataclasses.replace(factory(), **{name: getattr(built, name) for name in given})


def _value(kind: Any, given: Any, rule: _Rule, place: _Place) -> Any:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _built(kind, given, place)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return _known(given, inner, place)
    if origin is tuple:
        if not isinstance(given, list | tuple) or len(given) < rule.fewest:
            counted = " with at least one value" if rule.fewest else ""
            raise place.refusal(given, f"a list{counted}")
        return tuple(_value(inner[0], each, rule, place) for each in given)
    return _plain(kind, given, rule, place)


def _plain(kind: Any, given: Any, rule: _Rule, place: _Place) -> Any:
    is_kind = type(given) is kind or (kind is float and type(given) is int)
    if not is_kind or (kind in (int, float) and not rule.allows(given)):
        raise place.refusal(given, rule.wanted(kind))
    if rule.among:
        _known(given, rule.among, place)
    if rule.is_policy and given:
        _check_policy(given, place)
    return kind(given)


def _known(given: Any, known: Collection[str], place: _Place) -> Any:
    if not isinstance(given, str) or given not in known:
        noun = place.path[-1].removesuffix("s")
        raise UnknownName.among(noun, str(given), known, where=str(place))
    return given


def _check_policy(reference: str, place: _Place) -> None:
    """Refuses a policy that cannot be loaded, before anything begins that would ask for it."""
    from podium.policies import load

    try:
        load(reference)
    except PodiumError as error:
        error.where = str(place)
        raise
