from dataclasses import replace

from podium.search.run.lineage import COLUMNS, lineage_of, steps_of
from support.stored import bred, judged

ROWS = [
    judged(replace(bred(0), kind="seed"), 90.0),
    judged(replace(bred(1), kind="seed"), 91.0),
    judged(replace(bred(4), parents=(0, 1), operators=("swap", "grow")), 91.5),
    judged(replace(bred(5), parents=(4,)), None, accepted=False),
    judged(replace(bred(8), parents=(4,), kind="tuned"), 92.0),
]


def test_a_candidate_is_followed_back_by_its_best_parents():
    steps = lineage_of(ROWS, 8)
    assert [each.record.number for each in steps] == [1, 4, 8]
    assert [each.gain for each in steps] == [None, 0.5, 0.5]
    assert [each.operator for each in steps] == ["seed", "swap", "tuned"]


def test_who_has_no_parents_begins_and_who_is_unknown_has_no_lineage():
    assert [each.record.number for each in lineage_of(ROWS, 0)] == [0]
    assert lineage_of(ROWS, 77) == []


def test_parents_that_are_their_own_ancestors_do_not_go_round():
    turned = [replace(ROWS[2], parents=(8,)), ROWS[4]]
    assert [each.record.number for each in lineage_of(turned, 8)] == [4, 8]


def test_every_candidate_is_told_with_what_it_gained():
    told = [each.as_object() for each in steps_of(ROWS)]
    assert all(tuple(each) == COLUMNS for each in told)
    assert [each["gain"] for each in told] == [None, None, 0.5, None, 0.5]
    assert told[2]["parents"] == [0, 1]
