"""Asks a model until it answers, within the budget: every try is charged, spaced and counted."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import numpy as np

from podium.search.generators.llm.answer import LONGER_ANSWERS, read_body
from podium.search.generators.llm.budget import Budget, Charge, Price
from podium.search.generators.llm.exchange import (
    TIMEOUT,
    UNREACHABLE,
    Reply,
    Try,
    charge_of,
    first_choice,
    most_charge,
)
from podium.search.generators.llm.http import Transport
from podium.search.generators.llm.prompt import Prompt
from podium.search.generators.llm.settings import LlmSettings

LONGEST_WAIT_S = 60.0
FIRST_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Pace:
    """The clocks that calls are timed and spaced by."""

    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic  # for durations
    now: Callable[[], float] = time.time  # since 1970, for dates that services give


def wait_s(retry_after: str, failures: int, rng: np.random.Generator, now: float) -> float:
    """Returns the seconds to wait after some failures: what the service asks for, or doubling.

    >>> wait_s("2.5", 1, np.random.default_rng(0), 0.0)
    2.5
    """
    asked = _asked_s(retry_after.strip(), now)
    if asked is not None:
        return min(max(asked, 0.0), LONGEST_WAIT_S)
    # Half of it is drawn, so that calls that failed together do not come back together.
    doubled = min(FIRST_WAIT_S * 2.0 ** (failures - 1), LONGEST_WAIT_S)
    return doubled * (0.5 + 0.5 * float(rng.random()))


def _asked_s(text: str, now: float) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        return seconds if math.isfinite(seconds) else None
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now


TEMPERATURE, SEED, EFFORT = "temperature", "seed", "reasoning_effort"
MOST_UNREACHED = 12
"""Unreachable this many proposals in a row, the service is not asked any more."""

MOST_SILENT = 6
"""Without an answer in time this many proposals in a row, the service is not asked any more."""

MOST_CUT_SHORT = 3
"""Answers in a row that end at their limit before a program; after them the model is not asked."""

LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the limit on an answer; older models know the first, newer ones want the second."""

_BAD_REQUEST = (400, 422)


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to one model."""

    model: str
    prompt: Prompt
    seed: int
    temperature: float | None = None


class Client:
    """Calls models over the chat protocol; threads may share one client."""

    def __init__(
        self,
        settings: LlmSettings,
        transport: Transport,
        budget: Budget,
        prices: Mapping[str, Price],
        pace: Pace,
    ) -> None:
        self._settings, self._transport, self._pace = settings, transport, pace
        self._budget, self._prices = budget, prices
        self._dropped: dict[str, frozenset[str]] = {}
        self._stopped: dict[str, str] = {}
        self._unreached = self._silent = 0  # proposals in a row
        self._cut_short: dict[str, int] = {}  # answers in a row without a program, by model
        self._turns = threading.BoundedSemaphore(settings.concurrency)
        self._lock = threading.Lock()

    @property
    def stopped(self) -> dict[str, str]:
        """Maps models that cannot be asked any more to the reason."""
        with self._lock:
            return dict(self._stopped)

    @property
    def dropped(self) -> dict[str, list[str]]:
        """Maps models to the parameters that they do not take."""
        with self._lock:
            return {model: sorted(names) for model, names in self._dropped.items()}

    def drop(self, model: str, names: Iterable[str]) -> None:
        """Remembers that a model does not take parameters."""
        with self._lock:
            self._dropped[model] = self._dropped.get(model, frozenset()) | set(names)

    def most(self, ask: Ask) -> Charge:
        """Bounds what one try may cost."""
        text = ask.prompt.text
        return most_charge(text, self._settings.max_tokens, self._prices.get(ask.model))

    def try_often(self, ask: Ask, rng: np.random.Generator) -> tuple[list[Try], str]:
        """Asks until there is an answer, or none to be had; says why it stopped early, if it did.

        No try at all means that the first might have exceeded the budget.
        """
        tries: list[Try] = []
        failures = 0
        while failures < self._settings.tries:
            with self._turns:
                refusal = self._refusal(ask)
                if refusal:
                    return tries, refusal
                made = self._try(ask)
                tries.append(made)
                if not made.reply.problem:
                    self._heed_length(made)
            refused = _refused_parameters(made)
            if refused:  # and never sent again, so that this comes to an end
                self.drop(ask.model, refused)
                continue
            if not made.reply.is_transient:
                break
            failures += 1
            if failures < self._settings.tries:
                asked = made.reply.retry_after
                self._pace.sleep(wait_s(asked, failures, rng, self._pace.now()))
        self._heed(tries[-1])
        return tries, ""

    def _try(self, ask: Ask) -> Try:
        price, most, began = self._prices.get(ask.model), self.most(ask), self._pace.clock()
        sent = self._parameters(ask)
        spent = most  # what is not known to have ended is charged in full
        try:
            reply = self._transport.send(_body(ask, sent), self._settings.timeout_s)
            spent = charge_of(reply, most, price)
        finally:
            self._budget.settle(most, spent)
        return Try(ask.model, tuple(sent), reply, spent, self._pace.clock() - began)

    def _parameters(self, ask: Ask) -> dict[str, Any]:
        settings = self._settings
        dropped = self._dropped_of(ask.model)
        given: dict[str, Any] = {SEED: ask.seed, **settings.parameters}
        if ask.temperature is not None:
            given[TEMPERATURE] = ask.temperature
        if settings.reasoning_effort:
            given[EFFORT] = settings.reasoning_effort
        sent = {name: value for name, value in given.items() if name not in dropped}
        limit = next((name for name in LIMITS if name not in dropped), None)
        return sent | ({limit: settings.max_tokens} if limit else {})

    def _refusal(self, ask: Ask) -> str:
        """Explains why a model is not asked: it was stopped meanwhile, or costs too much."""
        refusal = self.stopped.get(ask.model, "") or self._unbounded(ask.model)
        if not refusal and not self._budget.reserve(self.most(ask)):
            refusal = self._budget.refusal(self.most(ask))
        return refusal

    def _unbounded(self, model: str) -> str:
        if not self._dropped_of(model) >= set(LIMITS):
            return ""
        reason = "it accepts no limit on the length of answers, so no budget can be kept"
        self._stop(model, reason)
        return f"{model}: {reason}"

    def _dropped_of(self, model: str) -> frozenset[str]:
        with self._lock:
            return self._dropped.get(model, frozenset())

    def _heed(self, last: Try) -> None:
        is_unreached = last.reply.failure == UNREACHABLE
        with self._lock:
            self._unreached = self._unreached + 1 if is_unreached else 0
            is_gone = self._unreached >= MOST_UNREACHED
            self._silent = self._silent + 1 if last.reply.failure == TIMEOUT else 0
            is_silent = self._silent >= MOST_SILENT
        if last.reply.stop:
            self._stop(last.model, last.reply.stop)
        for model in self._settings.models if is_gone else ():
            self._stop(model, "the service cannot be reached")
        for model in self._settings.models if is_silent else ():
            self._stop(
                model,
                f"the service gave no answer to {MOST_SILENT} proposals in a row within "
                f"{self._settings.timeout_s:g} s; --model-timeout sets how long it has",
            )

    def _heed_length(self, last: Try) -> None:
        """Stops a model that thinks longer than an answer may be, before it uses the budget up."""
        is_cut = first_choice(last.reply.body).get("finish_reason") == "length"
        is_short = is_cut and not read_body(last.reply.body).text
        with self._lock:
            count = self._cut_short.get(last.model, 0) + 1 if is_short else 0
            self._cut_short[last.model] = count
        if count >= MOST_CUT_SHORT:
            limit = f"{self._settings.max_tokens:,} tokens"
            self._stop(
                last.model,
                f"{count} answers in a row ended at their limit of {limit} before a program came; "
                f"{LONGER_ANSWERS}",
            )

    def _stop(self, model: str, reason: str) -> None:
        with self._lock:
            self._stopped.setdefault(model, reason)


def _body(ask: Ask, sent: Mapping[str, Any]) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": ask.prompt.system},
        {"role": "user", "content": ask.prompt.user},
    ]
    return {"model": ask.model, "messages": messages, **sent}


def _refused_parameters(made: Try) -> Sequence[str]:
    reply: Reply = made.reply
    if reply.code not in _BAD_REQUEST:
        return ()
    if reply.error_parameter in made.sent:
        return (reply.error_parameter,)
    text = reply.error_message or reply.text
    return [name for name in made.sent if re.search(rf"\b{name}\b", text)]
