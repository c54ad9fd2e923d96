from __future__ import annotations

from podium.online.cell import JobRuns
from podium.online.trust import trust_in


def test_runs_alone_and_beside_others_are_compared_though_their_columns_differ() -> None:
    runs = JobRuns(features=1)
    for log_runtime in (0.0, 0.0, 0.0, 40.0):
        runs.add(0, (log_runtime, (0.0,), ()))
        runs.add(0, (log_runtime, (0.0,), ("trainer",)))
    trusted = trust_in(runs)
    assert {kind.magnitude > 0 for _, kind in trusted} == {True}
