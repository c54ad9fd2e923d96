"""Describes how a candidate did, case by case, beside fgd: for whoever writes the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from podium.evaluation.measures import Values
from podium.evaluation.waste import BROKEN, IDLE, LOSSES, STRANDED, Losses, is_detail
from podium.sim.metrics import POD_CLASSES

FIGURE_WORDS = {
    "allocation_130": "allocated at 130 %",
    "allocation_100": "allocated at 100 %",
    "allocation_arriving": "allocated while pods arrive",
    "fragmentation_arriving": "fragmented while pods arrive",
    "queue_busy": "queue busy",
    "fragmentation": "fragmented",
    "wait_mean_s": "mean wait",
    "wait_p95_s": "95th percentile of waits",
    "funsearch_score": "score of FunSearch x 100",
    "funsearch_score_without_retries": "the same without retries",
    "funsearch_fragmentation": "fragmented at failed attempts",
    "funsearch_waited": "pods that waited",
    "funsearch_wait_mean_s": "mean wait",
}
LOSS_WORDS = {STRANDED: "stranded without CPU", BROKEN: "broken", IDLE: "idle"}
CLASS_WORDS = {
    "cpu-only": "CPU-only", "share": "share", "1-gpu": "1 GPU", "2-gpu": "2 GPUs",
    "4-gpu": "4 GPUs", "8-gpu": "8 GPUs", "other": "other",
}  # fmt: skip

LEGEND = """\
Figures are percent of all GPUs, or of the pods of a class; in brackets, the difference from the \
policy fgd. "Lost" is where free GPUs are at the end: broken are parts of GPUs in use, too small \
for the usual pod with a part of a GPU; stranded are larger ones on nodes without the CPU or \
memory that the usual GPU pod needs; idle is what usual pods could still take. "Placed" is the \
share of each class of pods that found a node."""
"""Explains the words to somebody who has never seen them."""


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """What was measured on one case: its figures, and what was lost and placed."""

    figures: Values
    losses: Losses = field(default_factory=dict)


def diagnose(
    names: Sequence[str], own: Sequence[CaseFigures], baseline: Sequence[CaseFigures]
) -> str:
    """Describes what is worst overall, then lists every case with its difference from fgd."""
    lines = [
        f"{name}: {_case(mine, theirs)}"
        for name, mine, theirs in zip(names, own, baseline, strict=True)
    ]
    overall = _overall(
        _mean([each.losses for each in own]), _mean([each.losses for each in baseline])
    )
    return "\n".join([*overall, *lines])


def _overall(own: Losses, baseline: Losses) -> list[str]:
    told = []
    lost = [key for key in LOSSES if key in own and key in baseline]
    if lost:
        most = max(lost, key=lambda key: own[key])
        told.append(f"most is lost as {_part(LOSS_WORDS[most], own[most], baseline[most])}")
    placed = [key for key in POD_CLASSES if key in own and key in baseline]
    if placed:
        worst = min(placed, key=lambda key: own[key] - baseline[key])
        share = _part(f"those of class {CLASS_WORDS[worst]},", own[worst], baseline[worst])
        told.append(f"beside fgd, the worst placed pods are {share}")
    return [f"Overall: {'; '.join(told)}"] if told else []


def _case(own: CaseFigures, baseline: CaseFigures) -> str:
    losses = set(own.losses) & set(baseline.losses)
    told = {
        "": [
            _figure(key, value, baseline.figures[key])
            for key, value in own.figures.items()
            if key in baseline.figures
            and not is_detail(key)
            and not (key == "cpu_only_placed" and losses)
        ],
        "lost: ": _parts(LOSS_WORDS, own.losses, baseline.losses),
        "placed: ": _parts(CLASS_WORDS, own.losses, baseline.losses),
    }
    return "; ".join(title + ", ".join(parts) for title, parts in told.items() if parts)


def _parts(words: Mapping[str, str], own: Losses, baseline: Losses) -> list[str]:
    keys = [key for key in words if key in own and key in baseline]
    return [_part(words[key], own[key], baseline[key]) for key in keys]


def _figure(key: str, value: float, baseline: float) -> str:
    words = FIGURE_WORDS.get(key, key.replace("_", " "))
    if key.endswith("_s"):
        return f"{words} {value:.0f} s ({value - baseline:+.0f})"
    return f"{words} {value:.2f} % ({value - baseline:+.2f})"


def _part(words: str, value: float, baseline: float) -> str:
    return f"{words} {value:.1f} % ({value - baseline:+.1f})"


def _mean(rows: Sequence[Losses]) -> Losses:
    keys = dict.fromkeys(key for row in rows for key in row)
    found = {key: [row[key] for row in rows if key in row] for key in keys}
    return {key: sum(values) / len(values) for key, values in found.items()}
