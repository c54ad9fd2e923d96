"""A run that an earlier Podium began, before one of the seeds was tuned first.

`support/older_run.json` holds its plan and its 40 candidates as that version wrote them, and what
the same version came to after 80 evaluations without a stop:

    podium search run --trace openb --nodes 24 --seeds 2 --batch 12 --islands 2 --seed 1003
"""

import hashlib
import json
from dataclasses import fields
from pathlib import Path

import pytest

import support
from podium.errors import UsageError
from podium.search.run.folder import PLAN, STATE, SearchFolder
from podium.search.run.plan import Budget
from podium.search.run.setup import Means, open_search
from podium.store import CandidateRecord, RunRecord, open_store
from support.searches import LIMITS

FILE = Path(support.__path__[0]) / "older_run.json"
OLDER = json.loads(FILE.read_text(encoding="utf-8"))
RUN = "older000"


def row(given):
    """Reads a candidate as the store gives it."""
    tuples = {"operators", "parents", "behaviour", "cases"}
    known = {each.name for each in fields(CandidateRecord)}
    assert given.keys() <= known
    return CandidateRecord(
        RUN, **{name: tuple(each) if name in tuples else each for name, each in given.items()}
    )


def facts(each):
    digest = hashlib.sha256(each.text.encode()).hexdigest()[:16]
    fitness = None if each.fitness is None else round(each.fitness, 9)
    return [each.number, each.kind, list(each.parents), each.gate, fitness, digest]


@pytest.fixture
def older(tmp_path):
    """Is a store with the run, and its folder."""
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        folder = tmp_path / RUN
        record = RunRecord(RUN, "search", "older", 0.0, OLDER["plan"], folder=str(folder))
        store.runs.create(record)
        rows = [row(each) for each in OLDER["candidates"]]
        store.candidates.propose(rows)
        store.candidates.judge(rows)
        kept = SearchFolder(folder)
        folder.mkdir()
        kept.write(PLAN, OLDER["plan"])
        kept.write(STATE, OLDER["state"])
        yield store, record, kept


def test_a_run_that_an_earlier_podium_began_goes_on_as_it_would_have(older):
    store, record, _ = older
    means = Means(1, limits=LIMITS, is_validating=False)
    with open_search(store, record, means) as search:
        search.go(Budget(80))
    assert search.tally.evaluations == 80
    found = {each.number: facts(each) for each in store.candidates.of(RUN)}
    expected = {each[0]: each for each in OLDER["later"]}
    assert found == expected


def test_one_that_planned_its_batches_otherwise_is_refused_in_a_sentence(older):
    store, record, kept = older
    kept.write(PLAN, {**OLDER["plan"], "method": 1})
    with (
        pytest.raises(UsageError, match="was begun by an older Podium") as told,
        open_search(store, record, Means(1, limits=LIMITS)),
    ):
        pass
    assert "cannot be resumed as it was" in str(told.value)
    assert f"podium search run --from {RUN}" in told.value.hint
