"""Says what a policy knew of the pods to come, and who won among equal scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

DEMANDS = {
    "trace": "all pods of the trace, known in advance",
    "seen": "the pods seen so far",
    "warm": "the pods seen so far, after a day of such pods",
}
TIES = {"profile": "broken as kube-scheduler with the chart's profile does"}


def knowledge(found: Mapping[str, Any]) -> dict[str, object]:
    """Says it of one run, as far as its summary does."""
    told: dict[str, object] = {}
    if "demand" in found:
        told["demand"] = DEMANDS[found["demand"]]
    return told | ({"ties": TIES[found["ties"]]} if "ties" in found else {})


def knowledge_notes(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Says it of runs that are compared, where it is not what published experiments do."""
    demands = {each["demand"] for each in runs if each.get("demand", "trace") != "trace"}
    ties = {each["ties"] for each in runs if "ties" in each}
    return [
        *(f"note: tables are prepared from {DEMANDS[each]}" for each in sorted(demands)),
        *(f"note: ties are {TIES[each]}" for each in sorted(ties)),
    ]
