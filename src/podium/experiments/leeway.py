"""Refuses to learn where policies cannot differ: no pod is placed, or all do the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from podium.errors import UndecidedError

if TYPE_CHECKING:
    from podium.evaluation.cases import Case
    from podium.sim import Result

TRIED = ("fgd", "first-fit", "worst-fit")
"""Policies that differ from each other as much as any do."""


def require_leeway(cases: Sequence[Case]) -> None:
    """Refuses cases on which policies that differ much do the same.

    Raises:
        UndecidedError: it names the cause, and what would change it.
    """
    from podium.evaluation.measures import measure_case
    from podium.reports.idle import alike_note, refused_words
    from podium.reports.summary import summarise

    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in TRIED}
    measured: dict[str, list[Any]] = {name: [] for name in TRIED}
    refused = Counter[str]()
    for name, result in _results(cases):
        runs[name].append(summarise(result))
        measured[name].append(measure_case(result))
        refused.update(refused_words(result))
    told = alike_note(runs, "gpu_allocation", refused, "")
    is_nothing = not any(run["placed"] for each in runs.values() for run in each)
    if told and (is_nothing or all(each == measured[TRIED[0]] for each in measured.values())):
        reason, way_out = told.split("\n")
        where = ", ".join(dict.fromkeys(case.title for case in cases))
        raise UndecidedError(f"nothing can be learnt: {reason}", where=where, hint=way_out)


def _results(cases: Sequence[Case]) -> Iterator[tuple[str, Result]]:
    from podium.evaluation.cases import planned
    from podium.policies import load
    from podium.sim.execution import execute

    for name in TRIED:
        for plan in planned(cases, load(name)):
            yield name, execute(replace(plan, tier="scan"))
