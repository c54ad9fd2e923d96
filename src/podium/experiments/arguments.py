"""Takes the arguments of Python callers, and words for them what commands say of their flags."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from podium.errors import PodiumError, UnknownName, UsageError
from podium.experiments.listener import Listener

Given = ParamSpec("Given")
Found = TypeVar("Found")
Choice = TypeVar("Choice", bound=str)

_PLACE = re.compile(r"flag --([a-z-]+)(, \[\w+\] \w+)?")
_FLAG = re.compile(
    r"(?<![\"'\w-])--([a-z][a-z-]*)(?: (inflation|replay|rounds|openb|llm|genetic|python)\b)?"
)
_CLAUSES = re.compile(r"(; )")
_COMMAND = re.compile(r"\bpodium [a-z]")

_NAMES = {"save": "keep", "skip-bad": "skip_bad=True"}
"""Flags whose arguments are written otherwise."""

_VARIABLES = {
    "tier": "PODIUM_COMPILE_TIER", "model": "PODIUM_SEARCH_MODELS", "usd": "PODIUM_SEARCH_USD",
    "tokens": "PODIUM_SEARCH_TOKENS", "base-url": "PODIUM_SEARCH_BASE_URL",
    "max-tokens": "PODIUM_SEARCH_MAX_TOKENS", "temperature": "PODIUM_SEARCH_TEMPERATURE",
    "reasoning-effort": "PODIUM_SEARCH_REASONING_EFFORT", "prompts": "PODIUM_SEARCH_PROMPTS",
}  # fmt: skip
"""Flags that no function has as an argument, by the variables that set the same."""


class Warner(Listener):
    """Passes notes and warnings on as Python warnings of the caller's line; the rest is unheard."""

    def note(self, text: str) -> None:
        """Warns with a note."""
        warnings.warn(in_python(text), stacklevel=_levels_outwards())

    def warn(self, text: str) -> None:
        """Warns."""
        warnings.warn(in_python(text), stacklevel=_levels_outwards())


def python_face(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Has a function refuse unknown arguments with advice, and name arguments in its errors."""
    signature = inspect.signature(function)
    name = f"podium.{function.__name__}"

    @functools.wraps(function)
    def entered(*given: Given.args, **named: Given.kwargs) -> Found:
        _check_call(name, signature, given, named)
        with _naming_arguments():
            return function(*given, **named)

    return entered


def _check_call(
    name: str, signature: inspect.Signature, given: tuple[Any, ...], named: Mapping[str, Any]
) -> None:
    """Refuses a call that does not bind, in words; TypeError is for mistakes of Podium's own."""
    for each in named:
        if each not in signature.parameters:
            raise UnknownName.among("argument", each, signature.parameters, where=name)
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        hint = f"{name}{inspect.Signature(_untyped(signature))}"
        raise UsageError(str(error), where=name, hint=hint) from None


def _untyped(signature: inspect.Signature) -> list[inspect.Parameter]:
    empty = inspect.Parameter.empty
    return [each.replace(annotation=empty) for each in signature.parameters.values()]


@contextmanager
def _naming_arguments() -> Iterator[None]:
    """Names arguments where commands name flags."""
    try:
        yield
    except PodiumError as error:
        error.message = in_python(error.message)
        error.where = _PLACE.sub(lambda flag: f"argument {_argument(flag[1])}", error.where)
        if error.where.startswith("flags "):
            error.where = in_python(error.where.removeprefix("flags "))
        error.hint = in_python(error.hint)
        error.args = (error.message,)
        raise


def in_python(text: str) -> str:
    """Words flags as arguments, or as variables; command lines stay as they are.

    >>> in_python("leave out --orders, or choose --protocol inflation")
    'leave out orders, or choose protocol="inflation"'
    >>> in_python("podium runs list --kind search lists them; --skip-bad leaves rows out")
    'podium runs list --kind search lists them; skip_bad=True leaves rows out'
    """
    clauses = _CLAUSES.split(text)
    return "".join(
        each if _COMMAND.search(each) else _FLAG.sub(_as_argument, each) for each in clauses
    )


def _as_argument(flag: re.Match[str]) -> str:
    if flag[1] in _VARIABLES:
        return _VARIABLES[flag[1]] + (f"={flag[2]}" if flag[2] else "")
    return _argument(flag[1]) + (f'="{flag[2]}"' if flag[2] else "")


def _argument(flag: str) -> str:
    return _NAMES.get(flag, flag.replace("-", "_"))


def _levels_outwards() -> int:
    """Counts the frames from whoever warns out to the line that called a function of the face."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and not _is_entry(frame):
        level, frame = level + 1, frame.f_back
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    return level


def _is_entry(frame: FrameType) -> bool:
    return frame.f_globals is globals() and frame.f_code.co_name == "entered"


def _is_ours(frame: FrameType) -> bool:
    return f"{frame.f_globals.get('__name__', '')}.".startswith("podium.")


# What arguments are taken as.


def whole(name: str, value: object, least: int) -> int:
    """Takes a whole number, also one of NumPy's.

    Raises:
        UsageError: it is something else, or too small.
    """
    found = plain_number(value)
    if isinstance(found, int) and not isinstance(found, bool) and found >= least:
        return found
    raise UsageError(
        f"{name} is {_told(value)}", where=f"argument {name}",
        hint=f"give a whole number from {least}",
    )  # fmt: skip


def whole_or_none(name: str, value: object, least: int) -> int | None:
    """Takes a whole number, or nothing."""
    return None if value is None else whole(name, value, least)


def number_or_none(name: str, value: object) -> float | None:
    """Takes a finite number, also one of NumPy's, or nothing."""
    found = plain_number(value)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    if found is None or (is_number and math.isfinite(found)):  # type: ignore[arg-type]
        return found  # type: ignore[return-value]
    raise UsageError(
        f"{name} is {_told(value)}", where=f"argument {name}", hint="give a finite number"
    )


def plain_number(value: Any) -> object:
    """Gives a number of NumPy's as one of Python's; anything else is left to who checks it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def text(name: str, value: object, hint: str) -> str:
    """Takes a text."""
    if isinstance(value, str):
        return value
    raise UsageError(f"{name} is {_told(value)}, not text", where=f"argument {name}", hint=hint)


def one_of(name: str, value: object, known: Iterable[Choice]) -> Choice:
    """Takes one of the texts that there are."""
    choices = list(known)
    for each in choices:
        if each == value:
            return each
    kind = name.replace("_", " ")
    raise UnknownName.among(kind, str(value), choices, where=f"argument {name}")


def path_or_none(name: str, value: object) -> Path | None:
    """Takes the path of a file, or nothing."""
    if value is None or isinstance(value, str | os.PathLike):
        return None if value is None else Path(value)
    raise UsageError(
        f"{name} is {_told(value)}, not a path", where=f"argument {name}", hint="give a file"
    )


def listener_or_warner(value: object) -> Listener:
    """Takes a listener; without one, notes and warnings become warnings of Python."""
    if value is None or isinstance(value, Listener):
        return Warner() if value is None else value
    raise UsageError(
        f"{_told(value)} is not a listener", where="argument listener",
        hint="give an object of a class that is derived from podium.Listener",
    )  # fmt: skip


def _told(value: object) -> str:
    """Shows a value where it is short, and its type otherwise."""
    shown = repr(value)
    return shown if len(shown) <= 40 and "\n" not in shown else f"of type {type(value).__name__}"
