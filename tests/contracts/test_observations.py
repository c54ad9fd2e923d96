"""What every store must do with observations, whatever database it lies in."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import delete, text

from podium.errors import PodiumError, UsageError
from podium.store import (
    CheckpointRecord,
    ObservationRecord,
    ReusedName,
    open_store,
)
from podium.store.engine import surest, take_turn, writing
from podium.store.schema import OBSERVATIONS
from support.observed import OBSERVATION, ids_in, save, seen, start_observer
from support.stored import release

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
    later = {"recorded_s": 99.0, "source": "another replica"}
    again = [seen(2, key="b", **later), seen(4), seen(1, key="a", **later), seen(9, key="c")]
    assert store.observations.add(again) == [3, 4, 2, 5]
    assert store.observations.count() == 5
    assert [record.recorded_s for record in store.observations.since(2)] == [2.0, 4.0, 9.0]


def test_a_job_that_is_told_of_again_counts_once_whatever_the_request(store):
    told = seen(1, key="a", job_id="j")
    assert (
        store.observations.add([told, replace(told, key="b"), replace(told, key=None)]) == [1] * 3
    )
    assert store.observations.add([told, replace(told, key="c")]) == [1, 1]
    assert store.observations.count() == 1


def test_keys_and_jobs_are_apart(store):
    assert store.observations.add([seen(1, key="a"), seen(2, job_id="a")]) == [1, 2]
    assert store.observations.add([seen(2, job_id="a"), seen(1, key="a")]) == [2, 1]


def test_neither_the_order_of_neighbours_nor_that_of_features_makes_another_observation(store):
    told = seen(1, key="a", colocated_job_types=("x", "y"), features={"a": 1.0, "b": 2.0})
    other = replace(told, colocated_job_types=("y", "x"), features={"b": 2.0, "a": 1.0})
    assert store.observations.add([told, other]) == [1, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"job_type": "other"},
        {"gpu_type": "other"},
        {"runtime_s": 11.001000000000002},
        {"colocated_job_types": ("job-1", "job-1")},
        {"features": {"batch_size": 3.0}},
        {"features": {}},
        {"job_id": "other"},
        {"job_id": None},
    ],
)
@pytest.mark.parametrize("name", ["key", "job_id"])
def test_a_name_that_was_given_to_another_observation_is_refused(store, name, change):
    told = seen(1, key="a", job_id="j")
    store.observations.add([told])
    other = replace(told, **change)
    if name == "job_id":
        other = replace(other, key=None)
        if other.job_id != "j":
            pytest.skip("that is another name")
    with pytest.raises(ReusedName, match="was used for another observation"):
        store.observations.add([seen(5), other])
    assert store.observations.count() == 1
    assert store.observations.add([seen(6, key="later")]) == [2]


def test_names_of_two_observations_are_refused_together(store):
    told = seen(1, key="a", job_id="j")
    store.observations.add([told, replace(told, key="b", job_id="k")])
    with pytest.raises(ReusedName):
        store.observations.add([replace(told, key="a", job_id="k")])


def test_how_a_run_ended_makes_another_observation(store):
    store.observations.add([seen(1, job_id="j", outcome="failed")])
    assert store.observations.add([seen(1, job_id="j", outcome="failed")]) == [1]
    for outcome in ("", "timed_out"):
        with pytest.raises(ReusedName):
            store.observations.add([seen(1, job_id="j", outcome=outcome)])


def test_a_key_that_stands_twice_in_a_batch_counts_once(store):
    assert store.observations.add([seen(0, key="a"), seen(0, key="a"), seen(2)]) == [1, 1, 2]
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
        ({"runtime_s": float("nan")}, "NaN is not a number", "runtime_s"),
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


@pytest.mark.parametrize("is_thorough", [False, True])
def test_a_probe_meets_what_an_observation_would_meet_and_leaves_nothing(store, is_thorough):
    store.observations.probe(is_thorough=is_thorough)
    store.observations.add([seen(0)])
    store.observations.probe(is_thorough=is_thorough)
    assert (store.observations.count(), store.observations.newest()) == (1, 1)
    with writing(store.engine) as connection:
        connection.execute(text("DROP TABLE observations"))
    if is_thorough:
        with pytest.raises(PodiumError):
            store.observations.probe(is_thorough=True)
