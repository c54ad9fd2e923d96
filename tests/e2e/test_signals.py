import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ENDLESS = "def score(pod, node):\n    while True:\n        pass\n    return 1.0\n"
VERBS = {
    "simulate": ["simulate", "--policy", "endless.py"],
    "compare": ["compare", "endless.py", "--seeds", "1"],
    "check": ["policies", "check", "endless.py"],
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the /proc of Linux")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("verb", VERBS)
def test_a_request_to_end_is_taken_as_an_interrupt(tmp_path, verb, number):
    (tmp_path / "endless.py").write_text(ENDLESS)
    process = subprocess.Popen(
        [sys.executable, "-m", "podium", *VERBS[verb]], cwd=tmp_path, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "PODIUM_TRACES": ""},
    )  # fmt: skip
    try:
        _wait_until_heard(process, number)
        process.send_signal(number)
        _, told = process.communicate(timeout=300)
    finally:
        process.kill()
    # Python itself dies of SIGINT, which shells show as 130, where the interrupt came while a
    # text was evaluated: that is how libraries make classes while they are imported.
    assert process.returncode in (130, -signal.SIGINT)
    assert told.splitlines()[-1:] == ["interrupted"]


def _wait_until_heard(process, number):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        caught = next(line.split()[1] for line in lines if line.startswith("SigCgt"))
        if int(caught, 16) >> (number - 1) & 1:
            return
        time.sleep(0.02)
    pytest.fail(f"it does not heed {number!r}, or ended with {process.returncode}")


LOADING = """
import runpy, sys, time

class Slow:
    def find_spec(self, name, *_):
        if name == "typer":
            print("loading", flush=True)
            time.sleep(30)

sys.meta_path.insert(0, Slow())
runpy.run_module("podium", run_name="__main__")
"""


def test_an_interrupt_while_the_command_line_is_loaded_is_quiet(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", LOADING, "policies", "list"], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == "loading\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (130, "")
