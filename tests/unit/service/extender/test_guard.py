import io
import json
import threading

import pytest

from podium.policies import load
from podium.policies.policy import from_function
from podium.service.extender import guard as guards
from podium.service.extender.guard import Guard, LateError, ThreadGuard, guard_of
from podium.service.http.logs import Log
from support.extender import Clock

LIMIT_S = 0.1


class Asked:
    """Holds a guard with a clock that tests move on, and what it logged."""

    def __init__(self, kind=ThreadGuard, limit_s=LIMIT_S):
        self.clock, self.lines = Clock(), io.StringIO()
        self.log = Log(self.lines)
        self.guard = kind("mine", limit_s, self.log.logger, self.clock)
        self.started_again = 0

    def ask(self, work, about=b"pod", limit_s=None):
        return self.guard.ask(about, work, self.start_again, limit_s)

    def start_again(self):
        self.started_again += 1

    def late(self, work, about=b"pod"):
        with pytest.raises(LateError) as caught:
            self.ask(work, about)
        return str(caught.value)

    def logged(self):
        self.log.close()
        return [json.loads(line)["message"] for line in self.lines.getvalue().splitlines()]


class Stuck:
    """Is work that ends when it is told to."""

    def __init__(self):
        self.may_end = threading.Event()
        self.calls = 0

    def __call__(self):
        self.calls += 1
        self.may_end.wait(60)
        return "late"


def taking(asked, seconds):
    """Is work for which the clock moves on."""

    def work():
        asked.clock.now_s += seconds
        return "done"

    return work


@pytest.mark.parametrize("kind", [Guard, ThreadGuard])
def test_what_is_in_time_is_returned_or_raised(kind):
    asked = Asked(kind, 30.0)
    assert asked.ask(lambda: "found") == "found"
    with pytest.raises(ZeroDivisionError):
        asked.ask(lambda: 1 // 0)
    assert not asked.guard.is_slow
    asked.guard.close()


def test_three_late_answers_in_a_row_make_a_pause():
    asked = Asked(Guard)
    for seconds in (1.0, 1.0, 0.01, 1.0, 1.0):
        assert asked.ask(taking(asked, seconds)) == "done"
    assert not asked.guard.is_slow
    asked.ask(taking(asked, 1.0))
    assert asked.guard.is_slow
    assert "late too often" in asked.late(lambda: pytest.fail("is asked"))


def test_pauses_grow_until_the_policy_is_in_time():
    asked, pauses = Asked(Guard), []
    for _ in range(3):
        asked.ask(taking(asked, 1.0))
    for _ in range(6):
        began_s = asked.clock.now_s
        while True:
            try:
                asked.ask(taking(asked, 1.0))
                break
            except LateError:
                asked.clock.now_s += 5.0
        pauses.append(asked.clock.now_s - 1.0 - began_s)
    assert pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
    asked.clock.now_s += 60.0
    assert asked.ask(lambda: "again") == "again"
    assert not asked.guard.is_slow
    told = asked.logged()
    assert ["too slow" in each for each in told] == [True, False]
    assert told[1] == "the policy is in time again"


def test_pods_that_come_while_one_is_late_do_not_wait():
    asked, stuck = Asked(), Stuck()
    assert "did not end within 0.1 s" in asked.late(stuck)
    for _ in range(10):
        assert "earlier pod" in asked.late(lambda: pytest.fail("is asked"), b"other")
    assert not asked.guard.is_slow  # it was late once
    stuck.may_end.set()
    while True:  # the thread ends in its own time
        try:
            assert asked.ask(lambda: "next", b"other", 30.0) == "next"
            break
        except LateError:
            continue
    asked.guard.close()


def test_a_score_that_never_ends_is_left_and_pods_like_it_are_not_scored_again():
    asked, stuck = Asked(), Stuck()
    asked.late(stuck)
    asked.clock.now_s += 1.0
    assert asked.guard.is_slow
    asked.late(stuck)
    asked.clock.now_s += 31.0
    assert asked.ask(lambda: "other", b"other", 30.0) == "other"
    assert asked.started_again == 1
    assert not asked.guard.is_slow
    assert "asks for the same" in asked.late(stuck)
    assert stuck.calls == 1
    stuck.may_end.set()
    asked.guard.close()
    assert any("does not end" in each for each in asked.logged())


def test_threads_that_do_not_end_are_few(monkeypatch):
    monkeypatch.setattr(guards, "MOST_LEFT", 1)
    asked, stuck = Asked(), Stuck()
    for about in (b"one", b"two"):
        asked.late(stuck, about)
        asked.clock.now_s += 400.0
        asked.late(stuck, about)  # it is seen to be busy
        asked.clock.now_s += 400.0
    assert "several kinds" in asked.late(lambda: pytest.fail("is asked"), b"three")
    asked.clock.now_s += 400.0
    assert "several kinds" in asked.late(lambda: pytest.fail("is asked"), b"three")
    stuck.may_end.set()
    for thread in asked.guard._left:
        thread._thread.join(30)
    asked.clock.now_s += 400.0
    assert asked.ask(lambda: "scored", b"three", 30.0) == "scored"
    asked.guard.close()


def test_only_files_run_in_threads():
    log = Log(io.StringIO()).logger
    assert type(guard_of(load("fgd"), 0.1, log)) is Guard
    assert type(guard_of(from_function(lambda pod, node: 1.0), 0.1, log)) is ThreadGuard  # noqa: ARG005
