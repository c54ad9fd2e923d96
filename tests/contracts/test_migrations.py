"""How every store comes to its newest schema, whatever database it lies in."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import inspect, text

from podium.errors import InputError, MissingError, UsageError
from podium.store import open_store
from podium.store.address import read_address
from podium.store.engine import open_engine, reading
from podium.store.migrations import Migration, migrate, version_of
from podium.store.schema import METADATA, MIGRATIONS
from support.stored import RUN, release, start_writer


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
    with pytest.raises(UsageError, match=f"schema {LATER.number}, but this Podium knows") as caught:
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
