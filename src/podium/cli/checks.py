"""Checks an installation; each check yields findings, most of them with a suggestion."""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from podium.cli.figures import duration, size
from podium.cli.finding import Finding
from podium.errors import DISTRIBUTION, PodiumError, install_line
from podium.experiments.places import traces_folder
from podium.files.keeper import OTHERS, stranger_at
from podium.settings import Settings
from podium.traces.notes import counted, some

Check = Callable[[Settings], Iterator[Finding]]

LOW_MEMORY_BYTES = 2**30


def check_python(settings: Settings) -> Iterator[Finding]:
    """Reports the interpreter."""
    del settings
    found = f"{platform.python_implementation()} {platform.python_version()}"
    yield Finding("python", "ok", f"{found}, {platform.machine()}")


def check_compiler(settings: Settings) -> Iterator[Finding]:
    """Compiles a tiny function."""
    del settings
    start = time.perf_counter()
    try:
        import numba

        is_right = numba.njit(lambda number: number + 1)(1) == 2
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the user must know
        yield Finding("compiler", "broken", f"numba fails: {error}", _REINSTALL)
        return
    took = duration(time.perf_counter() - start)
    if is_right:
        yield Finding("compiler", "ok", f"numba {numba.__version__} compiled in {took}")
    else:
        yield Finding("compiler", "broken", "numba computes 1 + 1 wrongly", _REINSTALL)


_REINSTALL = "pip install --force-reinstall numba"


def check_cache(settings: Settings) -> Iterator[Finding]:
    """Writes to the folder of compiled policies."""
    folder = settings.compile.cache
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stranger = stranger_at(folder, OTHERS)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        yield Finding(
            "compile cache",
            "warning",
            f"{folder} is not writable ({error.strerror}): every start compiles again",
            "set PODIUM_COMPILE_CACHE to a writable folder",
        )
        return
    if stranger:
        yield Finding(
            "compile cache",
            "warning",
            f"{folder} {stranger}: nothing is read from it, and every start compiles again",
            f"delete it, and make it anew with mkdir -m 700 {folder}, or set PODIUM_COMPILE_CACHE",
        )
    else:
        yield Finding("compile cache", "ok", str(folder))


def check_machine(settings: Settings) -> Iterator[Finding]:
    """Counts cores and memory."""
    del settings
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("cores", "ok", f"{cores} usable")
    memory = memory_bytes()
    if memory is None:
        yield Finding("memory", "note", "unknown on this system")
    elif memory < LOW_MEMORY_BYTES:
        hint = "large clusters need up to 600 MB; give this machine or container 1 GiB or more"
        yield Finding("memory", "warning", size(memory), hint)
    else:
        yield Finding("memory", "ok", size(memory))


def memory_bytes(limit_file: Path = Path("/sys/fs/cgroup/memory.max")) -> int | None:
    """Returns the memory of the machine, or of the container where that is less."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    try:
        return min(machine, int(limit_file.read_text()))
    except (OSError, ValueError):
        return machine


def check_sandbox(settings: Settings) -> Iterator[Finding]:
    """Confines a process as candidates are, and reports which walls stand."""
    from podium.search.sandbox.confinement import WALLS
    from podium.search.sandbox.pool import missing_walls

    try:
        missing = missing_walls()
    except PodiumError as error:
        # Its own advice is to run this very check.
        advice = "reinstall Podium; in a container, allow it to start processes"
        yield Finding("sandbox", "broken", str(error), advice)
        return
    standing = [wall for wall in WALLS if wall not in missing]
    if not missing:
        yield Finding("sandbox", "ok", ", ".join(standing))
        return
    told = "they run anyway" if settings.search.allow_unconfined else "none is run"
    yield Finding(
        "sandbox", "warning", f"candidates lack the walls {', '.join(missing)}: {told}",
        "use Linux on x86-64 or arm64, with seccomp allowed",
    )  # fmt: skip


def check_traces(settings: Settings) -> Iterator[Finding]:
    """Compares the original traces with their checksums."""
    folder = traces_folder(settings)
    if folder is None:
        yield Finding("traces", "note", "the embedded profile only", _FETCH)
        return
    if not folder.is_dir():
        origin = settings.origins["traces.folder"]
        yield Finding("traces", "broken", f"{folder} is not a folder ({origin})", _FETCH)
        return
    missing, changed = compare_openb(folder)
    if missing:
        detail = f"{folder} lacks {counted(len(missing), 'file')}: {some(missing)}"
        yield Finding("traces", "warning", detail, _FETCH)
    if changed:
        detail = f"{folder} has {counted(len(changed), 'changed file')}: {some(changed)}"
        yield Finding("traces", "warning", detail, _FETCH)
    if not missing and not changed:
        yield Finding("traces", "ok", f"{folder} is complete")


_FETCH = "podium traces fetch openb, or set PODIUM_TRACES to a folder with the original files"


def compare_openb(folder: Path) -> tuple[list[str], list[str]]:
    """Lists the original files that a folder lacks, and those that were changed."""
    from podium.traces.openb.files import find_file, openb_index

    missing, changed = [], []
    for file in openb_index().files:
        path = find_file(folder, file.trace)
        if path is None:
            missing.append(file.file_name)
        elif hashlib.sha256(_content(path, file.size_bytes)).hexdigest() != file.sha256:
            changed.append(path.name)
    return missing, changed


def _content(path: Path, most_bytes: int) -> bytes:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        return file.read(most_bytes + 1)  # one byte too many is as wrong as a gigabyte


def check_extras(settings: Settings) -> Iterator[Finding]:
    """Looks for the optional dependencies, by extra."""
    del settings
    try:
        missing_by_extra = missing_distributions(metadata.requires(DISTRIBUTION) or [])
    except metadata.PackageNotFoundError:
        yield Finding("extras", "warning", "Podium is not installed", "pip install .")
        return
    for extra, missing in missing_by_extra.items():
        if missing:
            told = f"not installed: {', '.join(missing)}"
            yield Finding(f"extra {extra}", "note", told, install_line(extra))
        else:
            yield Finding(f"extra {extra}", "ok", "installed")


def missing_distributions(requirements: list[str]) -> dict[str, list[str]]:
    """Maps each extra of a distribution to its requirements that are not installed."""
    missing: dict[str, list[str]] = {}
    for requirement in requirements:
        match = re.fullmatch(r"\s*([\w.-]+)[^;]*;.*extra\s*==\s*['\"]([\w-]+)['\"].*", requirement)
        if match and match[2] != "all":
            absent = missing.setdefault(match[2], [])
            absent.extend([] if _is_installed(match[1]) else [match[1]])
    return missing


def _is_installed(distribution: str) -> bool:
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


CHECKS: tuple[Check, ...] = (
    check_python,
    check_compiler,
    check_cache,
    check_machine,
    check_sandbox,
    check_traces,
    check_extras,
)
