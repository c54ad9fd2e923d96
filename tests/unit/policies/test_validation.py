import hashlib
import json
import shutil

import pytest

from podium.policies import load
from podium.policies.registry import _TRAINED
from podium.policies.validation import (
    UNKNOWN,
    Validation,
    card_validation,
    training_validation,
)

TEXT = "def score(pod, node):\n    return 1.0\n"
WON = {"decision": {"promoted": True, "reasons": ["it gains 0.9 over fgd"]}}


@pytest.mark.parametrize(
    ("card", "word"),
    [
        ({}, "unknown"),
        ({"origin": "file"}, "unknown"),
        (WON, "yes"),
        ({"decision": {"promoted": True}}, "yes"),
        ({"decision": {"promoted": False, "reasons": ["it loses"]}}, "no"),
        ({"decision": {}}, "no"),
        ({"decision": {"reasons": ["it gains 0.9 over fgd"]}}, "no"),
        ({"decision": {"promoted": "true"}}, "no"),
        ({"decision": {"promoted": 1}}, "no"),
        ({"decision": None}, "no"),
        ({"decision": 7}, "no"),
        ({"origin": "found"}, "no"),  # somebody cut the decision out
        ({"origin": "tuned", "provenance": {}}, "no"),
    ],
)
def test_a_card_says_whether_a_policy_is_validated(card, word):
    assert card_validation(card).word == word


@pytest.mark.parametrize(
    ("network", "figures", "word"),
    [
        ("attention", {"score": 0.97}, "unknown"),
        ("q-table", {"gain": 1.0}, "unknown"),
        ("q-table", {"gain": float("nan")}, "no"),
        ("mlp", {"gain": 1.0}, "unknown"),
        ("mlp", {"gain": 0}, "no"),
        ("mlp", {"gain": -0.0}, "no"),
        ("mlp", {"gain": float("nan")}, "no"),
        ("mlp", {"gain": float("inf")}, "no"),
        ("mlp", {"gain": "2.5"}, "no"),
        ("mlp", {"gain": True}, "no"),
        ("mlp", {"gain": [1.0]}, "no"),
        ("mlp", {"score": 0.97}, "no"),
        ("mlp", None, "no"),
    ],
)
def test_a_net_must_state_its_gain_over_fgd_where_its_training_measures_it(network, figures, word):
    card = {"network": network, "training": {"validation": figures}}
    assert training_validation(card).word == word
    decided = {**card, "decision": {"promoted": True}}  # nobody promotes nets
    assert training_validation(decided).word == word


def test_a_validation_travels_in_a_card():
    found = Validation(False, "it was not promoted", "podium search promote ab12 validates it")
    assert card_validation({"decision": found.as_decision()}) == found


@pytest.mark.parametrize(("name", "word"), [("fed-gpu", "yes"), ("fgd", "unknown")])
def test_what_was_promoted_and_ships_is_validated(name, word):
    assert load(name).validation.word == word


@pytest.fixture
def promoted(tmp_path):
    """Writes a policy with its card."""
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    (tmp_path / "mine.py").write_text(TEXT)
    card = {"name": "mine", "summary": "Packs.", "sha256": digest, **WON}
    (tmp_path / "mine.json").write_text(json.dumps(card))
    return tmp_path


@pytest.mark.parametrize("ending", ["py", "json"])
def test_a_promoted_file_is_validated_by_the_card_beside_it(promoted, ending):
    found = load(str(promoted / f"mine.{ending}")).validation
    assert found == Validation(True, "it gains 0.9 over fgd")


@pytest.mark.parametrize("content", ["not JSON", "[1]", '{"sha256": 7}'])
def test_a_text_that_its_card_does_not_describe_is_somebodys_own(promoted, content):
    (promoted / "mine.py").write_text(TEXT.replace("1.0", "2.0"))
    assert load(str(promoted / "mine.py")).validation == UNKNOWN
    (promoted / "mine.json").write_text(content)
    assert load(str(promoted / "mine.py")).validation == UNKNOWN


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_weights_that_lose_to_fgd_are_not_validated(tmp_path, ending):
    card = json.loads((_TRAINED / "mlp.json").read_text())
    card["name"], card["training"]["validation"]["gain"] = "own", -0.2
    (tmp_path / "own.json").write_text(json.dumps(card))
    shutil.copy(_TRAINED / "mlp.npz", tmp_path / "own.npz")
    found = load(str(tmp_path / f"own.{ending}")).validation
    assert (found.word, "-0.200" in found.reason) == ("no", True)
