"""Asks language models to write candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podium.search.generators.generator import Cost, Proposal, Request, Spent
from podium.search.generators.llm.answer import read_body
from podium.search.generators.llm.bandit import Bandit
from podium.search.generators.llm.budget import Budget, Charge
from podium.search.generators.llm.client import Client
from podium.search.generators.llm.exchange import Exchange, Try
from podium.search.generators.llm.prompt import Prompt, PromptWriter
from podium.search.generators.llm.settings import LlmSettings
from podium.search.generators.llm.source import Asking


class LlmGenerator:
    """Asks models for candidates, within a budget; threads may share one."""

    name = "llm"
    can_repair = True

    def __init__(
        self, settings: LlmSettings, bandit: Bandit, budget: Budget, asking: Asking,
        client: Client | None = None, writer: PromptWriter | None = None,
    ) -> None:  # fmt: skip
        self.settings = settings
        self._writer = writer or PromptWriter()
        self.closing: list[Callable[[], None]] = []
        self._bandit, self._budget, self._asking, self._client = bandit, budget, asking, client

    def propose(self, request: Request) -> Proposal | Spent:
        """Asks for one candidate.

        Raises:
            InputError: a replay is asked for something that was never recorded.
        """
        prompt = self._writer.write(request)
        exchange = self._asking(request, prompt)
        if not exchange.spent:
            return conclude(exchange, prompt)
        return Spent(exchange.spent, self.settings.place if exchange.is_stopped else "")

    def learn(self, source: str, gain: float | None, cost: Cost) -> None:
        """Learns how a model's candidate did, for the choice of models."""
        model = source.removeprefix(f"{self.name}:")
        self._bandit.learn(model, gain, cost.tokens_in + cost.tokens_out, cost.usd)

    @property
    def spent(self) -> Charge:
        """Sums up what the run has cost, failed calls included."""
        return self._budget.spent

    @property
    def stopped(self) -> dict[str, str]:
        """Maps models that are not asked any more to the reason."""
        return self._client.stopped if self._client else {}

    def state(self) -> Mapping[str, Any]:
        """Returns what is spent, how models did, and which parameters they refuse."""
        dropped = self._client.dropped if self._client else {}
        return {
            "spent": self._budget.state(), "bandit": self._bandit.state(), "dropped": dropped
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the state of an earlier session; models that were stopped are asked again."""
        self._budget.restore(state.get("spent", {}))
        self._bandit.restore(state.get("bandit", {}))
        if self._client is not None:
            for model, names in state.get("dropped", {}).items():
                self._client.drop(model, names)

    def close(self) -> None:
        """Closes connections and the cassette."""
        while self.closing:
            self.closing.pop()()


def conclude(exchange: Exchange, prompt: Prompt) -> Proposal:
    """Turns the exchange into a proposal: a program, or the reason why there is none."""
    last = exchange.tries[-1]
    source, operators = f"{LlmGenerator.name}:{last.model}", (prompt.operator,)
    cost = cost_of(exchange.tries)
    problem = last.reply.problem
    if not problem:
        answer = read_body(last.reply.body)
        return Proposal(
            answer.text, source, answer.thought, prompt.text, answer.problem, operators, cost
        )
    count = len(exchange.tries)
    tried = f" (after {count} tries)" if count > 1 else ""
    ended = f"; not tried again: {exchange.note}" if exchange.note else ""
    return Proposal("", source, "", prompt.text, problem + tried + ended, operators, cost)


def cost_of(tries: tuple[Try, ...]) -> Cost:
    """Adds up what tries cost; unknown if one is."""
    known = [made.charge.usd for made in tries if made.charge.usd is not None]
    return Cost(
        seconds=sum(made.seconds for made in tries),
        calls=len(tries),
        tokens_in=sum(made.charge.tokens_in for made in tries),
        tokens_out=sum(made.charge.tokens_out for made in tries),
        usd=sum(known) if len(known) == len(tries) else None,
    )
