"""Measures the panel of `podium.search.judging.panel` at full size, on the original traces.

    python tools/measure_panel.py FOLDER [TARGET]

FOLDER holds the original OpenB files. The programs are those of the embedded panel; their figures
are means over the orders of the panel's seeds. The same files give the same bytes. It takes two
minutes of one core.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from podium.evaluation.cases import Case
from podium.search.judging.panel import FIGURES, ORIGINALS, SEEDS, Panel, Program, measure

TARGET = Path(__file__).parent.parent / "src/podium/search/judging/data/panel.json"


def main(folder: Path, target: Path = TARGET) -> None:
    """Writes the panel with its figures, beside the code that reads it unless told otherwise."""
    parts = json.loads(TARGET.read_text("utf-8"))
    programs = [
        Program(each["name"], "\n".join(each["text"]) + "\n", {}) for each in parts["programs"]
    ]
    rows: list[dict[str, list[float]]] = [{} for _ in programs]
    usual: dict[str, list[float]] = {}
    for trace in ORIGINALS.values():
        cases = [Case(trace, seed=seed, folder=str(folder.absolute())) for seed in SEEDS]
        found = measure(Panel(tuple(programs), {}), cases)
        for row, outcomes in zip(rows, found, strict=True):
            row[trace] = means([each.values for each in outcomes])
        usual[trace] = means([each.baseline for each in found[0]])
        sys.stderr.write(f"{trace}\n")
    told = {
        "source": "figures at full size by tools/measure_panel.py, means over the seeds "
        + ", ".join(map(str, SEEDS)),
        "figures": list(FIGURES),
        "fgd": usual,
        "programs": [
            {"name": each["name"], "figures": row, "text": each["text"]}
            for each, row in zip(parts["programs"], rows, strict=True)
        ],
    }
    target.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def means(rows: list[Any]) -> list[float]:
    """Averages figures over seeds."""
    return [round(float(np.mean([row[name] for row in rows])), 3) for name in FIGURES]


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python tools/measure_panel.py FOLDER [TARGET]")
    main(*map(Path, sys.argv[1:]))
