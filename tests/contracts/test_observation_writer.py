"""What the writer of observations must do, whatever database it writes to."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event, text

from podium.errors import InputError, MissingError, UsageError
from podium.store import (
    ObservationWriter,
    ReusedName,
    observation_writer,
)
from podium.store.engine import reading, take_turn, writing
from support.observed import seen, wait_until


def ids_of(promised):
    return [kept.id for kept in promised.result(60)]


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
        assert [ids_of(each) for each in (first, *others)] == [[id] for id in range(1, 41)]
    assert len(commits) <= 2
    assert store.observations.count() == 40


def test_those_who_shared_a_transaction_are_waited_for(store, monkeypatch):
    monkeypatch.setattr(observation_writer, "LEAST_GATHER_S", 600.0)
    monkeypatch.setattr(observation_writer, "MOST_GATHER_S", 600.0)
    commits = []
    with ObservationWriter(store.observations) as writer:
        with writing(store.engine) as connection:
            take_turn(connection)
            first = writer.submit([seen(0)])
            wait_until(lambda: writer.waiting == 0)
            others = [writer.submit([seen(number)]) for number in (1, 2, 3)]
        assert [ids_of(each) for each in (first, *others)] == [[1], [2], [3], [4]]
        event.listen(store.engine, "commit", commits.append)
        back = [writer.submit([seen(4)])]
        time.sleep(0.05)
        assert not back[0].done()
        back += [writer.submit([seen(number)]) for number in (5, 6)]
        assert [ids_of(each) for each in back] == [[5], [6], [7]]
    assert len(commits) == 1


def test_whoever_comes_alone_waits_for_nobody(store, monkeypatch):
    monkeypatch.setattr(observation_writer, "LEAST_GATHER_S", 600.0)
    monkeypatch.setattr(observation_writer, "MOST_GATHER_S", 600.0)
    with ObservationWriter(store.observations) as writer:
        started = time.monotonic()
        assert [writer.add([seen(number)]) for number in range(3)] == [[1], [2], [3]]
    assert time.monotonic() - started < 300.0


def test_those_who_do_not_come_back_are_not_waited_for_long(store):
    with ObservationWriter(store.observations) as writer:
        with writing(store.engine) as connection:
            take_turn(connection)
            promised = [writer.submit([seen(number)]) for number in range(40)]
        assert [ids_of(each) for each in promised] == [[id] for id in range(1, 41)]
        assert [writer.add([seen(number)]) for number in (40, 41)] == [[41], [42]]


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
        with pytest.raises(UsageError, match="NaN is not a number"):
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
        assert ids_of(first) == [1]
        with pytest.raises(UsageError, match="the database rejected the observations"):
            others[1].result(60)
        assert [ids_of(others[0]), ids_of(others[2])] == [[2], [3]]


def test_closing_stores_all_that_was_submitted(store):
    writer = ObservationWriter(store.observations)
    promised = [writer.submit([seen(number)]) for number in range(500)]
    writer.close()
    assert [ids_of(each) for each in promised] == [[id] for id in range(1, 501)]
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
            with pytest.raises(
                MissingError, match="3 observations are already waiting to be stored"
            ):
                writer.submit([seen(4)])
        assert [ids_of(each) for each in (first, taken, more)] == [[1], [2, 3], [4]]
        assert writer.add([seen(5)]) == [5]


def test_a_submission_larger_than_the_queue_is_taken(store):
    with ObservationWriter(store.observations, capacity=3) as writer:
        assert writer.add(seen(number) for number in range(5)) == [1, 2, 3, 4, 5]
        assert writer.add([]) == []


def test_a_submission_cannot_be_cancelled(store):
    with ObservationWriter(store.observations) as writer:
        promised = writer.submit([seen(0)])
        assert not promised.cancel()
        assert ids_of(promised) == [1]


def test_a_reused_name_is_told_to_its_submitter_alone(store):
    store.observations.add([seen(0, key="a")])
    commits = []
    event.listen(store.engine, "commit", commits.append)
    with ObservationWriter(store.observations) as writer:
        with writing(store.engine) as connection:
            take_turn(connection)
            first = writer.submit([seen(1)])
            wait_until(lambda: writer.waiting == 0)
            good = writer.submit([seen(2, key="b")])
            bad = writer.submit([seen(3, key="c"), seen(4, key="a")])
            again = writer.submit([seen(3, key="c"), seen(2, key="b")])
        with pytest.raises(ReusedName, match='"a" was used for another'):
            bad.result(60)
        assert [ids_of(each) for each in (first, good, again)] == [[2], [3], [4, 3]]
        assert [kept.is_repeat for kept in again.result()] == [False, True]
    assert len(commits) == 3  # nobody's transaction was taken apart


def test_what_still_waits_can_be_withdrawn(store):
    with ObservationWriter(store.observations) as writer:
        with writing(store.engine) as connection:
            take_turn(connection)
            first = writer.submit([seen(0)])
            wait_until(lambda: writer.waiting == 0)
            second, third = writer.submit([seen(1)]), writer.submit([seen(2)])
            assert not writer.withdraw(first)
            assert writer.withdraw(second)
            assert not writer.withdraw(second)
            assert writer.waiting == 1
        assert [ids_of(first), ids_of(third)] == [[1], [2]]
    assert store.observations.count() == 2


def test_the_writer_goes_on_when_all_that_waits_is_withdrawn(store, monkeypatch):
    monkeypatch.setattr(observation_writer, "LEAST_GATHER_S", 0.2)
    monkeypatch.setattr(observation_writer, "MOST_GATHER_S", 0.2)
    with ObservationWriter(store.observations) as writer:
        with writing(store.engine) as connection:
            take_turn(connection)
            promised = [writer.submit([seen(number)]) for number in range(9)]
        for each in promised:
            each.result(60)
        given_up = writer.submit([seen(9)])
        time.sleep(0.05)
        assert writer.withdraw(given_up)
        time.sleep(0.4)
        assert ids_of(writer.submit([seen(10)])) == [10]


def test_an_error_of_the_database_goes_to_whoever_waits_and_the_writer_goes_on(store):
    with ObservationWriter(store.observations) as writer:
        with writing(store.engine) as connection:
            connection.execute(text("ALTER TABLE observations RENAME TO hidden"))
        with pytest.raises((InputError, MissingError), match="observations"):
            writer.add([seen(0)])
        with writing(store.engine) as connection:
            connection.execute(text("ALTER TABLE hidden RENAME TO observations"))
        assert writer.add([seen(1)]) == [1]
