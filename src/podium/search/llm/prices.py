"""Knows what tokens cost: from the user's table, or as the service lists it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from podium.errors import UsageError

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Holds what a model costs in US dollars: per million tokens, and per request."""

    usd_in: float
    usd_out: float
    usd_request: float = 0.0

    def __post_init__(self) -> None:
        values = (self.usd_in, self.usd_out, self.usd_request)
        if not all(math.isfinite(value) and value >= 0 for value in values):
            raise UsageError(f"{self} is no price", hint="give US dollars per million tokens")

    def usd(self, tokens_in: int, tokens_out: int) -> float:
        """Prices one request.

        >>> Price(1.0, 4.0).usd(500_000, 250_000)
        1.5
        """
        tokens = tokens_in * self.usd_in + tokens_out * self.usd_out
        return tokens / MILLION + self.usd_request


def read_prices(texts: Iterable[str]) -> dict[str, Price]:
    """Reads `MODEL=IN,OUT`, in US dollars per million tokens.

    >>> read_prices(["vendor/model:free=0,0"])
    {'vendor/model:free': Price(usd_in=0.0, usd_out=0.0, usd_request=0.0)}
    """
    return dict(_read_price(text) for text in texts)


def _read_price(text: str) -> tuple[str, Price]:
    model, _, numbers = text.rpartition("=")
    try:
        usd_in, usd_out = (float(number) for number in numbers.split(","))
    except ValueError:
        model = ""
    if not model.strip():
        raise UsageError(
            f'"{text}" is no price of a model',
            hint="write MODEL=IN,OUT in US dollars per million tokens: some/model=0.25,2.0",
        )
    return model.strip(), Price(usd_in, usd_out)


def listed_prices(listing: Any) -> dict[str, Price]:
    """Reads the prices in a service's list of models, where it gives them.

    OpenRouter does, as text in US dollars per token; -1 is a price that varies.
    """
    rows = listing.get("data") if isinstance(listing, Mapping) else None
    found: dict[str, Price] = {}
    for row in rows if isinstance(rows, list) else []:
        price = _listed_price(row.get("pricing")) if isinstance(row, Mapping) else None
        if price is not None:
            found[str(row.get("id"))] = price
    return found


def _listed_price(given: Any) -> Price | None:
    if not isinstance(given, Mapping):
        return None
    try:
        usd_in, usd_out = float(given["prompt"]), float(given["completion"])
        return Price(usd_in * MILLION, usd_out * MILLION, float(given.get("request") or 0.0))
    except (KeyError, TypeError, ValueError, UsageError):
        return None
