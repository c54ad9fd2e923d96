import sqlite3

import pytest
from sqlalchemy import text

from podium.errors import InputError
from podium.store import open_store
from podium.store import patience as module
from podium.store.engine import reading
from podium.store.patience import Patience
from podium.store.records import RunRecord

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"


@pytest.fixture
def path(tmp_path):
    with open_store(str(tmp_path / "podium.db")):
        return tmp_path / "podium.db"


@pytest.fixture
def _impatient(monkeypatch):
    monkeypatch.setattr(module, "MOST_STEPS", 2)


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("what", ["sum(i)", "i"])
def test_a_statement_without_end_is_ended(path, what):
    with open_store(str(path)) as store:
        with reading(store.engine) as connection, pytest.raises(InputError, match="does not end"):
            connection.execute(text(ENDLESS.format(what))).all()
        assert store.runs.all() == []


@pytest.mark.usefixtures("_impatient")
def test_each_statement_has_the_whole_limit(path):
    counted = ENDLESS.format("i") + " LIMIT 100000"
    with open_store(str(path)) as store, reading(store.engine) as connection:
        for _ in range(5):
            assert len(connection.execute(text(counted)).all()) == 100_000


def test_a_signal_that_comes_while_a_statement_works_is_heard(path, monkeypatch):
    def interrupted(_self):
        raise KeyboardInterrupt

    with open_store(str(path)) as store, reading(store.engine) as connection:
        monkeypatch.setattr(Patience, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            connection.execute(text(ENDLESS.format("sum(i)"))).all()


@pytest.mark.usefixtures("_impatient")
def test_a_trigger_without_end_is_ended(path):
    with open_store(str(path)) as store:
        with sqlite3.connect(path) as database:
            database.execute(
                f"CREATE TRIGGER bad AFTER INSERT ON runs BEGIN {ENDLESS.format('sum(i)')}; END"
            )
        with pytest.raises(InputError, match="does not end"):
            store.runs.create(RunRecord("ab12", "search", "mine", 0.0))
        assert store.runs.all() == []


@pytest.mark.parametrize("name", ["runs", "candidates", "podium_schema"])
def test_a_view_in_the_place_of_a_table_is_refused(path, name):
    with sqlite3.connect(path) as database:
        database.execute(f"DROP TABLE {name}")
        database.execute(f"CREATE VIEW {name} AS {ENDLESS.format('i AS version')}")
    with pytest.raises(InputError, match=f'"{name}" is a view'):
        open_store(str(path))


@pytest.mark.parametrize("table", ["runs", "RUNS", "candidates"])
def test_a_trigger_on_a_table_is_refused(path, table):
    with sqlite3.connect(path) as database:
        act = "BEGIN SELECT RAISE(IGNORE); END"
        database.execute(f"CREATE TRIGGER mine BEFORE DELETE ON {table} {act}")
    with pytest.raises(InputError, match='the trigger "mine" changes') as caught:
        open_store(str(path))
    assert 'DROP TRIGGER "mine"' in caught.value.hint


def test_a_view_of_ones_own_beside_them_is_left_alone(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE VIEW mine AS SELECT id FROM runs")
    with open_store(str(path)) as store:
        assert store.runs.all() == []


def test_functions_of_a_strangers_schema_are_not_trusted(path):
    with open_store(str(path)) as store, reading(store.engine) as connection:
        assert connection.exec_driver_sql("PRAGMA trusted_schema").scalar() == 0
