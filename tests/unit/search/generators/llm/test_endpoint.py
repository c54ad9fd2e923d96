import copy
import pickle

import pytest

from podium.errors import MissingError, UsageError
from podium.search.generators.llm import LlmSettings, Secret, find_endpoint
from podium.search.generators.llm.endpoint import OPENAI_URL, OPENROUTER_URL

ELSEWHERE = "https://elsewhere.org/v1"


def found(environ, url=""):
    endpoint = find_endpoint(environ, url)
    return endpoint.url, endpoint.key.reveal()


@pytest.mark.parametrize(
    ("environ", "url", "expected"),
    [
        ({"PODIUM_LLM_KEY": "p"}, "", (OPENROUTER_URL, "p")),
        ({"OPENROUTER_API_KEY": "r", "OPENAI_API_KEY": "o"}, "", (OPENROUTER_URL, "r")),
        ({"OPENAI_API_KEY": "o"}, "", (OPENAI_URL, "o")),
        ({"OPENAI_API_KEY": " o\n"}, OPENAI_URL, (OPENAI_URL, "o")),
        ({"PODIUM_LLM_KEY": "p", "OPENAI_API_KEY": "o"}, ELSEWHERE, (ELSEWHERE, "p")),
        ({"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": ELSEWHERE}, "", (ELSEWHERE, "o")),
        ({}, "http://localhost:11434/v1", ("http://localhost:11434/v1", "")),
    ],
)  # fmt: skip
def test_the_key_that_suits_the_service_is_found(environ, url, expected):
    assert found(environ, url) == expected


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, ""),
        ({"OPENAI_API_KEY": ""}, ""),
        ({"OPENAI_API_KEY": "o"}, OPENROUTER_URL),
        ({"OPENROUTER_API_KEY": "r"}, OPENAI_URL),
        ({"OPENAI_API_KEY": "o", "OPENROUTER_API_KEY": "r"}, ELSEWHERE),
        ({"OPENROUTER_API_KEY": "r"}, "https://notopenrouter.ai/v1"),
    ],
)
def test_a_key_is_never_sent_to_another_service(environ, url):
    with pytest.raises(MissingError, match="no API key") as raised:
        find_endpoint(environ, url)
    assert "PODIUM_LLM_KEY" in raised.value.hint


def test_a_key_for_another_service_does_not_go_to_this_machine_either():
    assert found({"OPENAI_API_KEY": "o"}, "http://127.0.0.1:8000/v1")[1] == ""


@pytest.mark.parametrize("url", ["openrouter.ai", "file:///etc/passwd", "http://"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(UsageError, match="is not the address"):
        find_endpoint({"PODIUM_LLM_KEY": "p"}, url)


def test_a_secret_does_not_show():
    secret = Secret("sk-hidden")
    settings = LlmSettings(("m",), "http://localhost/v1", secret, tokens=1)
    for text in (repr(secret), str(secret), f"{secret}", repr(settings), repr(settings.endpoint)):
        assert "sk-hidden" not in text
    assert "sk-hidden" not in str(settings.as_object())
    assert copy.deepcopy(settings).key is secret
    with pytest.raises(TypeError, match="never stored"):
        pickle.dumps(settings)
    assert secret.scrubbed("bad key sk-hidden!") == "bad key ********!"
    assert Secret().scrubbed("any text") == "any text"
