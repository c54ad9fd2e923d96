"""Watches which addresses a process and all that it starts listen at or speak to."""

import ipaddress
import json
import re
import shutil
import subprocess
import sys
import time
from functools import cache

from support.binary import PODIUM, TESTS

HOOK = '''"""Writes down what Python is asked to connect to, wherever it is loaded."""
import json, os, sys

_FILE = os.environ.get("WATCHED_NETWORK")
_EVENTS = ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg",
           "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")


def _hook(event, arguments):
    if event not in _EVENTS:
        return
    address = arguments[0] if event.startswith("socket.get") else arguments[1]
    line = json.dumps([event, address], default=str) + "\\n"
    file = os.open(_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)


if _FILE:
    sys.addaudithook(_hook)
'''
CALLS = "connect,bind,sendto,sendmsg,sendmmsg"
_SOCKET = re.compile(r"sa_family=(?P<family>AF_\w+)(?P<rest>[^}]*)")
_ADDRESS = re.compile(r'inet_(?:addr\(|pton\(AF_INET6, )"(?P<host>[^"]+)"')


class Watch:
    """Runs commands and lists every address beyond this machine that they asked for."""

    def __init__(self, folder):
        self.folder = folder
        self._asked, self._calls = folder / "asked.jsonl", folder / "calls.txt"
        (folder / "sitecustomize.py").write_text(HOOK)
        self.environ = {"PYTHONPATH": f"{folder}:{TESTS}", "WATCHED_NETWORK": str(self._asked)}
        # -D: the tracer is the grandchild, so that signals reach whom they are sent to.
        tracer = ["strace", "-D", "-f", "-q", "-e", f"trace={CALLS}", "-o", str(self._calls)]
        self.prefix = tracer if has_strace() else []

    def podium(self, *arguments):
        """Names the real binary, watched."""
        return [*self.prefix, *PODIUM, *arguments]

    def strangers(self):
        """Lists the addresses beyond the loopback interface, once everything has ended."""
        return [*self._asked_for(), *self._called()]

    def count(self):
        """Counts all addresses: who sees none may be blind."""
        return len(self._lines(self._asked)) + len(self._lines(self._calls))

    def _asked_for(self):
        for line in self._lines(self._asked):
            event, address = json.loads(line)
            host = address[0] if isinstance(address, list) else address
            is_file = event in ("socket.connect", "socket.bind") and isinstance(address, str)
            if not is_file and not _is_near(host):
                yield f"{event} {address}"

    def _called(self):
        deadline = time.monotonic() + 120
        while self.prefix and not any("+++" in line for line in self._lines(self._calls)[-1:]):
            assert time.monotonic() < deadline, "the tracer does not end"
            time.sleep(0.05)
        for line in self._lines(self._calls):
            found = _SOCKET.search(line)
            if found is None or found["family"] in ("AF_UNIX", "AF_NETLINK", "AF_UNSPEC"):
                continue
            host = _ADDRESS.search(found["rest"])
            if host is None or not _is_near(host["host"]):
                yield line

    @staticmethod
    def _lines(path):
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@cache
def has_strace():
    """Tells whether system calls can be watched here."""
    if shutil.which("strace") is None:
        return False
    tried = ["strace", "-D", "-f", "-q", "-o", "/dev/null", sys.executable, "-c", ""]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


def _is_near(host):
    if host in (None, "", "localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
