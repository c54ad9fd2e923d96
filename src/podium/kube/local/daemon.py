"""Runs programs that serve on the loopback interface until they are stopped."""

from __future__ import annotations

import contextlib
import http.client
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_S = 120.0  # a busy machine may have to compile a policy first
STOP_S = 10.0
LOG_LINES = 40
# Has the kernel kill a program whose parent has died; util-linux brings it.
SETPRIV = shutil.which("setpriv")
TIED_TO_PARENT = [SETPRIV, "--pdeathsig", "KILL", "--"] if SETPRIV else []


class DaemonError(RuntimeError):
    """Tells that a program did not start, and what it wrote last."""

    def __init__(self, name: str, what: str, last: str) -> None:
        super().__init__(f"{name} {what}; it wrote last:\n{last}")
        self.name, self.what, self.last = name, what, last


@dataclass(frozen=True, slots=True)
class Daemon:
    """Holds a program that runs, and what it writes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def wait_until_ready(self, port: int, certificate: Path | None = None) -> None:
        """Waits until the program says so on /readyz, over TLS if it has a certificate."""
        deadline = time.monotonic() + START_S
        while not is_ready(port, certificate):
            if self.process.poll() is not None:
                raise self._failure(f"ended with status {self.process.returncode}")
            if time.monotonic() > deadline:
                raise self._failure(f"is not ready {START_S:g} s after its start")
            time.sleep(0.02)

    def _failure(self, what: str) -> DaemonError:
        return DaemonError(self.name, what, tail(self.log))


@contextmanager
def running(
    command: list[str | Path], log: Path, environ: Mapping[str, str] | None = None, name: str = ""
) -> Iterator[Daemon]:
    """Runs a program for as long as the block.

    It has a session of its own, so that ctrl-C reaches its parent alone, which stops it in order,
    and ends at once should the parent be killed.
    """
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*TIED_TO_PARENT, *command], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            cwd=log.parent, start_new_session=True, env=environ,
        )  # fmt: skip
    try:
        yield Daemon(name or Path(command[0]).name, process, log)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def is_ready(port: int, certificate: Path | None) -> bool:
    """Asks /readyz; who does not answer is not ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    if certificate is not None:
        trust = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=trust)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def free_ports(count: int) -> list[int]:
    """Finds ports of the loopback interface that nobody listens on."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]


def tail(log: Path) -> str:
    """Gives the last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
