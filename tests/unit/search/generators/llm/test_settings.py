from pathlib import Path

import pytest

from podium.errors import UsageError
from podium.search.generators.llm import LlmSettings

GOOD = {"models": ("m",), "base_url": "http://localhost/v1", "tokens": 1000}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"models": ()}, "no model"),
        ({"models": ("m", "m")}, "twice"),
        ({"base_url": ""}, "no service"),
        ({"tokens": None}, "no budget"),
        ({"mode": "tape"}, "not a mode"),
        ({"mode": "record"}, "needs a cassette"),
        ({"mode": "replay"}, "needs a cassette"),
        ({"timeout_s": 0.0}, "timeout_s"),
        ({"tries": 0}, "tries"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(given, message):
    with pytest.raises(UsageError, match=message):
        LlmSettings(**(GOOD | given))


@pytest.mark.parametrize(("usd", "tokens"), [(-1.0, None), (float("nan"), None), (None, -5)])
def test_a_budget_that_is_none_is_refused(usd, tokens):
    with pytest.raises(UsageError, match="budget"):
        _ = LlmSettings(**(GOOD | {"usd": usd, "tokens": tokens})).caps


def test_a_replay_needs_neither_a_service_nor_a_budget():
    settings = LlmSettings(("m",), mode="replay", cassette=Path("tape.jsonl"))
    assert settings.caps.usd is None
