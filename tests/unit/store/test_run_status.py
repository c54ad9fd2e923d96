import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from podium.errors import PodiumError
from podium.store import RunRecord, open_store
from podium.store.run_folder import RunFolder
from podium.store.run_status import RATE_SPAN_S, Stopwatch, session, status_of


@pytest.fixture
def now():
    """Holds the time, which tests set."""
    return [100.0]


@pytest.fixture
def runs(tmp_path):
    """Is the runs of a store, one of which was interrupted."""
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        folder = str(tmp_path / "ab12")
        store.runs.create(RunRecord("ab12", "training", "", 0.0, folder=folder))
        store.runs.update("ab12", status="interrupted")
        yield store.runs


def test_earlier_sessions_count(now):
    stopwatch = Stopwatch(lambda: now[0], before_s=30.0)
    now[0] = 105.0
    assert stopwatch.seconds == 35.0


def test_the_rate_is_that_of_lately(now):
    stopwatch = Stopwatch(lambda: now[0])
    assert stopwatch.rate(0) == 0.0
    now[0] += 10
    assert stopwatch.rate(50) == 5.0
    now[0] += RATE_SPAN_S - 5  # the first mark is forgotten, the second is not
    assert stopwatch.rate(80) == pytest.approx(30 / (RATE_SPAN_S - 5))
    now[0] += RATE_SPAN_S
    assert stopwatch.rate(1000) == 0.0


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, "finished"),
        (KeyboardInterrupt(), "interrupted"),
        (TimeoutError(), "interrupted"),
        (PodiumError("no"), "failed"),
        (SystemExit(1), "failed"),
    ],
)
def test_how_a_session_ended_is_recorded(runs, error, status):
    seen = []
    expected = nullcontext() if error is None else pytest.raises(type(error))
    with expected, session(runs, "ab12", (KeyboardInterrupt, TimeoutError)):
        seen.append(runs.get("ab12").status)
        if error is not None:
            raise error
    assert (seen, runs.get("ab12").status) == (["running"], status)


def test_a_run_that_no_process_holds_is_interrupted(runs):
    runs.update("ab12", status="running")
    record = runs.get("ab12")
    assert status_of(record) == "running"  # its folder is on another machine
    folder = RunFolder(Path(record.folder))
    folder.lock()
    assert status_of(record) == "running"
    folder.unlock()
    assert status_of(record) == "interrupted"
    runs.update("ab12", status="finished")
    assert status_of(runs.get("ab12")) == "finished"


def test_a_folder_that_cannot_be_looked_into_hides_no_status(runs, tmp_path):
    blocked = tmp_path / "ab12"
    blocked.mkdir()
    os.mkfifo(blocked / "lock")
    record = replace(runs.get("ab12"), status="running")
    assert status_of(record) == "interrupted"
    assert status_of(replace(record, folder="/" + "x" * 5000)) == "running"
    assert status_of(replace(record, folder=str(tmp_path / ("x" * 300)))) == "running"
