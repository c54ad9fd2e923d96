"""Makes the HTTP client that the `openai` SDK speaks through: it trusts no service.

Whatever comes back is bounded before it is unpacked, errors too, which the SDK reads as a whole. A
redirection is an answer: who is asked is what the user named, and prompts go nowhere else. What the
environment holds for OpenAI, such as OPENAI_ORG_ID, goes to OpenAI alone.
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

LARGEST_ANSWER_BYTES = 4_000_000

_OPENAI_HOST = "api.openai.com"
_SENT = frozenset(
    ["accept", "accept-encoding", "authorization", "connection", "content-length", "content-type",
     "host", "user-agent"]
)  # fmt: skip
"""Headers for services other than OpenAI, beside those in which the SDK describes itself."""

_OF_SDK = "x-stainless-"

_ENCODINGS = ("", "identity", "gzip", "deflate")
"""Ways to pack an answer that grow it a thousand times at most, and not one within another."""

_TOLD = ("content-type", "retry-after", "location")


def careful_client(openai: Any, url: str) -> Any:
    """Makes a client for the service at an address."""
    is_openai = (urlsplit(url).hostname or "").lower() == _OPENAI_HOST

    class CarefulClient(openai.DefaultHttpxClient):  # type: ignore[misc]
        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            _strip(request, is_openai=is_openai)
            response = super().send(request, stream=True, **options)
            if _encoding(response) not in _ENCODINGS:
                response.close()
                return _told(response, b"the answer is packed in a way that nobody asked for")
            if stream and response.is_success:
                return response  # whoever asked for a stream counts what comes
            return _told(response, _read(response))

    return CarefulClient(follow_redirects=False)


def _strip(request: Any, *, is_openai: bool) -> None:
    if not is_openai:
        for name in set(request.headers) - _SENT:
            if not name.startswith(_OF_SDK):
                del request.headers[name]
    request.headers["accept-encoding"] = "gzip, deflate"


def _encoding(response: Any) -> str:
    return str(response.headers.get("content-encoding", "")).strip().lower()


def _read(response: Any) -> bytes:
    """Reads what fits within the bound and the time; the rest is left."""
    limit_s = (response.request.extensions.get("timeout") or {}).get("read")
    deadline_s = time.monotonic() + limit_s if limit_s else None
    found = b""
    try:
        for piece in response.iter_bytes():
            found += piece[: LARGEST_ANSWER_BYTES - len(found)]
            is_late = deadline_s is not None and time.monotonic() > deadline_s
            if is_late or len(found) >= LARGEST_ANSWER_BYTES:
                break
    finally:
        response.close()
    return found


def _told(response: Any, content: bytes) -> Any:
    headers = {name: response.headers[name] for name in _TOLD if name in response.headers}
    return type(response)(
        response.status_code, headers=headers, content=content, request=response.request
    )
