"""Reads what came back from a service: what it means, and what it cost."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.search.generators.generator import UNANSWERED
from podium.search.generators.llm.budget import Charge, Price

TIMEOUT = "time-out"
LOST = "connection lost"
UNREACHABLE = "not reachable"

_ELSEWHERE = range(300, 400)
_KEY_REFUSED = (401, 403)
_OUT_OF_CREDIT = 402
_UNKNOWN_MODEL = 404
_OK = 200
_TOO_MANY = 429
_TOO_SLOW = (408, 409, 425)
_LONGEST_DETAIL = 300


@dataclass(frozen=True, slots=True)
class Reply:
    """A service's raw answer, or how the call failed."""

    status: int = 0  # of HTTP; 0: there is none
    text: str = ""
    retry_after: str = ""
    failure: str = ""  # TIMEOUT, LOST or UNREACHABLE

    @property
    def body(self) -> Any:
        """Reads the answer as JSON, whole or streamed; None if it is neither."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return read_stream(self.text)

    @property
    def code(self) -> int:
        """Returns the status code, also where a service reports an error under status 200."""
        body = self.body
        error = body.get("error") if self.status == _OK and isinstance(body, Mapping) else None
        if not error:
            return self.status
        code = error.get("code") if isinstance(error, Mapping) else None
        return code if isinstance(code, int) and 400 <= code < 600 else 500

    @property
    def is_billed(self) -> bool:
        """Returns whether the service may have charged: errors are free, lost replies may cost."""
        return self.code == _OK or self.failure in (TIMEOUT, LOST)

    @property
    def is_garbled(self) -> bool:
        """Returns whether the answer is not a JSON object."""
        return self.status == _OK and not isinstance(self.body, Mapping)

    @property
    def is_transient(self) -> bool:
        """Returns whether the same call may succeed a little later."""
        if self.failure or self.is_garbled:
            return True
        code = self.code
        return (code == _TOO_MANY and not self._is_quota) or code >= 500 or code in _TOO_SLOW

    @property
    def stop(self) -> str:
        """Explains why no further call of the model can succeed; empty if one may."""
        code, detail = self.code, self.detail
        if code in _ELSEWHERE:
            return f"the service redirects ({code}), and is not followed: {detail}"
        if code in _KEY_REFUSED:
            return f"the service rejects the key ({code}): {detail}"
        if code == _OUT_OF_CREDIT or (code == _TOO_MANY and self._is_quota):
            return f"the account has no credit left ({code}): {detail}"
        if code == _UNKNOWN_MODEL:
            return f"no such model or address at the service ({code}): {detail}"
        return ""

    @property
    def problem(self) -> str:
        """Explains in a sentence why there is no answer; empty if there is one."""
        if self.failure:
            return f"{UNANSWERED}: {self.failure}"
        if self.is_garbled:
            return f"the service answered with something that is not JSON: {self.detail}"
        if self.code != _OK:
            return self.stop or f"the service answered with error {self.code}: {self.detail}"
        return ""

    @property
    def detail(self) -> str:
        """Quotes the service's own explanation."""
        return shortened(self.error_message or self.text, _LONGEST_DETAIL) or "no reason given"

    @property
    def error_message(self) -> str:
        """Finds the message of an error, which services put in different places."""
        body = self.body
        error = body.get("error") if isinstance(body, Mapping) else None
        if isinstance(error, Mapping):
            return str(error.get("message") or "")
        return str(error or (body.get("message") if isinstance(body, Mapping) else "") or "")

    @property
    def error_parameter(self) -> str:
        """Names the parameter that an error is about, where the service does."""
        body = self.body
        error = body.get("error") if isinstance(body, Mapping) else None
        return str(error.get("param") or "") if isinstance(error, Mapping) else ""

    @property
    def _is_quota(self) -> bool:
        return "insufficient_quota" in self.text


@dataclass(frozen=True, slots=True)
class Try:
    """One call: what was sent, what came back, and what it cost."""

    model: str
    sent: tuple[str, ...]  # the optional parameters that were sent
    reply: Reply
    charge: Charge
    seconds: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """All calls that were made for one proposal; or why none was made."""

    tries: tuple[Try, ...] = ()
    spent: str = ""  # set: no call was made, and none will be
    is_stopped: bool = False  # not for the budget, but because every model is beyond asking
    note: str = ""  # set: why no further call was made


def shortened(text: str, most: int) -> str:
    """Quotes a text in one line of so many characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 3] + "..."


CUT = "cut"
"""Why a stream ended that nobody ended: it has no last message, and what it cost is not known."""

_REASONING = ("reasoning_content", "reasoning")
_STREAMED = ("content", "refusal", *_REASONING)


def read_stream(text: str) -> dict[str, Any] | None:
    """Puts a chat completion together that came as server-sent events; None if it is none.

    The usage comes in the last message only.
    """
    chunks = [each for each in map(_chunk, text.splitlines()) if each is not None]
    if not chunks:
        return None
    failed = next((each for each in chunks if each.get("error")), None)
    if failed is not None:
        return failed
    choices = [choice for choice in map(first_choice, chunks) if choice]
    deltas = [each["delta"] for each in choices if isinstance(each.get("delta"), Mapping)]
    message = {
        key: "".join(each[key] for each in deltas if isinstance(each.get(key), str))
        for key in _STREAMED
    }
    finish = [each["finish_reason"] for each in choices if each.get("finish_reason")]
    usage = [each["usage"] for each in chunks if isinstance(each.get("usage"), Mapping)]
    choice = {"message": message, "finish_reason": finish[-1] if finish else CUT}
    return {"choices": [choice], **({"usage": usage[-1]} if usage else {})}


def _chunk(line: str) -> dict[str, Any] | None:
    if not line.startswith("data:"):
        return None
    try:
        found = json.loads(line.removeprefix("data:"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


WRAPPING_TOKENS = 256
"""Tokens that a service may add around two messages."""

MOST_BYTES_A_TOKEN = 16
"""Tokens of prose and programs are no longer than this on average; 3 to 5 is usual."""


def most_charge(prompt: str, max_tokens: int, price: Price | None) -> Charge:
    """Bounds a call: a token has at least one byte, and the answer at most `max_tokens`."""
    tokens_in = len(prompt.encode()) + WRAPPING_TOKENS
    usd = None if price is None else price.usd(tokens_in, max_tokens)
    return Charge(tokens_in, max_tokens, usd)


def charge_of(reply: Reply, most: Charge, price: Price | None) -> Charge:
    """Reads what a call cost, or charges the bound where that cannot be known."""
    if not reply.is_billed:
        return Charge()
    body = reply.body
    if not isinstance(body, Mapping):
        return most
    usage = body.get("usage")
    given: Mapping[str, Any] = usage if isinstance(usage, Mapping) else {}
    least_in = (most.tokens_in - WRAPPING_TOKENS) // MOST_BYTES_A_TOKEN
    written = answer_text(body) + reasoning_text(body)
    least_out = len(written.encode(errors="replace")) // MOST_BYTES_A_TOKEN
    tokens_in = _count(given.get("prompt_tokens"), least_in, most.tokens_in)
    tokens_out = _count(given.get("completion_tokens"), least_out, most.tokens_out)
    usd = reported_usd(given)
    if usd is None and price is not None:
        usd = price.usd(tokens_in, tokens_out)
    return Charge(tokens_in, tokens_out, usd)


def reported_usd(usage: Mapping[str, Any]) -> float | None:
    """Reads the cost that OpenRouter reports; None is unknown, not nothing.

    With a key of the user's own at the vendor, `cost` is OpenRouter's fee alone and the vendor's
    share comes on top; in every other case the two must not be added up.
    """
    cost = _amount(usage.get("cost"))
    if cost is None or usage.get("is_byok") is not True:
        return cost
    details = usage.get("cost_details")
    upstream = details.get("upstream_inference_cost") if isinstance(details, Mapping) else None
    share = _amount(upstream)
    return None if share is None else cost + share


def answer_text(body: Mapping[str, Any]) -> str:
    """Finds the text of an answer, whole or in parts; nothing if there is none."""
    content = first_message(body).get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))


def reasoning_text(body: Mapping[str, Any]) -> str:
    """Finds what a model thought to itself, where the service tells; services name it differently.

    >>> reasoning_text({"choices": [{"message": {"reasoning_content": "Pack."}}]})
    'Pack.'
    """
    message = first_message(body)
    named = (message.get(key) for key in _REASONING)
    return next((each for each in named if isinstance(each, str) and each.strip()), "")


def first_message(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Finds the message of the first choice; an empty one if there is none."""
    message = first_choice(body).get("message")
    return message if isinstance(message, Mapping) else {}


def first_choice(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Finds the first choice; an empty one if there is none."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def _count(value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return most
    return value if max(least, 0) <= value <= most else most


def _amount(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < math.inf else None
