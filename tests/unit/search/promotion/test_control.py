from dataclasses import replace

import numpy as np
import pytest

from podium.evaluation.cases import Case
from podium.evaluation.paired import Difference
from podium.evaluation.validation import ValidationResults
from podium.search.candidate.constants import read_constants
from podium.search.generators.genetic.seeds import seeds
from podium.search.promotion.authorship import Authorship
from podium.search.promotion.control import (
    Comparison,
    Control,
    compared,
    first_round,
    origin_of,
    random_plan,
    restart_plan,
    tuning_plan,
    written_seeds,
)
from podium.search.promotion.decision import Rule
from podium.store import CandidateRecord
from support.searches import PLAN_OF_TESTS

TEXT = """from podium.policies import tunable

W = tunable({}, 0.0, 8.0)


def score(pod, node):
    return W * pod.gang
"""
TUNED = Control("tuned", "", "typical", ("a",), 100, 94.0)
THEIRS = Authorship("typical", "Packs.", (), ("int(x)",), (), (), (("W", 1.0, 2.0),))
BRED = replace(THEIRS, added=("pod.gang",))


def beside(mean, low, p_value, control=TUNED):
    return Comparison(control, "allocation_130", 95.0, 94.0, Difference(mean, low, 2.0), p_value)


def test_people_wrote_the_seeds_and_the_files_that_a_run_began_with():
    given = (("mine", "text"), ("1a2b3c4d-17", "found before"))
    names = written_seeds(replace(PLAN_OF_TESTS, starters=given)).keys()
    assert names == {*seeds(), "mine"}


def test_arms_keep_the_training_set_and_the_rule_of_the_run():
    plan = replace(PLAN_OF_TESTS, options={"command": {"command": "secret"}}, may_hold=True)
    for arm in (random_plan(plan), tuning_plan(plan, 400, {})):
        same = ("training", "fitness", "seed", "may_hold", "largest")
        assert all(getattr(arm, name) == getattr(plan, name) for name in same)
        assert arm.options == {}
    assert random_plan(plan).generators == (("random", 1.0),)


def test_the_first_round_tunes_the_best_formulas_with_a_third_of_the_evaluations():
    fitness = {title: 50.0 + i for i, title in enumerate(sorted(seeds()))}
    plan = tuning_plan(PLAN_OF_TESTS, 1000, fitness)
    assert {title for title, _ in plan.starters} == set(sorted(seeds())[-4:])
    count = sum(bool(read_constants(text)) for _, text in plan.starters)
    assert len(plan.starters) + count * (1 + plan.tuning.evaluations) <= first_round(plan, 1000)
    assert plan.tuning.evaluations >= 60
    assert (first_round(plan, 1000), first_round(plan, 30), first_round(plan, 9)) == (333, 15, 9)


def test_whatever_the_first_round_leaves_is_enough_for_a_second():
    for fitness in ({}, dict.fromkeys(seeds(), 50.0)):
        plan = tuning_plan(PLAN_OF_TESTS, 30, fitness)
        for evaluations in range(9, 100):
            left = evaluations - first_round(plan, evaluations)
            assert left == 0 or restart_plan(PLAN_OF_TESTS, rows(), left) is not None


def test_formulas_that_the_search_did_not_judge_are_tried_too():
    plan = tuning_plan(PLAN_OF_TESTS, 1000, {})
    assert {title for title, _ in plan.starters} == set(seeds())
    count = sum(bool(read_constants(text)) for _, text in plan.starters)
    assert len(plan.starters) + count * (1 + plan.tuning.evaluations) <= 334
    assert plan.tuning.evaluations >= 10


def row(number, text, fitness, source="", parents=()):
    kind = "tuned" if parents else "seed"
    return CandidateRecord(
        "r", number, kind=kind, source=source, parents=parents, text=text, accepted=True,
        fitness=fitness,
    )  # fmt: skip


def rows():
    return [
        row(0, TEXT.format(1.0), 90.0, "good"),
        row(1, TEXT.format(2.0), 91.0, "bad"),
        row(2, TEXT.format(3.5), 95.0, parents=(0,)),
        row(3, "def score(pod, node):\n    return 1\n", 99.0, "without numbers"),
    ]


def test_the_second_round_restarts_the_best_from_where_they_are_and_from_around_there():
    plan = restart_plan(PLAN_OF_TESTS, rows(), 600)
    assert [title for title, _ in plan.starters] == ["good~1", "bad~1", "good~2", "good~3"]
    values = {title: read_constants(text)[0].value for title, text in plan.starters}
    assert (values["good~1"], values["bad~1"]) == (3.5, 2.0)
    assert len({values[f"good~{i}"] for i in (1, 2, 3)}) == 3
    assert len(plan.starters) * (2 + plan.tuning.evaluations) <= 600
    assert restart_plan(PLAN_OF_TESTS, rows(), 600) == plan
    assert len(restart_plan(PLAN_OF_TESTS, rows(), 60).starters) == 1
    assert restart_plan(PLAN_OF_TESTS, rows(), 11) is None


def test_of_formulas_about_as_good_the_one_with_most_numbers_is_restarted_first():
    two = "from podium.policies import tunable\nA = tunable(1.0, 0.0, 9.0)\n" + TEXT.format(2.0)
    found = [*rows(), row(4, two, 94.8, "rich"), row(5, two, 90.0, "far")]
    plan = restart_plan(PLAN_OF_TESTS, found, 600)
    assert [title for title, _ in plan.starters] == ["rich~1", "good~1", "rich~2", "rich~3"]


@pytest.mark.parametrize(
    ("authorship", "comparisons", "origin"),
    [
        (BRED, [beside(0.5, 0.3, 0.002)], "found"),
        (BRED, [beside(0.5, 0.3, 0.06)], "tuned"),
        (BRED, [beside(0.1, -0.1, 0.002)], "tuned"),
        (BRED, [beside(0.5, 0.3, 0.002, replace(TUNED, arm="random"))], "tuned"),
        (BRED, [], "tuned"),
        (None, [beside(0.5, 0.3, 0.002)], "found"),
        (THEIRS, [beside(0.5, 0.3, 0.002)], "tuned"),
        (replace(THEIRS, is_unchanged=True), [beside(0.5, 0.3, 0.002)], "written"),
    ],
)
def test_found_is_what_has_terms_of_its_own_and_beats_the_tuned_seed(
    authorship, comparisons, origin
):
    assert origin_of(authorship, comparisons, 0.05) == origin


def results(own, its):
    cases = tuple(Case(seed=2000 + i) for i in range(len(own)))
    values = {
        "mine": tuple({"allocation_130": each, "allocation_100": each - 2} for each in own),
        "tuned seed": tuple({"allocation_130": each, "allocation_100": each} for each in its),
    }
    return ValidationResults(cases, values)


def test_policies_are_compared_with_an_arm_pair_by_pair():
    own = [95.0 + 0.1 * i for i in range(10)]
    found = compared(
        results(own, [each - 0.25 for each in own]), ["mine"], [TUNED], Rule(),
        np.random.default_rng(0),
    )  # fmt: skip
    (only,) = found["mine"]
    assert only.lead.mean == pytest.approx(0.25)
    assert only.lead.low == pytest.approx(0.25)
    assert only.p_value == pytest.approx(2 / 2**10)
    assert only.own - only.its == pytest.approx(0.25)
    assert only.is_beyond_chance(0.05)
    assert only.lead_100.mean == pytest.approx(-1.75)
    assert only.as_object()["arm"] == "tuned"
    assert "text" not in only.as_object()
