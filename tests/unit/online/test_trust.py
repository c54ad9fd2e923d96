from __future__ import annotations

import math

from podium.online.cell import JobRuns
from podium.online.trust import trust_in


def test_runs_alone_and_beside_others_are_compared_though_their_columns_differ() -> None:
    runs = JobRuns(features=1)
    for log_runtime in (0.0, 0.0, 0.0, 40.0):
        runs.add(0, (log_runtime, (0.0,), ()))
        runs.add(0, (log_runtime, (0.0,), ("trainer",)))
    trusted = trust_in(runs)
    assert {kind.magnitude > 0 for _, kind in trusted} == {True}


def test_of_two_runs_that_are_far_apart_the_other_gpu_types_tell_which_is_a_mistake() -> None:
    runs = JobRuns(features=0)
    for log_runtime in (5.0, 5.2, 5.1, 4.9):
        runs.add(0, (log_runtime, (), ()))
    runs.add(1, (4.5, (), ()))
    runs.add(1, (4.5 + math.log(1000.0), (), ()))
    ((gpu, kind),) = trusted = trust_in(runs)
    assert gpu == 1
    assert kind.magnitude == max(each.magnitude for each, _ in runs.cells[1].alone.items())
    assert trusted[gpu, kind] < 0.01
