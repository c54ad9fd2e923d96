import ast
import functools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import PolicyError
from podium.evaluation.cases import Case
from podium.evaluation.measures import measure_case
from podium.policies import load
from podium.search.candidate.gates import Candidate, checked_policy, read_candidate
from podium.search.promotion.ablation import ablate
from podium.search.promotion.reduction import Thrift, reduce
from podium.search.promotion.rounding import roundings
from podium.search.promotion.tidying import size
from podium.sim.execution import execute
from support.nominees import GOOD, PADDED

CASES = tuple(Case(nodes=32, pods=400, seed=1000 + i, is_perturbed=i % 2 == 1) for i in range(8))
TOP = "def score(pod, node):\n"


@functools.cache
def plans():
    return tuple(case.plan(load("first-fit")) for case in CASES)


def trained(text):
    """Gives the mean allocation on training cases: the real thing, without the sandbox."""
    try:
        policy = checked_policy(text, "it")
        runs = [measure_case(execute(replace(plan, policy=policy))) for plan in plans()]
    except PolicyError:
        return float("-inf")
    return sum(each["allocation_130"] for each in runs) / len(runs)


@pytest.fixture(scope="module")
def reduced():
    return reduce(PADDED, trained, Thrift(tolerance=0.02))


def test_planted_parts_that_do_nothing_are_removed(reduced):
    for planted in ("padding", "nothing", "NOTHING", "7.25", "1.00001", "10.000321", "< -5"):
        assert planted not in reduced.text


def test_what_the_score_needs_stays(reduced):
    for needed in ("gpu_milli_left", "cpu_milli_left", "abs(", "node.gpu_count"):
        assert needed in reduced.text
    assert size(ast.parse(reduced.text)) == reduced.size <= size(ast.parse(GOOD)) + 10
    assert reduced.size_before == size(ast.parse(PADDED))


def test_divisors_stay_protected(reduced):
    assert reduced.text.count("max(1, ") == 2


def test_a_reduced_program_is_a_candidate_that_scores_as_told(reduced):
    assert isinstance(read_candidate(reduced.text), Candidate)
    assert trained(reduced.text) == reduced.fitness
    assert reduced.fitness >= reduced.fitness_before - 0.02
    assert reduced.cuts


def test_each_part_that_is_left_is_explained_and_costs_something(reduced):
    parts = ablate(reduced.text, trained)
    balance, count = [part for part in parts if part.kind == "term"]
    assert balance.sentence.startswith("Raises the score with minus whole steps of w balance times")
    assert count.sentence == "Lowers the score with the node's GPUs."
    assert balance.loss > 1
    assert count.loss > 0.5
    by_code = {part.code: part for part in parts}
    assert by_code["gpu_milli_free"].sentence == "Free GPU milli of the node."
    assert all(part.loss > 0 for part in parts)


def sum_of(known):
    """Scores a text by the fields that it reads: no simulator, so that every cut is known."""

    def score(text):
        return float(sum(weight for name, weight in known.items() if name in text))

    return score


def test_terms_below_the_tolerance_go_and_those_above_stay():
    text = TOP + "    return pod.cpu_milli + pod.memory_mib - pod.priority / 3 + pod.gang * 2\n"
    known = {"cpu_milli": 5.0, "memory_mib": 0.01, "priority": 0.5, "gang": 0.005}
    found = reduce(text, sum_of(known), Thrift(tolerance=0.02))
    assert "cpu_milli" in found.text
    assert "priority" in found.text
    assert "memory_mib" not in found.text
    assert "gang" not in found.text


def test_losses_do_not_add_up_beyond_the_tolerance():
    fields = ("cpu_milli", "memory_mib", "priority", "gang")
    text = TOP + f"    return {' + '.join(f'pod.{name}' for name in fields)}\n"
    found = reduce(text, sum_of(dict.fromkeys(fields, 0.012)), Thrift(tolerance=0.02))
    assert found.fitness >= found.fitness_before - 0.02
    assert sum(name in found.text for name in fields) == 3


@pytest.mark.parametrize(
    ("body", "kept", "gone"),
    [
        ("if pod.gang > 1:\n    return pod.priority\nreturn pod.cpu_milli", "cpu_milli", "gang"),
        ("return max(pod.cpu_milli, pod.gang, pod.priority)", "cpu_milli", "gang"),
        ("return 1 if pod.cpu_milli > 5 and pod.gang > 1 else 0", "cpu_milli", "gang"),
        (
            "a = pod.gang\nwhile a > 1:\n    a = a - 1\nreturn pod.cpu_milli + a",
            "cpu_milli",
            "gang",
        ),
        ("return pod.cpu_milli ** 2 / (1 + abs(pod.gang))", "cpu_milli", "gang"),
    ],
)
def test_cuts_reach_every_level(body, kept, gone):
    text = TOP + "".join(f"    {line}\n" for line in body.splitlines())
    found = reduce(text, sum_of({kept: 1.0}))
    assert kept in found.text
    assert gone not in found.text


def test_an_evaluation_budget_ends_a_reduction():
    found = reduce(PADDED, sum_of({"cpu_milli_left": 1.0, "padding": 1.0}), Thrift(0.0, 4))
    assert found.evaluations == 4
    assert found.cuts[-1] == "stopped after 4 evaluations"
    assert found.fitness == found.fitness_before


def test_a_reduction_is_the_same_every_time():
    score = sum_of({"cpu_ratio": 1.0, "gpu_ratio": 1.0, "abs": 1.0})
    assert reduce(PADDED, score) == reduce(PADDED, score)


def test_what_is_no_candidate_or_has_no_fitness_is_not_reduced():
    with pytest.raises(PolicyError, match="defines no function score"):
        reduce("x = 1\n", lambda _text: 1.0)
    with pytest.raises(PolicyError, match="refuse it on the training cases"):
        reduce(GOOD, lambda _text: float("-inf"))


@given(st.floats(1e-3, 1e3))
def test_numbers_lose_digits_and_little_else(value):
    text = f"W = tunable({value!r}, 0.0005, 1234.5)\n" + TOP + "    return W * 0.123456\n"
    for shorter, told in roundings(text):
        constants = [n.value for n in ast.walk(ast.parse(shorter)) if isinstance(n, ast.Constant)]
        assert 0.0005 in constants
        assert 1234.5 in constants
        assert any(each == pytest.approx(value, rel=0.5) for each in constants)
        assert "->" in told
