"""What every store must do with runs, whatever database it lies in."""

from dataclasses import replace

import pytest

from podium.errors import UnknownName, UsageError
from support.stored import RUN, bred


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
    assert caught.value.hint == "use a longer prefix: ab-1, ab-2"


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
    assert caught.value.hint == "the store contains no runs"
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
    with pytest.raises(UsageError, match='run "run-a" is already in the store'):
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
