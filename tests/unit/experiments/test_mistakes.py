"""Tests that mistakes in Python are told as those on the command line are."""

import numpy as np
import pytest

import podium
from podium.errors import PodiumError, UnknownName, UsageError
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


def three_lines(function, *given, **named):
    """Gives what, where and what next of a refused call."""
    with pytest.raises(UsageError) as caught:
        function(*given, **named)
    return caught.value.message, caught.value.where, caught.value.hint


@pytest.mark.parametrize(
    ("function", "argument", "value"),
    [
        (podium.simulate, "pods", 2.5),
        (podium.simulate, "nodes", "5"),
        (podium.simulate, "pods", True),
        (podium.compare, "jobs", -1),
        (podium.compare, "jobs", 1.5),
        (podium.compare, "seeds", 1.5),
        (podium.compare, "seeds", 0),
        (podium.compare, "seeds", None),
        (podium.search, "evaluations", 5.0),
        (podium.search, "seeds", [1]),
        (podium.search, "nodes", 1.5),
        (podium.search, "seed", 1.5),
        (podium.search, "workers", -1),
    ],
)
def test_a_number_that_is_none_is_refused_with_its_name(function, argument, value):
    message, where, hint = three_lines(function, **{argument: value})
    assert (message, where) == (f"{argument} is {value!r}", f"argument {argument}")
    assert hint.startswith("give a whole number from ")


@pytest.mark.parametrize("seeds", [[1.5], ["a"], 10**9, iter(int, 1)])
def test_seeds_that_are_none_or_too_many_are_refused_at_once(seeds):
    assert three_lines(podium.compare, ["first-fit"], seeds=seeds)[1] == "argument seeds"


@pytest.mark.parametrize(
    ("function", "named", "told"),
    [
        (podium.simulate, {"trace": 3}, "int is not a trace"),
        (podium.simulate, {"cluster": ["openb"]}, "list is not a trace"),
        (podium.simulate, {"orders": 3}, "orders is 3, not a path"),
        (podium.simulate, {"node_order": []}, 'unknown node order "[]"'),
        (podium.simulate, {"listener": podium.Listener}, "is not a listener"),
        (podium.compare, {"metric": 3}, "metric is 3, not text"),
        (podium.search, {"trace": 3}, "int is not a trace"),
        (podium.search, {"cluster": 3}, "int is not a trace"),
        (podium.fit, {"trace": "c.yaml", "pods": 3}, "int is not a file of pods"),
        (podium.search, {"target": "high"}, "target is 'high'"),
        (podium.search, {"target": float("nan")}, "target is nan"),
        (podium.search, {"fitness": 3}, "fitness is 3, not text"),
        (podium.search, {"generator": ["genetic"]}, "generator is ['genetic'], not text"),
        (podium.search, {"start": "seds"}, 'unknown start "seds"'),
        (podium.search, {"keep": 3}, "keep is 3, not text"),
        (podium.search, {"time": -1}, '"-1.000000" is not a time span'),
        (podium.load_trace, {"reference": 3}, "int is not a trace"),
        (podium.load_trace, {"reference": "openb", "seed": 1.5}, "seed is 1.5"),
        (podium.explain, {"result": "fgd", "pod": "p"}, "str is not a result"),
    ],
)
def test_what_cannot_be_an_argument_is_refused_with_advice(function, named, told):
    message, where, hint = three_lines(function, **named)
    assert told in message
    assert where.startswith("argument ")
    assert hint


@pytest.mark.parametrize(
    ("function", "wrong", "meant"),
    [(podium.simulate, "sed", "seed"), (podium.compare, "job", "jobs"),
     (podium.search, "tme", "time"), (podium.load_trace, "node", "nodes")],
)  # fmt: skip
def test_an_unknown_argument_is_refused_with_the_one_that_is_meant(function, wrong, meant):
    message, where, hint = three_lines(function, **{wrong: 3})
    assert message == f'unknown argument "{wrong}"'
    assert where.startswith("podium.")
    assert hint == f"did you mean {meant}"


def test_arguments_in_the_wrong_place_are_told_with_those_there_are():
    message, where, hint = three_lines(podium.search, 300)
    assert "positional" in message
    assert where == "podium.search"
    assert hint.startswith("podium.search(*, evaluations=None")


@pytest.mark.usefixtures("_warm_cache")
def test_an_explanation_needs_a_pod_and_a_number_of_nodes():
    result = podium.simulate("first-fit", **SMALL)
    name = result.plan.arrivals.names[0]
    assert three_lines(podium.explain, result, 3)[:2] == ("pod is 3, not text", "argument pod")
    for most in (-1, 0, 1.5):
        assert three_lines(podium.explain, result, name, most)[1] == "argument most"
    assert len(podium.explain(result, name, np.int64(2)).candidates) == 2
    _, _, hint = three_lines(podium.explain, result, "nobody")
    assert hint.count("openb-pod-0001,") == 1


@pytest.mark.usefixtures("_warm_cache")
def test_numbers_of_numpy_are_numbers():
    plain = podium.simulate("first-fit", seed=3, ratio=0.5, **SMALL)
    same = {**SMALL, "pods": np.int64(20), "seed": np.int64(3), "ratio": np.float32(0.5)}
    assert podium.simulate("first-fit", **same).digest == plain.digest
    found = podium.compare(["first-fit"], seeds=np.int64(2), jobs=np.int64(1), **SMALL)
    assert found.ranking.seeds == (1000, 1001)
    with pytest.raises(PodiumError, match=r"3\.0 is not a whole number"):
        podium.simulate("first-fit", seed=3.0, **SMALL)
