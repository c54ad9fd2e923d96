"""How every store gets its tables, whatever database it lies in."""

import pytest
from sqlalchemy import inspect, select, update

from podium.errors import UsageError
from podium.store import open_store
from podium.store.engine import reading, writing
from podium.store.schema import METADATA, SCHEMA, VERSIONS
from support.stored import RUN, release, start_writer


def test_a_new_store_has_all_tables_and_opens_again(url):
    with open_store(url) as store:
        store.runs.create(RUN)
        assert set(inspect(store.engine).get_table_names()) == set(METADATA.tables)
    with open_store(url) as store:
        assert store.runs.all() == [RUN]


@pytest.mark.parametrize("other", [SCHEMA - 1, SCHEMA + 1])
def test_a_store_of_another_schema_is_refused(url, other):
    with open_store(url) as store, writing(store.engine) as connection:
        connection.execute(update(VERSIONS).values(version=other))
    with pytest.raises(UsageError, match=f"schema {other}, but this Podium reads") as caught:
        open_store(url)
    assert "name another store" in caught.value.hint
    assert "secret" not in caught.value.where


def test_processes_may_make_a_store_at_the_same_time(url, tmp_path):
    writers = [start_writer(tmp_path, url, "run-a", 0, 0) for _ in range(4)]
    release(writers)
    for writer in writers:
        _, problems = writer.communicate()
        assert (writer.returncode, problems) == (0, "")
    with open_store(url) as store, reading(store.engine) as connection:
        assert connection.scalars(select(VERSIONS.c.version)).all() == [SCHEMA]
