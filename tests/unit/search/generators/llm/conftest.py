import contextlib

import pytest

from podium.search.generators.llm import LlmSettings, Pace, Secret, open_llm
from support.chat_server import KEY, running_chat_server

NOW_S = 1_800_000_000.0


@pytest.fixture
def server():
    """Runs a service on this machine."""
    with running_chat_server() as server:
        yield server


@pytest.fixture
def slept():
    """Collects the waits between tries, in seconds."""
    return []


@pytest.fixture
def opened(server, slept):
    """Opens generators that talk to the server and do not wait between tries."""
    with contextlib.ExitStack() as stack:

        def open_(**given):
            usual = {
                "models": ("small",), "base_url": server.url, "key": Secret(KEY),
                "tokens": 10**9, "timeout_s": 60.0,
            }  # fmt: skip
            pace = Pace(sleep=slept.append, now=lambda: NOW_S)
            generator = open_llm(LlmSettings(**(usual | given)), pace)
            stack.callback(generator.close)
            return generator

        yield open_
