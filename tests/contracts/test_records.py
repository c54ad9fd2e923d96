"""Whatever a record holds comes back from every store to the last bit."""

from dataclasses import replace

from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from podium.settings import Secrets
from podium.store import JUDGED, STATES, STATUSES, CandidateRecord, RunRecord
from podium.store.rows import is_id
from support.stored import RUN, all_bits

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
WHOLE = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
# What bears the name of a secret, such as "key", is not kept.
DOCUMENTS = st.dictionaries(TEXTS, JSON, max_size=4).filter(
    lambda each: Secrets().hide_all(each) == each
)
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
