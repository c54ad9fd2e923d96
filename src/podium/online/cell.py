"""What was seen of one job type: sums over its runs, by GPU type and kind of run.

Runs are of one kind if they give the same features, if all or none of them had neighbours, and if
their times have the same magnitude. Kinds are summed apart, as a kind may turn out to deserve less
weight: sums alone could not tell its runs from the others any more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.online.drift import Run, Watch

Vector = NDArray[np.float64]
Features = tuple[float | None, ...]

FADED_WEIGHT = 0.02
"""Runs that all are worth which were seen before a GPU type changed."""

MAGNITUDE = 1.5
"""Width of a magnitude, of log run time."""

MOST_NEIGHBOURS = 64
"""Job types beside a job type that have a column of their own; the others share one."""

OTHERS = ""
"""Name of the neighbours that share a column; no job type has it."""

OFTENER = 2.0
"""How much more often one of the others was met than one with a column that it takes over."""

MOST_OTHERS = 1000
"""Names of others that are remembered."""


class Kind(NamedTuple):
    """What the runs of some sums have in common."""

    given: int  # features, as bits
    is_beside: bool
    magnitude: int


@dataclass(slots=True)
class Sums:
    """Sums up rows (log run time, features, neighbours): sufficient for the model, and mergeable.

    Means and centred scatter are updated as Welford and Chan do, which loses no digits however many
    rows there are.
    """

    observations: int
    weight: float  # equals the observations unless they are forgotten
    mean: Vector
    scatter: NDArray[np.float64]

    @classmethod
    def empty(cls, size: int) -> Sums:
        """Returns sums of nothing."""
        return cls(0, 0.0, np.zeros(size), np.zeros((size, size)))

    def add(self, row: Vector) -> None:
        """Adds one row."""
        self.observations += 1
        self.weight += 1.0
        before = row - self.mean
        self.mean += before / self.weight
        self.scatter += (before * ((self.weight - 1.0) / self.weight))[:, None] * before

    def add_plain(self, log_runtime: float) -> None:
        """Adds a row of nothing but a run time to such rows; arrays would take far longer."""
        self.observations += 1
        self.weight += 1.0
        mean: float = self.mean.item(0)
        before = log_runtime - mean
        self.mean[0] = mean + before / self.weight
        squares: float = self.scatter.item(0)
        self.scatter[0, 0] = squares + before * ((self.weight - 1.0) / self.weight) * before

    def fade(self, share: float) -> None:
        """Reduces the weight of what was seen."""
        self.weight *= share
        self.scatter *= share

    def merge(self, other: Sums) -> None:
        """Adds all rows of others."""
        total = self.weight + other.weight
        if total > 0.0:
            apart = other.mean - self.mean
            self.mean = self.mean + apart * (other.weight / total)
            self.scatter = (
                self.scatter
                + other.scatter
                + np.outer(apart, apart) * (self.weight * other.weight / total)
            )
        self.weight = total
        self.observations += other.observations

    def times(self, share: float) -> Sums:
        """Returns the same sums with another weight."""
        if share == 1.0:
            return self
        return Sums(self.observations, self.weight * share, self.mean, self.scatter * share)

    def moved(self, place: Sequence[int], size: int) -> Sums:
        """Returns the same sums with their columns at other places; those at one place add up."""
        made = Sums.empty(size)
        made.observations, made.weight = self.observations, self.weight
        np.add.at(made.mean, place, self.mean)
        np.add.at(made.scatter, np.ix_(place, place), self.scatter)
        return made

    def widened(self, size: int) -> Sums:
        """Returns the same sums with more columns, which are zero."""
        own = len(self.mean)
        made = Sums(self.observations, self.weight, np.zeros(size), np.zeros((size, size)))
        made.mean[:own] = self.mean
        made.scatter[:own, :own] = self.scatter
        return made

    def among(self, place: Sequence[int]) -> Sums:
        """Returns the same sums over some of the columns."""
        inner = self.scatter[np.ix_(place, place)]
        return Sums(self.observations, self.weight, self.mean[place], inner)

    def as_object(self) -> list[Any]:
        """Returns the sums as JSON types; numbers read back exactly."""
        return [self.observations, self.weight, self.mean.tolist(), self.scatter.tolist()]

    @classmethod
    def from_object(cls, data: Sequence[Any]) -> Sums:
        """Reads sums back."""
        observations, weight, mean, scatter = data
        size = len(mean)
        inner = np.array(scatter, dtype=np.float64).reshape(size, size)
        return cls(int(observations), float(weight), np.array(mean, dtype=np.float64), inner)


@dataclass(slots=True)
class Cell:
    """The runs of one job type on one GPU type, alone and beside others."""

    alone: dict[Kind, Sums] = field(default_factory=dict)
    beside: dict[Kind, Sums] = field(default_factory=dict)
    observations: int = 0
    version: int = 0  # changes with every change

    def kinds(self) -> Iterator[tuple[Kind, Sums]]:
        """Lists the sums, those of runs alone first."""
        yield from self.alone.items()
        yield from self.beside.items()

    def sums(self, kind: Kind, size: int) -> Sums:
        """Returns the sums of a kind, which are empty at first."""
        part = self.beside if kind.is_beside else self.alone
        if kind not in part:
            part[kind] = Sums.empty(size)
        return part[kind]


@dataclass(slots=True)
class JobRuns:
    """The runs of one job type, by the number of the GPU type."""

    features: int
    neighbours: list[str] = field(default_factory=list)  # in the order of their names
    others: dict[str, float] = field(default_factory=dict)  # that share a column; how often met
    cells: dict[int, Cell] = field(default_factory=dict)
    watches: dict[tuple[int, bool], Watch] = field(default_factory=dict)

    def add(self, gpu: int, run: Run, kind: Kind | None = None) -> None:
        """Adds one run; its kind is found out where it is not told."""
        log_runtime, features, beside = run
        kind = kind or kind_of(log_runtime, features, is_beside=bool(beside))
        self.meet(beside)
        cell = self.cells.get(gpu)
        if cell is None:
            cell = self.cells[gpu] = Cell()
        if kind.given or beside:
            row = self.row(run)
            cell.sums(kind, len(row)).add(row)
        else:
            cell.sums(kind, 1 + len(features)).add_plain(log_runtime)
        cell.observations += 1
        cell.version += 1

    def row(self, run: Run) -> Vector:
        """Returns the row of a run whose neighbours were met."""
        log_runtime, features, beside = run
        row = [log_runtime, *(value or 0.0 for value in features)]
        if beside:
            counts = Counter(self.columns_of(beside))
            row += [counts.get(name, 0) for name in self.neighbours]
        return np.array(row, dtype=np.float64)

    def watch(self, gpu: int, run: Run, score: float) -> Watch:
        """Notes by how many standard deviations a run is longer than expected."""
        key = gpu, bool(run[2])
        found = self.watches.get(key)
        if found is None:
            found = self.watches[key] = Watch()
        found.see(run, score)
        return found

    def suspicion(self, gpu: int) -> Watch | None:
        """Returns the watch that suspects a change on a GPU type most, if any does."""
        both = (self.watches.get((gpu, False)), self.watches.get((gpu, True)))
        found = [each for each in both if each is not None and each.is_suspect]
        return max(found, key=lambda each: max(each.longer, each.shorter), default=None)

    def begin_anew(self, gpu: int, *, is_longer: bool) -> None:
        """Forgets what a GPU type was like; runs since it may have changed are all there is.

        Where there are none, what was seen loses nearly all of its weight.
        """
        both = [self.watches.pop((gpu, at), Watch()) for at in (False, True)]
        since = [run for each in both for run in each.since(is_longer=is_longer)]
        if not since:
            self._fade(self.cells[gpu])
            return
        self.cells[gpu] = Cell(version=self.cells[gpu].version)
        for run in since:
            self.add(gpu, run)

    def _fade(self, cell: Cell) -> None:
        weight = sum(each.weight for _, each in cell.kinds())
        for _, sums in cell.kinds():
            sums.fade(min(FADED_WEIGHT / max(weight, FADED_WEIGHT), 1.0))
        cell.version += 1

    def put(self, gpu: int, kind: Kind, sums: Sums, neighbours: Sequence[str]) -> None:
        """Adds sums whose last columns are of these neighbours."""
        self.meet(neighbours if kind.is_beside else ())
        moved = sums
        if kind.is_beside:
            moved = self._moved(sums, self.columns_of(neighbours))
        cell = self.cells.setdefault(gpu, Cell())
        cell.sums(kind, len(moved.mean)).merge(moved)
        cell.observations += sums.observations
        cell.version += 1

    def fade(self, share: float) -> None:
        """Reduces the weight of what was seen."""
        for cell in self.cells.values():
            cell.version += 1
            for _, sums in cell.kinds():
                sums.fade(share)

    def meet(self, names: Sequence[str]) -> None:
        """Makes room for neighbours, in the order of names: it must not matter who came first.

        Where there is no room for all, those that are met most often have columns of their own.
        """
        if not names or not (new := {*names}.difference(self.neighbours)):
            return
        known = sorted({*self.neighbours, *new})
        if len(known) - (OTHERS in known) > MOST_NEIGHBOURS:
            known = self._kept(sorted(new - {OTHERS}))
        self._arrange(known)

    def know_others(self, others: Mapping[str, float]) -> None:
        """Notes who is among the others of the same job type elsewhere."""
        for name, count in others.items():
            if name not in self.neighbours and len(self.others) < MOST_OTHERS:
                self.others[name] = max(count, self.others.get(name, 0.0))

    def columns_of(self, names: Sequence[str]) -> list[str]:
        """Returns under which names neighbours that were met are counted."""
        if len(self.neighbours) <= MOST_NEIGHBOURS and not self.others:
            return list(names)
        known = {*self.neighbours}
        is_full = len(self.others) >= MOST_OTHERS
        return [
            OTHERS if name not in known and (is_full or name in self.others) else name
            for name in names
        ]

    def _kept(self, new: Sequence[str]) -> list[str]:
        """Decides who has a column, and counts the others."""
        own = [name for name in self.neighbours if name != OTHERS]
        room = max(MOST_NEIGHBOURS - len(own), 0)
        own += [name for name in new if name not in self.others][:room]
        for name in new:
            if name not in own and (name in self.others or len(self.others) < MOST_OTHERS):
                self.others[name] = self.others.get(name, 0.0) + 1.0
        often = max(new, key=lambda name: self.others.get(name, 0.0))
        met = self._meetings()
        rare = min(own, key=lambda name: met.get(name, 0.0))
        if self.others.get(often, 0.0) > OFTENER * met.get(rare, 0.0):
            del self.others[often]
            self.others[rare] = met.get(rare, 0.0)
            own[own.index(rare)] = often
        return sorted({OTHERS, *own})

    def _meetings(self) -> dict[str, float]:
        """Counts the runs beside each neighbour with a column of its own."""
        total = np.zeros(len(self.neighbours))
        for cell in self.cells.values():
            for sums in cell.beside.values():
                total += sums.weight * sums.mean[1 + self.features :]
        return dict(zip(self.neighbours, total.tolist(), strict=True))

    def _arrange(self, known: list[str]) -> None:
        """Gives these neighbours columns; those without add theirs to that of the others."""
        if known == self.neighbours:
            return
        before, self.neighbours = self.neighbours, known
        names = [name if name in known else OTHERS for name in before]
        for cell in self.cells.values():
            cell.beside = {kind: self._moved(each, names) for kind, each in cell.beside.items()}
            cell.version += 1

    def _moved(self, sums: Sums, names: Sequence[str]) -> Sums:
        """Returns sums whose last columns are of these neighbours with the columns as they are."""
        own = 1 + self.features
        place = [*range(own), *(own + self.neighbours.index(name) for name in names)]
        return sums.moved(place, own + len(self.neighbours))

    def met(self, gpu: int, name: str) -> bool:
        """Tests whether a run on a GPU type had this neighbour, or may have had it."""
        if name not in self.neighbours and self.columns_of((name,)) == [OTHERS]:
            name = OTHERS
        if gpu not in self.cells or name not in self.neighbours:
            return False
        place = 1 + self.features + self.neighbours.index(name)
        return any(each.mean[place] > 0.0 for each in self.cells[gpu].beside.values())

    def met_any(self, gpu: int, names: frozenset[str]) -> bool:
        """Tests the same of any of these names, which may be thousands."""
        if len(self.others) < MOST_OTHERS:  # otherwise a name that is forgotten may be any
            names = names.intersection((*self.neighbours, *self.others))
        return any(self.met(gpu, name) for name in names)

    def parts(self, gpu: int, *, is_beside: bool) -> Iterator[tuple[Kind, Sums, list[str]]]:
        """Lists the sums on a GPU type with their neighbours, of those that were met there."""
        cell, own = self.cells[gpu], 1 + self.features
        part = cell.beside if is_beside else cell.alone
        met = [name for name in self.neighbours if self.met(gpu, name)] if is_beside else []
        place = [*range(own), *(own + self.neighbours.index(name) for name in met)]
        for kind, sums in part.items():
            yield kind, sums.among(place), met

    def as_object(self) -> dict[str, Any]:
        """Returns the runs as JSON types, by the number of the GPU type."""
        cells = {
            str(gpu): [[*kind, *sums.as_object()] for kind, sums in cell.kinds()]
            for gpu, cell in self.cells.items()
        }
        watches = [[gpu, int(at), *each.as_object()] for (gpu, at), each in self.watches.items()]
        found = {"neighbours": list(self.neighbours), "cells": cells, "watches": watches}
        return {**found, "others": dict(self.others)} if self.others else found

    @classmethod
    def from_object(cls, features: int, data: Mapping[str, Any]) -> JobRuns:
        """Reads runs back."""
        made = cls(features, list(data["neighbours"]))
        made.others = {name: float(count) for name, count in data.get("others", {}).items()}
        for gpu, at, *watch in data["watches"]:
            made.watches[int(gpu), bool(at)] = Watch.from_object(watch)
        for gpu, rows in data["cells"].items():
            cell = made.cells[int(gpu)] = Cell()
            for given, is_beside, magnitude, *sums in rows:
                kind = Kind(int(given), bool(is_beside), int(magnitude))
                part = cell.beside if kind.is_beside else cell.alone
                part[kind] = Sums.from_object(sums)
                cell.observations += part[kind].observations
        return made


def kind_of(log_runtime: float, features: Features, *, is_beside: bool) -> Kind:
    """Tells the kind of a run."""
    given = 0
    for place, value in enumerate(features):
        if value is not None:
            given |= 1 << place
    return Kind(given, is_beside, math.floor(log_runtime / MAGNITUDE))
