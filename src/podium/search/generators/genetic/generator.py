"""Breeds candidates for a search: needs no key, no network, and a millisecond each."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from podium.errors import PolicyError
from podium.search.generators.generator import Cost, Proposal, Request
from podium.search.generators.genetic.breeding import (
    DRAWN,
    BreedingSettings,
    Offspring,
    breed,
    random_program,
)
from podium.search.program.program import Program
from podium.search.program.reader import parse
from podium.search.program.writer import write

FROM_NOTHING = 0.0
"""The share of candidates that have no parents: with 1 breeding is mere drawing.

Where there are parents, what is drawn from nothing was never better than they.
"""

STAGNANT = 0.1
"""The same on an island that has stagnated: fresh blood."""


MOST_READ = 512
"""How many parents are remembered once they are read: they are asked for again and again."""


class GeneticGenerator:
    """Mutates and crosses programs; keeps no state."""

    can_repair = False

    def __init__(
        self,
        settings: BreedingSettings | None = None,
        name: str = "genetic",
        fresh: float = FROM_NOTHING,
    ) -> None:
        self.name = name
        self._settings = settings or BreedingSettings()
        self._fresh = fresh

    def propose(self, request: Request) -> Proposal:
        """Breeds one candidate from parents, or draws one."""
        began = time.perf_counter()
        rng = np.random.default_rng(request.seed)
        fresh = max(self._fresh, STAGNANT) if request.is_stagnant else self._fresh
        read = [(each.number, found) for each in request.parents if (found := _program(each.text))]
        if not read or rng.random() < fresh:
            offspring = Offspring(random_program(rng, self._settings), DRAWN)
        else:
            parents = [program for _, program in read]
            offspring = breed(rng, parents, self._settings, request.operator_weights)
        return Proposal(
            write(offspring.program),
            self.name,
            operators=offspring.operators,
            cost=Cost(seconds=time.perf_counter() - began),
            operator=offspring.operator,
            parents=tuple(read[index][0] for index in offspring.parents),
        )

    def learn(self, source: str, gain: float | None, cost: Cost) -> None:
        """Ignores results: who asks says how often operators are used."""

    def state(self) -> Mapping[str, Any]:
        """Returns an empty state: breeding keeps none."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Ignores the saved state: breeding keeps none."""

    def close(self) -> None:
        """Does nothing: breeding opens no resources."""


@functools.lru_cache(maxsize=MOST_READ)
def _program(text: str) -> Program | None:
    """Reads a parent; what a language model wrote may be beyond breeding."""
    try:
        return parse(text)
    except PolicyError:
        return None
