import pytest

from podium.errors import InputError
from podium.experiments.search_plan import (
    DEFAULT_EVALUATIONS,
    budget_of,
    read_starter,
    renewed_budget,
)
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


def test_a_policy_file_is_named_after_itself(tmp_path):
    (tmp_path / "mine.py").write_text("def score(pod, node):\n    return 1.0\n")
    assert read_starter(tmp_path / "mine.py") == ("mine", "def score(pod, node):\n    return 1.0\n")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_is_no_text_is_told_with_its_place(tmp_path, content):
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read|is not UTF-8") as caught:
        read_starter(path)
    assert str(path) in caught.value.where
