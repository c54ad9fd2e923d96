"""Credits operators with what their candidates gained, so that breeding uses those that help.

Nothing is saved: reading the candidates of a run again, batch by batch, gives the same credits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from podium.search.population.member import BRED
from podium.store import CandidateRecord

LARGEST_GAIN = 1.0
"""Points of fitness that count for one candidate: who starts from little gains much."""

FADING = 0.98
"""How much of a credit is left a batch later: what helped early may not help late."""

PRIOR = 12.0
"""Trials without evidence either way that every operator begins with."""

LEAST, MOST = 0.25, 4.0
"""No operator is used less or more often than this many times its own share."""


@dataclass(slots=True)
class OperatorCredits:
    """Counts the trials of each operator, and their gains over the best parent that was used."""

    _trials: dict[str, float] = field(default_factory=dict)
    _gains: dict[str, float] = field(default_factory=dict)

    def end_batch(self, records: Iterable[CandidateRecord], fitness: Mapping[int, float]) -> None:
        """Adds a whole batch; `fitness` has that of every earlier candidate."""
        for counts in (self._trials, self._gains):
            for name in counts:
                counts[name] *= FADING
        for record in records:
            if record.kind != BRED or not record.operators:
                continue
            operator = record.operators[0]
            known = [fitness[each] for each in record.parents if each in fitness]
            gain = record.fitness - max(known) if known and record.fitness is not None else 0.0
            self._trials[operator] = self._trials.get(operator, 0.0) + 1.0
            credit = min(max(gain, 0.0), LARGEST_GAIN)
            self._gains[operator] = self._gains.get(operator, 0.0) + credit

    def weights(self) -> dict[str, float]:
        """Returns how much more often than by itself each operator should be used."""
        trials, gains = sum(self._trials.values()), sum(self._gains.values())
        if not gains:
            return {}
        usual = gains / trials
        found = {}
        for name, count in self._trials.items():
            mean = (self._gains[name] + PRIOR * usual) / (count + PRIOR)
            found[name] = min(MOST, max(LEAST, mean / usual))
        return found
