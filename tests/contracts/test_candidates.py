"""What every store must do with candidates, whatever database it lies in."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from podium.errors import UnknownName, UsageError
from support.stored import CANDIDATE, RUN, bits, bred, judged


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
    with pytest.raises(UsageError, match='candidate 3 of run "run-a" is already in the store'):
        filled.candidates.propose([bred(7), replace(bred(3), text="other")])
    assert filled.candidates.count("run-a") == 5
    assert filled.candidates.get("run-a", 3).text == bred(3).text


def test_a_number_stands_once_in_a_batch(filled):
    with pytest.raises(UsageError, match='candidate 8 of run "run-a" is listed twice'):
        filled.candidates.propose([bred(8), bred(8)])
    with pytest.raises(UsageError, match='candidate 1 of run "run-a" is listed twice'):
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
        ({"scores": {"a": {1: 2}}}, "JSON has no name that is not text: 1", "scores.a"),
        ({"fitness": float("nan")}, "NaN is not a number", "fitness"),
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
