import pytest

from podium.reports.beside_fgd import NAMED, Attempt, compare, mean_row, published_runs
from podium.reports.fgd_experiment import Experiment, Outcome


def attempt(trace, seed, ours, published, held=0):
    keys = ("alloc_100", "alloc_130", "frag_130")
    figures = [dict(zip(keys, each, strict=True)) for each in (ours, published)]
    return Attempt(Outcome(Experiment(trace, "fgd", seed), *figures), held)


@pytest.fixture
def found():
    attempts = [
        attempt("default", 42, (95.0, 96.0, 4.0), (95.0, 95.0, 5.0)),
        attempt("default", 43, (94.0, 95.0, 5.0), (95.0, 95.0, 5.0), held=3),
        attempt("cpu050", 42, (94.0, 94.0, 6.0), (95.0, 95.0, 5.0), held=4),
    ]
    return compare("mine.py", names_hold=True, attempts=attempts)


def test_a_trace_is_the_mean_of_its_seeds(found):
    default, cpu050 = found.rows
    assert default.ours == {"alloc_100": 94.5, "alloc_130": 95.5, "frag_130": 4.5}
    assert default.difference("alloc_130") == 0.5
    assert cpu050.difference("alloc_100") == -1.0
    assert (default.held, cpu050.held) == (3, 4)


def test_traces_weigh_the_same_in_a_mean(found):
    mean = mean_row(found.rows, "all")
    assert mean.difference("alloc_130") == pytest.approx(-0.25)
    assert mean.held == 7


def test_the_verdict_says_where_the_policy_stands(found):
    assert found.verdict() == (
        "mine.py: at 130 % above published FGD on 1 of the 1 named traces (mean +0.50 points) and "
        "on 1 of all 2 (mean -0.25 points); at 100 % more than 0.5 points below it on 1 of 2; it "
        "may hold pods, which FGD never does"
    )


def test_a_comparison_as_data_has_the_promised_names(found):
    told = found.as_object()
    assert list(told) == [
        "policy", "may_hold", "held", "traces", "mean_named", "mean_all", "verdict",
    ]  # fmt: skip
    assert told["traces"][1]["difference"] == {
        "alloc_100": -1.0, "alloc_130": -1.0, "frag_130": 1.0,
    }  # fmt: skip
    assert told["mean_named"]["difference"]["alloc_130"] == 0.5


def test_without_a_named_trace_there_is_no_mean_of_them():
    only = compare(
        "p", names_hold=False, attempts=[attempt("cpu050", 42, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0))]
    )
    assert only.as_object()["mean_named"] is None
    assert "named" not in only.verdict()


def test_named_traces_come_first_and_only_runs_of_fgd_are_taken():
    traces = ("cpu050", "multigpu20", "default")
    published = {
        Experiment(trace, policy, 42): {} for trace in traces for policy in ("fgd", "best-fit")
    }
    runs = published_runs(published, ())
    assert [run.trace for run in runs] == ["default", "multigpu20", "cpu050"]
    assert {run.policy for run in runs} == {"fgd"}
    assert [run.trace for run in published_runs(published, ("cpu050",))] == ["cpu050"]


def test_six_traces_are_named():
    assert len(set(NAMED)) == 6
