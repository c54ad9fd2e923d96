"""Sends one call to a service with the `openai` SDK, and takes back whatever comes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from podium.errors import MissingExtra
from podium.search.generators.llm.budget import Price, listed_prices
from podium.search.generators.llm.endpoint import Endpoint
from podium.search.generators.llm.exchange import LOST, TIMEOUT, UNREACHABLE, Reply
from podium.search.generators.llm.wire import LARGEST_ANSWER_BYTES, careful_client
from podium.settings import hidden

_NO_KEY = "none"  # the SDK insists on one; services on this machine ignore it


class Transport(Protocol):
    """Sends calls. Threads may share one."""

    def send(self, body: Mapping[str, Any], timeout_s: float) -> Reply:
        """Makes one call and waits for its reply; failures are replies too."""
        ...

    def close(self) -> None:
        """Closes connections."""
        ...


_REQUIRED = ("model", "messages")


def _split(body: Mapping[str, Any]) -> dict[str, Any]:
    """Passes parameters on as they are: the SDK knows only those of one service."""
    others = {name: value for name, value in body.items() if name not in _REQUIRED}
    return {**{name: body[name] for name in _REQUIRED}, "extra_body": others}


def _said(reply: Any) -> str:
    place = reply.headers.get("location", "")
    return hidden(f"{place}\n{reply.text}") if place else str(reply.text)


class SdkTransport:
    """Sends calls over HTTP."""

    def __init__(self, endpoint: Endpoint) -> None:
        try:
            import openai
        except ImportError as error:
            raise MissingExtra.named("search", "the generator llm") from error
        self._openai: Any = openai
        self._scrubbed = endpoint.scrubbed
        # Tries are counted, charged and spaced by Podium, so the SDK makes one only.
        self._client: Any = openai.OpenAI(
            api_key=endpoint.key.reveal() or _NO_KEY, base_url=endpoint.url, max_retries=0,
            http_client=careful_client(openai, endpoint.url),
        )  # fmt: skip

    def send(self, body: Mapping[str, Any], timeout_s: float) -> Reply:
        """Makes one call; the time limit covers all of it, not each chunk."""
        deadline_s = time.monotonic() + timeout_s
        create = self._client.chat.completions.with_streaming_response.create
        try:
            with create(**_split(body), timeout=timeout_s) as response:
                return self._read(response, deadline_s)
        except self._openai.APIStatusError as error:
            reply = error.response
            waiting = self._scrubbed(str(reply.headers.get("retry-after", "")))
            return Reply(reply.status_code, self._scrubbed(_said(reply)), waiting)
        except self._openai.APITimeoutError:
            return Reply(failure=TIMEOUT)
        except self._openai.APIConnectionError as error:
            never_connected = "Connect" in type(error.__cause__).__name__
            return Reply(failure=UNREACHABLE if never_connected else LOST)

    def prices(self, timeout_s: float) -> dict[str, Price]:
        """Asks the service for its prices; nothing where it has no such list."""
        try:
            raw = self._client.models.with_raw_response.list(timeout=timeout_s)
        except self._openai.APIError:
            return {}
        return listed_prices(Reply(200, raw.http_response.text).body)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _read(self, response: Any, deadline_s: float) -> Reply:
        # Some services send blanks while they think: each piece is in time, the whole is not.
        pieces: list[bytes] = []
        try:
            for piece in response.iter_bytes():
                pieces.append(piece)
                if time.monotonic() > deadline_s:
                    return Reply(failure=TIMEOUT)
                if sum(map(len, pieces)) > LARGEST_ANSWER_BYTES:
                    return Reply(failure=LOST)
        except Exception as error:  # noqa: BLE001 - the SDK's HTTP library has had two names
            is_late = "Timeout" in type(error).__name__
            return Reply(failure=TIMEOUT if is_late else LOST)
        text = b"".join(pieces).decode(errors="replace")
        return Reply(response.status_code, self._scrubbed(text))
