import math
from dataclasses import replace

import pytest

from podium.errors import UsageError
from podium.model import PodSpec
from podium.traces.kubernetes.run_times import (
    Constant,
    Exponential,
    History,
    Lognormal,
    Observed,
    RunTimes,
    parse_run_time,
)
from podium.traces.kubernetes.standing import Standing

POD = PodSpec("p", 1, 1, 1, 1000, namespace="ml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2h", Constant(7200.0)),
        ("90m", Constant(5400.0)),
        ("1h30m", Constant(5400.0)),
        ("1d", Constant(86400.0)),
        ("90", Constant(90.0)),
        ("0.5h", Constant(1800.0)),
        ("exponential:1h", Exponential(3600.0)),
        ("lognormal:1h:1.5", Lognormal(3600.0, 1.5)),
    ],
)
def test_times_and_distributions_are_read(text, expected):
    assert parse_run_time(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "soon", "-1", "0", "0h", "2 h", "1e400", "exponential", "exponential:x", "lognormal:1h",
     "lognormal:1h:0", "lognormal:1h:nan", "normal:1h:1", "2h:1", "1.2.3h"],
)  # fmt: skip
def test_other_words_are_usage_errors(text):
    with pytest.raises(UsageError, match="is not a run time") as caught:
        parse_run_time(text)
    assert "lognormal:MEDIAN:SIGMA" in caught.value.hint


def test_observed_times_are_drawn_among_the_longer_ones():
    observed = Observed((10.0, 20.0, 30.0, 40.0))
    assert [observed.total_s(rank, -1.0) for rank in (0.0, 0.3, 0.6, 0.99, 1.0)] == [
        10.0, 20.0, 30.0, 40.0, 40.0,
    ]  # fmt: skip
    assert [observed.total_s(rank, 20.0) for rank in (0.0, 0.49, 0.5, 0.99)] == [
        30.0, 30.0, 40.0, 40.0,
    ]  # fmt: skip
    assert observed.total_s(0.5, 40.0) is None


def test_a_constant_is_over_when_it_is_over():
    assert Constant(60.0).total_s(0.7, 59.0) == 60.0
    assert Constant(60.0).total_s(0.7, 60.0) is None


def test_an_exponential_pod_has_no_memory():
    median_s = Exponential(100.0).total_s(0.5, -1.0)
    assert median_s == pytest.approx(100 * math.log(2))
    assert Exponential(100.0).total_s(0.5, 500.0) == pytest.approx(500 + median_s)
    assert math.isfinite(Exponential(100.0).total_s(1.0, 0.0))


def test_a_lognormal_draw_is_above_the_age():
    times = Lognormal(100.0, 1.0)
    assert times.total_s(0.5, -1.0) == pytest.approx(100.0)
    assert times.total_s(0.0, 100.0) is None or times.total_s(0.0, 100.0) >= 100.0
    # Half of those above the median are above the upper quartile.
    assert times.total_s(0.5, 100.0) == pytest.approx(times.total_s(0.75, -1.0))
    assert math.isfinite(times.total_s(1.0, -1.0))


def history(*entries):
    found = History()
    for owner, gpus, run_time_s in entries:
        pod = PodSpec("p", 1, 1, gpus, 1000 if gpus else 0, namespace="ml")
        found.add(pod, Standing("Succeeded", owner=owner, run_time_s=run_time_s))
    return found


def test_finished_pods_count_by_controller_then_by_gpus_then_all():
    found = history(("Job/a-1", 1, 10.0), ("Job/a-2", 2, 20.0), ("Job/b", 2, 30.0), ("", 0, 40.0))
    assert len(found) == 4
    assert found.like(POD, Standing(owner="Job/a-9")) == Observed((10.0, 20.0))
    assert found.like(POD, Standing(owner="Job/c")) == Observed((10.0,))
    four = PodSpec("p", 1, 1, 4, 1000, namespace="ml")
    assert found.like(four, Standing()) == Observed((10.0, 20.0, 30.0, 40.0))
    assert History().like(POD, Standing()) is None


def test_what_belongs_to_a_node_says_nothing_about_others():
    found = History()
    found.add(POD, Standing("Succeeded", run_time_s=5.0, stays=True))
    found.add(POD, Standing("Failed"))
    assert len(found) == 0


def test_a_pod_that_tells_its_run_time_is_believed_unless_somebody_asks_for_another():
    told = PodSpec("p", 1, 1, duration_s=60.0)
    assert RunTimes(None, history(("", 0, 9.0)), None).total_s(told, Standing(), 0.5) == 60.0
    assert RunTimes("2m", History(), None).total_s(told, Standing(), 0.5) == 120.0


def test_a_running_pod_runs_longer_than_it_has_or_as_long_again():
    running = Standing("Running", "n", started_s=100.0)
    times = RunTimes(None, history(("", 1, 50.0), ("", 1, 500.0)), 300.0)
    assert times.age_s(running) == 200.0
    assert times.total_s(POD, running, 0.0) == 500.0
    old = Standing("Running", "n", started_s=-700.0)
    assert times.total_s(POD, old, 0.0) == 2000.0
    assert list(times.notes()) == [
        "run times are drawn from 2 finished pods: 1 pod",
        "assumed to run as long again as they already have: 1 pod",
    ]


def test_nothing_is_made_up_for_a_pod_that_waits():
    times = RunTimes(None, History(), 300.0)
    assert times.total_s(POD, Standing("Pending", started_s=1.0), 0.5) is None
    assert list(times.notes()) == []
    assert list(RunTimes("2h", History(), None).notes()) == ["run times are those asked for: 2h"]


def test_a_pod_that_is_placed_anew_runs_as_somebody_asks_however_long_it_ran():
    ran = Standing("Running", "n", started_s=0.0)
    times = RunTimes("1h", History(), 4 * 3600.0)
    assert times.total_s(POD, ran, 0.5) == 3600.0
    assert times.total_s(replace(POD, node="n"), ran, 0.5) == 8 * 3600.0
