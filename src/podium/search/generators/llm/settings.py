"""Settings of how a run asks language models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from podium.errors import UsageError
from podium.search.generators.llm.budget import Caps, Price
from podium.search.generators.llm.endpoint import Endpoint, Secret
from podium.settings.secret import Secrets, secrets_within

Mode = Literal["live", "record", "replay"]
MODES: tuple[Mode, ...] = ("live", "record", "replay")


OWN_PARAMETERS_SET_BY = {
    "model": "name models with --model", "messages": "write prompts with --prompts",
    "temperature": "set it with --temperature", "max_tokens": "set it with --max-tokens",
    "max_completion_tokens": "set it with --max-tokens", "seed": "set the seed of the run",
    "reasoning_effort": "set it with --reasoning-effort", "n": "one answer is read of each call",
}  # fmt: skip
"""Parameters that Podium itself sends, and how they are chosen."""

OWN_PARAMETERS = frozenset(OWN_PARAMETERS_SET_BY)


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """Which models are asked, where, how, and with what budget."""

    models: tuple[str, ...]  # the cheapest first; the last is asked when a search stagnates
    base_url: str = field(default="", repr=False)
    key: Secret = field(default_factory=Secret, repr=False)
    usd: float | None = None
    tokens: int | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    temperature: float | tuple[float, ...] | None = 1.0  # of several, one is drawn for each call
    max_tokens: int = 4096  # of one answer, what a model thinks to itself included
    timeout_s: float = 120.0
    reasoning_effort: str = ""  # as the service calls it; empty: not sent
    concurrency: int = 8  # calls in flight
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)  # sent as they are
    tries: int = 4  # of one proposal
    cassette: Path | None = None
    mode: Mode = "live"

    def __post_init__(self) -> None:
        _check(bool(self.models), "no model is named", "name at least one")
        _check(len(set(self.models)) == len(self.models), "a model is named twice", "name it once")
        _check(self.mode in MODES, f'"{self.mode}" is not a mode', f"known: {', '.join(MODES)}")
        _check(
            self.mode == "live" or self.cassette is not None,
            f"{self.mode} needs a cassette", "name a file",
        )  # fmt: skip
        _check(
            self.mode == "replay" or bool(self.base_url),
            "no service is named", "give the address of a service",
        )  # fmt: skip
        _check(
            0 < self.timeout_s < math.inf,
            f"timeout_s must be positive, got {self.timeout_s}",
            "give seconds",
        )
        for key in ("max_tokens", "tries", "concurrency"):
            value = getattr(self, key)
            _check(value >= 1, f"{key} is {value}", "give a positive number")
        for value in self.temperatures:
            _check(0 <= value <= 2, f"temperature is {value:g}", "give numbers from 0 to 2")
        for key in OWN_PARAMETERS & self.parameters.keys():
            _check(False, f'the parameter "{key}" cannot be passed on', OWN_PARAMETERS_SET_BY[key])
        has_cap = self.usd is not None or self.tokens is not None
        _check(
            has_cap or self.mode == "replay",
            "no budget is set for language models", "give one in US dollars or in tokens",
        )  # fmt: skip

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Lists the temperatures that calls are drawn from; none: the service chooses."""
        if self.temperature is None:
            return ()
        several = isinstance(self.temperature, tuple)
        return self.temperature if several else (self.temperature,)  # type: ignore[return-value]

    @property
    def caps(self) -> Caps:
        """Returns the spending limits."""
        return Caps(self.usd, self.tokens)

    @property
    def endpoint(self) -> Endpoint:
        """Finds the service and its key."""
        return Endpoint(self.base_url, self.key, tuple(secrets_within(self.parameters)))

    @property
    def place(self) -> str:
        """Names where answers come from."""
        return str(self.cassette) if self.mode == "replay" else self.endpoint.label

    def as_object(self) -> dict[str, Any]:
        """Describes what shapes answers and spending; keys are no part of it."""
        return {
            "models": list(self.models), "usd": self.usd, "tokens": self.tokens,
            "temperature": self.temperature, "max_tokens": self.max_tokens,
            "timeout_s": self.timeout_s, "tries": self.tries, "mode": self.mode,
            "reasoning_effort": self.reasoning_effort, "concurrency": self.concurrency,
            "parameters": Secrets().hide_all(self.parameters),
        }  # fmt: skip


def _check(is_good: bool, message: str, hint: str) -> None:
    if not is_good:
        raise UsageError(message, hint=hint)
