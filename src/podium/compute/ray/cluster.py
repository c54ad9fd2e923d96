"""Joins a Ray cluster, or starts one on this machine for as long as it is needed."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from podium.errors import MissingError, MissingExtra
from podium.settings import hidden

ADDRESS, LOCAL = "RAY_ADDRESS", "local"
STORE_BYTES = 80 << 20  # Ray takes no less than 75 MiB; little more than a batch is kept there
KNOCK_S = 5.0

_ENTRYPOINT = "get_entrypoint_name"
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    # Ray prints the death of an actor to standard output, where results belong.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}


class RayCluster:
    """A connection to Ray; it stops Ray only if it has started it."""

    def __init__(self, address: str, workers: int) -> None:
        self.ray = import_ray()
        self._folder = ""
        address = address or os.environ.get(ADDRESS, "") or LOCAL
        knock(address)
        self._is_joined = not self.ray.is_initialized()
        if not self._is_joined:
            return
        try:
            self._open(address, workers)
        except BaseException:
            self.close()
            raise

    @property
    def cpus(self) -> float:
        """Counts the cores that the cluster has now."""
        return float(self.ray.cluster_resources().get("CPU", 0.0))

    def close(self) -> None:
        """Leaves the cluster, which ends it if it was started here."""
        if self._is_joined and self.ray.is_initialized():
            self.ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _open(self, address: str, workers: int) -> None:
        try:
            self._start(workers) if address == LOCAL else self._init(address=address)
        except (OSError, RuntimeError, ValueError) as error:
            raise _no_ray(address, error) from error

    def _start(self, workers: int) -> None:
        # Sockets are made below this folder, and their names may have 107 letters.
        self._folder = tempfile.mkdtemp(prefix="podium-ray-", dir=_short_folder())
        self._init(
            address=LOCAL, num_cpus=workers, num_gpus=0, include_dashboard=False,
            object_store_memory=STORE_BYTES, _temp_dir=self._folder,
        )  # fmt: skip

    def _init(self, **options: Any) -> None:
        with _environment(_QUIET), _own_signals(), _unnamed(self.ray):
            self.ray.init(
                log_to_driver=False, logging_level=logging.CRITICAL,
                job_config=_job_config(self.ray), **options,
            )  # fmt: skip


def import_ray() -> ModuleType:
    """Loads Ray, set to be quiet."""
    with _environment(_QUIET):
        try:
            import ray
        except ImportError as error:
            raise MissingExtra.named("ray", "working on a Ray cluster") from error
    module: ModuleType = ray
    return module


def knock(address: str) -> None:
    """Checks that something answers at an address: Ray itself tries for many minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not port.isdecimal():
        return  # "auto" or "local"
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_S).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise _no_ray(address, error) from error


def _no_ray(address: str, error: Exception) -> MissingError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return MissingError(
        f"no Ray cluster is available: {hidden(reason)}", where=hidden(address),
        hint="ray start --head starts a cluster; without an address, Ray runs here alone",
    )  # fmt: skip


def _short_folder() -> str:
    default = tempfile.gettempdir()
    return default if len(default) <= 16 else "/tmp"


@contextmanager
def _own_signals() -> Iterator[None]:
    """Leaves it to the program what a request to end does: Ray would exit at once."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _unnamed(ray: Any) -> Iterator[None]:
    """Keeps the command line to ourselves: Ray would tell it to the whole cluster, and keep it."""
    utils = ray._private.utils
    before = getattr(utils, _ENTRYPOINT)
    setattr(utils, _ENTRYPOINT, lambda: "podium")
    try:
        yield
    finally:
        setattr(utils, _ENTRYPOINT, before)


def _job_config(ray: Any) -> Any:
    """Keeps workers from importing what lies in the folder in which Podium was started."""

    class Config(ray.job_config.JobConfig):  # type: ignore[misc]
        # Ray adds the working folder to it, whose modules would come before all others.
        _py_driver_sys_path = property(lambda _: [], lambda *_: None)

    return Config()


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
