"""Finds nodes by the JSON of their names, without making text of every name.

kube-scheduler names the same nodes in every call, in another order each time. What is not a plain
list of known names is left to the JSON reader.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import msgspec
import numba
import numpy as np
import numpy.typing as npt

from podium.policies.jit import keep_on_disk, marked, stamp_of
from podium.service.extender.wire import host

Whole = npt.NDArray[np.int64]

_QUOTE, _COMMA, _BEGIN, _END = b'",[]'


class NamesAt(Sequence[str]):
    """Names nodes by the indices of their records."""

    __slots__ = ("_names", "at")

    def __init__(self, names: Sequence[str], at: Whole) -> None:
        self._names = names
        self.at = at

    def __len__(self) -> int:
        return len(self.at)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> NamesAt: ...
    def __getitem__(self, place: int | slice) -> str | NamesAt:
        if isinstance(place, slice):
            return NamesAt(self._names, self.at[place])
        name: str = self._names[self.at[place]]
        return name

    def __iter__(self) -> Iterator[str]:
        return map(self._names.__getitem__, self.at.tolist())


class NodeNames:
    """Keeps what follows from the names of all nodes, until nodes come or go."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.rank = np.zeros(0, np.int64)  # their places by name: the order that breaks ties
        self.hosts: list[bytes] = []  # as answers name them
        self._is_indexed = False
        self._known = np.zeros(0, np.uint8)  # their JSON
        self._begins = np.zeros(0, np.int64)  # where each begins there
        self._slots = np.zeros(0, np.int64)  # a hash table of their indices

    def see(self, names: list[str]) -> NodeNames:
        """Looks whether they are still the same."""
        if names != self.names:
            self.names = list(names)
            self.rank = np.argsort(np.argsort(np.array(names)))
            self.hosts = [host(name) for name in names]
            self._is_indexed = False
        return self

    def _index(self) -> None:
        text = msgspec.json.encode(self.names)
        self._is_indexed = True
        self._known = np.frombuffer(text, np.uint8)
        self._begins = np.zeros(len(self.names), np.int64)
        self._slots = np.full(1 << (4 * len(self.names)).bit_length(), -1)
        if b"\\" in text:  # an escape: no node is called so
            return
        _walk()(self._known, self._known, self._begins, self._slots, self._begins.copy(), True)

    def find(self, text: bytes) -> NamesAt | None:
        """Finds the nodes of a JSON list; None where it takes a JSON reader to find them."""
        if not self._is_indexed:
            self._index()
        found = np.empty(len(self.names), np.int64)
        raw = np.frombuffer(text, np.uint8)
        count = _walk()(raw, self._known, self._begins, self._slots, found, False)
        return NamesAt(self.names, found[:count]) if count > 0 else None


@functools.cache
def _walk() -> Any:
    """Compiles what walks over names; it is kept on disk."""
    stamp = stamp_of([Path(__file__).read_text(encoding="utf-8")])
    made = numba.njit(nogil=True)(marked(_walk_names, stamp[:24]))
    keep_on_disk(made, _walk_names, stamp)
    return made


def _walk_names(  # noqa: C901 - compiled as one loop
    raw: Any, known: Any, begins: Any, slots: Any, found: Any, is_new: bool
) -> int:  # fmt: skip
    """Looks up each name of a JSON list, or adds it; counts them, -1: something is unusual."""
    mask, end, place, count = len(slots) - 1, len(raw), 0, 0
    if end == 0 or raw[0] != _BEGIN:
        return -1
    while raw[place] != _END:
        begin = place + 2
        if begin >= end or raw[place + 1] != _QUOTE or count == len(found):
            return -1
        place, hashed = begin, np.uint64(0)
        while place < end and raw[place] != _QUOTE:
            hashed = (hashed << np.uint64(5) | hashed >> np.uint64(59)) ^ np.uint64(raw[place])
            place += 1
        size = place - begin
        slot = np.int64(hashed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)) & mask
        if is_new and size > 0:  # a gap has no name
            while slots[slot] >= 0:
                slot = (slot + 1) & mask
            slots[slot] = count
            begins[count] = begin
        while not is_new:
            at = slots[slot]
            if at < 0:
                return -1
            same = 0
            while same < size and known[begins[at] + same] == raw[begin + same]:
                same += 1
            if same == size and known[begins[at] + size] == _QUOTE:
                found[count] = at
                break
            slot = (slot + 1) & mask
        count += 1
        place += 1
        if place >= end or (raw[place] != _COMMA and raw[place] != _END):
            return -1
    return count if place == end - 1 else -1
