"""Measures what the figures of the documentation show, with commands that anyone can run.

    python tools/figure_data.py demo
    python tools/figure_data.py packing
    python tools/figure_data.py learning
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

from podium.reports.learning_plot import courses_of

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
LOADS = range(60, 131)
DEMO = "podium demo"
PACKING = (
    "podium compare mlp usable-gpu fgd keep-room kube-default best-fit kube-packing "
    "--protocol inflation --seeds 1000-1009 --json"
)
LEARNING = "podium learn --neighbours 0 --seeds 2000-2019 --json"
REPRODUCTION = "podium reproduce fgd --json"
FIGURES_KEPT = ("alloc_100", "alloc_130", "frag_130")
SIDES = ("ours", "published")


def main(name: str) -> None:
    """Runs the command of one figure and keeps what is drawn of its output."""
    command, keep = FIGURES[name]
    printed = run(command)
    kept = {"command": command, **keep(json.loads(printed) if "--json" in command else printed)}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(compact(kept), encoding="utf-8")


def run(command: str) -> str:
    """Gives what a command prints."""
    podium = str(Path(sys.executable).with_name("podium"))
    words = [podium, *shlex.split(command)[1:]]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def demo(printed: str) -> dict[str, Any]:
    """Keeps the two tables that set policies side by side."""
    parts = printed.split("\n\n")
    heads = [place for place, part in enumerate(parts) if part.startswith(("Packing", "Queueing"))]
    return {"lines": "\n\n".join(parts[i] for head in heads for i in (head, head + 1)).split("\n")}


def packing(printed: Any) -> dict[str, Any]:
    """Keeps GPU allocation at each whole percent of arrived load, by policy and seed."""
    curves: dict[str, dict[str, list[float]]] = {}
    for found in printed["runs"]:
        curve = [round(found["allocation_at"][str(load)], 6) for load in LOADS]
        curves.setdefault(found["policy"], {})[str(found["seed"])] = curve
    return {"gpus": printed["runs"][0]["gpus"], "loads": list(LOADS), "allocation": curves}


def learning(printed: Any) -> dict[str, Any]:
    """Keeps regret over time by way and seed, and the figures that sum it up."""
    names = ("mean_regret", "late_regret", "time_excess", "exploration", "forced")
    ways = {
        way: {name: round(figures[name], 6) for name in names}
        for way, figures in printed["ways"].items()
    }
    return {"jobs": printed["jobs"], "ways": ways, "course": courses_of(printed)}


def reproduction(printed: Any) -> dict[str, Any]:
    """Keeps the means over the seeds, ours and published, and the largest difference."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for row in printed:
        groups.setdefault((row["trace"], row["policy"]), []).append(row)
    columns = [f"{name} {side}" for name in FIGURES_KEPT for side in SIDES]
    rows = [
        [*key, *(_mean(group, side, name) for name in FIGURES_KEPT for side in SIDES),
         round(max(row["difference"] for row in group), 6)]
        for key, group in groups.items()
    ]  # fmt: skip
    return {"columns": ["trace", "policy", *columns, "largest difference"], "rows": rows}


def compact(value: dict[str, Any]) -> str:
    """Writes one line for each innermost list."""
    text = json.dumps(value, indent=1)
    return re.sub(r"\[[^][]*\]", lambda found: json.dumps(json.loads(found[0])), text) + "\n"


def _mean(group: list[Any], side: str, name: str) -> float:
    return round(sum(float(row[side][name]) for row in group) / len(group), 6)


FIGURES: dict[str, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    "demo": (DEMO, demo),
    "packing": (PACKING, packing),
    "learning": (LEARNING, learning),
    "reproduction": (REPRODUCTION, reproduction),
}


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in FIGURES:
        sys.exit(f"usage: python tools/figure_data.py {' | '.join(FIGURES)}")
    main(sys.argv[1])
