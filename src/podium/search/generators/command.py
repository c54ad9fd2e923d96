"""Runs any program that reads a prompt and prints a policy, to write candidates."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from podium.errors import MissingError, UsageError
from podium.search.generators.generator import Cost, Proposal, Request, Spent
from podium.search.generators.llm.answer import read_answer
from podium.search.generators.llm.exchange import shortened
from podium.search.generators.llm.prompt import PromptWriter
from podium.settings import hidden, known_secrets

SEED_VARIABLE = "PODIUM_SEED"
"""Passes the program a different number for each request, the same in every run of a seed."""

_PASSED_ON = frozenset(
    [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR",
        "TMP", "TEMP", "NO_COLOR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME", "PYTHONPATH", "PYTHONUTF8",
        "PYTHONIOENCODING", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "SSL_CERT_DIR",
        "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NO_PROXY", "no_proxy",
    ]
)  # fmt: skip
"""What a program needs to run at all; anything else that it should see must be named."""

_MOST_OUTPUT_BYTES = 200_000
_LONGEST_PROBLEM = 300


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """Settings of the command: the program, its time limit, and the variables it may see."""

    command: str  # as in a shell, but no shell reads it
    timeout_s: float = 120.0
    keep: Sequence[str] = ()  # further variables that are passed on, by name
    folder: str = ""  # where it runs, whoever resumes the run from wherever; none: right here

    def __post_init__(self) -> None:
        if not 0 < self.timeout_s < math.inf:
            raise UsageError(
                f"timeout_s must be positive, got {self.timeout_s}",
                hint="give a positive number of seconds",
            )

    @property
    def arguments(self) -> list[str]:
        """Splits the command as a shell would."""
        try:
            return shlex.split(self.command)
        except ValueError as error:
            shown = hidden(self.command)
            raise UsageError(f'"{shown}" is not a valid command: {error}') from None


class CommandGenerator:
    """Runs a program for each candidate; threads may share one."""

    name = "command"
    can_repair = True

    def __init__(
        self, settings: CommandSettings, environ: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic, writer: PromptWriter | None = None,
    ) -> None:  # fmt: skip
        self._settings, self._clock = settings, clock
        self._writer = writer or PromptWriter()
        self._arguments = settings.arguments
        self._environ = passed_on(environ, settings.keep)
        given = [environ[name] for name in settings.keep if name in environ]
        self._secrets = known_secrets(environ, self._arguments, given)

    def propose(self, request: Request) -> Proposal | Spent:
        """Runs the program once; a failure is a proposal with its problem."""
        prompt = self._writer.write(request)
        seed = int(np.random.default_rng([*request.seed]).integers(2**31))
        began = self._clock()
        printed, problem = self._run(prompt.text, seed)
        cost = Cost(seconds=self._clock() - began, calls=1)
        text = thought = ""
        if not problem:
            answer = read_answer(printed)
            text, thought, problem = answer.text, answer.thought, answer.problem
        return Proposal(
            text, self.name, thought, prompt.text, problem, (prompt.operator,), cost
        )  # fmt: skip

    def learn(self, source: str, gain: float | None, cost: Cost) -> None:
        """Ignores how a candidate did: a command keeps no state."""

    def state(self) -> Mapping[str, Any]:
        """Returns an empty state: a command keeps none."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Ignores the saved state: a command keeps none."""

    def close(self) -> None:
        """Does nothing: every program has already ended."""

    def _run(self, prompt: str, seed: int) -> tuple[str, str]:
        # Files, not pipes: a grandchild that outlives the program cannot keep one waiting.
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as errors,
        ):
            given.write(prompt.encode(errors="replace"))
            given.seek(0)
            try:
                code = self._wait((given, out, errors), seed)
            except OSError as error:
                return "", f"the command could not be started: {self._secrets.hide(str(error))}"
            if code is None:
                limit = f"{self._settings.timeout_s:g} s"
                return "", f"the command did not end within {limit}"
            if code != 0:
                said = self._secrets.hide(_read(errors))
                told = shortened(said[-_LONGEST_PROBLEM:], _LONGEST_PROBLEM)
                return "", f"the command ended with exit code {code}: {told or 'no reason given'}"
            return self._secrets.hide_known(_read(out)), ""

    def _wait(self, files: tuple[IO[bytes], IO[bytes], IO[bytes]], seed: int) -> int | None:
        environ = {**self._environ, SEED_VARIABLE: str(seed)}
        process = subprocess.Popen(
            self._arguments, stdin=files[0], stdout=files[1], stderr=files[2], env=environ,
            cwd=self._settings.folder or None, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(self._settings.timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)  # what it started ends with it
                process.wait()


def open_command(
    settings: CommandSettings,
    environ: Mapping[str, str],
    clock: Callable[[], float] = time.monotonic,
    writer: PromptWriter | None = None,
) -> CommandGenerator:
    """Opens a generator that runs a program.

    Raises:
        UsageError: the command is empty or not quoted well.
        MissingError: there is no such program or folder, or no variable that it is to see.
    """
    arguments = settings.arguments
    if not arguments:
        raise UsageError("the command is empty", hint="name a program: --command 'llm -m NAME'")
    missing = [name for name in settings.keep if name not in environ]
    if missing:
        raise MissingError(
            f"not set in the environment: {', '.join(missing)}", where="flag --command-env",
            hint="set the variable, or leave it out of --command-env",
        )  # fmt: skip
    if settings.folder and not Path(settings.folder).is_dir():
        raise MissingError(
            "the folder in which the command was given no longer exists", where=settings.folder,
            hint="restore it, or begin a new run",
        )  # fmt: skip
    if shutil.which(_located(arguments[0], settings.folder), path=environ.get("PATH")) is None:
        raise MissingError(
            f"there is no program {hidden(arguments[0])}", hint="install it, or give its full path"
        )
    return CommandGenerator(settings, environ, clock, writer)


def passed_on(environ: Mapping[str, str], keep: Sequence[str] = ()) -> dict[str, str]:
    """Returns the variables that every program needs and those that are named, and no others.

    >>> passed_on({"DATABASE_URL": "x", "HOME": "h", "MODEL": "m"}, keep=["MODEL"])
    {'HOME': 'h', 'MODEL': 'm'}
    """
    return {
        name: value
        for name, value in environ.items()
        if name in _PASSED_ON or name.startswith("LC_") or name in keep
    }


def _located(program: str, folder: str) -> str:
    """Names a program as seen from here; a bare name is one of the PATH."""
    return str(Path(folder).absolute() / program) if "/" in program else program


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MOST_OUTPUT_BYTES).decode(errors="replace")
