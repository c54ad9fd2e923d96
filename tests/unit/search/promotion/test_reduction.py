import functools
from dataclasses import replace

import pytest

from podium.errors import PolicyError
from podium.evaluation.cases import Case
from podium.evaluation.measures import measure_case
from podium.policies import load
from podium.search.candidate.gates import Candidate, checked_policy, read_candidate
from podium.search.candidate.text import complexity_of
from podium.search.promotion.ablation import ablate
from podium.search.promotion.reduction import ReductionSettings, reduce
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
    return reduce(PADDED, trained, ReductionSettings(tolerance=0.02))


def test_planted_parts_that_do_nothing_are_removed(reduced):
    for planted in ("padding", "nothing", "NOTHING", "7.25", "1.00001", "10.000321", "< -5"):
        assert planted not in reduced.text


def test_what_the_score_needs_stays(reduced):
    for needed in ("gpu_milli_left", "cpu_milli_left", "abs(", "node.gpu_count"):
        assert needed in reduced.text
    assert complexity_of(reduced.text) == reduced.size <= complexity_of(GOOD) + 10
    assert reduced.size_before == complexity_of(PADDED)


def test_divisors_stay_protected(reduced):
    assert reduced.text.count("max(1, ") == 2


def test_a_reduced_program_is_a_candidate_that_scores_as_told(reduced):
    assert isinstance(read_candidate(reduced.text), Candidate)
    assert trained(reduced.text) == reduced.fitness
    assert reduced.fitness >= reduced.fitness_before - 0.02
    assert reduced.cuts


def test_each_part_that_is_left_is_explained_and_costs_something(reduced):
    parts = ablate(reduced.program, trained)
    balance, count = [part for part in parts if part.kind == "term"]
    assert balance.code == "balance"
    assert count.code == "-node.gpu_count"
    assert balance.loss > 1
    assert count.loss > 0.5
    by_code = {part.code: part for part in parts}
    assert by_code["gpu_milli_free"].note == "Free GPU milli of the node."
    assert all(part.loss > 0 for part in parts)


def sum_of(known):
    """Scores a text by the fields that it reads: no simulator, so that every cut is known."""

    def score(text):
        return float(sum(weight for name, weight in known.items() if name in text))

    return score


def test_terms_below_the_tolerance_go_and_those_above_stay():
    text = TOP + "    return pod.cpu_milli + pod.memory_mib - pod.priority / 3 + pod.gang * 2\n"
    known = {"cpu_milli": 5.0, "memory_mib": 0.01, "priority": 0.5, "gang": 0.005}
    found = reduce(text, sum_of(known), ReductionSettings(tolerance=0.02))
    assert "cpu_milli" in found.text
    assert "priority" in found.text
    assert "memory_mib" not in found.text
    assert "gang" not in found.text


def test_losses_do_not_add_up_beyond_the_tolerance():
    fields = ("cpu_milli", "memory_mib", "priority", "gang")
    text = TOP + f"    return {' + '.join(f'pod.{name}' for name in fields)}\n"
    found = reduce(text, sum_of(dict.fromkeys(fields, 0.012)), ReductionSettings(tolerance=0.02))
    assert found.fitness >= found.fitness_before - 0.02
    assert sum(name in found.text for name in fields) == 3


@pytest.mark.parametrize(
    ("body", "kept", "gone"),
    [
        ("if pod.gang > 1:\n    return pod.priority\nreturn pod.cpu_milli", "cpu_milli", "gang"),
        ("return max(pod.cpu_milli, pod.gang, pod.priority)", "cpu_milli", "gang"),
        ("return 1 if pod.cpu_milli > 5 and pod.gang > 1 else 0", "cpu_milli", "gang"),
        ("return pod.cpu_milli ** 2 / (1 + abs(pod.gang))", "cpu_milli", "gang"),
    ],
)
def test_cuts_reach_every_level(body, kept, gone):
    text = TOP + "".join(f"    {line}\n" for line in body.splitlines())
    found = reduce(text, sum_of({kept: 1.0}))
    assert kept in found.text
    assert gone not in found.text


def test_an_evaluation_budget_ends_a_reduction():
    found = reduce(
        PADDED, sum_of({"cpu_milli_left": 1.0, "padding": 1.0}), ReductionSettings(0.0, 4)
    )
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


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            TOP + "    a = pod.gang\n    while a > 1:\n        a = a - 1\n    return a + 0\n",
            "line 3",
        ),
        ("A = (1, 2)\n" + TOP + "    return A[pod.gang % 2] + 0\n", "line 1"),
    ],
)
def test_a_text_that_is_no_program_stays_as_it_is_and_says_why(text, why):
    found = reduce(text, lambda _text: 1.0)
    assert (found.text, found.program, found.cuts) == (text, None, ())
    assert why in found.uncut
    assert found.size == found.size_before


def test_functions_of_numbers_stay_and_only_calls_of_them_are_cut():
    text = (
        "def twice(a):\n    return 2 * a\n\n\n"
        + TOP + "    return twice(pod.cpu_milli) + twice(pod.gang)\n"
    )  # fmt: skip
    found = reduce(text, sum_of({"cpu_milli": 1.0, "2 *": 1.0}))
    assert "return twice(pod.cpu_milli)\n" in found.text
    assert not found.uncut


def test_what_a_function_does_not_need_is_cut():
    text = (
        "def worth(a):\n    if a < 300:\n        return 0\n    return a\n\n\n"
        + TOP + "    return worth(pod.cpu_milli) + worth(node.gpu_count)\n"
    )  # fmt: skip
    found = reduce(text, sum_of({"cpu_milli": 1.0, "node.gpu_count": 1.0}))
    assert "300" not in found.text
