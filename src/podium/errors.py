"""The error tree of Podium.

    PodiumError            anything Podium raises on purpose
    ├── UsageError         exit 2: a flag, a name or a value that cannot be used
    │   └── UnknownName    exit 2: a name that is in no registry, with suggestions
    ├── SettingsError      exit 2: podium.toml or the environment is wrong
    ├── InputError         exit 2: a file cannot be read as what it should be
    ├── PolicyError        exit 2: a policy breaks its contract
    ├── UndecidedError     exit 1: there is no answer, whatever policy decides
    └── MissingError       exit 3: something outside is not there
        └── MissingExtra   exit 3: an optional dependency is not installed

Each error is shown in three lines: what happened, where, and what to do next.
"""

from __future__ import annotations

import builtins
import difflib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

DISTRIBUTION = "podium-scheduler"

MOST_NAMES = 20
"""An advice lists no more names than this: pods come in thousands."""

LONGEST_NAME = 200
"""Likeness is not looked for in longer names: it would take time without end."""
MOST_CLOSE = 3
LEAST_BEGUN = 3
LEAST_LIKENESS = 0.7
MOST_BEHIND = 0.12


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Finds the names that somebody may have meant, the closest first; often there is none.

    Capitals and the kind of dash do not matter, letters may have changed places, and whoever wrote
    the beginning meant the rest. What is much further off than the closest is no help.

    >>> close_names("FGD", ["fgd", "first-fit"])
    ['fgd']
    >>> close_names("bestfit", ["best-fit", "worst-fit", "first-fit"])
    ['best-fit']
    """
    by_form: dict[str, list[str]] = {}
    for each in sorted(known):
        by_form.setdefault(_form(each), []).append(each)
    wanted = _form(name[:LONGEST_NAME])
    if wanted in by_form:
        return by_form[wanted][:MOST_CLOSE]
    turned = [form for form in by_form if sorted(form) == sorted(wanted)]
    begun = [form for form in by_form if len(wanted) >= LEAST_BEGUN and form.startswith(wanted)]
    found = difflib.get_close_matches(wanted, by_form, n=MOST_CLOSE, cutoff=LEAST_LIKENESS)
    best = max((_likeness(wanted, form) for form in found), default=0.0)
    near = [form for form in found if _likeness(wanted, form) > best - MOST_BEHIND]
    forms = list(dict.fromkeys([*turned, *near, *begun]))
    return [each for form in forms for each in by_form[form]][:MOST_CLOSE]


def advice_on(name: str, known: Iterable[str]) -> str:
    """Suggests similar names, or lists all names."""
    names = sorted(known)
    close = close_names(name, names)
    if close:
        return f"did you mean {', '.join(close)}"
    others = len(names) - MOST_NAMES
    more = f" and {others:,} more" if others > 0 else ""
    return f"known: {', '.join(names[:MOST_NAMES])}{more}"


def meant_by(error: BaseException | None) -> str:
    """Suggests a field or name similar to a missing one; often empty."""
    if isinstance(error, AttributeError):
        known: Iterable[str] = getattr(error.obj, "_fields", ())
    elif isinstance(error, NameError) and error.__traceback__ is not None:
        last = error.__traceback__
        while last.tb_next is not None:
            last = last.tb_next
        known = {*last.tb_frame.f_locals, *last.tb_frame.f_globals, *dir(builtins)}
    else:
        return ""
    return meant(str(error.name), known)


def meant(name: str, known: Iterable[str]) -> str:
    """Suggests the closest of the known names; empty if none is close."""
    close = close_names(name, [each for each in known if not each.startswith("_")])
    return f"did you mean {', '.join(close)}" if close else ""


def _form(name: str) -> str:
    return name.casefold().replace("_", "-").replace(" ", "-")


def _likeness(one: str, other: str) -> float:
    # In the order of get_close_matches: likeness is not the same both ways.
    return difflib.SequenceMatcher(None, other, one).ratio()


class PodiumError(Exception):
    """Anything Podium raises on purpose: what went wrong, where, and what to do next."""

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.where, self.hint))

    @property
    def code(self) -> str:
        """Names the error for machines."""
        return type(self).__name__


class UsageError(PodiumError):
    """A flag, a name or a value cannot be used."""


class UnknownName(UsageError):  # noqa: N818 - reads as the sentence it makes
    """A name is in no registry."""

    @classmethod
    def among(cls, kind: str, name: str, known: Iterable[str], *, where: str = "") -> UnknownName:
        """Suggests the closest of the known names."""
        name = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 3] + "..."
        return cls(f'unknown {kind} "{name}"', where=where, hint=advice_on(name, known))


class SettingsError(PodiumError):
    """A setting is unknown or has a value that cannot be used."""


class InputError(PodiumError):
    """A file cannot be read as what it should be."""

    @classmethod
    def at(
        cls, path: object, message: str, *, line: int = 0, column: str = "", hint: str = ""
    ) -> InputError:
        """Names the file, and the line and column where they are known."""
        where = str(path)
        where += f", line {line}" if line else ""
        where += f", {column}" if column else ""
        return cls(message, where=where, hint=hint)


class PolicyError(PodiumError):
    """A policy breaks its contract."""


class UndecidedError(PodiumError):
    """There is no answer: every policy comes to the same, or too little is known."""

    exit_code = 1


class MissingError(PodiumError):
    """Something outside Podium is not there: data, a key, a cluster."""

    exit_code = 3


class MissingExtra(MissingError):  # noqa: N818 - reads as the sentence it makes
    """An optional dependency is not installed."""

    @classmethod
    def named(cls, extra: str, need: str) -> MissingExtra:
        """Builds the error with the exact install line."""
        return cls(f"{need} needs the extra '{extra}'", hint=install_line(extra))


def install_line(extra: str) -> str:
    """Returns the command that installs an extra, for the way Podium itself was installed."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        told = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        told = {}
    address = str(told.get("url", ""))
    if not address.startswith("file://"):
        return f"{_install()} '{DISTRIBUTION}[{extra}]'"
    clone = Path(unquote(urlsplit(address).path))
    locked = clone / "requirements" / f"{extra}.txt"
    if locked.is_file():
        return f"{_install()} --require-hashes -r {_shown(locked)}"
    flag = "-e " if told.get("dir_info", {}).get("editable") else ""
    return f"{_install()} {flag}{_shown(clone, f'[{extra}]')}"


def _install() -> str:
    """Says how packages are installed for this very interpreter; uv makes some without pip."""
    import importlib.util
    import shutil

    own = Path(sys.executable)
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {_shown(own)}"
    found = shutil.which("pip")
    is_own = found is not None and Path(found).parent == own.parent
    return "pip install" if is_own else f"{_shown(own)} -m pip install"


def _shown(path: Path, more: str = "") -> str:
    import shlex

    here = Path.cwd()
    short = path.relative_to(here) if path.is_relative_to(here) else path
    return shlex.quote(f"{short}{more}")


def _rebuild(cls: type[PodiumError], message: str, where: str, hint: str) -> PodiumError:
    return cls(message, where=where, hint=hint)
