import threading

import pytest

from podium.errors import MissingError
from podium.store import Follower, Rhythm, Upkeep, open_store
from podium.store.engine import writing
from support.observed import Tally, seen


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "podium.db")) as opened:
        yield opened


class Scene:
    """Holds a store, a follower of it and what was reported."""

    def __init__(self, store, **rhythm):
        self.store = store
        self.tally = Tally()
        self.reports = []
        self.has_failed = threading.Event()
        self.follower = Follower(store, self.tally)
        self.upkeep = Upkeep(self.follower, store.observations, Rhythm(**rhythm), self.report)

    def report(self, error):
        self.reports.append(error)
        self.has_failed.set()

    def add(self, count):
        self.store.observations.add([seen(0)] * count)

    @property
    def saved(self):
        found = self.store.checkpoints.load("online")
        return found.last_id if found else 0


@pytest.fixture
def scene(store):
    return Scene(store, checkpoint_s=300.0, keep=2)


def test_every_step_learns_what_is_new(scene):
    scene.add(3)
    scene.upkeep.step(now_s=0.0)
    scene.add(1)
    scene.upkeep.step(now_s=1.0)
    assert scene.tally.ids == [1, 2, 3, 4]
    assert scene.saved == 0


def test_checkpoints_are_saved_in_their_time_and_old_observations_deleted(scene):
    scene.add(5)
    for now_s, saved, kept in ((100.0, 0, 5), (399.0, 0, 5), (400.0, 5, 2), (401.0, 5, 2)):
        scene.upkeep.step(now_s)
        assert (scene.saved, scene.store.observations.count()) == (saved, kept)
    scene.add(1)
    scene.upkeep.step(699.0)
    assert (scene.saved, scene.store.observations.count()) == (5, 3)
    scene.upkeep.step(700.0)
    assert (scene.saved, scene.store.observations.count()) == (6, 2)


def test_the_thread_learns_at_once_when_it_is_nudged_and_saves_at_the_end(store):
    scene = Scene(store, poll_s=600.0)
    learned = threading.Event()
    scene.tally.observe = lambda record: (scene.tally.ids.append(record.id), learned.set())
    with scene.upkeep:
        scene.add(2)
        scene.upkeep.nudge()
        assert learned.wait(60)
    assert scene.tally.ids == [1, 2]
    assert scene.saved == 2


def test_the_thread_looks_by_itself_for_what_others_stored(store):
    scene = Scene(store, poll_s=0.01)
    learned = threading.Event()
    scene.tally.observe = lambda _record: learned.set()
    with scene.upkeep:
        with open_store(str(store.engine.url.database)) as other:
            other.observations.add([seen(0)])
        assert learned.wait(60)


def test_a_store_that_fails_for_a_while_is_reported_and_learned_from_later(store):
    scene = Scene(store, poll_s=0.01)
    learned = threading.Event()
    scene.tally.observe = lambda _record: learned.set()
    with writing(store.engine) as connection:
        connection.exec_driver_sql("ALTER TABLE observations RENAME TO hidden")
    with scene.upkeep:
        assert scene.has_failed.wait(60)
        with writing(store.engine) as connection:
            connection.exec_driver_sql("ALTER TABLE hidden RENAME TO observations")
        scene.add(1)
        assert learned.wait(60)
    assert isinstance(scene.reports[0], MissingError)


def test_closing_what_never_started_saves_too(scene):
    scene.add(1)
    scene.upkeep.close()
    assert scene.saved == 1
