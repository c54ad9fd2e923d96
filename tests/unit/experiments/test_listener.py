import threading
from pathlib import Path

import pytest

import podium
from podium.experiments.listener import Cancelled, Listener, Notes
from podium.store import open_store

SLOW = """
import time


class Policy:
    def __init__(self, seed):
        pass

    def choose(self, pod, nodes, feasible):
        time.sleep(0.02)
        return int(feasible.argmax())
"""


class Recorder(Listener):
    """Writes down what it hears; stops the experiment once a stage is so far."""

    def __init__(self, stop_at=None):
        self.stages, self.notes, self.stop_at = [], [], stop_at

    def note(self, text):
        self.notes.append(text)

    def progress(self, stage, done, total):
        self.stages.append((stage, done, total))
        if self.stop_at is not None and done >= self.stop_at:
            raise Cancelled

    def search_progress(self, progress):
        self.progress("search", progress.tally.evaluations, None)


def test_a_note_is_heard_once():
    heard = Recorder()
    notes = Notes(heard)
    notes.add(["a", "b", "a"])
    notes.add(["b", "c"])
    assert heard.notes == ["a", "b", "c"]


@pytest.mark.usefixtures("_warm_cache")
def test_a_comparison_reports_every_run():
    heard = Recorder()
    podium.compare(
        ["first-fit", "best-fit"], "openb:16", seeds=2, pods=20, protocol="inflation",
        listener=heard,
    )  # fmt: skip
    counts = [done for stage, done, total in heard.stages if (stage, total) == ("simulating", 4)]
    assert sorted(counts) == counts
    assert set(counts) == {0, 1, 2, 3, 4}


@pytest.mark.usefixtures("_warm_cache")
def test_a_simulation_is_cancelled_while_it_runs():
    Path("slow.py").write_text(SLOW)
    heard = Recorder(stop_at=1)
    with pytest.raises(Cancelled):
        podium.simulate("slow.py", "openb:16", pods=60, listener=heard)
    assert 0 < heard.stages[-1][1] < 60
    for thread in threading.enumerate():
        if thread.name.startswith("podium-work"):
            thread.join()  # it ends by itself; nobody waited for it


@pytest.mark.usefixtures("_warm_cache")
def test_a_comparison_is_cancelled_between_runs():
    heard = Recorder(stop_at=1)
    with pytest.raises(Cancelled):
        podium.compare(
            ["first-fit"], "openb:16", seeds=50, pods=20, protocol="inflation", jobs=1,
            listener=heard,
        )  # fmt: skip
    assert heard.stages[-1][1] == 1


@pytest.mark.usefixtures("_warm_cache")
def test_a_search_that_is_cancelled_can_be_resumed(tmp_path):
    with pytest.raises(Cancelled):
        podium.search(
            evaluations=200,
            trace="openb",
            nodes=32,
            seeds=2,
            workers=1,
            keep="mine",
            listener=Recorder(stop_at=3),
        )
    with open_store(str(tmp_path / "data" / "podium" / "podium.db")) as store:
        record = store.runs.get("mine")
        assert record.status == "interrupted"
        assert store.candidates.count(record.id) > 0
