"""Measures what the figures of the documentation show, with commands that anyone can run.

    python tools/figure_data.py packing
    python tools/figure_data.py reproduction      (needs the original OpenB files)

Each writes `docs/figures/NAME.json`, which `tools/draw_figures.py` draws.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
LOADS = range(60, 131)
PACKING = (
    "podium compare fgd first-fit kube-default best-fit gpu-packing random worst-fit "
    "--protocol inflation --seeds 1000-1009 --json"
)
REPRODUCTION = "podium reproduce fgd --json"


def main(name: str) -> None:
    """Runs the command of one figure and keeps what is drawn of its output."""
    command, keep = FIGURES[name]
    kept = {"command": command, **keep(run(command))}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(compact(kept), encoding="utf-8")


def run(command: str) -> Any:
    """Gives the JSON that a command prints."""
    podium = str(Path(sys.executable).with_name("podium"))
    words = [podium, *shlex.split(command)[1:]]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def packing(printed: Any) -> dict[str, Any]:
    """Keeps GPU allocation at each whole percent of arrived load, by policy and seed."""
    curves: dict[str, dict[str, list[float]]] = {}
    for found in printed["runs"]:
        curve = [round(found["allocation_at"][str(load)], 6) for load in LOADS]
        curves.setdefault(found["policy"], {})[str(found["seed"])] = curve
    return {"gpus": printed["runs"][0]["gpus"], "loads": list(LOADS), "allocation": curves}


def reproduction(printed: Any) -> dict[str, Any]:
    """Keeps GPU allocation at 130 %, ours and published, averaged over the seeds."""
    pairs: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in printed:
        pair = (row["ours"]["alloc_130"], row["published"]["alloc_130"])
        pairs.setdefault(row["policy"], {}).setdefault(row["trace"], []).append(pair)
    means = {
        policy: {trace: [_mean(side) for side in zip(*found, strict=True)]
                 for trace, found in by_trace.items()}
        for policy, by_trace in pairs.items()
    }  # fmt: skip
    return {"columns": ["ours", "published"], "allocation_at_130": means}


def compact(value: dict[str, Any]) -> str:
    """Writes one line for each innermost list."""
    text = json.dumps(value, indent=1)
    return re.sub(r"\[[^][]*\]", lambda found: json.dumps(json.loads(found[0])), text) + "\n"


def _mean(values: tuple[float, ...]) -> float:
    return round(sum(values) / len(values), 4)


FIGURES: dict[str, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    "packing": (PACKING, packing),
    "reproduction": (REPRODUCTION, reproduction),
}


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in FIGURES:
        sys.exit(f"usage: python tools/figure_data.py {' | '.join(FIGURES)}")
    main(sys.argv[1])
