"""Keeps one population apart from the others, with a place for every kind of behaviour.

Cells are quantiles of what the members themselves do, so none is empty by construction and none
holds everybody; fitness is not one of the axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from podium.evaluation.measures import Values
from podium.search.judging.race import Bar, Rivals, cell_of
from podium.search.population.member import Key, Member

BINS = 3
"""Quantiles of each axis of behaviour, and of complexity."""

USUAL, LAST = 0.5, 0.9
"""Where the rivals of candidates stand among the members, from the best (0) to the last (1)."""


@dataclass(slots=True)
class Island:
    """Members, the children each has had, and how long nothing better was found."""

    index: int
    capacity: int
    emphasis: tuple[float, ...] = ()  # weights of the training cases; none: all alike
    family: str = ""  # the cases that are emphasised, in a word
    members: list[Member] = field(default_factory=list)
    children: dict[int, int] = field(default_factory=dict)
    stale: int = 0  # samples since the best improved
    respawns: int = 0
    first_counted: int = 0  # the first training case that counts for who was run on all

    @property
    def best(self) -> Member | None:
        """Returns the fittest member by the island's own emphasis."""
        return max(self.members, key=self.key, default=None)

    def key(self, member: Member) -> Key:
        """Orders members as this island does."""
        return member.key(self.emphasis)

    def take(self, member: Member, pinned: Member | None = None) -> bool:
        """Adds a member; of two that decide alike the better stays. Returns whether it leads now.

        Pinned members stay too: the best of all islands may not be the best by this one's emphasis.
        """
        best = self.best
        twins = [each for each in self.members if each.signature == member.signature]
        better = [each for each in twins if self.key(each) >= self.key(member)]
        if better and (member != pinned or member in better):
            return False
        for twin in twins:
            if twin != pinned and twin not in better:
                self.members.remove(twin)
        self.members.append(member)
        return best is None or self.key(member)[:2] > self.key(best)[:2]

    def count_child(self, parents: Iterable[int]) -> None:
        """Remembers that members have had one more child."""
        for number in parents:
            self.children[number] = self.children.get(number, 0) + 1

    def cull(self, pinned: Member | None = None) -> None:
        """Keeps pinned members, the best of every cell, then the fittest, up to the capacity."""
        ranked = sorted(self.members, key=self.key, reverse=True)
        if len(ranked) <= self.capacity:
            self.members = ranked
            return
        elites: dict[tuple[int, ...], Member] = {}
        for member, cell in zip(ranked, cells(ranked), strict=True):
            elites.setdefault(cell, member)
        spared = [each for each in ranked if each == pinned]
        wanted = dict.fromkeys(each.number for each in (*spared, *elites.values()))
        first = set(list(wanted)[: self.capacity])
        rest = [each for each in ranked if each.number not in first]
        first |= {each.number for each in rest[: self.capacity - len(first)]}
        self.members = [each for each in ranked if each.number in first]

    def found_anew(self, founders: Iterable[Member]) -> None:
        """Drops all members and starts again from the given ones."""
        self.members = list(founders)
        self.children = {}
        self.stale = 0
        self.respawns += 1

    def rivals(self, bars: tuple[Bar, ...] = ()) -> Rivals:
        """Returns what candidates of this island race against from now on."""
        ranked = sorted(self.members, key=self.key, reverse=True)
        if not ranked:
            return Rivals(bars=bars)
        usual, last = (int(part * (len(ranked) - 1)) for part in (USUAL, LAST))
        elites: dict[tuple[int, ...], tuple[Values, ...]] = {}
        for rank, (member, cell) in enumerate(zip(ranked, cells(ranked), strict=True)):
            elites.setdefault(cell, member.cases if rank > usual else ())
        return Rivals(
            ranked[usual].cases, ranked[last].cases, edges_of(ranked), tuple(elites.items()), bars
        )


def cells(members: Sequence[Member]) -> list[tuple[int, ...]]:
    """Returns the cell of each member: its quantile on every axis among all of them."""
    edges = edges_of(members)
    return [cell_of(_axes(member), edges) for member in members]


def edges_of(members: Sequence[Member]) -> tuple[tuple[float, ...], ...]:
    """Returns the values between the quantiles of the members, axis by axis."""
    axes = zip(*(_axes(member) for member in members), strict=True)
    return tuple(_edges(sorted(axis)) for axis in axes)


def _axes(member: Member) -> tuple[float, ...]:
    return (float(member.complexity), *member.behaviour)


def _edges(ordered: list[float]) -> tuple[float, ...]:
    return tuple(ordered[len(ordered) * i // BINS] for i in range(1, BINS))
