"""Remembers how recent pods were scored, and explains it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from podium.policies import HOLD
from podium.reports.explanation import Candidate, Explanation
from podium.service.extender.gangs import GangDomain
from podium.service.extender.names import NamesAt
from podium.service.extender.prioritizer import Decision, record_on, shown_in_order
from podium.service.extender.shortage import SHORTAGES, shortages

FILTERED = "refused by another filter of kube-scheduler"
REFUSED = "refused by the policy"
NO_ROOM = "no room on any node that was asked about"
UNKNOWN = "not known to Podium yet"
MOST_BYTES = 128 << 20
"""Bytes of all that is remembered: of a cluster of 5,000 nodes the full number of pods."""

MOST_UNKNOWN = 10
"""Nodes that Podium does not know yet and that are remembered; callers may name any."""

_LONGEST_NAME = 253
SHOWN = 10
"""Nodes that an explanation lists."""


@dataclass(slots=True)
class Entry:
    """Is what is remembered of one pod."""

    decision: Decision
    scored_s: float  # since 1970
    names: Sequence[str]  # of all nodes, as their records stand; "" is a gap
    calls: int = 1  # how often it was scored
    bound_to: str = ""
    shadow: dict[str, str] = field(default_factory=dict)  # best node by policy
    gang: GangDomain | None = None  # where the pod's gang should stand together

    def as_object(self) -> Mapping[str, Any]:
        """Explains the decision as JSON types."""
        decision, best = self.decision, self.decision.best_node
        points = dict(zip(decision.node_names, decision.points.tolist(), strict=True))
        told = explained(self)
        shown = [each.node for each in told.candidates]
        return {
            **told.as_object(),
            "namespace": decision.pod.namespace,
            "uid": decision.pod.uid,
            "scored_at": datetime.fromtimestamp(self.scored_s, UTC).isoformat(),
            "calls": self.calls,
            "best": best,
            "tied": decision.tied,
            "runner_up": next((each for each in shown if points[each] and each != best), ""),
            "points": {name: points[name] for name in (*shown, self.bound_to) if name in points},
            "bound_to": self.bound_to,
            "shadow": dict(self.shadow),
            **self._more(shown),
        }

    def _more(self, shown: Sequence[str]) -> dict[str, Any]:
        """Gives what only some decisions have."""
        found = {
            "without_points": _without_points(self.decision),
            "terms": _terms(self.decision, shown),
            "gang": None if self.gang is None else asdict(self.gang),
        }
        return {name: value for name, value in found.items() if value}


class History:
    """Keeps the latest decision about each of the recent pods."""

    def __init__(self, most: int, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._entries: OrderedDict[tuple[str, str], Entry] = OrderedDict()
        self._names: dict[str, tuple[str, str]] = {}  # by UID

    def add(
        self, decision: Decision, scored_s: float, names: Sequence[str],
        gang: GangDomain | None = None,
    ) -> Entry:  # fmt: skip
        """Adds a decision in place of the last one about the same pod."""
        decision = _compact(decision, names)
        name = (decision.pod.namespace, decision.pod.name)
        known = self._entries.pop(name, None)
        if known is not None:
            self._forget(known)
        is_same = known is not None and known.decision.pod.uid == decision.pod.uid
        calls = known.calls + 1 if known is not None and is_same else 1
        entry = self._entries[name] = Entry(decision, scored_s, names, calls, gang=gang)
        self._names[decision.pod.uid] = name
        self._bytes += _weight(decision)
        while len(self._entries) > self._most or self._is_heavy():
            self._forget(self._entries.popitem(last=False)[1])
        return entry

    def _is_heavy(self) -> bool:
        return self._bytes > self._most_bytes and len(self._entries) > 1

    def _forget(self, entry: Entry) -> None:
        self._names.pop(entry.decision.pod.uid, None)
        self._bytes -= _weight(entry.decision)

    def get(self, namespace: str, name: str) -> Entry | None:
        """Finds a pod by its name."""
        return self._entries.get((namespace, name))

    def of(self, uid: str) -> Entry | None:
        """Finds a pod by its UID."""
        name = self._names.get(uid)
        return None if name is None else self._entries[name]


def _compact(decision: Decision, names: Sequence[str]) -> Decision:
    """Keeps each node once under the name that is there anyway, and few that nobody knows."""
    at, given = decision.at, decision.node_names
    if len(at) and at.min() >= 0 and np.bincount(at).max() == 1:  # as kube-scheduler asks
        return replace(decision, node_names=NamesAt(names, at))
    first = np.unique(at, return_index=True)[1]
    unknown = np.flatnonzero(at < 0)[:MOST_UNKNOWN]
    kept = np.union1d(first[at[first] >= 0], unknown)
    places = kept.tolist()
    best = places.index(decision.best) if decision.best in places else -1
    return replace(
        decision,
        node_names=[
            names[number] if number >= 0 else given[place][:_LONGEST_NAME]
            for place, number in zip(places, at[kept].tolist(), strict=True)
        ],
        at=at[kept],
        scores=decision.scores[kept],
        points=decision.points[kept],
        best=best,
    )


def _weight(decision: Decision) -> int:
    """Estimates the bytes that a decision takes."""
    is_stranger = not decision.request.uid
    asked = len(repr(decision.request.spec)) if is_stranger else 0
    return decision.nodes.nbytes + 32 * len(decision.at) + asked


def explained(entry: Entry) -> Explanation:
    """Explains a decision as one of a simulation is explained."""
    decision = entry.decision
    record = decision.request.record
    is_other = np.arange(len(decision.points)) != decision.best
    order = np.lexsort((np.array([*decision.node_names]), is_other, -decision.points))[:SHOWN]
    chosen = entry.bound_to or decision.best_node
    return Explanation(
        pod=decision.pod.name,
        policy=decision.policy,
        request={
            key: int(record[key]) for key in ("cpu_milli", "memory_mib", "gpu_count", "gpu_milli")
        },
        node=entry.bound_to,
        reason=_reason(decision),
        gpu_slots=decision.slots,
        feasible=len(decision.node_names),
        reasons=_reasons(entry),
        candidates=tuple(_candidate(decision, int(place), chosen) for place in order),
    )


def summary(entry: Entry) -> str:
    """Explains a decision in one sentence."""
    decision = entry.decision
    offered = len(decision.node_names)
    among = f"of {offered:,} feasible node{'' if offered == 1 else 's'}"
    if decision.best < 0:
        said = f"{decision.policy} preferred none {among}: {_reason(decision)}"
    else:
        said = f"{decision.policy} preferred {_preferred(decision)} {among}"
        points = np.where(decision.points == decision.points.max(), 0, decision.points)
        if points.any():
            said += f"; next {_pointed(decision, int(points.argmax()))}"
    if not entry.bound_to:
        return said
    place = (
        decision.node_names.index(entry.bound_to) if entry.bound_to in decision.node_names else -1
    )
    if place >= 0 and decision.best >= 0 and decision.points[place] == decision.points.max():
        where = "there" if decision.tied == 1 else f"to {entry.bound_to}, one of them"
        return f"{said}; bound {where}"
    if place < 0:
        return f"{said}; bound to {entry.bound_to}, which was not asked about"
    return f"{said}; bound to {_pointed(decision, place)}"


def _preferred(decision: Decision) -> str:
    """Names the node that is preferred, or counts those that tie."""
    if decision.tied == 1:
        return _pointed(decision, decision.best)
    return f"{decision.tied:,} nodes alike ({decision.points[decision.best]:,} points)"


def _pointed(decision: Decision, place: int) -> str:
    return f"{decision.node_names[place]} ({decision.points[place]:,} points)"


def _reason(decision: Decision) -> str:
    """Says why no node has points; nothing where one does."""
    if decision.best >= 0:
        return ""
    lacking = shortages(decision.request, decision.nodes)[decision.at[decision.at >= 0]]
    return REFUSED if (lacking == 0).any() else NO_ROOM


def _candidate(decision: Decision, place: int, chosen: str) -> Candidate:
    at = int(decision.at[place])
    score = float(decision.scores[place])
    node = decision.nodes[at] if at >= 0 else np.zeros((), decision.nodes.dtype)
    return Candidate(
        node=decision.node_names[place],
        score=None if score == HOLD else score,
        is_chosen=decision.node_names[place] == chosen,
        cpu_milli_left=int(node["cpu_milli_left"]),
        memory_mib_left=int(node["memory_mib_left"]),
        gpu_milli_left=tuple(node["gpu_milli_left"][: node["gpu_count"]].tolist()),
    )


def _reasons(entry: Entry) -> dict[str, int]:
    """Counts the nodes that kube-scheduler did not ask about, by the first thing they lack."""
    decision = entry.decision
    lacking = shortages(decision.request, decision.nodes)
    is_other = np.array([bool(name) for name in entry.names])
    is_other[decision.at[decision.at >= 0]] = False
    counts = Counter(SHORTAGES[number] or FILTERED for number in lacking[is_other].tolist())
    return dict(counts.most_common())


def _without_points(decision: Decision) -> dict[str, int]:
    """Counts the nodes that were asked about and have no points, by what is against them."""
    places = np.flatnonzero(decision.points == 0)
    at = decision.at[places]
    lacking = shortages(decision.request, decision.nodes)[at[at >= 0]]
    counts = Counter(SHORTAGES[number] or REFUSED for number in lacking.tolist())
    counts[UNKNOWN] = int((at < 0).sum())
    return {reason: number for reason, number in counts.most_common() if number}


def _terms(decision: Decision, shown: Sequence[str]) -> dict[str, dict[str, float]]:
    """Takes the scores of some nodes apart, where the policy is a sum of named terms."""
    at = dict(zip(decision.node_names, decision.at.tolist(), strict=True))
    nodes = shown_in_order(decision.nodes, decision.at, decision.rank)
    found: dict[str, dict[str, float]] = {}
    for name in shown:
        if at[name] >= 0:
            record = record_on(decision.request, decision.nodes[at[name]])
            terms = decision.terms(record, nodes, int(decision.rank[at[name]]))
            found |= {name: terms} if terms else {}
    return found
