"""Says in words how a candidate did, case by case, beside fgd: for whoever writes the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_WORDS = {
    "allocation_130": "GPUs allocated when 130 % were asked for",
    "allocation_100": "GPUs allocated when 100 % were asked for",
    "allocation_arriving": "GPUs allocated while pods arrive",
    "fragmentation_arriving": "GPUs free but of no use to typical pods while pods arrive",
    "queue_busy": "time with pods in the queue",
    "cpu_only_placed": "CPU-only pods placed",
    "fragmentation": "GPUs free but of no use to typical pods",
    "wait_mean_s": "mean waiting",
    "wait_p95_s": "waiting of the slowest twentieth",
}


def diagnose(
    names: Sequence[str], cases: Sequence[Mapping[str, float]],
    baseline: Sequence[Mapping[str, float]],
) -> str:  # fmt: skip
    """Lists every case with its figures and how far they are from those of fgd."""
    lines = []
    for name, own, usual in zip(names, cases, baseline, strict=True):
        parts = [_part(key, own[key], usual[key]) for key in own if key in usual]
        lines.append(f"{name}: {'; '.join(parts)}")
    return "\n".join(lines)


def _part(key: str, value: float, usual: float) -> str:
    unit = " s" if key.endswith("_s") else " %"
    words = _WORDS.get(key, key.replace("_", " "))
    return f"{words} {value:.2f}{unit} ({value - usual:+.2f} against fgd)"
