"""Judges candidates by what they did: who holds without a word for it, and who cannot have run."""

from dataclasses import replace

import numpy as np
import pytest

from podium.evaluation.cases import Case, TrainingSet, demo_cases
from podium.evaluation.measures import bounds_of, contradictions, is_measurement, measure_case
from podium.policies import load
from podium.search.candidate.constants import with_constants
from podium.search.candidate.verdict import Rejected
from podium.search.judging.fitness import Fitness
from podium.search.judging.fixtures import Fixtures
from podium.search.judging.scrutiny import check_run
from podium.search.judging.trial import Parent, try_candidate
from podium.sim.execution import execute
from podium.sim.recount import seal

FORMULA = "-node.cpu_milli_left - sum(node.gpu_milli_left)"
REFUSALS = (
    "-1e308 * 10.0",
    "-(1e308 + 1e308)",
    "-1e300 * node.cpu_milli_total ** 3",
    "-1e308 / 1e-9",
)
LOW = (
    "-1.7976931348623157e308",
    "-1.7976931348623155e308",
    "-1e308",
    "-1e300 * node.cpu_milli_total",
)
TUNABLE = f"""from podium.policies import tunable
W = tunable(0.9, 0, 1)


def score(pod, node):
    if pod.gpu_count == 0 and W < 0.8:
        return -1e308 * 10.0
    return {FORMULA}
"""


def text_of(number):
    """Never places a pod that wants no GPU, by a number that is too low to be one."""
    return (
        f"def score(pod, node):\n    if pod.gpu_count == 0:\n        return {number}\n"
        f"    return {FORMULA}\n"
    )


@pytest.mark.parametrize("number", REFUSALS)
def test_who_holds_without_a_name_for_it_is_refused_where_none_may(judge, compiling_judge, number):
    for each in (judge, compiling_judge):
        verdict = each.judge(text_of(number), may_hold=False).verdict
        assert not verdict.accepted
        assert verdict.gate in ("tiny-trace", "training")
        assert verdict.reason.startswith("it holds pods: at ")
        assert "decisions on openb inflation seed 100" in verdict.reason


@pytest.mark.parametrize("number", REFUSALS)
def test_who_holds_without_a_name_for_it_is_marked_where_it_may(judge, compiling_judge, number):
    for each in (judge, compiling_judge):
        found = each.judge(text_of(number))
        assert found.verdict.accepted
        assert found.scores["may_hold"] is True
        assert 0 < found.scores["held"] < found.scores["decisions"]


@pytest.mark.parametrize("number", LOW)
def test_a_score_that_is_only_low_places(judge, number):
    found = judge.judge(text_of(number), may_hold=False)
    assert found.verdict.accepted, found.verdict.reason
    assert (found.scores["may_hold"], found.scores["held"]) == (False, 0)
    assert found.scores["mean"]["cpu_only_placed"] == 100.0


def test_a_worker_whose_own_count_says_that_it_held_is_overruled(judge, monkeypatch):
    run = judge.pool.run
    monkeypatch.setattr(judge.pool, "run", lambda *told, **_: run(*told, may_hold=True))
    verdict = judge.judge(text_of(REFUSALS[0]), may_hold=False).verdict
    assert not verdict.accepted
    assert "on openb inflation seed 1000 a pod fitted" in verdict.reason


def test_no_constant_is_tuned_to_hold_pods_where_none_may(judge):
    holding, placing = (with_constants(TUNABLE, {"W": weight}) for weight in (0.7, 0.85))
    verdict = judge.judge(holding, may_hold=False).verdict
    assert verdict.reason.startswith("it holds pods: at ")
    done = judge.judge(placing, may_hold=False)
    assert done.verdict.accepted, done.verdict.reason
    assert done.scores["held"] == 0


@pytest.fixture(scope="module")
def fixtures():
    return Fixtures.of(TrainingSet((Case(nodes=6, pods=60),)))


@pytest.fixture(params=["inflation", "replay"], scope="module")
def result(request):
    (case,) = demo_cases([request.param], 1)
    return execute(replace(case.plan(load("best-fit")), tier="scan"))


def test_a_run_that_cannot_be_is_refused_and_spoils_its_process(result):
    pod = int(np.flatnonzero(result.slots)[0])
    slots = result.slots.copy()
    slots[pod] = 0
    with pytest.raises(Rejected, match=r"^impossible: pod .* has other GPUs") as caught:
        check_run(replace(result, slots=slots), measure_case(result), seal(result.plan))
    assert caught.value.is_spoiling


def test_a_trace_that_changed_during_the_run_is_found(result):
    pods = result.plan.arrivals.pods.copy()
    pods["gpu_milli"][np.flatnonzero(pods["gpu_count"])[0]] -= 1
    plan = replace(result.plan, arrivals=replace(result.plan.arrivals, pods=pods))
    with pytest.raises(Rejected, match=r"^impossible: the trace was changed"):
        check_run(replace(result, plan=plan), measure_case(result), seal(result.plan))


def test_every_altered_figure_of_a_case_is_found(result):
    honest = measure_case(result)
    assert contradictions(result, honest) == []
    for name in honest:
        if name not in ("queue_busy", "fragmentation", "fragmentation_arriving"):
            with pytest.raises(Rejected, match=f"^impossible: {name} is"):
                check_run(result, {**honest, name: honest[name] + 0.01}, seal(result.plan))


def test_more_fragmented_than_was_free_is_found(result):
    honest = measure_case(result)
    name = next(each for each in honest if each.startswith("fragmentation"))
    for value in (100.0, -0.01):
        with pytest.raises(Rejected, match="% of the GPUs"):
            check_run(result, {**honest, name: value}, seal(result.plan))


def test_what_is_measured_is_possible_to_the_parent_too(result):
    kind, bounds = result.plan.protocol.name, bounds_of(result.plan)
    honest = measure_case(result)
    assert is_measurement(honest, kind, bounds)
    first = next(iter(honest))
    assert not is_measurement({**honest, first: min(100.0, bounds[first]) + 0.01}, kind, bounds)
    fragmented = next(each for each in honest if each.startswith("fragmentation"))
    assert not is_measurement({**honest, fragmented: 99.0}, kind, bounds)


def test_a_candidate_that_cannot_have_run_is_refused(fixtures, monkeypatch):
    def forged(plan):
        found = execute(plan)
        return replace(found, decisions=0)

    monkeypatch.setattr("podium.search.judging.case_run.execute", forged)
    told = []
    with pytest.raises(Rejected, match=r"^impossible: .* decisions placed or held a pod, and 0"):
        try_candidate(
            fixtures, "def score(pod, node):\n    return 1.0\n", [], Fitness("", ()),
            Parent(told.append, lambda _decisions: True),
        )  # fmt: skip
    assert not [each for each in told if "losses" in each]  # without which none is accepted
