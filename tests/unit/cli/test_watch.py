import io
import re
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from podium.cli.render import Screen
from podium.cli.watch import announce_compilation, inform, watching
from podium.errors import PolicyError
from podium.experiments.case import Inputs, load_case
from podium.experiments.listener import Notes
from podium.experiments.simulate import advising, cancelling, run_case
from podium.policies import load
from podium.settings import Display, load_settings
from podium.sim import simulate

SCREEN = Screen(Display())


def run_watched(screen, case, policy):
    """Runs a case while a screen shows it."""
    with watching(screen) as listener:
        return run_case(case, policy, listener)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.usefixtures("_warm_cache")
def test_a_watched_run_gives_what_an_unwatched_one_does(capsys):
    case = load_case(load_settings({}), Inputs(nodes=20, pods=200))
    policy = load("first-fit")
    watched = run_watched(SCREEN, case, policy)
    plain = simulate(case.cluster, case.workload, policy, case.protocol, case.setup)
    assert watched.digest == plain.digest
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("_warm_cache")
def test_a_bar_watches_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    case = load_case(load_settings({}), Inputs(nodes=20, pods=200))
    with redirect_stderr(Terminal()) as stream:
        run_watched(SCREEN, case, load("first-fit"))
    assert "first-fit" in stream.getvalue()


SLOW = """
import time


class Policy:
    def __init__(self, seed):
        pass

    def choose(self, pod, nodes, feasible):
        time.sleep(0.02)
        return int(feasible.argmax())
"""


@pytest.mark.usefixtures("_warm_cache")
def test_a_bar_follows_the_arrivals(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    Path("slow.py").write_text(SLOW)
    case = load_case(load_settings({}), Inputs(nodes=20, pods=30))
    with redirect_stderr(Terminal()) as stream:
        run_watched(SCREEN, case, load("slow.py"))
    shown = {int(number) for number in re.findall(r"(\d+)%", stream.getvalue())}
    assert any(0 < number < 100 for number in shown)


@pytest.mark.usefixtures("_warm_cache")
def test_a_failing_run_leaves_no_thread_behind():
    Path("zero.py").write_text("def score(pod, node):\n    return 1 / 0\n")
    case = load_case(load_settings({}), Inputs(nodes=2, pods=2))
    before = set(threading.enumerate())
    with pytest.raises(PolicyError) as caught:
        run_watched(SCREEN, case, load("zero.py"))
    assert caught.value.hint == "podium policies check zero.py finds out what is wrong"
    assert set(threading.enumerate()) <= before


def test_a_first_start_is_announced(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PODIUM_COMPILE_CACHE", str(tmp_path / "empty"))
    announce_compilation(SCREEN)
    assert "compiling the simulator's core (once" in capsys.readouterr().err


@pytest.mark.usefixtures("_warm_cache")
def test_a_later_start_is_not_announced(capsys):
    from podium.sim.kernel import core

    core()
    announce_compilation(SCREEN)
    assert capsys.readouterr().err == ""


def test_advice_that_is_there_stays():
    def fail(policy, hint):
        with advising(policy):
            raise PolicyError("it failed", hint=hint)

    with pytest.raises(PolicyError) as caught:
        fail(load("fgd"), "do this")
    assert caught.value.hint == "do this"
    with pytest.raises(PolicyError) as caught:
        fail(load("fgd"), "")
    assert caught.value.hint == "podium policies check fgd finds out what is wrong"


def test_notes_are_told_once(capsys):
    with watching(SCREEN) as listener:
        noted = Notes(listener)
        noted.add(["a", "b", "a"])
        noted.add(["b", "c"])
    inform(SCREEN, ["c", "c"])
    assert capsys.readouterr().err == "note: a\nnote: b\nnote: c\nnote: c\n"


def test_work_that_has_not_begun_is_dropped_on_a_failure():
    gate = threading.Event()
    begun = threading.Event()

    def work():
        begun.set()
        gate.wait()
        return "done"

    def fail(futures):
        with cancelling(ThreadPoolExecutor(1)) as pool:
            futures += [pool.submit(work) for _ in range(3)]
            begun.wait()
            threading.Timer(0.05, gate.set).start()
            raise KeyboardInterrupt

    futures = []
    with pytest.raises(KeyboardInterrupt):
        fail(futures)
    assert futures[0].result() == "done"
    for future in futures[1:]:
        with pytest.raises(CancelledError):
            future.result()


@pytest.mark.usefixtures("_warm_cache")
def test_a_bar_follows_what_is_settled_in_rounds(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    Path("slow.py").write_text(SLOW)
    settings = load_settings({"simulate.protocol": "rounds"})
    case = load_case(settings, Inputs(nodes=20, pods=30))
    with redirect_stderr(Terminal()) as stream:
        run_watched(SCREEN, case, load("slow.py"))
    shown = {int(number) for number in re.findall(r"(\d+)%", stream.getvalue())}
    assert any(0 < number < 100 for number in shown)


def test_whoever_interrupts_does_not_wait_for_what_has_begun():
    gate = threading.Event()

    def interrupt():
        with cancelling(ThreadPoolExecutor(1)) as pool:
            pool.submit(gate.wait)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    gate.set()


@pytest.mark.usefixtures("_warm_cache")
@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("node.cpu_left", "did you mean cpu_milli_left"),
        ("pod.gpu_num", "podium policies check typo.py finds out what is wrong"),
    ],
)
def test_a_field_that_is_misspelt_is_told_with_the_one_that_may_be_meant(line, hint):
    Path("typo.py").write_text(f"def score(pod, node):\n    return {line}\n")
    case = load_case(load_settings({}), Inputs(nodes=2, pods=2))
    with pytest.raises(PolicyError) as caught:
        run_watched(SCREEN, case, load("typo.py"))
    assert caught.value.hint == hint
