"""What every store must do for those who share it, whatever database it lies in."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text

from podium.errors import InputError, MissingError
from podium.store import JUDGED, open_store
from podium.store.engine import reading, writing
from support.stored import RUN, bred, judged, release, start_writer

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
    with pytest.raises(InputError, match="the folder of the store cannot be created"):
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
