import json
from dataclasses import replace

import pytest

from podium.errors import InputError, PodiumError, UsageError
from podium.search.population.archive import IslandSettings
from podium.search.run.plan import RunPlan, Tuning
from support.searches import TRAINING

FULL = RunPlan(
    TRAINING,
    "mix:inflation=3,fragmentation=1",
    7,
    (("genetic", 3.0), ("llm", 1.0)),
    "random",
    (("mine", "def score(pod, node):\n    return 1.0\n"),),
    30,
    IslandSettings(3, 20, 5, 100),
    Tuning(4, 50),
    may_hold=True,
    largest=60,
    options={"llm": {"models": ["a"], "usd": 1.5, "prices": {"a": [1.0, 2.0, 0.0]}}},
    ingredients="none",
)


@pytest.mark.parametrize("plan", [RunPlan(TRAINING), FULL])
def test_a_plan_is_the_same_after_it_was_written_and_read(plan):
    assert RunPlan.from_object(json.loads(json.dumps(plan.as_object()))) == plan


def test_repairs_have_numbers_of_their_own():
    for plan in (RunPlan(TRAINING), FULL, replace(FULL, batch=500)):
        assert plan.block >= 2 * plan.batch


def test_as_many_starters_as_there_may_be_have_numbers_of_their_own():
    many = tuple((f"s{i}", "") for i in range(140))
    assert RunPlan(TRAINING, starters=many).block // 2 > len(many)


def test_a_batch_reaches_every_island():
    with pytest.raises(UsageError, match="does not reach all 4 islands"):
        RunPlan(TRAINING, batch=3)


def test_an_unknown_start_is_refused():
    with pytest.raises(UsageError, match="unknown start"):
        RunPlan(TRAINING, start="middle")


def test_unknown_ingredients_are_refused():
    with pytest.raises(UsageError, match="unknown ingredients"):
        RunPlan(TRAINING, ingredients="some")


def test_an_unknown_fitness_is_refused():
    with pytest.raises(PodiumError, match="speed"):
        RunPlan(TRAINING, "speed")


@pytest.mark.parametrize("given", [{}, {"training": 5}, {"training": {"cases": [1]}}])
def test_a_plan_that_nothing_wrote_is_told(given):
    with pytest.raises(InputError, match="the plan of the run is corrupt"):
        RunPlan.from_object(given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("generators", [[["command"], 1]]),
        ("generators", [["Command", 1]]),
        ("generators", [["genetic", "1"]]),
        ("generators", [["genetic", float("nan")]]),
        ("generators", 5),
        ("starters", [[1, 2]]),
        ("seed", "7"),
        ("largest", None),
        ("batch", 24.5),
        ("batch", 0),
        ("batch", float("nan")),
        ("batch", 10**12),
        ("largest", 10**12),
        ("customs", {"islands": 10**12}),
        ("may_hold", 1),
        ("fitness", 5),
        ("start", []),
        ("tuning", {"every": "x"}),
        ("customs", {"islands": 0}),
        ("options", {"command": {"command": 5}}),
        ("options", {"command": {"keep": 5}}),
        ("options", {"command": {"keep": [["HOME"]]}}),
        ("options", {"command": {"folder": 5}}),
        ("options", {"command": 5}),
        ("options", {"llm": {"models": 5}}),
        ("options", {"llm": {"models": "abc"}}),
        ("options", {"llm": {"base_url": 5}}),
        ("options", {"llm": {"prices": {"a": 5}}}),
        ("options", {"llm": {"usd": "2"}}),
        ("options", 5),
    ],
)
def test_a_plan_with_a_value_that_none_has_is_told(name, value):
    with pytest.raises(InputError, match="the plan of the run is corrupt"):
        RunPlan.from_object({**json.loads(json.dumps(FULL.as_object())), name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("load", float("nan")),
        ("load", float("inf")),
        ("load", 0),
        ("load", "2"),
        ("ratio", float("nan")),
        ("ratio", -1),
        ("ratio", 10**9),
        ("until", float("nan")),
        ("until", 0.0),
        ("until", 1.5),
        ("until", "soon"),
        ("since", -0.1),
        ("since", 1.0),
        ("seed", 1000.5),
        ("seed", -1),
        ("seed", True),
        ("nodes", 0),
        ("nodes", 2.5),
        ("pods", "many"),
        ("protocol", "rounds"),
        ("protocol", ["replay"]),
        ("state", "later"),
        ("trace", None),
        ("folder", 5),
        ("cluster", {}),
        ("duration", 2),
        ("topology", ["aws"]),
        ("digest", 7),
        ("is_perturbed", "no"),
    ],
)
def test_a_case_with_a_value_that_none_has_is_told(name, value):
    given = json.loads(json.dumps(FULL.as_object()))
    given["training"]["cases"][0][name] = value
    with pytest.raises(InputError, match="the plan of the run is corrupt") as caught:
        RunPlan.from_object(given)
    assert f"cases[0]{'' if name in ('until', 'since') else '.' + name}" in caught.value.message


@pytest.mark.parametrize("purpose", ["test", None, ["training"]])
def test_a_purpose_that_no_cases_have_is_told(purpose):
    given = json.loads(json.dumps(FULL.as_object()))
    given["training"]["purpose"] = purpose
    with pytest.raises(InputError, match="the plan of the run is corrupt: purpose is"):
        RunPlan.from_object(given)
