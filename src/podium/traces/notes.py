"""Words the notes on a trace: counts, lists of names, and pods without times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from podium.model.workload import PodSpec

NO_DURATIONS = "durations are not used"
TRUNCATED = "the file may be truncated"
CENSORED = "nobody saw the end of the run: its time is estimated from pods like it"

GATED, SUSPENDED = "gated", "suspended"
WAITING = (GATED, SUSPENDED)
"""What may be tried though it waits; Kueue lets pods and jobs wait so until it admits them."""

KNOWN_EXITS = ("completed", "failed", "deleted")
"""Exits that tell how long a pod ran; after the others it might have run on."""


def is_censored(pod: PodSpec) -> bool:
    """Tells whether nobody knows how long the recorded run of a pod would have been."""
    return bool(pod.exit) and pod.exit not in KNOWN_EXITS


def exit_notes(pods: Sequence[PodSpec]) -> Iterator[str]:
    """Counts the pods whose run times are estimates."""
    count = sum(map(is_censored, pods))
    if count:
        yield f"{CENSORED}: {counted(count, 'pod')}"


def time_notes(pods: Sequence[PodSpec]) -> Iterator[str]:
    """Names times that only some pods have, and which are therefore not used."""
    for what, count in (
        ("arrival", sum(pod.arrival_s is None for pod in pods)),
        ("duration", sum(pod.duration_s is None for pod in pods)),
    ):
        if 0 < count < len(pods):
            yield f"{what}s are not used: {count} of {len(pods)} pods have none"


def counted(count: int, noun: str) -> str:
    """Words a count with its noun.

    >>> counted(1, "pod"), counted(2, "pod")
    ('1 pod', '2 pods')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def told_jobs(kinds: Mapping[str, int], pods: int) -> str:
    """Words a count of jobs with that of their pods.

    >>> told_jobs({"Job": 1}, 2), told_jobs({"Job": 1, "RayJob": 2}, 9)
    ('1 Job of 2 pods', '3 jobs of 9 pods')
    """
    noun = next(iter(kinds)) if len(kinds) == 1 else "job"
    return f"{counted(sum(kinds.values()), noun)} of {counted(pods, 'pod')}"


def untried(left_out: Mapping[str, int], suspended: Mapping[str, int]) -> tuple[str, ...]:
    """Words what waits for something else than a node, and so is not tried.

    >>> untried({"gated": 1, "suspended": 2}, {"Job": 1})
    ('1 is gated', '1 Job of 2 pods is suspended')
    """
    gated, pods = (left_out.get(each, 0) for each in WAITING)
    told = [f"{gated:,} {'is' if gated == 1 else 'are'} gated"] if gated else []
    if pods:
        verb = "is" if sum(suspended.values()) == 1 else "are"
        told.append(f"{told_jobs(suspended, pods)} {verb} suspended")
    return tuple(told)


def some(names: Sequence[str], most: int = 5) -> str:
    """Names the first few.

    >>> some(["a", "b", "c"], 2)
    'a, b, ...'
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
