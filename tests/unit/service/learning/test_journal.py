import asyncio
import io
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from podium.online import Parameters
from podium.service.http.daemon_executor import DaemonExecutor
from podium.service.http.logs import Log
from podium.service.learning.journal import Journal
from podium.service.learning.learner import AgentLearner
from podium.store import ObservationRecord, Rhythm, open_store
from podium.store.observations import Observations

RECORD = ObservationRecord("a", "g", 1.0, recorded_s=1.0)
SCRIPT = """
import asyncio, sys, threading
from podium.errors import MissingError
from podium.online import Parameters
from podium.service.learning.learner import AgentLearner
from podium.service.http.logs import Log
from podium.service.learning.journal import Journal
from podium.store import ObservationRecord, Rhythm, open_store
from podium.store.observations import Observations

async def attempt(journal):
    try:
        await journal.store_new(ObservationRecord("a", "g", 1.0, recorded_s=1.0), lambda: None)
    except MissingError:
        print("given up", flush=True)

log = Log(sys.stderr)
with open_store(sys.argv[1]) as store:
    journal = Journal(store, AgentLearner(Parameters()), Rhythm(), log.logger, 0.2)
    Observations.add_checked = lambda *_: threading.Event().wait()
    asyncio.run(attempt(journal))
    journal.close(0.2)
log.close()
print("closed", flush=True)
"""


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "podium.db")) as opened:
        yield opened


def test_a_store_that_never_answers_does_not_hold_the_end_up(store, monkeypatch):
    lines, answers = io.StringIO(), threading.Event()
    log = Log(lines)
    journal = Journal(store, AgentLearner(Parameters()), Rhythm(), log.logger)
    journal._writer.add([RECORD])  # acknowledged
    add_groups = Observations.add_groups

    def stuck(self, groups):
        answers.wait()
        return add_groups(self, groups)

    monkeypatch.setattr(Observations, "add_groups", stuck)
    promised = [journal._writer.submit([RECORD, RECORD]) for _ in range(3)]
    journal.close(0.2)
    log.close()
    (told,) = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert (told["level"], told["not_confirmed"]) == ("error", 6)
    assert store.observations.count() == 1
    assert not any(each.done() for each in promised)
    answers.set()
    for each in promised:
        each.result(60)


def test_a_store_that_answers_is_told_everything_before_the_end(store):
    lines = io.StringIO()
    log = Log(lines)
    journal = Journal(store, AgentLearner(Parameters()), Rhythm(), log.logger)
    journal.replay()
    journal.start()
    for _ in range(5):
        journal._writer.submit([RECORD])
    journal.close()
    log.close()
    assert lines.getvalue() == ""
    assert (store.observations.count(), journal.last_id) == (5, 5)
    assert store.checkpoints.load("online").last_id == 5


@pytest.mark.parametrize("is_late", [False, True])
def test_a_newcomer_does_not_hold_the_store_while_a_name_is_forgotten(store, monkeypatch, is_late):
    """Also if the name is to be forgotten just before the newcomer's turn."""
    log, learner = Log(io.StringIO()), AgentLearner(Parameters())
    journal = Journal(store, learner, Rhythm(), log.logger, limit_s=60.0)
    begun, may_end = threading.Event(), threading.Event()
    monkeypatch.setattr(learner, "forget", lambda _names: begun.set() or may_end.wait())
    store.observations.add([RECORD])
    journal.replay()
    catch_up, waiting = (
        journal._follower.catch_up,
        [replace(RECORD, forgets="job_type", gpu_type="", runtime_s=0.0)],
    )

    def catch_up_and_forget():
        caught_up = catch_up()
        store.observations.add([waiting.pop() for _ in list(waiting)])
        return caught_up

    if is_late:
        monkeypatch.setattr(journal._follower, "catch_up", catch_up_and_forget)
    else:
        store.observations.add([waiting.pop()])
    newcomer = replace(RECORD, job_type="new")
    with ThreadPoolExecutor(1) as pool:
        promised = pool.submit(asyncio.run, journal.store_new(newcomer, lambda: None))
        try:
            assert begun.wait(60)
            (stored,) = journal._writer.submit([RECORD]).result(30)
            assert not promised.done()
        finally:
            may_end.set()
        assert (stored.id, promised.result(60).id) == (3, 4)
    journal.close()
    log.close()


def test_a_process_ends_whatever_its_store_does(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "podium.db")],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert done.stdout.split("\n") == ["given up", "closed", ""]
    (told,) = [json.loads(line) for line in done.stderr.splitlines() if "finish" in line]
    assert told["not_confirmed"] == 1


def test_a_workshop_does_its_work_in_order_and_tells_what_failed():
    workshop, found = DaemonExecutor("test"), []
    promised = [workshop.submit(found.append, number) for number in range(5)]
    failing = workshop.submit(int, "x")
    workshop.shutdown()
    assert [each.result(0) for each in promised] == [None] * 5
    assert found == [*range(5)]
    with pytest.raises(ValueError, match="invalid literal"):
        failing.result(0)
    with pytest.raises(RuntimeError, match="the executor is closed"):
        workshop.submit(found.append, 6)
    assert workshop.unsettled == 0
