"""Downloads the original OpenB files, checks them, and keeps what is already there."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from podium.errors import InputError, MissingError, PodiumError, UsageError
from podium.files.draft import FULL, unwritable
from podium.traces.openb.files import OpenbFile, openb_index

Progress = Callable[[str, int, int], None]
"""Told the file, the bytes of it that are there, and the bytes it has."""

RAW_BASE = "https://raw.githubusercontent.com/alibaba/clusterdata"
TIMEOUT_S = 30
_CHUNK_BYTES = 1 << 16


def fetch_openb(
    target: Path,
    progress: Progress | None = None,
    opener: Callable[..., Any] = urllib.request.urlopen,
    base_url: str = "",
) -> list[Path]:
    """Brings the 26 original files into a folder; files with the right checksum are kept."""
    index = openb_index()
    base = base_url or f"{RAW_BASE}/{index.commit}/{index.folder}"
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot create the folder: {error.strerror or error}"
        raise UsageError(message, where=str(target), hint="choose another folder") from error
    report = progress or _silent
    paths = []
    for file in index.files:
        path = target / file.file_name
        if _is_whole(path, file):
            report(file.file_name, file.size_bytes, file.size_bytes)
        else:
            _download(f"{base}/{file.file_name}", path, file, opener, report)
        paths.append(path)
    return paths


def _is_whole(path: Path, file: OpenbFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size_bytes:
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256


def _download(
    url: str, path: Path, file: OpenbFile, opener: Callable[..., Any], report: Progress
) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with closing(opener(url, timeout=TIMEOUT_S)) as response, partial.open("wb") as output:
            digest, size = _copy(response, output, file, report)
        _check(digest, size, url, file)
        partial.replace(path)
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise _unreachable(url, path, error) from error
    finally:
        partial.unlink(missing_ok=True)


def _copy(response: Any, output: IO[bytes], file: OpenbFile, report: Progress) -> tuple[str, int]:
    digest = hashlib.sha256()
    size = 0
    while chunk := response.read(_CHUNK_BYTES):
        size += len(chunk)
        if size > file.size_bytes:
            break  # whatever this is, it is not the file
        digest.update(chunk)
        output.write(chunk)
        report(file.file_name, size, file.size_bytes)
    return digest.hexdigest(), size


def _check(digest: str, size: int, url: str, file: OpenbFile) -> None:
    if size < file.size_bytes:
        raise MissingError(
            f"the download ended after {size} of {file.size_bytes} bytes",
            where=url,
            hint="run the command again; what is complete is kept",
        )
    if size > file.size_bytes:
        raise InputError(
            f"the download is larger than the {file.size_bytes:,} bytes of the file",
            where=url,
            hint="something on the way alters it; check whether a proxy answers instead",
        )
    if digest != file.sha256:
        raise InputError(
            f"the checksum is {digest[:12]}..., {file.sha256[:12]}... is expected",
            where=url,
            hint="try again; if that does not help, something on the way alters the file",
        )


def _unreachable(url: str, path: Path, error: Exception) -> PodiumError:
    if isinstance(error, OSError) and error.errno in FULL:
        return unwritable(str(path), error)
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return MissingError(
        f"cannot be downloaded: {reason or type(error).__name__}",
        where=url,
        hint=f"without a network, copy {path.name} and the others by hand into a folder "
        "and name it in PODIUM_TRACES",
    )


def _silent(name: str, done: int, size: int) -> None:
    """Shows nothing."""
