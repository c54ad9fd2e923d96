"""Judges candidates by an objective that the user wrote: a Python file with `objective(run)`.

The file is the user's own and is run in the user's process, never where candidates run: a worker
asks its parent what a run is worth. A plan holds the file's path and digest. In place of a file, a
program may lend a function of its own for as long as it searches.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from podium.errors import InputError, PodiumError, UsageError
from podium.evaluation.measures import FUNSEARCH, HOLDING, INFLATION, REPLAY, Values
from podium.evaluation.waste import IN_USE_PREFIX, LOST_PREFIX, PLACED_PREFIX, is_detail
from podium.files.excerpt import excerpt
from podium.files.text_file import read_text

PREFIX = "objective:"
KINDS = (INFLATION, REPLAY, HOLDING, FUNSEARCH)
"""What `CASES` may name: protocols, and `holding`, which is inflation on clusters of 128 nodes."""

MOST_BYTES = 1 << 20
_DIGITS = 16
_LONGEST_TEXT = 4000


class Run:
    """What a policy reached in one run, as `objective(run)` sees it.

    Every figure is an attribute, in percent or seconds; `fgd` is the same run under the policy fgd.
    """

    __slots__ = ("_figures", "fgd", "protocol")

    def __init__(self, protocol: str, figures: Values, fgd: Run | None = None) -> None:
        self.protocol, self._figures, self.fgd = protocol, figures, fgd

    def __getattr__(self, name: str) -> float:
        try:
            return self._figures[name]
        except KeyError:
            known = [key for key in self._figures if not is_detail(key)]
            told = f"a run under {self.protocol} has no {name}; it has {', '.join(known)}"
            raise AttributeError(told) from None

    @property
    def placed(self) -> dict[str, float]:
        """Maps classes of pods, such as "share" or "8-gpu", to the percent that was placed."""
        return self._part(PLACED_PREFIX)

    @property
    def lost(self) -> dict[str, float]:
        """Maps "stranded", "broken" and "idle" to the percent of GPUs that were free at the end."""
        return self._part(LOST_PREFIX)

    @property
    def in_use(self) -> dict[str, float]:
        """Maps GPU models to those that some pod had at the end, in percent of all GPUs."""
        return self._part(IN_USE_PREFIX)

    def _part(self, prefix: str) -> dict[str, float]:
        return {
            key.removeprefix(prefix): value
            for key, value in self._figures.items()
            if key.startswith(prefix)
        }


@dataclass(frozen=True, slots=True)
class Objective:
    """Names a file and what it held when the search was planned."""

    path: str
    digest: str

    @classmethod
    def at(cls, path: Path) -> Objective:
        """Reads a file that a user names now.

        Raises:
            InputError: it defines no objective.
        """
        found = cls(str(path.absolute()), _digest(read_text(path, MOST_BYTES)))
        found.loaded()
        return found

    @classmethod
    def named(cls, name: str) -> Objective:
        """Reads the name of a fitness.

        Raises:
            UsageError: it names no file and digest.
        """
        path, _, digest = name.removeprefix(PREFIX).rpartition("@")
        if not Path(path).is_absolute() or len(digest) != _DIGITS:
            raise UsageError(
                f'"{name}" names no objective', hint="name the file with --objective FILE.py"
            )
        return cls(path, digest)

    @property
    def name(self) -> str:
        """Names the fitness that the objective is."""
        return f"{PREFIX}{self.path}@{self.digest}"

    def loaded(self) -> Loaded:
        """Runs the file, unless it was changed after the search had been planned."""
        return _LENT.get(self.name) or _loaded(self.path, self.digest)


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """What the file of an objective defines."""

    path: str
    text: str
    kinds: tuple[str, ...]
    may_hold: bool
    objective: Callable[[Run], float]
    combine: Callable[[Sequence[Run]], float] | None

    def score(self, outcomes: Sequence[tuple[str, Values, Values]]) -> float:
        """Returns what runs are worth together: as the file combines them, or their mean."""
        runs = [Run(kind, values, Run(kind, baseline)) for kind, values, baseline in outcomes]
        if self.combine is not None:
            return self._called("combine", self.combine, runs)
        scores = [self._called("objective", self.objective, run) for run in runs]
        return self._finite("the mean of objective is", sum(scores) / len(scores))

    def _called(self, name: str, function: Callable[[Any], float], argument: Any) -> float:
        try:
            found = function(argument)
        except PodiumError:
            raise
        except (Exception, SystemExit) as error:
            problem = f"{name} failed: {type(error).__name__}: {error}"
            raise InputError(problem, where=_place(error, self.path), hint=_HINT) from error
        return self._finite(f"{name} returned", found)

    def _finite(self, told: str, found: Any) -> float:
        if isinstance(found, int | float) and not isinstance(found, bool):
            with suppress(OverflowError):  # a whole number beyond every fraction
                number = float(found)
                if math.isfinite(number):
                    return number
        raise InputError(
            f"{told} {excerpt(found)}, which is not a finite number", where=self.path, hint=_HINT
        )


_HINT = "correct the objective and begin a new search"
_LENT: dict[str, Loaded] = {}
"""Functions of this process by the name of the fitness that they are, while they are lent."""

_OPTIONS = ("CASES", "MAY_HOLD", "combine")
"""What a file may define beside its objective, and a function have as attributes."""


@contextmanager
def lent(function: Callable[[Run], float]) -> Iterator[str]:
    """Names the fitness that a function of this process is, for as long as it is lent.

    Raises:
        InputError: it asks for cases that there are not.
    """
    code = getattr(function, "__code__", None)
    path = code.co_filename if code is not None else type(function).__name__
    source = ""
    with suppress(OSError, TypeError):
        source = inspect.getsource(function)
    names = {each: getattr(function, each) for each in _OPTIONS if hasattr(function, each)}
    doc = function.__doc__ if code is not None else ""  # else it is that of a class
    # Nothing else is at the address of a function while it is lent.
    found = Objective(str(Path(path).absolute()), _digest(f"{path} {id(function)}"))
    _LENT[found.name] = _read({**names, "objective": function, "__doc__": doc}, path, source)
    try:
        yield found.name
    finally:
        del _LENT[found.name]


@functools.lru_cache(maxsize=8)
def _loaded(path: str, digest: str) -> Loaded:
    text = read_text(Path(path), MOST_BYTES)
    if _digest(text) != digest:
        raise InputError(
            "the objective was changed after the search had been planned", where=path,
            hint="restore the file, or begin a new search",
        )  # fmt: skip
    return _read(_executed(path, text), path, text)


def _read(names: Mapping[str, Any], path: str, text: str) -> Loaded:
    objective, combine = names.get("objective"), names.get("combine")
    if not callable(objective) or not (combine is None or callable(combine)):
        raise InputError(
            "the file defines no objective(run)", where=path,
            hint="write def objective(run): return run.allocation_130",
        )  # fmt: skip
    told = str(names.get("__doc__") or text)[:_LONGEST_TEXT].strip()
    return Loaded(path, told, _kinds(names, path), bool(names.get("MAY_HOLD")), objective, combine)


def _executed(path: str, text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "podium_objective", "__file__": path}
    try:
        code: CodeType = compile(text, path, "exec", dont_inherit=True)
        exec(code, names)  # noqa: S102 - the user's own file, in the user's own process
    except (Exception, SystemExit) as error:
        problem = f"the objective cannot be loaded: {type(error).__name__}: {error}"
        raise InputError(problem, where=_place(error, path), hint="correct the file") from error
    return names


def _kinds(names: Mapping[str, Any], path: str) -> tuple[str, ...]:
    given = names.get("CASES", (INFLATION,))
    listed = (given,) if isinstance(given, str) else tuple(given)
    unknown = [each for each in listed if each not in KINDS]
    if unknown or not listed:
        raise InputError(
            f"CASES names {unknown[0]!r}" if unknown else "CASES is empty", where=path,
            hint=f"name some of {', '.join(KINDS)}",
        )  # fmt: skip
    return tuple(dict.fromkeys(listed))


def _place(error: BaseException, path: str) -> str:
    """Names the last line of the file that an error went through."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{path}, line {error.lineno}"
    steps = traceback.extract_tb(error.__traceback__)
    lines = [each.lineno for each in steps if each.filename == path]
    return f"{path}, line {lines[-1]}" if lines else path


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
