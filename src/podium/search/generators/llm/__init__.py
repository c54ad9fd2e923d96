"""The generator `llm`: candidates from any service that speaks the chat protocol of OpenAI."""

from podium.search.generators.llm.budget import Price, read_prices
from podium.search.generators.llm.client import Pace
from podium.search.generators.llm.endpoint import KEY_VARIABLES, Endpoint, Secret, find_endpoint
from podium.search.generators.llm.generator import LlmGenerator
from podium.search.generators.llm.settings import MODES, LlmSettings, Mode
from podium.search.generators.llm.setup import open_llm

__all__ = [
    "KEY_VARIABLES", "MODES", "Endpoint", "LlmGenerator", "LlmSettings", "Mode", "Pace", "Price",
    "Secret", "find_endpoint", "open_llm", "read_prices",
]  # fmt: skip
