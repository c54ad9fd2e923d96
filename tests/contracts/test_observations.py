"""What every store must do with observations, whatever database it lies in."""

import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import delete, event, text

from podium.errors import InputError, MissingError, UsageError
from podium.store import (
    CheckpointRecord,
    Follower,
    ObservationRecord,
    ObservationWriter,
    open_store,
)
from podium.store.engine import reading, surest, writing
from podium.store.schema import OBSERVATIONS
from podium.store.turn import take_turn
from support.observed import OBSERVATION, Mind, Tally, seen, start_observer
from support.stored import release


def ids_in(store, after=0):
    return [record.id for record in store.observations.since(after, 100_000)]


def wait_until(is_true):
    deadline_s = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def save(store, last_id, name="online", **state):
    return store.checkpoints.save(CheckpointRecord(name, last_id, state, recorded_s=1.5))


# --- adding and finding -----------------------------------------------------------------------


def test_an_observation_comes_back_as_it_was_added_and_with_an_id(store):
    assert store.observations.add([OBSERVATION]) == [1]
    assert store.observations.since(0) == [replace(OBSERVATION, id=1)]


def test_ids_go_up_by_one_in_the_order_of_the_records(store):
    assert store.observations.add([seen(7), seen(3)]) == [1, 2]
    assert store.observations.add([]) == []
    assert store.observations.add([seen(5)]) == [3]
    found = store.observations.since(1)
    assert [(record.id, record.recorded_s) for record in found] == [(2, 3.0), (3, 5.0)]
    assert store.observations.newest() == 3


def test_an_id_of_the_caller_is_not_used(store):
    assert store.observations.add([seen(0, id=99)]) == [1]


def test_no_more_than_asked_for_are_listed(store):
    store.observations.add(seen(number) for number in range(10))
    assert [record.id for record in store.observations.since(3, most=4)] == [4, 5, 6, 7]
    assert store.observations.since(10) == []


def test_a_key_that_is_sent_again_counts_once(store):
    assert store.observations.add([seen(0), seen(1, key="a"), seen(2, key="b")]) == [1, 2, 3]
    again = store.observations.add([seen(9, key="b"), seen(4), seen(9, key="a"), seen(9, key="c")])
    assert again == [3, 4, 2, 5]
    assert store.observations.count() == 5
    assert [record.recorded_s for record in store.observations.since(2)] == [2.0, 4.0, 9.0]


def test_a_key_that_stands_twice_in_a_batch_counts_once(store):
    assert store.observations.add([seen(0, key="a"), seen(1, key="a"), seen(2)]) == [1, 1, 2]
    assert store.observations.count() == 2


def test_many_keys_are_looked_up(store):
    batch = [seen(number, "a") for number in range(11_000)]
    first = store.observations.add(batch)
    assert store.observations.add(reversed(batch)) == first[::-1]
    assert store.observations.count() == 11_000


def test_observations_are_counted_by_pair(store):
    store.observations.add([seen(0), seen(12), seen(1), seen(0, job_type="nul\x00")])
    assert store.observations.count() == 4
    counts = {("job-0", "gpu-0"): 2, ("job-1", "gpu-1"): 1, ("nul\x00", "gpu-0"): 1}
    assert store.observations.counts() == counts


def test_an_empty_store_has_no_observations(store):
    assert (store.observations.count(), store.observations.newest()) == (0, 0)
    assert (store.observations.counts(), store.observations.since(0)) == ({}, [])


@pytest.mark.parametrize(
    ("changes", "message", "where"),
    [
        ({"runtime_s": float("nan")}, "NaN is no number", "runtime_s"),
        ({"features": {"a": float("inf")}}, "JSON has no number inf", "features.a"),
        ({"source": "\ud800"}, "half a surrogate pair", "source"),
        ({"gpu_type": "x" * 257}, "a name of 257 characters is too long", "gpu_type"),
        ({"key": "x" * 300}, "a name of 300 characters is too long", "key"),
    ],
)
def test_what_cannot_come_back_is_refused_with_its_place(store, changes, message, where):
    with pytest.raises(UsageError, match=message) as caught:
        store.observations.add([seen(0), seen(1, **changes)])
    assert caught.value.where == f'observation of "job-1", {where}'
    assert caught.value.hint
    assert store.observations.count() == 0


def test_the_longest_names_fit_into_every_index(store):
    # No two characters are alike, so that no database can press them together.
    names = ["".join(chr(0x10000 + 256 * part + each) for each in range(256)) for part in range(3)]
    record = seen(0, job_type=names[0], gpu_type=names[1], key=names[2])
    store.observations.add([record])
    assert store.observations.since(0) == [replace(record, id=1)]
    assert store.checkpoints.save(CheckpointRecord(names[0], 1, {}, 0.0))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.floats(allow_nan=False)
RECORDS = st.builds(
    ObservationRecord, job_type=TEXTS, gpu_type=TEXTS, runtime_s=NUMBERS, recorded_s=NUMBERS,
    colocated_job_types=st.lists(TEXTS, max_size=3).map(tuple),
    features=st.dictionaries(TEXTS, FINITE, max_size=3), source=TEXTS,
)  # fmt: skip
relaxed = hypothesis_settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60
)


def bits(record):
    """Writes a record so that floats are equal only if all their bits are."""
    return [repr(getattr(record, item.name)) for item in fields(record)]


@relaxed
@given(records=st.lists(RECORDS, min_size=1, max_size=4), key=TEXTS)
def test_any_observation_comes_back_to_the_last_bit(store, records, key):
    before = store.observations.newest()
    ids = store.observations.add([*records, replace(records[0], key=f"{before}{key}"[:256])])
    assert ids == list(range(before + 1, before + len(records) + 2))
    *found, last = store.observations.since(before)
    expected = [replace(record, id=id) for record, id in zip(records, ids, strict=False)]
    assert list(map(bits, found)) == list(map(bits, expected))
    assert last.key == f"{before}{key}"[:256]


# --- the order of ids -------------------------------------------------------------------------


def test_a_second_writer_waits_so_that_no_lower_id_appears_later(store):
    begun = threading.Event()

    def add():
        begun.set()
        return store.observations.add([seen(1)])

    with ThreadPoolExecutor(1) as threads:
        with writing(store.engine) as connection:
            take_turn(connection)
            second = threads.submit(add)
            assert begun.wait(60)
            with pytest.raises(TimeoutError):
                second.result(0.5)
            assert ids_in(store) == []
        assert second.result(60) == [1]


def test_whoever_follows_by_id_misses_nothing_of_two_writers(url, tmp_path):
    with open_store(url) as store:
        writers = [start_observer(tmp_path, "write", url, source, 300) for source in "ab"]
        release(writers)
        found = []
        while len(found) < 600:
            assert any(writer.poll() is None for writer in writers) or ids_in(store, len(found))
            found += ids_in(store, found[-1] if found else 0)
        for writer in writers:
            _, problems = writer.communicate()
            assert (writer.returncode, problems) == (0, "")
        assert found == list(range(1, 601))
        sources = Counter(record.source for record in store.observations.since(0))
        assert sources == {"a": 300, "b": 300}


def test_ids_never_start_again_below_a_checkpoint(store):
    store.observations.add([seen(0), seen(1)])
    save(store, 2)
    with writing(store.engine) as connection:
        connection.execute(delete(OBSERVATIONS))
    assert store.observations.newest() == 2
    assert store.observations.add([seen(2)]) == [3]


# --- what survives ----------------------------------------------------------------------------


def test_what_a_killed_process_was_told_is_kept_is_kept(url, tmp_path):
    writer = start_observer(tmp_path, "write", url, "a", 100_000)
    release([writer])
    heard = [writer.stdout.readline() for _ in range(200)]
    writer.kill()
    heard += writer.stdout.readlines()
    writer.communicate()
    told = [line.split() for line in heard if line.endswith("\n")]
    with open_store(url) as store:
        found = {record.id: record for record in store.observations.since(0, 200_000)}
        assert sorted(found) == list(range(1, len(found) + 1))
        assert len(told) >= 200
        for id, number in told:
            assert found[int(id)].key == f"a-{number}"
        # Eight threads were waiting at most: the rest was never acknowledged.
        assert len(found) <= len(told) + 8


def test_a_retry_after_a_kill_counts_once(url, tmp_path):
    writer = start_observer(tmp_path, "write", url, "a", 100_000)
    release([writer])
    first = [writer.stdout.readline() for _ in range(50)]
    writer.kill()
    writer.stdout.readlines()
    writer.communicate()
    again = start_observer(tmp_path, "write", url, "a", 50)
    release([again])
    output, problems = again.communicate()
    assert (again.returncode, problems) == (0, "")
    told = {line for line in first if int(line.split()[1]) < 50}
    assert told <= set(output.splitlines(keepends=True))
    with open_store(url) as store:
        keys = [record.key for record in store.observations.since(0, 200_000)]
    assert len(keys) == len(set(keys))


def test_sqlite_waits_for_the_disk_at_the_end_of_what_must_survive(tmp_path):
    with open_store(str(tmp_path / "podium.db")) as store:
        levels = []
        for engine in (surest(store.engine), store.engine):
            with writing(engine) as connection:
                levels.append(connection.scalar(text("PRAGMA synchronous")))
    assert levels == [2, 1]
    assert store.observations.engine.get_execution_options()["synchronous"] == "FULL"


# --- checkpoints and retention ----------------------------------------------------------------


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
    with pytest.raises(UsageError, match="0 observations of each pair cannot be kept"):
        store.observations.prune(0)


# --- the writer -------------------------------------------------------------------------------


def test_threads_that_wait_share_transactions(store):
    with ObservationWriter(store.observations) as writer:
        with writing(store.engine) as connection:
            take_turn(connection)
            first = writer.submit([seen(0, "a")])
            wait_until(lambda: writer.waiting == 0)
            others = [writer.submit([seen(number, "a")]) for number in range(1, 40)]
            assert not first.done()
        commits = []
        event.listen(store.engine, "commit", commits.append)
        assert [each.result(60) for each in (first, *others)] == [[id] for id in range(1, 41)]
    assert len(commits) <= 2
    assert store.observations.count() == 40


def test_threads_each_hear_of_their_own_observations(store):
    def add(number):
        ids = writer.add([seen(number, "a"), seen(number, "b")])
        with reading(store.engine):
            found = store.observations.since(ids[0] - 1, 2)
        return [record.key for record in found] == [f"a-{number}", f"b-{number}"]

    with ObservationWriter(store.observations) as writer, ThreadPoolExecutor(8) as threads:
        assert all(threads.map(add, range(100)))
    assert store.observations.count() == 200


def test_a_bad_observation_is_told_to_its_submitter_alone(store):
    with ObservationWriter(store.observations) as writer:
        with pytest.raises(UsageError, match="NaN is no number"):
            writer.submit([seen(0, runtime_s=float("nan"))])
        assert writer.add([seen(1)]) == [1]


def test_what_a_database_refuses_does_not_take_its_neighbours_along(store):
    with writing(store.engine) as connection:
        connection.execute(text("CREATE UNIQUE INDEX odd ON observations (recorded_s)"))
    with ObservationWriter(store.observations) as writer:
        with writing(store.engine) as connection:
            take_turn(connection)
            first = writer.submit([seen(0)])
            wait_until(lambda: writer.waiting == 0)
            others = [writer.submit([seen(number)]) for number in (1, 0, 2)]
        assert first.result(60) == [1]
        with pytest.raises(UsageError, match="the database refuses the observations"):
            others[1].result(60)
        assert [others[0].result(60), others[2].result(60)] == [[2], [3]]


def test_closing_stores_all_that_was_submitted(store):
    writer = ObservationWriter(store.observations)
    promised = [writer.submit([seen(number)]) for number in range(500)]
    writer.close()
    assert [each.result(0) for each in promised] == [[id] for id in range(1, 501)]
    with pytest.raises(UsageError, match="the writer of observations is closed"):
        writer.submit([seen(0)])
    writer.close()


def test_a_full_queue_refuses_at_once_and_takes_more_later(store):
    with ObservationWriter(store.observations, capacity=3) as writer:
        with writing(store.engine) as connection:
            take_turn(connection)
            first = writer.submit([seen(0)])
            wait_until(lambda: writer.waiting == 0)
            taken = writer.submit([seen(1), seen(2)])
            more = writer.submit([seen(3)])
            with pytest.raises(MissingError, match="3 observations wait to be stored already"):
                writer.submit([seen(4)])
        assert [first.result(60), taken.result(60), more.result(60)] == [[1], [2, 3], [4]]
        assert writer.add([seen(5)]) == [5]


def test_a_submission_larger_than_the_queue_is_taken(store):
    with ObservationWriter(store.observations, capacity=3) as writer:
        assert writer.add(seen(number) for number in range(5)) == [1, 2, 3, 4, 5]
        assert writer.add([]) == []


def test_a_submission_cannot_be_cancelled(store):
    with ObservationWriter(store.observations) as writer:
        promised = writer.submit([seen(0)])
        assert not promised.cancel()
        assert promised.result(60) == [1]


def test_an_error_of_the_database_goes_to_whoever_waits_and_the_writer_goes_on(store):
    with ObservationWriter(store.observations) as writer:
        with writing(store.engine) as connection:
            connection.execute(text("ALTER TABLE observations RENAME TO hidden"))
        with pytest.raises((InputError, MissingError), match="observations"):
            writer.add([seen(0)])
        with writing(store.engine) as connection:
            connection.execute(text("ALTER TABLE hidden RENAME TO observations"))
        assert writer.add([seen(1)]) == [1]


# --- following --------------------------------------------------------------------------------


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
