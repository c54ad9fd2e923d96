"""Tests that mistakes in Python are told as those on the command line are."""

import pytest

import podium
from podium.errors import UnknownName, UsageError
from podium.experiments.promote import check_summary
from podium.experiments.runs import Difference, headline
from podium.store import RunRecord

SMALL = {"trace": "openb:16", "pods": 20, "protocol": "inflation"}


def test_an_unknown_node_order_is_refused_and_not_taken_for_another():
    with pytest.raises(UnknownName, match='unknown node order "lisetd"'):
        podium.simulate("first-fit", node_order="lisetd", **SMALL)


@pytest.mark.parametrize(("name", "value"), [("evaluations", 0), ("evaluations", -1), ("seed", -1)])
def test_numbers_that_the_command_refuses_are_refused(name, value):
    with pytest.raises(UsageError, match=f"{name} is {value}"):
        podium.search(**{"evaluations": 5, name: value})


@pytest.mark.parametrize("name", ["", "a\nb", "r\x1b[31med"])
def test_a_name_that_nobody_can_type_is_refused_before_the_search(name):
    with pytest.raises(UsageError, match="cannot be the name of a run"):
        podium.search(evaluations=5, keep=name)


@pytest.mark.parametrize("summary", ["two\nlines", "x" * 97])
def test_a_summary_that_would_be_lost_is_refused(summary):
    with pytest.raises(UsageError, match="must be one line of at most 96 characters"):
        check_summary(summary)


def test_numbers_beyond_measure_cost_no_list():
    huge = 10**400
    record = RunRecord("a", "simulation", "n", 0.0, summary={"policy": "p", "gpu_allocation": huge})
    assert headline(record) == "the summary is damaged"
    assert Difference("x", huge, 1).change is None
