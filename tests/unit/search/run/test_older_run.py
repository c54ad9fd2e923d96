"""A run that an earlier Podium began, which planned its batches otherwise.

`support/older_run.json` holds its plan and its state as that version wrote them:

    podium search run --trace openb --nodes 24 --seeds 2 --batch 12 --islands 2 --seed 1003
"""

import json
from pathlib import Path

import pytest

import support
from podium.errors import UsageError
from podium.search.run.folder import PLAN, STATE, SearchFolder
from podium.search.run.setup import Means, open_search
from podium.store import RunRecord, open_store
from support.searches import LIMITS

FILE = Path(support.__path__[0]) / "older_run.json"
OLDER = json.loads(FILE.read_text(encoding="utf-8"))
RUN = "older000"


@pytest.fixture
def older(tmp_path):
    """Is a store with the run, and its folder."""
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        folder = tmp_path / RUN
        record = RunRecord(RUN, "search", "older", 0.0, OLDER["plan"], folder=str(folder))
        store.runs.create(record)
        kept = SearchFolder(folder)
        folder.mkdir()
        kept.write(PLAN, OLDER["plan"])
        kept.write(STATE, OLDER["state"])
        yield store, record, kept


@pytest.mark.parametrize("method", [1, OLDER["plan"]["method"]])
def test_one_that_planned_its_batches_otherwise_is_refused_in_a_sentence(older, method):
    store, record, kept = older
    kept.write(PLAN, {**OLDER["plan"], "method": method})
    with (
        pytest.raises(UsageError, match="was begun by an older Podium") as told,
        open_search(store, record, Means(1, limits=LIMITS)),
    ):
        pass
    assert "cannot be resumed as it was" in str(told.value)
    assert f"podium search run --from {RUN}" in told.value.hint
