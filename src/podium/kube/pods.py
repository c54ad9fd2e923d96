"""Keeps the pods of a cluster: by UID, by name, by node and by group."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import cast

from podium.kube.pod import GroupKey, LivePod
from podium.kube.surroundings import shares_claims
from podium.model.constraints import PodSelector

_Index = dict[Hashable, dict[str, LivePod]]


class PodTable:
    """Finds pods that wait and run; those that have finished are kept for their gangs alone."""

    def __init__(self) -> None:
        self.by_uid: dict[str, LivePod] = {}
        self._on: _Index = {}  # by node, also one that is not there
        self._members: _Index = {}  # by group
        self._pending: dict[str, LivePod] = {}
        self._sharers: _Index = {}  # of claims, by namespace
        self._liking: _Index = {}  # by whom they would rather be near or apart from

    def on(self, node: str) -> list[LivePod]:
        """Lists the pods that are bound to a node."""
        return list(self._on.get(node, {}).values())

    def pending(self) -> list[LivePod]:
        """Lists the pods that wait for a node."""
        return list(self._pending.values())

    def members(self, group: GroupKey) -> list[LivePod]:
        """Lists the pods that say they belong to a group."""
        return list(self._members.get(group, {}).values())

    def sharers(self, namespace: str) -> list[LivePod]:
        """Lists the pods of a namespace that name claims which others may name, too."""
        return list(self._sharers.get(namespace, {}).values())

    def is_company(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tells whether any pod would rather be near or apart from such a one."""
        selectors = cast("Iterable[PodSelector]", self._liking)
        return any(each.selects(namespace, labels) for each in selectors)

    def put(self, pod: LivePod) -> None:
        """Adds a pod that is not there."""
        self.by_uid[pod.uid] = pod
        if pod.is_pending:
            self._pending[pod.uid] = pod
        for table, key in self._places(pod):
            table.setdefault(key, {})[pod.uid] = pod

    def remove(self, pod: LivePod) -> None:
        """Takes a pod out."""
        del self.by_uid[pod.uid]
        self._pending.pop(pod.uid, None)
        for table, key in self._places(pod):
            kept = table.get(key, {})
            kept.pop(pod.uid, None)
            if not kept:
                table.pop(key, None)

    def _places(self, pod: LivePod) -> list[tuple[_Index, Hashable]]:
        places: list[tuple[_Index, Hashable]] = []
        facts = pod.draft.facts
        if pod.node and not pod.is_finished:
            places.append((self._on, pod.node))
        if pod.group is not None:
            places.append((self._members, pod.group))
        if facts.claims and shares_claims(facts):
            places.append((self._sharers, facts.namespace))
        places += [(self._liking, selector) for selector in pod.draft.company]
        return places
