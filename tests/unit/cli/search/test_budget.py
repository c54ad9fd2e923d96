import pytest

from podium.cli.search.budget import DEFAULT_EVALUATIONS, budget_of, renewed_budget
from podium.search.run.plan import Budget

SAVED = {"evaluations": 500, "seconds": 60.0, "target": 95.0}


@pytest.mark.parametrize(
    ("asked", "budget"),
    [
        ((None, None, None), Budget(DEFAULT_EVALUATIONS)),
        ((None, None, 95.0), Budget(DEFAULT_EVALUATIONS, None, 95.0)),
        ((30, None, None), Budget(30)),
        ((None, "2m", None), Budget(None, 120.0)),
    ],
)
def test_a_run_ends_by_what_is_asked_for_or_after_a_usual_number(asked, budget):
    assert budget_of(*asked) == budget


@pytest.mark.parametrize(
    ("asked", "budget"),
    [
        ((None, None, None), Budget(500, 60.0, 95.0)),
        ((None, None, 96.0), Budget(500, 60.0, 96.0)),
        ((900, None, None), Budget(900, None, 95.0)),
        ((None, "2m", None), Budget(None, 120.0, 95.0)),
    ],
)
def test_a_sitting_goes_on_as_the_run_began_unless_told_otherwise(asked, budget):
    assert renewed_budget(SAVED, *asked) == budget
