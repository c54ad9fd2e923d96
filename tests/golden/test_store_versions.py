"""Stores that earlier versions wrote stay readable. Their dumps are never edited."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

import support.stored
from podium.store import open_store
from podium.store.schema import MIGRATIONS
from support.observed import CHECKPOINT, OBSERVATION
from support.stored import CANDIDATE, RUN, bred, judged

DUMPS = sorted(Path(support.stored.__file__).parent.glob("store_version_*.sql"))


def test_there_is_a_dump_of_every_version():
    names = [f"store_version_{step.number}.sql" for step in MIGRATIONS]
    assert [path.name for path in DUMPS] == sorted(names)


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
def test_a_store_of_an_earlier_version_opens_with_all_that_it_held(dump, tmp_path):
    database = sqlite3.connect(tmp_path / "podium.db")
    database.executescript(dump.read_text(encoding="utf-8"))
    database.close()
    with open_store(str(tmp_path / "podium.db")) as store:
        assert store.runs.all() == [RUN]
        assert store.candidates.of("run-a") == [judged(CANDIDATE), bred(1)]
        has_observations = dump.stem != "store_version_1"
        told = OBSERVATION
        if dump.stem == "store_version_2":  # one name was both
            told = replace(OBSERVATION, job_id=OBSERVATION.key)
        assert store.observations.since(0) == [replace(told, id=1)] * has_observations
        assert store.checkpoints.all() == [CHECKPOINT] * has_observations
