"""Lists the verbs without importing them, and gives the process its exit code."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from podium.cli.failure import BROKEN_PIPE, INTERRUPTED, Told, fail
from podium.cli.terminal import guarding
from podium.experiments.simulate import WORK

if TYPE_CHECKING:
    from typer._click.core import Command, Context

ANYWHERE = ("--debug", "--no-progress", "--quiet")
"""Flags of `podium` itself that may also follow the verb."""

GRACE_S = 0.5
"""How long interrupted work may take to end by itself."""


class Verb(NamedTuple):
    """Names a verb, the module whose `app` it is, and its line in the help."""

    name: str
    module: str
    help: str = ""  # empty: the first line of the module, which says the same

    def sentence(self) -> str:
        """Returns the verb's line in the help; the module is read, but not imported."""
        spec = None if self.help else importlib.util.find_spec(self.module)
        if spec is None or spec.origin is None:
            return self.help
        with Path(spec.origin).open(encoding="utf-8") as file:
            return file.readline().strip().strip('"')


class NounGroup(TyperGroup):
    """Shows its help when it is called without a verb."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Reads the arguments; none at all ask for help."""
        return super().parse_args(ctx, args if args or ctx.resilient_parsing else ["--help"])


class VerbGroup(NounGroup):
    """Lists its verbs by name; a verb's module is imported when the verb is called."""

    verbs: ClassVar[Sequence[Verb]] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for verb in self.verbs:
            self.add_command(TyperCommand(verb.name, help=verb.sentence()))

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        """Finds the verb that is called, imported."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and self._imported(listed), rest

    def _imported(self, listed: Command) -> Command:
        module = next(verb.module for verb in self.verbs if verb.name == listed.name)
        command = get_command(importlib.import_module(module).app)
        command.name = listed.name
        return command

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs the command line and exits; only without `standalone_mode` do errors pass."""
        sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - nobody listens
        sys.stderr = sys.stderr or sys.stdout
        given = as_option(hoisted(list(sys.argv[1:] if args is None else args)))
        extra.update(complete_var=complete_var, windows_expand_args=windows_expand_args)
        with guarding():
            if not standalone_mode:
                return super().main(given, prog_name, standalone_mode=False, **extra)
            sys.exit(self._code(given, prog_name, extra))

    def _code(self, given: list[str], prog_name: str | None, extra: dict[str, Any]) -> int:
        try:
            code = super().main(given, prog_name, standalone_mode=False, **extra)
            sys.stdout.flush()
        except SystemExit as stop:
            code = _silenced() if isinstance(stop.__context__, BrokenPipeError) else stop.code
        except BrokenPipeError:
            code = _silenced()
        except typer.Abort:
            code = INTERRUPTED
        except Exception as error:  # noqa: BLE001 - the last stop before the user
            code = fail(error, given)
        if code == INTERRUPTED:
            if not isinstance(code, Told):
                with suppress(OSError):
                    print("interrupted", file=sys.stderr)
            leave_work_behind()
        _close_output()
        return code if isinstance(code, int) else 0


def hoisted(arguments: list[str]) -> list[str]:
    """Moves the flags of `podium` itself to the front, wherever they stand before a `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = arguments[:end]
    found = [flag for flag in ANYWHERE if flag in options]
    return found + [word for word in options if word not in ANYWHERE] + arguments[end:]


def as_option(arguments: list[str]) -> list[str]:
    """Reads `help VERB` as `VERB --help`.

    >>> as_option(["help", "traces", "check"])
    ['traces', 'check', '--help']
    """
    at = next((i for i, word in enumerate(arguments) if word not in ANYWHERE), len(arguments))
    if arguments[at : at + 1] != ["help"]:
        return arguments
    return [*arguments[:at], *arguments[at + 1 :], "--help"]


def leave_work_behind() -> None:
    """Ends the process if threads do not end after an interrupt.

    Nothing can stop compiled code from outside, and the interpreter would wait for it.
    """
    deadline_s = time.monotonic() + GRACE_S
    for thread in threading.enumerate():
        if thread.name.startswith(WORK):
            thread.join(max(0.0, deadline_s - time.monotonic()))
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(INTERRUPTED)


def new_app(help: str | None = None) -> typer.Typer:
    """Makes the `app` of a verb's module.

    Help is plain text: the panels of rich would double the time that `--help` takes.
    """
    return typer.Typer(cls=NounGroup, help=help, rich_markup_mode=None, add_completion=False)


def _silenced() -> int:
    # What is still buffered would fail again, loudly, when the interpreter closes the stream.
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    return BROKEN_PIPE


def _close_output() -> None:
    """Flushes the output; a closed one must not fail again at the very end."""
    try:
        sys.stdout.flush()
    except OSError:
        _silenced()
