"""Says which pods lack the times that a replay needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.model.workload import PodSpec


def time_notes(pods: Sequence[PodSpec]) -> Iterator[str]:
    """Names times that only some pods have, and which are therefore not used."""
    for what, count in (
        ("arrival", sum(pod.arrival_s is None for pod in pods)),
        ("duration", sum(pod.duration_s is None for pod in pods)),
    ):
        if 0 < count < len(pods):
            yield f"{what}s are not used: {count} of {len(pods)} pods have none"
