"""Decides whether a run may start programs and call services: only those this user asked for.

A store and the folder of a run may have been written by others. When a run begins, what reaches
outside is sealed: a keyed digest of it is stored beside the plan, and the key with the user's own
data, readable by nobody else. A plan whose seal does not match is shown, and waits for flags.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from podium.errors import InputError, MissingError, UsageError
from podium.search.judging.objective import PREFIX, Objective
from podium.search.run.folder import RunFolder
from podium.search.run.plan import RunPlan
from podium.settings import MASK, Secrets, hidden_command, without_password
from podium.settings.about import data_folder
from podium.store import RunRecord

T = TypeVar("T")

OBJECTIVE = "objective"
"""Names, among options that are given again, the user's own fitness."""

REACHING = ("llm", "command")
"""Generators that start programs, send keys or spend money."""

SEAL, KEY = "seal", "seal.key"
KEY_BYTES = 32
FOLDER = "folder"
"""The option that says where a command runs."""

ANSWERING = {
    "temperature": "--temperature", "max_tokens": "--max-tokens",
    "reasoning_effort": "--reasoning-effort", "timeout_s": "--model-timeout",
    "concurrency": "--model-calls", "parameters": "--model-parameters",
}  # fmt: skip
"""Options of how models answer, with the flags that set them."""

APART = frozenset(["usd", "tokens", FOLDER, *ANSWERING])
"""Options in which flags may differ from an unsealed plan: the flags win."""

Options = Mapping[str, Mapping[str, Any]]
"""Options of generators, by generator and name."""

_SECRETIVE: Mapping[str, Callable[[Any, Secrets], Any]] = {
    "command": lambda value, known: hidden_command(known.hide_known(value)),
    "base_url": lambda value, known: without_password(known.hide_known(value)),
    "parameters": lambda value, known: known.hide_all(value),
}
"""Options of generators that may contain a password, and how they are stored without it."""

_NONE_KNOWN = Secrets()


def without_secrets(options: Options, known: Secrets) -> dict[str, dict[str, Any]]:
    """Removes passwords from options, so that they can be stored."""
    return {
        generator: {
            name: _SECRETIVE[name](value, known) if name in _SECRETIVE and value else value
            for name, value in given.items()
        }
        for generator, given in options.items()
    }


def seal(folder: RunFolder, run_id: str, plan: RunPlan) -> None:
    """Seals what a plan does outside as this user's wish; does nothing if no key can be stored.

    A run without a seal asks for the flags again when it is resumed.
    """
    with suppress(OSError):
        folder.write_text(SEAL, _digest(_own_key(), folder, run_id, plan) + "\n")


def is_sealed(folder: RunFolder, run_id: str, plan: RunPlan) -> bool:
    """Returns whether this user asked for what a plan does outside, for this run in this folder."""
    key = _read_key()
    if key is None or not folder.has(SEAL):
        return False
    with suppress(InputError):
        found = folder.read_bytes(SEAL, 4096).strip()
        return hmac.compare_digest(found, _digest(key, folder, run_id, plan).encode())
    return False


def check_place(folder: RunFolder, run_id: str, root: Path, plan: RunPlan) -> None:
    """Refuses to write to a folder that only the store names.

    Raises:
        UsageError: it is neither where this user keeps runs nor one that this user began.
    """
    if not is_sealed(folder, run_id, plan):
        folder.check_home(run_id, root, "podium search resume")


def trusted(folder: RunFolder, record: RunRecord, plan: RunPlan, given: Options) -> RunPlan:
    """Returns a plan with only what this user asked for, now or when the run began.

    Raises:
        UsageError: it would start a program or call a service that this user never named.
    """
    check_objective(folder, record, plan, given)
    reaching = [name for name, _ in plan.generators if name in REACHING]
    if not reaching:
        return plan
    was_sealed = is_sealed(folder, record.id, plan)
    options = dict(plan.options)
    for name in reaching:
        kept, own = plan.options.get(name, {}), given.get(name)
        if own is not None and (_agree(kept, own) or (not was_sealed and _agree(kept, own, APART))):
            options[name] = own
        elif not was_sealed:
            raise _unasked(record.id, plan, reaching)
    if not was_sealed and all(_agree(plan.options[name], given[name]) for name in reaching):
        seal(folder, record.id, plan)
    return replace(plan, options=options)


def check_objective(
    folder: RunFolder, record: RunRecord, plan: RunPlan, given: Options | None = None
) -> None:
    """Refuses to run an objective, a Python file, that this user never named.

    Raises:
        UsageError: nothing shows that this user did.
    """
    own = (given or {}).get(OBJECTIVE, {})
    if not plan.fitness.startswith(PREFIX) or own.get("fitness") == plan.fitness:
        return
    if not is_sealed(folder, record.id, plan):
        path = Objective.named(plan.fitness).path
        raise UsageError(
            f"run {record.id} runs a Python file, and nothing shows that you asked for it",
            where=path,
            hint="to allow it: "
            + shlex.join(["podium", "search", "resume", record.id, "--objective", path]),
        )


def whole(name: str, kept: T, given: T) -> T:
    """Completes an option that was stored without its secret from the one given now."""
    if MASK not in _text_of(kept):
        return kept
    if given and _is_same(name, kept, given):
        return given
    flag = ANSWERING.get(name) or f"--{name.replace('_', '-')}"
    raise MissingError(
        "the run used a password or key, which is never stored", where=_text_of(kept),
        hint=f"resume it with {flag} and the complete value",
    )  # fmt: skip


def outside_work(plan: RunPlan) -> list[str]:
    """Lists the programs that a plan starts and the services that it calls."""
    return [
        _described(name, plan.options.get(name, {}))
        for name, _ in plan.generators
        if name in REACHING
    ]


def _described(name: str, options: Mapping[str, Any]) -> str:
    if name == "command":
        seen = ", ".join(map(str, options.get("keep") or ()))
        return f"runs {options.get('command')}{f', which sees {seen}' if seen else ''}"
    models = ", ".join(map(str, options.get("models") or ()))
    if options.get("mode") == "replay":
        return f"replays {options.get('cassette')}"
    return f"asks {models} at {options.get('base_url') or 'the service whose key is set'}"


def _unasked(run_id: str, plan: RunPlan, reaching: list[str]) -> UsageError:
    flags = [flag for name in reaching for flag in _flags(name, plan.options.get(name, {}))]
    return UsageError(
        f"run {run_id} starts programs or calls services, and nothing shows that you asked for it",
        where="; ".join(outside_work(plan)),
        hint=f"to allow it: {shlex.join(['podium', 'search', 'resume', run_id, *flags])}",
    )


def _flags(name: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Lists the flags that set the same options again."""
    if name == "command":
        yield from ("--command", str(options.get("command", "")))
        for variable in options.get("keep") or ():
            yield from ("--command-env", str(variable))
        yield from (["--prompts", str(options["prompts"])] if options.get("prompts") else [])
        return
    for model in options.get("models") or ():
        yield from ("--model", str(model))
    single = (("base_url", "--base-url"), ("usd", "--usd"), ("tokens", "--tokens"),
              ("cassette", "--replay"), ("prompts", "--prompts"))  # fmt: skip
    for key, flag in single:
        if options.get(key):
            yield from (flag, str(options[key]))
    for key, flag in ANSWERING.items():
        if key in options:
            yield from (flag, _as_flag(options[key]))
    prices = options.get("prices")
    for model, price in prices.items() if isinstance(prices, dict) else ():
        yield from ("--price", f"{model}={','.join(map(str, price[:2]))}")


def _as_flag(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _agree(
    kept: Mapping[str, Any], given: Mapping[str, Any], apart: frozenset[str] = frozenset()
) -> bool:
    return all(
        _is_same(name, kept[name], given[name])
        if name in _SECRETIVE and kept.get(name) and given.get(name)
        else (kept.get(name) or None) == (given.get(name) or None)
        for name in (kept.keys() | given.keys()) - apart
    )


def _is_same(name: str, kept: Any, given: Any) -> bool:
    """Returns whether an option matches the stored one; secrets need not be known now."""
    pattern = ".+".join(map(re.escape, _text_of(kept).split(MASK)))
    forms = {_text_of(given), _text_of(_SECRETIVE[name](given, _NONE_KNOWN))}
    with suppress(ValueError, AttributeError):
        forms.add(shlex.join(shlex.split(given)))
    return any(re.fullmatch(pattern, form, re.DOTALL) for form in forms)


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _digest(key: bytes, folder: RunFolder, run_id: str, plan: RunPlan) -> str:
    reaching = [name for name, _ in plan.generators if name in REACHING]
    text = json.dumps(
        {
            "run": run_id, "folder": str(folder.path.resolve()), "generators": reaching,
            "options": {name: plan.options.get(name, {}) for name in reaching},
            **({OBJECTIVE: plan.fitness} if plan.fitness.startswith(PREFIX) else {}),
        },
        sort_keys=True,
    )  # fmt: skip
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _own_key() -> bytes:
    """Returns the key of this user, made at first use and again if others may know it."""
    found = _read_key()
    if found is not None:
        return found
    path = data_folder(KEY)()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{KEY}.{secrets.token_hex(8)}.partial")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        if path.exists():
            path.unlink()
        with suppress(FileExistsError):  # another process was first
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    made = _read_key()
    if made is None:
        raise OSError(f"no key can be stored in {path}")
    return made


def _read_key() -> bytes | None:
    """Reads the key of this user; one that others can read or write does not count."""
    try:
        handle = os.open(data_folder(KEY)(), os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid():
            return None
        key = b"" if about.st_mode & 0o077 else file.read(KEY_BYTES + 1)
    return key if len(key) == KEY_BYTES else None
