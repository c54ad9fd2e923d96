from pathlib import Path

import pytest

from podium.errors import InputError, PodiumError
from podium.experiments.search_plan import (
    DEFAULT_EVALUATIONS,
    answering,
    budget_of,
    changed_answering,
    prompt_options,
    read_starter,
    renewed_budget,
)
from podium.search.run.plan import Budget
from podium.settings import load_settings

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


@pytest.mark.parametrize("content", [None, b"\xff\xf0"])
def test_a_file_that_is_no_text_is_told_with_its_place(tmp_path, content):
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read|is not UTF-8") as caught:
        read_starter(path)
    assert str(path) in caught.value.where


def test_how_models_answer_is_kept_where_it_is_not_usual(tmp_path):
    assert answering(load_settings()) == {}
    assert changed_answering(load_settings()) == {}
    (tmp_path / "improve.md").write_text("{{programs}}")
    flags = {
        "search.temperature": "0.5,1.5", "search.max_tokens": 9000, "search.model_calls": 2,
        "search.model_parameters": "top_p = 0.9", "search.prompts": tmp_path,
    }  # fmt: skip
    settings = load_settings(flags)
    expected = {
        "temperature": [0.5, 1.5], "max_tokens": 9000, "concurrency": 2,
        "parameters": {"top_p": 0.9},
    }  # fmt: skip
    assert answering(settings) == changed_answering(settings) == expected
    found = prompt_options(settings)
    assert found["prompts"] == str(tmp_path)
    (tmp_path / "improve.md").write_text("{{programs}} again")
    assert prompt_options(settings)["prompts_digest"] != found["prompts_digest"]


def test_a_flag_that_says_the_usual_wins_over_what_a_run_began_with():
    settings = load_settings({"search.max_tokens": 4096})
    assert answering(settings) == {}
    assert changed_answering(settings) == {"max_tokens": 4096}


@pytest.mark.parametrize(
    ("read", "path", "value", "told"),
    [
        (answering, "search.temperature", "hot", "not a temperature"),
        (answering, "search.model_parameters", "{", "not a table"),
        (prompt_options, "search.prompts", Path("/nowhere"), "no such folder"),
    ],
)
def test_a_setting_of_models_that_cannot_be_is_told_with_its_place(read, path, value, told):
    settings = load_settings({path: value})
    with pytest.raises(PodiumError, match=told) as caught:
        read(settings)
    assert caught.value.where
