import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from podium.search.sandbox.confinement import WALLS
from support.confined import ENTER, HEAD, IS_FILTERED, run_confined

linux = pytest.mark.skipif(not IS_FILTERED, reason="these walls are those of Linux")
STATUS = """
status = os.open("/proc/self/status", os.O_RDONLY)
os.dup2(status, 3)
"""
READ = """
found = dict(line.split(":\\t") for line in os.read(3, 1 << 16).decode().splitlines())
say([walls, found])
"""


@linux
def test_all_walls_stand_and_no_privilege_is_left():
    code, said = run_confined(READ, before=STATUS)
    walls, status = said[0]
    assert (code, tuple(walls)) == (0, WALLS)
    sets = {name: status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
    assert set(sets.values()) == {"0" * 16}, sets
    assert (status["NoNewPrivs"], status["Seccomp"], status["Threads"]) == ("1", "2", "1")


@linux
@pytest.mark.skipif(os.getuid() != 0, reason="only root has that much to give up")
def test_root_becomes_nobody_for_good():
    _, said = run_confined(READ, before=STATUS)
    status = said[0][1]
    assert set(status["Uid"].split()) == set(status["Gid"].split()) == {"65534"}
    assert status["Groups"].split() == []
    assert status["CapBnd"] == "0" * 16


@linux
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_all_walls_stand_for_who_is_not_root_too():
    someone = (
        "import resource\nos.setgroups([])\nos.setresgid(*[1000] * 3)\nos.setresuid(*[1000] * 3)\n"
    )
    _, said = run_confined(READ, before=STATUS + someone)
    walls, status = said[0]
    assert tuple(walls) == WALLS
    assert set(status["Uid"].split()) == {"1000"}


@linux
def test_a_wall_that_the_kernel_refuses_is_not_said_to_stand():
    """Takes the filter away as a kernel does that has none: prctl fails when asked for it."""
    before = (
        "import podium.search.sandbox.seccomp as s\nprctl = s.prctl\n"
        "s.prctl = lambda option, *rest: -1 if option == s._SET_SECCOMP else prctl(option, *rest)\n"
    )
    _, said = run_confined("say(walls)", before=before)
    assert said[0] == [wall for wall in WALLS if wall != "system calls"]


@linux
def test_an_unknown_machine_has_no_filter():
    before = "import platform\nplatform.machine = lambda: 'riscv64'\n"
    _, said = run_confined("say(walls)", before=before)
    assert "system calls" not in said[0]


def test_a_process_with_other_threads_is_not_confined():
    if not Path("/proc/self/task").exists():
        pytest.skip("this system does not show threads as files")
    before = "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True)"
    program = HEAD + before + ".start()\n" + ENTER
    done = subprocess.run([sys.executable, "-c", program, "0", "0"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "2 threads cannot be confined together" in done.stderr


@linux
@pytest.mark.parametrize("is_confined", [True, False])
def test_a_process_at_work_dies_with_its_parent(is_confined):
    enter = "Confinement((3, 4)).enter(os.getppid())" if is_confined else "die_with(os.getppid())"
    child = (
        "import os\nfrom podium.search.sandbox.confinement import Confinement, die_with\n"
        f"{enter}\nos.write(1, b'%d' % os.getpid())\nwhile True:\n    pass\n"
    )
    parent = (
        "import subprocess, sys\n"
        f"found = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        "print(int(found.stdout.read1(9)), flush=True)\n"
        "found.wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        pid = int(process.stdout.readline())
        os.kill(pid, 0)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 120
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_running(pid)


@linux
def test_a_process_whose_parent_is_gone_already_ends_at_once():
    program = (
        "from podium.search.sandbox.seccomp import die_with\ndie_with(1)\nprint('still here')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def _is_running(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
