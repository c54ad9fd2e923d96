"""Compiles functions with Numba and keeps the machine code on disk, by content.

Numba's own cache goes by the time stamp of one file: it misses a change in an imported
module, and it cannot hold functions that came from a string. This one is keyed by a stamp
that the caller derives from all the sources that matter.

Machine code is unpickled, so it is read only from folders that nobody else can write to.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import inspect
import logging
import marshal
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from podium.files.keeper import OTHERS, stranger_at

_LOG = logging.getLogger(__name__)

COMPILING = threading.RLock()
"""Locked while something is compiled: other threads wait instead of compiling it again."""


def cache_folder() -> Path | None:
    """Finds the folder for machine code; None if it is not writable."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("PODIUM_COMPILE_CACHE") or Path(home) / "podium" / "compiled")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    trusted = _trusted(folder)
    return trusted if trusted is not None and os.access(trusted, os.W_OK) else None


def _trusted(folder: Path) -> Path | None:
    """Returns a folder, or a private one where others could have written to it."""
    try:
        stranger = stranger_at(folder, OTHERS)
    except FileNotFoundError:
        return folder
    except OSError:
        return None
    return _private_folder(f"{folder} {stranger}") if stranger else folder


@functools.cache
def _private_folder(reason: str) -> Path | None:
    """Makes a folder for this process and those that it starts; it ends with the process."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="podium-compiled-"))
    except OSError:
        return None
    _LOG.warning(
        "%s: no compiled policy is read from there, and none kept beyond this process; "
        "podium doctor says more", reason,
    )  # fmt: skip
    atexit.register(_remove, folder, os.getpid())
    os.environ["PODIUM_COMPILE_CACHE"] = str(folder)
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def stamp_of(texts: Iterable[str]) -> str:
    """Digests sources into a stamp."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def compiled(function: FunctionType, mark: str = "fresh") -> Any:
    """Compiles a plain function, under a marked name, with the plain functions that it calls."""
    return _compiled(function, mark, {})


def by_type(function: Any) -> Any:
    """Has Numba compile a function once for each type of number, not for each literal number."""
    import numba

    dispatcher = numba.njit(function)
    template = dispatcher.get_call_template

    def without_literals(args: Iterable[Any], kws: dict[str, Any]) -> Any:
        return template([numba.types.unliteral(each) for each in args], kws)

    dispatcher.get_call_template = without_literals
    return dispatcher


def marked(function: Any, mark: str) -> Any:
    """Returns a function a unique name in machine code.

    Numba tells functions of one name apart by a number that every process counts anew. Two
    that were kept on disk by two processes can bear the same, and the second one read back
    would silently run the code of the first.
    """
    function.__qualname__ = f"{function.__qualname__}_{mark}"
    return function


def _compiled(function: FunctionType, mark: str, known: dict[FunctionType, Any]) -> Any:
    if function in known:
        return known[function]
    names = dict(function.__globals__)
    copy = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    known[function] = by_type(marked(copy, mark))
    names.update({name: _compiled(called, mark, known) for name, called in _calls(function)})
    return known[function]


def fingerprints(functions: Iterable[FunctionType]) -> list[str]:
    """Digests functions, the plain functions they call, and the constants they all refer to."""
    found: dict[FunctionType, str] = {}
    waiting = list(functions)
    while waiting:
        function = waiting.pop()
        if function not in found:
            found[function] = _fingerprint(function)
            waiting += [called for _, called in _calls(function)]
    return sorted(found.values())


def _fingerprint(function: FunctionType) -> str:
    names = {name: function.__globals__.get(name) for name in _names(function.__code__)}
    constants = {name: value for name, value in names.items() if isinstance(value, _CONSTANTS)}
    # Version 2 of the format writes equal code as equal bytes.
    code = marshal.dumps(function.__code__, 2).hex()
    return stamp_of([code, repr(sorted(constants.items())), repr(function.__defaults__)])


_CONSTANTS = (bool, int, float, complex, str, tuple)


def _calls(function: FunctionType) -> Iterator[tuple[str, FunctionType]]:
    for name in _names(function.__code__):
        called = function.__globals__.get(name)
        if isinstance(called, FunctionType):
            yield name, called


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def keep_on_disk(compiler: Any, function: Any, stamp: str) -> None:
    """Attaches the content-keyed cache to a Numba dispatcher or C function."""
    folder = kept_folder(stamp)
    if folder is not None:
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
        function.__podium_cache__ = (str(folder), stamp)
        compiler._cache = _cache_class()(function)


def kept_folder(stamp: str) -> Path | None:
    """Names the folder of one stamp: the files of two would overwrite each other."""
    name = stamp_of([stamp])[:24]
    folder = cache_folder()
    kept = _trusted(folder / name) if folder is not None else None
    return kept / name if kept is not None and kept.name != name else kept


@functools.cache
def _cache_class() -> type[Any]:
    from numba.core import caching

    locate = _locator_class()

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
        def __init__(self, function: Any) -> None:
            # Numba's own lets a .numba_config.yaml of the working folder choose where code is read.
            self._lineno = function.__code__.co_firstlineno
            self._locator = locate(*function.__podium_cache__)
            name = f"{Path(inspect.getfile(function)).stem}.{function.__qualname__}"
            self._filename_base = self.get_filename_base(name, sys.abiflags)

    class ContentCache(caching.FunctionCache):  # type: ignore[misc]
        _impl_class = Implementation

        def load_overload(self, signature: Any, target: Any) -> Any:
            try:
                return super().load_overload(signature, target)
            except Exception:  # noqa: BLE001 - a damaged file must only cost a compilation
                return None

        def save_overload(self, signature: Any, data: Any) -> None:
            save = functools.partial(super().save_overload, signature, data)
            if not _succeeds(save) and _succeeds(self.flush):
                _succeeds(save)

        def _index_key(self, signature: Any, codegen: Any) -> Any:
            # The stamp covers what Numba would hash here, and dispatchers in a closure hash
            # differently in every process.
            return (signature, codegen.magic_tuple())

    return ContentCache


def _locator_class() -> type[Any]:
    from numba.core import caching

    class Locator(caching._CacheLocator):  # type: ignore[misc]
        def __init__(self, folder: str, stamp: str) -> None:
            self._folder, self._stamp = folder, stamp

        def get_cache_path(self) -> str:
            return self._folder

        def get_source_stamp(self) -> str:
            return self._stamp

        def get_disambiguator(self) -> str:
            return ""

    return Locator


def _succeeds(step: Callable[[], object]) -> bool:
    try:
        step()
    except Exception:  # noqa: BLE001 - a damaged index or a full disk must only cost time
        return False
    return True
