"""Explains why a pod of a simulated run went where it went."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from podium.errors import UndecidedError, UnknownName
from podium.experiments.listener import SILENT, Listener, Notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.experiments.case import Inputs
    from podium.model import Workload
    from podium.policies import Policy
    from podium.reports.explanation import Explanation
    from podium.settings import Settings
    from podium.traces.trace import Trace

_TIMELESS = "not all pods have times, so nobody leaves: they are offered one after the other"


def explain(
    settings: Settings, inputs: Inputs, policy: Policy, pod: str, listener: Listener = SILENT
) -> Explanation:
    """Simulates the case and explains how one pod was decided."""
    from podium.evaluation.demand import known
    from podium.experiments.case import case_of, load_traces
    from podium.experiments.simulate import run_case
    from podium.reports.explanation import explain as explain_pod

    traces = load_traces(settings, inputs, listener=listener)
    is_timeless = _is_timeless(settings, inputs, traces)
    if is_timeless:
        settings = replace(settings, simulate=replace(settings.simulate, protocol="rounds"))
    _require_known(traces[0], pod)
    case = case_of(settings, inputs, [known(trace) for trace in traces])
    notes = Notes(listener)
    notes.add((*case.notes, *policy.notes))
    notes.add([_TIMELESS] if is_timeless else [])
    name = _named(case.workload, pod)
    return explain_pod(run_case(case, policy, listener), name)


def _require_known(trace: Trace, pod: str) -> None:
    """Refuses to guess where a pod goes of which too little is read."""
    for (namespace, name), doubt in trace.doubts.items():
        if pod in (name, f"{namespace}/{name}"):
            raise UndecidedError(
                f"where {namespace}/{name} would be placed is not known: {doubt.text}",
                where=trace.name,
                hint="podium fit says whether the others fit",
            )


def _is_timeless(settings: Settings, inputs: Inputs, traces: Sequence[Trace]) -> bool:
    """Tells whether a replay is what nobody asked for, and what not all pods have the times of."""
    workload = next((trace.workload for trace in traces if trace.workload is not None), None)
    is_free = settings.origins["simulate.protocol"] == "default" and not inputs.orders
    is_drawn = any(trace.experiment for trace in traces)
    return workload is not None and not workload.has_times and is_free and not is_drawn


def _named(workload: Workload, pod: str) -> str:
    """Finds a pod by its name, or by its namespace and name."""
    if pod in workload.names:
        return pod
    full_names = workload.full_names
    if pod in full_names:
        return workload.names[full_names.index(pod)]
    raise UnknownName.among("pod", pod, full_names, where="flag --pod")
