"""Bounds what a call may cost before it is made, and reads what it did cost.

Services count wrongly, or not at all. No count is taken that cannot be true of what was sent and
what came back; the bound stands in its place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from podium.search.llm.budget import Charge
from podium.search.llm.prices import Price
from podium.search.llm.reply import Reply

WRAPPING_TOKENS = 256
"""What a service may add around two messages."""

MOST_BYTES_A_TOKEN = 16
"""No tokenizer makes longer tokens of prose and programs on average; 3 to 5 is usual."""


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
    least_out = len(answer_text(body).encode(errors="replace")) // MOST_BYTES_A_TOKEN
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
