"""Explains why a pod of a simulated run went where it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.errors import UnknownName
from podium.experiments.listener import SILENT, Listener, Notes

if TYPE_CHECKING:
    from podium.experiments.case import Inputs
    from podium.model import Workload
    from podium.policies import Policy
    from podium.reports.explanation import Explanation
    from podium.settings import Settings


def explain(
    settings: Settings, inputs: Inputs, policy: Policy, pod: str, listener: Listener = SILENT
) -> Explanation:
    """Simulates the case and explains how one pod was decided."""
    from podium.experiments.case import load_case
    from podium.experiments.simulate import run_case
    from podium.reports.explanation import explain as explain_pod

    case = load_case(settings, inputs)
    Notes(listener).add((*case.notes, *policy.notes))
    name = _named(case.workload, pod)
    return explain_pod(run_case(case, policy, listener), name)


def _named(workload: Workload, pod: str) -> str:
    """Finds a pod by its name, or by its namespace and name."""
    if pod in workload.names:
        return pod
    spaces = workload.namespaces or ("",) * len(workload)
    for name, space in zip(workload.names, spaces, strict=True):
        if pod == f"{space or 'default'}/{name}":
            return name
    raise UnknownName.among("pod", pod, workload.names, where="flag --pod")
