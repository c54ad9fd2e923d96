import threading

import pytest

from podium.policies.thread import PolicyThread
from podium.testing import attempt as module
from podium.testing.attempt import Attempt


class HeldUp:
    """Is a check whose one call goes on when it may, on a machine that lets it not work."""

    def __init__(self, waits):
        self.attempt, self.may_go_on, self.waits = Attempt(0.01), threading.Event(), waits

    def worked_s(self):
        self.waits -= 1
        if self.waits == 0:
            self.may_go_on.set()
        return 0.0

    def work(self):
        self.attempt.at(lambda: "for a pod")
        self.may_go_on.wait()
        return ["done"]


@pytest.fixture
def held_up(monkeypatch):
    def made(waits):
        check = HeldUp(waits)
        monkeypatch.setattr(PolicyThread, "worked_s", lambda _thread: check.worked_s())
        return check

    return made


def test_who_is_kept_from_working_is_waited_for(held_up, monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITS", 1_000_000)
    check = held_up(waits=5)
    assert check.attempt.findings(check.work) == ["done"]


def test_who_never_works_is_not_waited_for_for_ever(held_up, monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITS", 1)
    check = held_up(waits=-1)
    (finding,) = check.attempt.findings(check.work)
    check.may_go_on.set()
    assert finding.detail == "not within 0.01 s for a pod"


def test_a_thread_tells_how_long_it_has_worked():
    thread, may_end = PolicyThread("p"), threading.Event()

    def busy():
        while not may_end.is_set():
            pass

    before_s = thread.worked_s()
    thread.begin(busy)
    while thread.worked_s() < before_s + 0.05:
        pass
    may_end.set()
    assert thread.has_ended(120)
    thread.leave()
