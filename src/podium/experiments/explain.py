"""Explains why a pod of a simulated run went where it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.errors import UnknownName
from podium.experiments.listener import SILENT, Listener, Notes

if TYPE_CHECKING:
    from podium.experiments.case import Inputs
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
    if pod not in case.workload.names:
        raise UnknownName.among("pod", pod, case.workload.names, where="flag --pod")
    return explain_pod(run_case(case, policy, listener), pod)
