"""Opens the generator that settings describe."""

from __future__ import annotations

from pathlib import Path

from podium.errors import UsageError
from podium.search.generators.llm.bandit import Bandit
from podium.search.generators.llm.budget import Budget, Price
from podium.search.generators.llm.cassette import Player, Recorder
from podium.search.generators.llm.client import Client, Pace
from podium.search.generators.llm.generator import LlmGenerator
from podium.search.generators.llm.http import SdkTransport
from podium.search.generators.llm.prompt import PromptWriter
from podium.search.generators.llm.settings import LlmSettings
from podium.search.generators.llm.source import Asking, Live, Recording, Replaying


def open_llm(
    settings: LlmSettings, pace: Pace | None = None, writer: PromptWriter | None = None
) -> LlmGenerator:
    """Opens a generator that asks models, or one that plays a cassette back.

    Raises:
        MissingExtra: the `openai` package is needed and not installed.
        UsageError: a budget in dollars cannot be kept, because a price is not known.
        InputError: the cassette cannot be read.
    """
    if settings.mode == "replay":
        return _replaying(settings, writer)
    transport = SdkTransport(settings.endpoint)
    bandit, budget = Bandit(settings.models), Budget(settings.caps)
    prices = known_prices(settings, transport)
    recorder = Recorder(_cassette(settings)) if settings.mode == "record" else None
    client = Client(settings, transport, budget, prices, pace or Pace())
    asking: Asking = Live(settings, client, bandit)
    closing = [transport.close]
    if recorder is not None:
        asking = Recording(settings, asking, recorder)
        closing.append(recorder.close)
    generator = LlmGenerator(settings, bandit, budget, asking, client, writer)
    generator.closing += closing
    return generator


def _replaying(settings: LlmSettings, writer: PromptWriter | None) -> LlmGenerator:
    budget = Budget(settings.caps)
    asking = Replaying(settings, Player(_cassette(settings)), budget)
    return LlmGenerator(settings, Bandit(settings.models), budget, asking, writer=writer)


def _cassette(settings: LlmSettings) -> Path:
    assert settings.cassette is not None  # settings refuse to be without
    return settings.cassette


def known_prices(settings: LlmSettings, transport: SdkTransport) -> dict[str, Price]:
    """Completes the user's prices by the service's list, where a budget in dollars needs them."""
    prices = dict(settings.prices)
    missing = [model for model in settings.models if model not in prices]
    if settings.usd is None or not missing:
        return prices
    prices = transport.prices(settings.timeout_s) | prices
    missing = [model for model in settings.models if model not in prices]
    if missing:
        transport.close()
        raise UsageError(
            f"a budget in US dollars needs the price of {', '.join(missing)}",
            where=settings.endpoint.label,
            hint=f"add --price {missing[0]}=IN,OUT in US dollars per million tokens, or give a "
            "budget in tokens alone",
        )
    return prices
