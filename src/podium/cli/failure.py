"""Turns whatever went wrong into three lines, or one JSON object, and an exit code.

0    done, or the answer is yes
1    done, the answer is no
2    usage, configuration or bad input
3    something outside is missing
4    an internal error: a bug in Podium
130  interrupted
141  the reader of the output went away
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import TyperException, style

from podium.cli.terminal import json_text, on_one_line, unguarded
from podium.errors import InputError, MissingError, PodiumError, UsageError

if TYPE_CHECKING:
    from podium.settings import Secrets

INTERRUPTED = 130
BROKEN_PIPE = 141
LONGEST_TEXT = 2_000
"""Errors quote files, which may contain texts of any length."""


HABITS = {
    ("podium", "check"): "podium policies check, podium traces check",
    ("podium", "explain"): "podium kube explain, podium policies explain",
    ("podium", "install"): "podium kube manifests",
    ("podium", "list"): "podium policies list, podium traces list, podium runs list",
    ("podium", "manifests"): "podium kube manifests",
    ("podium", "promote"): "podium search promote",
    ("podium", "record"): "podium kube record",
    ("podium", "snapshot"): "podium kube snapshot",
    ("podium", "try"): "podium kube try",
    ("podium", "version"): "podium --version",
    ("podium config", "list"): "podium config",
    ("podium config", "show"): "podium config",
}
"""What somebody means who types a word after a command, as other programs have it."""


class Told(int):
    """An exit code whose reason has been printed already."""


class InternalError(PodiumError):
    """Podium itself is wrong."""

    exit_code = 4


def fail(error: Exception, arguments: list[str]) -> int:
    """Prints an error to standard error, without secrets, and returns its exit code."""
    from podium.settings import configured_secrets

    secrets = configured_secrets(arguments)
    shown = _without_secrets(as_podium_error(error), secrets)
    with suppress(OSError):  # nobody may be there to hear it, but there is the exit code
        if is_debugging(arguments):
            told = secrets.hide("".join(traceback.format_exception(error)))
            print(told, end="", file=sys.stderr)
        if "--json" in arguments:
            print(json_text({"error": as_object(shown)}), file=sys.stderr)
        else:
            print(in_three_lines(shown), file=unguarded(sys.stderr))
    return shown.exit_code


def is_debugging(arguments: list[str]) -> bool:
    """Returns whether tracebacks are wanted."""
    return "--debug" in arguments or os.environ.get("PODIUM_DEBUG", "0") not in ("", "0", "false")


def as_object(error: PodiumError) -> dict[str, str]:
    """Returns the error as a JSON object, the same everywhere."""
    return {
        "code": error.code,
        "message": error.message,
        "where": error.where,
        "hint": error.hint,
    }


def in_three_lines(error: PodiumError) -> str:
    """Writes what happened, where, and what to do next; several places take a line each."""
    label = style("error:", fg="red", bold=True) if _has_color() else "error:"
    places = [f"  at:  {_short(place)}" for place in error.where.split("\n") if place]
    advice = [f"  try: {_short(error.hint)}"] if error.hint else []
    return "\n".join([f"{label} {_short(error.message)}", *places, *advice])


def _short(text: str) -> str:
    return on_one_line(text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}...")


def as_podium_error(error: Exception) -> PodiumError:
    """Translates errors of the command line parser, of files, and bugs."""
    if isinstance(error, PodiumError):
        return error
    if isinstance(error, TyperException):
        return _usage_error(error)
    if isinstance(error, OSError):
        found = _file_error(error)
        if found is not None:
            return found
    if isinstance(error, MemoryError):
        return MissingError(
            "out of memory",
            hint="use a smaller file, or give this process more memory",
        )
    return InternalError(
        f"internal error: {type(error).__name__}: {error}",
        where=_last_place(error),
        hint="run it again with --debug for the traceback, and report it with the command you ran",
    )


def _without_secrets(error: PodiumError, secrets: Secrets) -> PodiumError:
    message, where, hint = map(secrets.hide, (error.message, error.where, error.hint))
    return type(error)(message, where=where, hint=hint)


def _usage_error(error: TyperException) -> UsageError:
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context else "podium"
    message, _, guess = error.format_message().partition(". Did you mean ")
    possible = getattr(error, "possibilities", None)
    if possible:
        message, guess = error.message, ", ".join(possible)
    word = re.search(r"[('](\w+)[)']$", message.rstrip("."))
    guess = HABITS.get((command, word[1]), guess) if word else guess
    advice = f"did you mean {guess.rstrip('?')}; " if guess else ""
    return UsageError(
        message.rstrip("."), where=command, hint=f"{advice}{command} --help shows the usage"
    )


def _file_error(error: OSError) -> PodiumError | None:
    from podium.files.draft import FULL, unwritable

    if error.errno in FULL:
        return unwritable(str(error.filename or "standard output"), error)
    if not error.filename:
        return None
    problem = f"the file cannot be used: {error.strerror}"
    return InputError.at(error.filename, problem, hint="check the path and its permissions")


def _last_place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "podium" in Path(frame.filename).parts]
    if not own:
        return ""
    parts = Path(own[-1].filename).parts
    start = len(parts) - 1 - parts[::-1].index("podium")
    return f"{'/'.join(parts[start:])}, line {own[-1].lineno}"


def _has_color() -> bool:
    # Read here and not from the settings, which may be what failed.
    is_refused = os.environ.get("NO_COLOR") or os.environ.get("PODIUM_DISPLAY_COLOR") == "never"
    return sys.stderr.isatty() and not is_refused
