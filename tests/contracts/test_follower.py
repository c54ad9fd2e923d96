"""What a follower of observations must do, whatever database they lie in."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import delete

from podium.errors import UsageError
from podium.store import (
    Follower,
    ObservationWriter,
    open_store,
)
from podium.store.engine import writing
from podium.store.schema import OBSERVATIONS
from support.observed import (
    Mind,
    Tally,
    seen,
    start_observer,
)
from support.stored import release


def test_a_follower_shows_each_observation_once_and_in_order(store):
    tally = Tally()
    follower = Follower(store, tally)
    assert follower.catch_up() == 0
    store.observations.add(seen(number) for number in range(2500))
    assert follower.catch_up() == 2500
    store.observations.add([seen(0)])
    assert follower.catch_up() == 1
    assert follower.catch_up() == 0
    assert tally.ids == list(range(1, 2502))
    assert follower.progress.learned == 2501


def test_a_follower_goes_on_from_the_checkpoint(store):
    store.observations.add(seen(number) for number in range(10))
    first = Follower(store, Tally(), clock=lambda: 7.5)
    assert not first.checkpoint()
    first.catch_up()
    assert first.checkpoint()
    assert store.checkpoints.load("online").recorded_s == 7.5
    store.observations.add([seen(0)])
    tally = Tally()
    second = Follower(store, tally)
    assert second.catch_up() == 1
    assert tally.ids == list(range(1, 12))


def test_a_follower_that_falls_behind_what_is_deleted_takes_the_checkpoint(store):
    slow, quick = Tally(), Tally()
    behind, ahead = Follower(store, slow), Follower(store, quick)
    store.observations.add([seen(0)] * 5)
    behind.catch_up()
    store.observations.add([seen(0)] * 20)
    ahead.catch_up()
    ahead.checkpoint()
    assert store.observations.prune(2) == 23
    store.observations.add([seen(0)])
    behind.catch_up()
    assert slow.ids == list(range(1, 27))
    assert (behind.progress.last_id, behind.progress.missed) == (26, 0)


def test_what_was_deleted_by_hand_is_counted_as_missed(store):
    store.observations.add([seen(0)] * 9)
    with writing(store.engine) as connection:
        connection.execute(delete(OBSERVATIONS).where(OBSERVATIONS.c.id.in_([2, 3, 7])))
    tally = Tally()
    follower = Follower(store, tally)
    follower.catch_up()
    assert tally.ids == [1, 4, 5, 6, 8, 9]
    assert follower.progress.missed == 3


def test_what_a_learner_refuses_is_counted_and_the_rest_learned(store):
    store.observations.add([seen(0)] * 3)
    tally = Tally({2: UsageError("too odd", where="runtime_s")})
    follower = Follower(store, tally)
    assert follower.catch_up() == 3
    assert tally.ids == [1, 3]
    assert (follower.progress.learned, follower.progress.refused) == (2, 1)
    assert follower.progress.refusal == "observation 2: runtime_s: too odd"


def test_a_learner_that_breaks_is_shown_the_same_again(store):
    store.observations.add([seen(0)] * 3)
    tally = Tally({2: RuntimeError("broken")})
    follower = Follower(store, tally)
    with pytest.raises(RuntimeError, match="broken"):
        follower.catch_up()
    tally.refused = ()
    follower.catch_up()
    assert tally.ids == [1, 2, 3]


def test_threads_that_want_the_same_observation_learned_find_it_learned_once(store):
    tally = Tally()
    follower = Follower(store, tally)

    def add(number):
        (id,) = writer.add([seen(number)])
        follower.reach(id)
        return id in tally.ids

    with ObservationWriter(store.observations) as writer, ThreadPoolExecutor(8) as threads:
        assert all(threads.map(add, range(200)))
    assert tally.ids == list(range(1, 201))


def test_a_learner_restored_from_a_checkpoint_has_learned_the_same(store):
    store.observations.add(seen(number) for number in range(80))
    whole, halved, resumed = Mind(), Mind(), Mind()
    half = Follower(store, halved)
    half.catch_up()
    half.checkpoint()
    store.observations.add(seen(number) for number in range(80, 160))
    for mind in (whole, resumed):
        Follower(store, mind, name="online" if mind is resumed else "none").catch_up()
    half.catch_up()
    assert resumed.state() == halved.state() == whole.state()


def forgets(**name):
    (kind,) = name
    return seen(0, **{"job_type": "", "gpu_type": "", "runtime_s": 0.0, "forgets": kind, **name})


def test_names_are_forgotten_at_their_place_in_the_order(store):
    kept = [number for number in range(60) if number % 3 != 1]
    store.observations.add(seen(number) for number in range(40))
    live, late, never = Mind(), Mind(), Mind()
    following = Follower(store, live)
    following.catch_up()
    store.observations.add([forgets(gpu_type="gpu-1")])
    store.observations.add(seen(number) for number in kept if number >= 40)
    following.catch_up()
    Follower(store, late, name="none").catch_up()
    for number in kept:
        never.observe(seen(number))
    assert live.state() == late.state() == never.state()
    store.observations.add([seen(1)])
    following.catch_up()
    assert "gpu-1" in live.agent.names()[1]


def test_what_was_observed_under_a_forgotten_name_is_deleted_once_all_have_forgotten(store):
    store.observations.add([seen(number) for number in range(12)])
    store.observations.add([forgets(gpu_type="gpu-1"), forgets(job_type="job-0")])
    store.observations.add([seen(1), seen(0)])
    assert (store.observations.count(), store.observations.prune(1000)) == (14, 0)
    mind = Mind()
    follower = Follower(store, mind)
    follower.catch_up()
    follower.checkpoint()
    assert store.observations.prune(1000) == 7  # one of them beside job-0
    counts = store.observations.counts()
    assert counts["job-1", "gpu-1"] == counts["job-0", "gpu-0"] == 1
    assert sum(counts.values()) == store.observations.count() == 7
    assert store.observations.prune(1000) == 0
    assert store.observations.add([seen(2)]) == [17]
    resumed = Mind()
    Follower(store, resumed).catch_up()
    follower.catch_up()
    assert resumed.state() == mind.state()


def test_replicas_on_one_store_learn_the_same(url, tmp_path):
    replicas = [start_observer(tmp_path, "learn", url, source, 150) for source in "ab"]
    release(replicas)
    states = []
    for replica in replicas:
        assert replica.stdout.readline() == "written\n", replica.communicate()[1]
    for replica in replicas:
        output, problems = replica.communicate("go on\n")
        assert (replica.returncode, problems) == (0, "")
        states.append(json.loads(output))
    assert states[0] == states[1]
    assert states[0]["observations"] == 300
    with open_store(url) as store:
        late = Mind()
        Follower(store, late).catch_up()
        assert json.loads(json.dumps(late.state())) == states[0]
