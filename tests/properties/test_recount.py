"""Holds the recount to honest runs, in which it finds nothing, and to forged ones."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from podium.sim import Setup, simulate
from podium.sim.audit import audit
from podium.sim.metrics import Metrics, Waiting, measure
from podium.sim.recount import IMPOSSIBLE, recount
from podium.sim.result import UNPLACED
from support.agreement import ranks_of, tiers_of
from support.forged import forgeries
from support.instances import clusters, inflations, replays, rounds, single_workloads, workloads
from support.probes import PROBES
from support.reference import simulate_slowly

often = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
COUNTED = [each.name for each in fields(Metrics) if each.name not in (
    "placed_share", "waiting", "nodes_in_use_mean", "nodes_in_use_peak", "fragmentation",
    "fragmentation_ratio",
)]  # fmt: skip
WAITED = [each.name for each in fields(Waiting)]


@st.composite
def runs(draw):
    cluster, workload = draw(clusters), draw(single_workloads)
    protocol = draw(st.one_of(replays, rounds, inflations(cluster, workload)))
    policy = PROBES[draw(st.sampled_from(sorted(PROBES)))]
    setup = Setup(draw(st.integers(0, 3)), draw(st.sampled_from(tiers_of(policy))))
    return simulate(cluster, workload, policy, protocol, setup)


@often
@given(runs())
def test_nothing_is_found_in_an_honest_run(result):
    assert recount(result).problems == ()
    assert audit(result, measure(result)).problems == ()


@often
@given(st.data(), clusters, workloads)
def test_nothing_is_found_in_what_the_slow_reference_decides(data, cluster, workload):
    protocol = data.draw(st.one_of(replays, rounds, inflations(cluster, workload)))
    policy = PROBES[data.draw(st.sampled_from(sorted(PROBES)))]
    ranks = ranks_of(cluster, protocol, 0)
    slow = simulate_slowly(cluster, workload, policy, protocol, seed=0, ranks=ranks)
    fast = simulate(cluster, workload, policy, protocol, Setup(0))
    columns = {
        name: np.array(getattr(slow, name), getattr(fast, name).dtype)
        for name in ("node", "slots", "start_s", "status", "holds", "changes")
    }
    after = slow.changes_after or [0] * len(slow.node)
    told = replace(
        fast, **columns, changes_after=np.array(after, np.int32), decisions=slow.decisions
    )
    assert recount(told).problems == ()


@pytest.mark.deep
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), runs())
def test_every_forged_change_that_no_run_can_come_to_is_found(data, result):
    assume(len(result.changes) or (result.status == UNPLACED).any())
    forgery = data.draw(forgeries(result))
    found = recount(forgery.result)
    if forgery.is_impossible:
        assert found.refusal.startswith(f"{IMPOSSIBLE}: "), forgery.name


@often
@given(runs(), st.sampled_from([*COUNTED, *WAITED]), st.sampled_from((1.0, -1.0, 1e-4)))
def test_every_altered_figure_is_found(result, name, change):
    honest = measure(result)
    if name in WAITED:
        value = getattr(honest.waiting, name) + change
        told = replace(honest, waiting=replace(honest.waiting, **{name: value}))
    else:
        told = replace(honest, **{name: getattr(honest, name) + change})
    assert name.removesuffix("_s") in audit(result, told).refusal


@often
@given(runs())
def test_more_fragmented_than_free_is_found(result):
    honest = measure(result)
    more = math.nextafter(1 - honest.gpu_allocation + 1e-6, 2)
    assert "% of the GPUs" in audit(result, replace(honest, fragmentation=more)).refusal
    assert "fragment" in audit(result, replace(honest, fragmentation=-1e-6)).refusal
    assert "ratio" in audit(result, replace(honest, fragmentation_ratio=1.001)).refusal


@pytest.mark.parametrize("points", [1, -1])
@often
@given(st.data(), runs())
def test_a_course_that_is_not_that_of_the_placements_is_found(points, data, result):
    honest = measure(result)
    course = result.derived["usage"]
    at = data.draw(st.integers(0, len(course.gpu_milli) - 1))
    milli = course.gpu_milli.copy()
    milli[at] += points
    result.derived["usage"] = replace(course, gpu_milli=milli)
    assert "course" in audit(result, honest).refusal
