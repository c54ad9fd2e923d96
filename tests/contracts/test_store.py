"""What every store must do, whatever database it lies in."""

import sqlite3
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import inspect, text

from podium.errors import InputError, MissingError, UnknownName, UsageError
from podium.store import JUDGED, STATES, STATUSES, CandidateRecord, RunRecord, open_store
from podium.store.address import read_address
from podium.store.engine import open_engine, reading, writing
from podium.store.migrations import Migration, migrate, version_of
from podium.store.rows import is_id
from podium.store.schema import METADATA, MIGRATIONS
from support.stored import CANDIDATE, RUN, bred, judged, release, start_writer


@pytest.fixture
def filled(store):
    """Gives a store with a run of five candidates, two of them judged."""
    store.runs.create(RUN)
    store.candidates.propose([bred(number) for number in range(5)])
    store.candidates.judge([judged(bred(1), 1.0), judged(bred(3), 3.0)])
    return store


def test_a_run_comes_back_as_it_was_created(store):
    store.runs.create(RUN)
    assert store.runs.get("run-a") == RUN


def test_a_run_is_found_by_a_beginning_that_no_other_run_shares(store):
    for name in ("ab-1", "ab-2", "abc", "a%", "a_b"):
        store.runs.create(replace(RUN, id=name))
    assert store.runs.get("ab-2").id == "ab-2"
    assert store.runs.get("a%").id == "a%"
    assert store.runs.get("a_").id == "a_b"
    with pytest.raises(UsageError, match='several runs begin with "ab-"') as caught:
        store.runs.get("ab-")
    assert caught.value.hint == "give more of one: ab-1, ab-2"


def test_a_whole_id_is_found_although_another_begins_with_it(store):
    for name in ("ab", "abc"):
        store.runs.create(replace(RUN, id=name))
    assert store.runs.get("ab").id == "ab"


@pytest.mark.parametrize("name", ["run-b", "RUN-A", "", "run a"])
def test_an_unknown_run_is_told_with_the_known_ones(store, name):
    store.runs.create(RUN)
    with pytest.raises(UnknownName, match=f'unknown run "{name}"') as caught:
        store.runs.get(name)
    assert "run-a" in caught.value.hint


def test_a_store_without_runs_says_so(store):
    with pytest.raises(UnknownName) as caught:
        store.runs.get("run-a")
    assert caught.value.hint == "the store holds no runs"
    assert store.runs.all() == []


def test_runs_are_listed_newest_first_and_by_kind(store):
    old = replace(RUN, id="old", created_s=1.0)
    new = replace(RUN, id="new", created_s=2.0, kind="training")
    store.runs.create(old)
    store.runs.create(new)
    assert store.runs.all() == [new, old]
    assert store.runs.all(kind="search") == [old]


def test_status_and_summary_of_a_run_change_alone(store):
    store.runs.create(RUN)
    store.runs.update("run-a", status="finished")
    assert store.runs.get("run-a") == replace(RUN, status="finished")
    store.runs.update("run-a", summary={"best": 1})
    store.runs.update("run-a")
    assert store.runs.get("run-a") == replace(RUN, status="finished", summary={"best": 1})


def test_an_unknown_run_can_be_neither_changed_nor_deleted(store):
    store.runs.create(RUN)
    with pytest.raises(UnknownName, match='unknown run "run"'):
        store.runs.update("run", status="failed")
    with pytest.raises(UnknownName, match='unknown run "run"'):
        store.runs.delete("run")


def test_words_outside_their_lists_are_refused(store):
    with pytest.raises(UnknownName, match='unknown status "done"'):
        store.runs.create(replace(RUN, status="done"))
    store.runs.create(RUN)
    with pytest.raises(UnknownName, match='unknown status "done"'):
        store.runs.update("run-a", status="done")
    with pytest.raises(UnknownName, match='unknown state "juged"') as caught:
        store.candidates.propose([replace(bred(0), state="juged")])
    assert caught.value.hint == "did you mean judged"


def test_an_id_is_given_once(store):
    store.runs.create(RUN)
    with pytest.raises(UsageError, match='run "run-a" is in the store already'):
        store.runs.create(replace(RUN, name="another"))
    assert store.runs.all() == [RUN]


@pytest.mark.parametrize("name", ["", "two words", "line\nbreak", "nul\x00", "\ud800"])
def test_an_id_can_be_typed(store, name):
    with pytest.raises(UsageError, match="cannot be the id of a run"):
        store.runs.create(replace(RUN, id=name))
    with pytest.raises(UnknownName, match="unknown run"):
        store.runs.get(name)


def test_a_deleted_run_takes_its_candidates_along(filled):
    filled.runs.create(replace(RUN, id="run-b"))
    filled.candidates.propose([bred(0, "run-b")])
    filled.runs.delete("run-a")
    assert [run.id for run in filled.runs.all()] == ["run-b"]
    assert (filled.candidates.count("run-a"), filled.candidates.count("run-b")) == (0, 1)


def test_a_candidate_comes_back_as_it_was_proposed_and_as_it_was_judged(store):
    store.runs.create(RUN)
    store.candidates.propose([CANDIDATE])
    assert store.candidates.get("run-a", 0) == CANDIDATE
    store.candidates.judge([judged(CANDIDATE)])
    assert store.candidates.get("run-a", 0) == judged(CANDIDATE)
    assert bits(store.candidates.get("run-a", 0).behaviour) == bits(CANDIDATE.behaviour)


def test_candidates_are_listed_in_order_of_their_numbers(store):
    store.runs.create(RUN)
    store.candidates.propose([bred(10), bred(2)])
    store.candidates.propose([bred(9)])
    assert store.candidates.of("run-a") == [bred(2), bred(9), bred(10)]
    assert store.candidates.of("run-a", first=9) == [bred(9), bred(10)]
    assert store.candidates.of("nobody") == []
    assert store.candidates.count("run-a") == 3


def test_a_number_is_proposed_once_and_the_rest_of_the_batch_is_not_kept(filled):
    with pytest.raises(UsageError, match='candidate 3 of run "run-a" is in the store already'):
        filled.candidates.propose([bred(7), replace(bred(3), text="other")])
    assert filled.candidates.count("run-a") == 5
    assert filled.candidates.get("run-a", 3).text == bred(3).text


def test_a_number_stands_once_in_a_batch(filled):
    with pytest.raises(UsageError, match='candidate 8 of run "run-a" is given twice'):
        filled.candidates.propose([bred(8), bred(8)])
    with pytest.raises(UsageError, match='candidate 1 of run "run-a" is given twice'):
        filled.candidates.judge([judged(bred(1)), judged(bred(1))])
    assert filled.candidates.count("run-a") == 5


def test_no_candidates_are_no_work(filled):
    filled.candidates.propose([])
    filled.candidates.judge([])
    assert filled.candidates.count("run-a") == 5


def test_a_candidate_needs_its_run(filled):
    with pytest.raises(UnknownName, match='unknown run "run-z"'):
        filled.candidates.propose([bred(5), bred(0, "run-z")])
    assert filled.candidates.count("run-a") == 5


def test_what_was_never_proposed_is_not_judged_nor_is_the_rest_of_the_batch(filled):
    with pytest.raises(UnknownName, match='run "run-a" has no candidate 9') as caught:
        filled.candidates.judge([judged(bred(0)), judged(bred(9))])
    assert caught.value.hint == "its numbers go from 0 to 4"
    assert filled.candidates.get("run-a", 0) == bred(0)


def test_a_judgement_says_that_it_is_one(filled):
    with pytest.raises(UsageError, match="the record is not judged") as caught:
        filled.candidates.judge([replace(judged(bred(0)), state="proposed")])
    assert caught.value.where == 'candidate 0 of run "run-a"'


def test_a_judgement_may_be_repeated(filled):
    filled.candidates.judge([judged(bred(1), 7.0)])
    assert filled.candidates.get("run-a", 1).fitness == 7.0


def test_an_unknown_candidate_is_told_with_the_known_numbers(filled):
    with pytest.raises(UnknownName, match='run "run-a" has no candidate 5'):
        filled.candidates.get("run-a", 5)
    with pytest.raises(UnknownName, match='unknown run "run-z"'):
        filled.candidates.get("run-z", 0)
    filled.runs.create(replace(RUN, id="run-b"))
    with pytest.raises(UnknownName) as caught:
        filled.candidates.get("run-b", 0)
    assert caught.value.hint == "it has none yet"


def test_the_best_are_accepted_fittest_first_then_earliest(store):
    store.runs.create(RUN)
    fits = [2.0, float("inf"), 9.0, 2.0, float("-inf"), None, -1.0]
    store.candidates.propose([bred(number) for number in range(len(fits))])
    records = [judged(bred(number), fit, scores={}) for number, fit in enumerate(fits)]
    records[2] = replace(records[2], accepted=False)
    store.candidates.judge(records)
    assert [each.number for each in store.candidates.best("run-a", 9)] == [1, 0, 3, 6, 4]
    assert [each.number for each in store.candidates.best("run-a", 2)] == [1, 0]
    assert store.candidates.best("run-z", 2) == []


@pytest.mark.parametrize(
    ("changes", "message", "where"),
    [
        ({"scores": {"a": {"b": [1, float("nan")]}}}, "JSON has no number nan", "scores.a.b[1]"),
        ({"cost": {"usd": float("inf")}}, "JSON has no number inf", "cost.usd"),
        ({"cases": ({"x": float("nan")},)}, "JSON has no number nan", "cases[0].x"),
        ({"behaviour": (float("nan"),)}, "JSON has no number nan", "behaviour[0]"),
        ({"scores": {"a": np.int64(3)}}, "JSON has no int64", "scores.a"),
        ({"scores": {"a": {1: 2}}}, "JSON has no name that is no text: 1", "scores.a"),
        ({"fitness": float("nan")}, "NaN is no number", "fitness"),
        ({"text": "ab\ud800"}, r"character 2 is half a surrogate pair \(U\+D800\)", "text"),
        ({"operators": ("\udfff",)}, "half a surrogate pair", "operators"),
    ],
)
def test_what_cannot_come_back_is_refused_with_its_place(filled, changes, message, where):
    with pytest.raises(UsageError, match=message) as caught:
        filled.candidates.propose([bred(8), replace(bred(9), **changes)])
    assert caught.value.where == f'candidate 9 of run "run-a", {where}'
    assert caught.value.hint
    assert filled.candidates.count("run-a") == 5


def test_mappings_of_any_kind_are_kept(store):
    store.runs.create(replace(RUN, settings=MappingProxyType({"a": MappingProxyType({"b": 1})})))
    assert store.runs.get("run-a").settings == {"a": {"b": 1}}


def test_numbers_of_numpy_that_are_floats_are_kept(filled):
    record = judged(bred(0), np.float64(0.1), scores={"a": np.float64(0.2)})
    filled.candidates.judge([record])
    found = filled.candidates.get("run-a", 0)
    assert (found.fitness, found.scores) == (0.1, {"a": 0.2})
    assert type(found.fitness) is float


# --- any record -------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
WHOLE = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(TEXTS, JSON, max_size=4)
CANDIDATES = st.builds(
    CandidateRecord,
    run_id=st.just("run-a"), number=WHOLE, batch=WHOLE, island=WHOLE, kind=TEXTS, source=TEXTS,
    operators=st.lists(TEXTS, max_size=3).map(tuple),
    parents=st.lists(st.integers(0), max_size=3).map(tuple),
    prompt=TEXTS, thought=TEXTS, text=TEXTS, fingerprint=TEXTS, signature=TEXTS,
    behaviour=st.lists(FINITE, max_size=3).map(tuple), state=st.sampled_from(STATES),
    accepted=st.booleans(), gate=TEXTS, reason=TEXTS, fitness=st.none() | NUMBERS,
    complexity=WHOLE, may_hold=st.booleans(), scores=DOCUMENTS,
    cases=st.lists(st.dictionaries(TEXTS, FINITE, max_size=3), max_size=3).map(tuple),
    diagnostics=TEXTS, seconds=NUMBERS, cost=DOCUMENTS,
)  # fmt: skip
RUNS = st.builds(
    RunRecord, id=TEXTS.filter(is_id), kind=TEXTS, name=TEXTS, created_s=NUMBERS,
    settings=DOCUMENTS, status=st.sampled_from(STATUSES), summary=DOCUMENTS, folder=TEXTS,
)  # fmt: skip
relaxed = hypothesis_settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60
)


def bits(value):
    """Writes a value so that floats are equal only if all their bits are."""
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    if isinstance(value, dict):
        return {name: bits(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [bits(each) for each in value]
    return value


def all_bits(record):
    return {item.name: bits(getattr(record, item.name)) for item in fields(record)}


@relaxed
@given(run=RUNS)
def test_any_run_comes_back_to_the_last_bit(store, run):
    store.runs.create(run)
    try:
        assert all_bits(store.runs.get(run.id)) == all_bits(run)
    finally:
        store.runs.delete(run.id)


@relaxed
@given(proposed=CANDIDATES, judgement=CANDIDATES)
def test_any_candidate_comes_back_to_the_last_bit(store, proposed, judgement):
    store.runs.create(RUN)
    try:
        store.candidates.propose([proposed])
        (found,) = store.candidates.of("run-a", first=proposed.number)
        assert all_bits(found) == all_bits(proposed)
        assert found == proposed
        record = replace(judgement, number=proposed.number, state=JUDGED)
        store.candidates.judge([record])
        assert all_bits(store.candidates.get("run-a", proposed.number)) == all_bits(record)
    finally:
        store.runs.delete("run-a")


# --- the schema -------------------------------------------------------------------------------


def version(store):
    with reading(store.engine) as connection:
        return version_of(connection)


def test_a_new_store_has_the_newest_schema_and_opens_again(url):
    with open_store(url) as store:
        store.runs.create(RUN)
        assert version(store) == MIGRATIONS[-1].number
    with open_store(url) as store:
        assert store.runs.all() == [RUN]


def test_the_steps_are_numbered_without_gaps():
    assert [step.number for step in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def test_the_steps_lead_to_the_tables_that_the_program_uses(store):
    found = inspect(store.engine)
    assert set(found.get_table_names()) == {*METADATA.tables, "podium_schema"}
    for table in METADATA.tables.values():
        columns = {each["name"]: each["nullable"] for each in found.get_columns(table.name)}
        assert columns == {column.name: column.nullable for column in table.columns}
        key = found.get_pk_constraint(table.name)["constrained_columns"]
        assert key == [column.name for column in table.primary_key]


LATER = Migration(
    MIGRATIONS[-1].number + 1,
    "owners",
    (
        "ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT 'nobody'",
        "CREATE TABLE owners (number BIGINT PRIMARY KEY, seconds DOUBLE PRECISION)",
    ),
)


def test_an_older_store_is_brought_forward_and_keeps_its_rows(filled):
    migrate(filled.engine, (*MIGRATIONS, LATER))
    assert version(filled) == LATER.number
    assert filled.runs.all() == [RUN]
    assert filled.candidates.count("run-a") == 5
    with reading(filled.engine) as connection:
        assert connection.scalar(text("SELECT owner FROM runs")) == "nobody"
        steps = connection.execute(text("SELECT version, name FROM podium_schema ORDER BY 1"))
        assert [tuple(row) for row in steps] == [
            *((step.number, step.name) for step in MIGRATIONS),
            (LATER.number, "owners"),
        ]


def test_a_step_that_fails_leaves_the_store_as_it_was(filled):
    broken = replace(LATER, statements=(*LATER.statements, "CREATE TABLE runs (id TEXT)"))
    with pytest.raises((InputError, MissingError), match="already exists"):
        migrate(filled.engine, (*MIGRATIONS, broken))
    assert version(filled) == MIGRATIONS[-1].number
    assert "owners" not in inspect(filled.engine).get_table_names()
    migrate(filled.engine, (*MIGRATIONS, LATER))
    assert version(filled) == LATER.number


def test_a_store_of_a_newer_podium_is_refused(url):
    with open_store(url) as store:
        migrate(store.engine, (*MIGRATIONS, LATER))
    with pytest.raises(UsageError, match=f"schema {LATER.number}, and this Podium knows") as caught:
        open_store(url)
    assert "install the newer Podium" in caught.value.hint
    assert "secret" not in caught.value.where


def test_processes_may_make_a_store_at_the_same_time(url, tmp_path):
    writers = [start_writer(tmp_path, url, "run-a", 0, 0) for _ in range(4)]
    release(writers)
    for writer in writers:
        _, problems = writer.communicate()
        assert (writer.returncode, problems) == (0, "")
    with open_store(url) as store, reading(store.engine) as connection:
        count = connection.scalar(text("SELECT count(*) FROM podium_schema"))
        assert count == len(MIGRATIONS)


def test_who_comes_second_waits_until_the_first_has_migrated(url):
    halfway, proceed = threading.Event(), threading.Event()

    class Slow(tuple):
        __slots__ = ()

        def __iter__(self):
            for statement in super().__iter__():
                yield statement
                halfway.set()
                assert proceed.wait(60)

    engines = [open_engine(read_address(url)) for _ in range(2)]
    slow = (*MIGRATIONS, replace(LATER, statements=Slow(LATER.statements)))
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(migrate, engines[0], slow)
        assert halfway.wait(60)
        second = threads.submit(migrate, engines[1], (*MIGRATIONS, LATER))
        with pytest.raises(TimeoutError):
            second.result(0.5)
        proceed.set()
        first.result(60)
        second.result(60)
    for engine in engines:
        with reading(engine) as connection:
            assert version_of(connection) == LATER.number
        engine.dispose()


# --- several writers --------------------------------------------------------------------------


def test_what_a_killed_process_was_told_is_kept_is_kept(url, tmp_path):
    with open_store(url) as store:
        store.runs.create(RUN)
    writer = start_writer(tmp_path, url, "run-a", 0, 100_000)
    release([writer])
    heard = [writer.stdout.readline() for _ in range(101)]
    writer.kill()
    heard += writer.stdout.readlines()  # what is buffered here too, which communicate() skips
    writer.communicate()
    told = [line.split() for line in heard if line.endswith("\n")]
    with open_store(url) as store:
        found = {record.number: record for record in store.candidates.of("run-a")}
    assert len(told) >= 101
    for word, number in told:
        record = found[int(number)]
        assert record.state == JUDGED or word == "proposed"
    last = int(told[-1][1])
    assert set(range(last + 1)) <= set(found) <= set(range(last + 2))


def test_processes_may_write_at_the_same_time(url, tmp_path):
    with open_store(url) as store:
        for name in ("run-a", "run-b"):
            store.runs.create(replace(RUN, id=name))
        writers = [start_writer(tmp_path, url, name, 0, 150) for name in ("run-a", "run-b")]
        writers.append(start_writer(tmp_path, url, "run-a", 1000, 150))
        release(writers)
        for writer in writers:
            _, problems = writer.communicate()
            assert (writer.returncode, problems) == (0, "")
        assert (store.candidates.count("run-a"), store.candidates.count("run-b")) == (300, 150)
        assert all(record.state == JUDGED for record in store.candidates.of("run-a"))


def test_threads_may_share_a_store(store):
    store.runs.create(RUN)

    def write(number):
        store.candidates.propose([bred(number)])
        store.candidates.judge([judged(bred(number), float(number))])
        return store.candidates.get("run-a", number).fitness

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(write, range(80))) == [float(number) for number in range(80)]
    assert store.candidates.count("run-a") == 80


def test_a_reader_is_not_held_up_by_a_writer(filled):
    with writing(filled.engine) as connection:
        connection.execute(text("UPDATE runs SET name = 'changed'"))
        with ThreadPoolExecutor(1) as threads:
            assert threads.submit(filled.runs.get, "run-a").result(30).name == RUN.name
    assert filled.runs.get("run-a").name == "changed"


# --- what is not there ------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_missing(tmp_path):
    with pytest.raises(MissingError, match="the store cannot be used") as caught:
        open_store(f"postgresql://ada:secret@/podium?host={tmp_path}")
    assert "secret" not in str(caught.value)
    assert "server runs" in caught.value.hint


def test_a_database_that_is_not_there_is_missing(databases):
    with databases.lent() as address:
        name = address.partition("?")[0].rpartition("/")[2]
        with pytest.raises(MissingError, match=r'database "no_such_.*" does not exist'):
            open_store(address.replace(name, f"no_such_{name}"))


def test_a_file_that_is_something_else_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no database, but long enough to be looked at closely\n" * 20)
    with pytest.raises(InputError, match="file is not a database") as caught:
        open_store(str(path))
    assert caught.value.where == str(path)


def test_a_file_that_cannot_be_opened_is_missing(tmp_path):
    with pytest.raises(MissingError, match="unable to open database file"):
        open_store(str(tmp_path))


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="the folder of the store cannot be made"):
        open_store(str(tmp_path / "file" / "podium.db"))


def test_a_sqlite_file_is_set_up_for_many_readers_and_sure_writes(tmp_path):
    with open_store(str(tmp_path / "podium.db")) as store, reading(store.engine) as connection:
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        found = [connection.scalar(text(f"PRAGMA {name}")) for name in names]
    assert found == ["wal", 1, 1, 60_000]


def test_a_closed_sqlite_store_is_one_file(tmp_path):
    with open_store(str(tmp_path / "podium.db")) as store:
        store.runs.create(RUN)
    assert [path.name for path in tmp_path.iterdir()] == ["podium.db"]
    with sqlite3.connect(tmp_path / "podium.db") as connection:
        assert connection.execute("SELECT id FROM runs").fetchall() == [("run-a",)]
    connection.close()
