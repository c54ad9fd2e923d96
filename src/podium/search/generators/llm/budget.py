"""Keeps spending within hard limits, calls in flight included, at the prices that are known."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from podium.errors import UsageError

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs in US dollars, per million tokens and per request."""

    usd_in: float
    usd_out: float
    usd_request: float = 0.0

    def __post_init__(self) -> None:
        values = (self.usd_in, self.usd_out, self.usd_request)
        if not all(math.isfinite(value) and value >= 0 for value in values):
            raise UsageError(f"{self} is not a price", hint="give US dollars per million tokens")

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
            f'"{text}" is not the price of a model',
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


USED_UP = "the budget is used up"
_NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Charge:
    """What a call costs, or the most it may cost; None means unknown."""

    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = 0.0

    @property
    def tokens(self) -> int:
        """Counts all tokens."""
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True)
class Caps:
    """How much a run may spend; None means no limit."""

    usd: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for key, value in (("usd", self.usd), ("tokens", self.tokens)):
            if value is not None and not 0 <= value < math.inf:
                raise UsageError(f"{value} {key} is not a budget", hint="give a number, 0 or more")


class Budget:
    """Counts what is spent and what is reserved; threads may share one budget.

    Money is counted in whole billionths of a dollar, rounded up: sums are exact.
    """

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self._cap_nano = None if caps.usd is None else math.floor(caps.usd * _NANO)
        self._spent_nano = self._spent_tokens = self._spent_tokens_out = self._calls = 0
        self._held_nano = self._held_tokens = self._in_flight = 0
        self._is_usd_known = True
        self._changed = threading.Condition()

    def reserve(self, most: Charge) -> bool:
        """Reserves the most that a call may cost, unless that might exceed a limit.

        Waits while calls in flight may still turn out cheaper than reserved.
        """
        with self._changed:
            while not self._fits(most, self._held_nano, self._held_tokens):
                if not self._in_flight or not self._fits(most, 0, 0):
                    return False
                self._changed.wait()
            self._in_flight += 1
            self._held_nano += _nano(most.usd)
            self._held_tokens += most.tokens
            return True

    def settle(self, most: Charge, spent: Charge) -> None:
        """Replaces what was reserved for a call by what it cost."""
        with self._changed:
            self._in_flight -= 1
            self._held_nano -= _nano(most.usd)
            self._held_tokens -= most.tokens
            self._count(spent)
            self._changed.notify_all()

    def count(self, spent: Charge) -> None:
        """Counts a call that needed no reservation."""
        with self._changed:
            self._count(spent)

    @property
    def spent(self) -> Charge:
        """Sums up what is spent; the dollars are None where a call's price was unknown."""
        with self._changed:
            usd = self._spent_nano / _NANO if self._is_usd_known else None
            out = self._spent_tokens_out
            return Charge(self._spent_tokens - out, out, usd)

    def refusal(self, most: Charge) -> str:
        """Explains why a call would exceed the budget."""
        with self._changed:
            told = []
            if self.caps.tokens is not None:
                told.append(f"{self._spent_tokens:,} of {self.caps.tokens:,} tokens are spent")
            if self.caps.usd is not None:
                told.append(f"{self._spent_nano / _NANO:.4f} of {self.caps.usd:g} USD are spent")
        asked = [f"{most.tokens:,} tokens"]
        if self.caps.usd is not None:
            asked.append("an unknown price" if most.usd is None else f"{most.usd:.4f} USD")
        return f"{USED_UP}: {' and '.join(told)}; the next call may take {' and '.join(asked)}"

    def state(self) -> dict[str, Any]:
        """Returns what is spent, as JSON types."""
        with self._changed:
            usd = self._spent_nano / _NANO
            return {
                "usd": usd, "tokens": self._spent_tokens, "tokens_out": self._spent_tokens_out,
                "calls": self._calls, "is_usd_known": self._is_usd_known,
            }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what was spent in earlier sessions."""
        with self._changed:
            self._spent_nano = _nano(float(state.get("usd") or 0.0))
            self._spent_tokens = int(state.get("tokens", 0))
            self._spent_tokens_out = int(state.get("tokens_out", 0))
            self._calls = int(state.get("calls", 0))
            self._is_usd_known = bool(state.get("is_usd_known", True))

    def _fits(self, most: Charge, held_nano: int, held_tokens: int) -> bool:
        tokens = self._spent_tokens + held_tokens + most.tokens
        if self.caps.tokens is not None and tokens > self.caps.tokens:
            return False
        if self._cap_nano is None:
            return True
        if most.usd is None:
            return False
        return self._spent_nano + held_nano + _nano(most.usd) <= self._cap_nano

    def _count(self, spent: Charge) -> None:
        self._calls += 1
        self._spent_tokens += spent.tokens
        self._spent_tokens_out += spent.tokens_out
        self._spent_nano += _nano(spent.usd)
        self._is_usd_known &= spent.usd is not None


def _nano(usd: float | None) -> int:
    # Rounding first keeps the noise of binary fractions from adding a billionth.
    return math.ceil(round((usd or 0.0) * _NANO, 3))
