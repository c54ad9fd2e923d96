"""The generator `llm`: candidates from any service that speaks the chat protocol of OpenAI."""

from podium.search.llm.endpoint import KEY_VARIABLES, Endpoint, Secret, find_endpoint
from podium.search.llm.generator import LlmGenerator
from podium.search.llm.opening import open_llm
from podium.search.llm.pace import Pace
from podium.search.llm.prices import Price, read_prices
from podium.search.llm.settings import MODES, LlmSettings, Mode

__all__ = [
    "KEY_VARIABLES", "MODES", "Endpoint", "LlmGenerator", "LlmSettings", "Mode", "Pace", "Price",
    "Secret", "find_endpoint", "open_llm", "read_prices",
]  # fmt: skip
