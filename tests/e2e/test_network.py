"""Nothing that Podium does by itself listens or connects beyond this machine."""

import re
import subprocess
import sys

import pytest

from podium.policies.jit import cache_folder
from support.binary import clean_environment
from support.network import Watch, has_strace
from support.pages import ROOT
from support.service import ASSIGN, OBSERVE, SCORE, Process, Service

# Read before any test cleans its environment.
COMPILED = cache_folder()
GIVEN = {
    "PODIUM_SEARCH_WORKERS": "1",
    **({"PODIUM_COMPILE_CACHE": str(COMPILED)} if COMPILED else {}),
}
STORE = ("--store", "runs.db")
SMALL = ("--nodes", "6", "--pods", "60")


@pytest.fixture
def watch(tmp_path):
    (tmp_path / "watch").mkdir()
    return Watch(tmp_path / "watch")


def run(watch, folder, command):
    environ = clean_environment(folder, **{**GIVEN, **watch.environ})
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor",),
        ("config",),
        ("compare", "fgd", "best-fit", *SMALL, "--protocol", "inflation", "--seeds", "2", "--json"),
        ("simulate", *SMALL, "--json"),
        ("search", "run", *STORE, "--trace", "openb", "--nodes", "32", "--seeds", "1",
         "--evaluations", "20", "--largest", "40",
         "--tune-every", "1", "--tune-evaluations", "10", "--json"),
        ("runs", "list"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)  # fmt: skip
def test_a_verb_speaks_to_nobody(watch, tmp_path, arguments):
    done = run(watch, tmp_path, watch.podium(*arguments))
    assert done.returncode == 0, done.stderr
    assert watch.strangers() == []


def test_the_service_listens_on_the_loopback_interface_and_speaks_to_nobody(watch, tmp_path):
    process = Process(tmp_path, prefix=watch.prefix, **{**GIVEN, **watch.environ})
    try:
        for path, body in (("/v1/score", SCORE), ("/v1/observe", OBSERVE), ("/v1/assign", ASSIGN)):
            assert process.post(path, body).status == 200
        for path in ("/", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"):
            assert process.get(path).status == 200
    finally:
        assert process.end() == 0
    assert watch.count() > 0  # it does listen
    assert watch.strangers() == []


BEYOND = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
    there.connect(("192.0.2.1", 9))  # a datagram socket: nothing is sent
with socket.socket() as everywhere:
    everywhere.bind(("0.0.0.0", 0))
"""


def test_the_watch_sees_whoever_goes_beyond(watch, tmp_path):
    done = run(watch, tmp_path, [*watch.prefix, sys.executable, "-c", BEYOND])
    assert done.returncode == 0, done.stderr
    seen = watch.strangers()
    assert len(seen) == (4 if has_strace() else 2)
    assert sum("192.0.2.1" in line for line in seen) == len(seen) // 2
    assert sum("0.0.0.0" in line for line in seen) == len(seen) // 2


def test_the_watch_sees_whoever_asks_for_a_name(watch, tmp_path):
    asking = "import socket\ntry: socket.getaddrinfo('podium.invalid', 80)\nexcept OSError: pass"
    assert run(watch, tmp_path, [sys.executable, "-c", asking]).returncode == 0
    assert any("podium.invalid" in line for line in watch._asked_for())


@pytest.mark.skipif(not has_strace(), reason="strace is not there, or may not watch")
def test_the_watch_sees_what_is_started_without_python_s_settings(watch, tmp_path):
    inner = f"import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-c', {BEYOND!r}])"
    assert run(watch, tmp_path, [*watch.prefix, sys.executable, "-c", inner]).returncode == 0
    assert len(watch.strangers()) == 2


LOADED = re.compile(r"(?:src|href|action)\s*=\s*[\"']?(?P<to>[^\"'\s>]+)|url\((?P<in>[^)]+)\)")


def test_the_pages_that_ship_load_nothing_from_elsewhere():
    files = [path for path in (ROOT / "src").rglob("*")
             if path.suffix in (".html", ".css", ".js", ".svg")]  # fmt: skip
    assert files
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?:https?:)?//[\w-]+\.|@import|importScripts|WebSocket", text), path


def test_the_page_of_the_service_loads_nothing_from_elsewhere(tmp_path):
    with Service(tmp_path) as service:
        text = service.get("/docs").body.decode()
    to = [found["to"] or found["in"] for found in LOADED.finditer(text)]
    assert to
    assert all(each.startswith(("/", "#", "data:")) and not each.startswith("//") for each in to)
