"""What every store must do with checkpoints, and what it may delete after them."""

import pytest

from podium.errors import UsageError
from podium.store import (
    CheckpointRecord,
    ObservationRecord,
    ReusedName,
)
from support.observed import ids_in, save, seen


def forgotten(name, kind="job_type"):
    """Gives a note that a name is to be forgotten."""
    names = {"job_type": "", "gpu_type": "", kind: name}
    return ObservationRecord(**names, runtime_s=0.0, recorded_s=1.0, forgets=kind)


def test_a_checkpoint_comes_back_as_it_was_saved(store):
    state = {"cells": {"a\x00": [0.1 + 0.2, -0.0, 5e-324]}, "count": 3, "none": None}
    record = CheckpointRecord("nul\x00", 7, state, recorded_s=1763200000.123)
    assert store.checkpoints.save(record)
    assert store.checkpoints.load("nul\x00") == record
    assert repr(store.checkpoints.load("nul\x00").state) == repr(state)
    assert store.checkpoints.load("another") is None
    assert store.checkpoints.all() == [record]


def test_the_latest_checkpoint_of_a_name_stays(store):
    assert save(store, 5, a=1)
    assert save(store, 9, a=2)
    assert save(store, 9, a=3)
    assert not save(store, 8, a=4)
    assert save(store, 2, "other", a=5)
    assert store.checkpoints.load("online").state == {"a": 3}
    assert store.checkpoints.load("online").last_id == 9
    assert [record.name for record in store.checkpoints.all()] == ["online", "other"]


def test_a_checkpoint_is_deleted_by_its_name(store):
    save(store, 5)
    assert not store.checkpoints.delete("other")
    assert store.checkpoints.delete("online")
    assert store.checkpoints.load("online") is None


def test_a_state_that_is_no_json_is_refused(store):
    with pytest.raises(UsageError, match="JSON has no number nan") as caught:
        save(store, 1, a=[float("nan")])
    assert caught.value.where == 'checkpoint "online", state.a[0]'


def test_the_newest_of_each_pair_stay(store):
    store.observations.add(seen(number) for number in range(60))
    save(store, 60)
    assert store.observations.prune(3) == 60 - 12 * 3
    assert set(store.observations.counts().values()) == {3}
    assert ids_in(store) == list(range(25, 61))
    assert store.observations.prune(3) == 0
    assert store.observations.add([seen(0)]) == [61]


def test_what_no_checkpoint_contains_stays(store):
    store.observations.add(seen(number, job_type="a", gpu_type="b") for number in range(20))
    assert store.observations.prune(1) == 0
    save(store, 12)
    save(store, 8, "slower")
    assert store.observations.prune(1) == 8
    assert ids_in(store) == list(range(9, 21))
    store.checkpoints.delete("slower")
    assert store.observations.prune(10) == 2
    assert ids_in(store) == list(range(11, 21))


def test_the_last_observation_stays_whatever_is_pruned(store):
    store.observations.add([seen(0), seen(0)])
    save(store, 2)
    assert store.observations.prune(1) == 1
    assert ids_in(store) == [2]


def test_thousands_are_pruned_in_parts(store):
    store.observations.add(seen(0) for _ in range(12_345))
    save(store, 12_345)
    assert store.observations.prune(45) == 12_300
    assert store.observations.counts() == {("job-0", "gpu-0"): 45}


def test_nothing_of_a_pair_cannot_be_kept(store):
    with pytest.raises(UsageError, match="cannot keep 0 observations of each pair"):
        store.observations.prune(0)


def test_a_forgotten_job_type_does_not_come_back_from_those_it_ran_beside(store):
    others = [seen(0, job_type="a", gpu_type="g", colocated_job_types=("typo", "b"))]
    others += [seen(1, job_type="a", gpu_type="g", colocated_job_types=("typo-2", 'x"typo"'))]
    store.observations.add([*others, seen(2, job_type="typo", gpu_type="g"), forgotten("typo")])
    store.observations.add([seen(3, job_type="a", gpu_type="g", colocated_job_types=("typo",))])
    save(store, 5)
    store.observations.prune(100)
    assert ids_in(store) == [2, 5]


@pytest.mark.parametrize(
    "run",
    [
        {"job_type": "typo"},
        {"gpu_type": "typo"},
        {"colocated_job_types": ("b", "typo")},
    ],
)
@pytest.mark.parametrize("is_at_once", [False, True])
def test_the_names_of_what_is_forgotten_are_free_at_once(store, run, is_at_once):
    kind = "gpu_type" if "gpu_type" in run else "job_type"
    wrong = seen(0, job_id="j", key="k", **run)
    right = seen(1, job_id="j", key="k")
    records = [wrong, forgotten("typo", kind), right]
    for batch in [records] if is_at_once else [[each] for each in records]:
        store.observations.add(batch)
    assert ids_in(store) == [1, 2, 3]
    assert [each.job_id for each in store.observations.since(0)] == [None, None, "j"]
    with pytest.raises(ReusedName):
        store.observations.add([wrong])
    other = seen(4, job_id="kept", key="kept-too")
    assert store.observations.add([other]) == store.observations.add([other])
