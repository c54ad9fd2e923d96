"""Gets answers to a request: from a model, from a model while recording, or from a recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from podium.search.generators.generator import Request
from podium.search.generators.llm.bandit import Bandit
from podium.search.generators.llm.budget import USED_UP, Budget
from podium.search.generators.llm.cassette import Player, Question, Recorder
from podium.search.generators.llm.client import Ask, Client
from podium.search.generators.llm.exchange import Exchange
from podium.search.generators.llm.prompt import Prompt
from podium.search.generators.llm.settings import LlmSettings
from podium.settings import Secrets

_STREAM = 11  # of a request's random numbers: choosing models, spacing tries
_TEMPERATURE = 12

Asking = Callable[[Request, Prompt], Exchange]
"""Gets the answer to a request."""


class Live:
    """Chooses a model for a request and asks it."""

    def __init__(self, settings: LlmSettings, client: Client, bandit: Bandit) -> None:
        self._models, self._temperatures = settings.models, settings.temperatures
        self._client, self._bandit = client, bandit

    def __call__(self, request: Request, prompt: Prompt) -> Exchange:
        """Asks the chosen model, or another one if the budget does not suffice for it."""
        rng = np.random.default_rng([*request.seed, _STREAM])
        seed = int(rng.integers(2**31))
        temperature = draw_temperature(request, self._temperatures)
        refusals = self._client.stopped
        while left := [model for model in self._models if model not in refusals]:
            # The strongest is kept for when the others get nowhere.
            known = request.learned.get("bandit")
            model = left[-1] if request.is_stagnant else self._bandit.choose(left, rng, known)
            tries, refusal = self._client.try_often(Ask(model, prompt, seed, temperature), rng)
            if tries:
                return Exchange(tuple(tries), note=refusal)
            refusals = {**self._client.stopped, **refusals, model: refusal}
        return Exchange(
            spent=_told(refusals), is_stopped=refusals.keys() <= self._client.stopped.keys()
        )


class Recording:
    """Asks live, and records every exchange."""

    def __init__(self, settings: LlmSettings, asking: Asking, recorder: Recorder) -> None:
        self._settings, self._asking, self._recorder = settings, asking, recorder

    def __call__(self, request: Request, prompt: Prompt) -> Exchange:
        """Asks the live source and records the exchange."""
        exchange = self._asking(request, prompt)
        self._recorder.add(question_of(self._settings, request, prompt), exchange)
        return exchange


class Replaying:
    """Answers from a cassette, and counts what it cost when it was recorded."""

    def __init__(self, settings: LlmSettings, player: Player, budget: Budget) -> None:
        self._settings, self._player, self._budget = settings, player, budget

    def __call__(self, request: Request, prompt: Prompt) -> Exchange:
        """Looks up the request on the cassette."""
        exchange = self._player.find(question_of(self._settings, request, prompt))
        for made in exchange.tries:
            self._budget.count(made.charge)
        return exchange


def draw_temperature(request: Request, among: Sequence[float]) -> float | None:
    """Draws a temperature by the request's seed; None where the service is to choose."""
    if len(among) < 2:
        return among[0] if among else None
    drawn = np.random.default_rng([*request.seed, _TEMPERATURE]).integers(len(among))
    return among[int(drawn)]


def question_of(settings: LlmSettings, request: Request, prompt: Prompt) -> Question:
    """Returns everything that an answer depends on."""
    temperature = settings.temperature
    return {
        "models": list(settings.models),
        "temperature": list(temperature) if isinstance(temperature, tuple) else temperature,
        "max_tokens": settings.max_tokens, "system": prompt.system, "user": prompt.user,
        "is_stagnant": request.is_stagnant, "seed": list(request.seed),
        "reasoning_effort": settings.reasoning_effort,
        "parameters": Secrets().hide_all(settings.parameters),
    }  # fmt: skip


def _told(refusals: Mapping[str, str]) -> str:
    reasons = list(refusals.values())
    if len(set(reasons)) == 1:
        return reasons[0]
    if all(reason.startswith(USED_UP) for reason in reasons):
        return min(reasons)  # the same sums for each; what the cheapest call may take says most
    return "; ".join(f"{model}: {reason}" for model, reason in refusals.items())
