"""The interface of generators, which write candidates: breeding, language models, any command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

UNANSWERED = "the service gave no answer"
"""How the problem of a proposal begins that somebody was asked for in vain."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """An earlier candidate that a new one is made from."""

    number: int  # of the candidate in its run
    text: str
    fitness: float
    thought: str = ""
    diagnostics: str = ""  # what happened to pods under it, in words, line by line


@dataclass(frozen=True, slots=True)
class Failure:
    """A candidate that a gate refused, for one attempt at repair."""

    text: str
    gate: str
    reason: str


@dataclass(frozen=True, slots=True)
class Request:
    """What a new candidate is made from."""

    seed: tuple[int, ...]  # of the generator's own random numbers
    parents: tuple[Exemplar, ...] = ()  # the main parent first; none: start from nothing
    failure: Failure | None = None  # set: repair this
    is_stagnant: bool = False  # the island has found nothing better for long
    fitness: str = ""  # the formula in words
    notes: str = ""  # what the run has learned so far, line by line
    best: str = ""  # where GPUs are lost under the best so far, line by line
    # How much more often than by itself a generator should use each operator; others: 1.
    operator_weights: Mapping[str, float] = field(default_factory=dict)
    # The generator's state when this was planned: it may have learned more by the time it writes.
    learned: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a proposal cost; None means unknown, not free."""

    seconds: float = 0.0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A text that a generator wrote, or the reason why there is none."""

    text: str
    source: str  # the generator, and which of its parts: "genetic", "llm:some/model"
    thought: str = ""
    prompt: str = ""
    problem: str = ""  # why there is no text: the service failed, or answered something else
    operators: tuple[str, ...] = ()
    cost: Cost = field(default_factory=Cost)
    operator: str = ""  # of those, the one whose merit the result is
    parents: tuple[int, ...] | None = None  # numbers of those that it is made from; None: all


@dataclass(frozen=True, slots=True)
class Spent:
    """Why a generator proposes nothing more: its budget is used up, or it cannot continue."""

    reason: str
    where: str = ""  # set: nobody can be asked any more, at this address


class Generator(Protocol):
    """Writes candidates. Threads may share one."""

    name: str
    can_repair: bool  # whether a failure is worth sending back

    def propose(self, request: Request) -> Proposal | Spent:
        """Writes one candidate; failures of a service are proposals with a problem."""
        ...

    def learn(self, source: str, gain: float | None, cost: Cost) -> None:
        """Learns how much better than its best parent a proposal was; None means it was refused."""
        ...

    def state(self) -> Mapping[str, Any]:
        """Returns the state that a resumed run needs to continue identically, as JSON types."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the state of an earlier session."""
        ...

    def close(self) -> None:
        """Closes connections and files."""
        ...
