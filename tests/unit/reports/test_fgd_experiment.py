import gzip
import json
import math

import pytest

from podium.errors import InputError, MissingError, UnknownName
from podium.model import Cluster, NodeSpec, Workload
from podium.policies import catalogue, load
from podium.reports.fgd_experiment import (
    COLUMNS,
    POLICY_NAMES,
    Experiment,
    Outcome,
    Selection,
    order_file,
    read_published,
    repeat,
    select,
    with_orders,
)
from support.runs import gpu_pod

HEADER = "trace,policy,seed,alloc_95,alloc_100,alloc_130,frag_100,frag_130"
ROWS = f"""{HEADER}
default,BestFit,42,92.5,93.0,93.25,7.0,6.75
default,FGD,42,94.5,95.0,95.25,5.0,4.75
default,FGD,43,94.25,95.0,95.5,5.0,4.5
cpu050,FGD,42,94.0,95.0,95.25,5.0,4.75
"""


@pytest.fixture
def published(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text(ROWS.replace("\n", "\r\n"), newline="")
    return read_published(path)


def write_orders(folder, trace, *orders):
    text = "".join(json.dumps(order) + "\n" for order in orders)
    order_file(folder, trace).write_bytes(gzip.compress(text.encode()))


def test_published_rows_are_read_under_our_names(published):
    assert len(published) == 4
    row = published[Experiment("default", "best-fit", 42)]
    assert row == dict(zip(COLUMNS, (92.5, 93.0, 93.25, 7.0, 6.75), strict=True))


def test_every_published_policy_ships():
    assert set(POLICY_NAMES.values()) <= {policy.name for policy in catalogue()}


@pytest.mark.parametrize(
    ("row", "problem", "where"),
    [
        ("default,Bestfit,42,1,1,1,1,1", '"Bestfit" is not a published policy', "line 2, policy"),
        ("default,FGD,x,1,1,1,1,1", "not a published result", "line 2"),
        ("default,FGD,42,1,one,1,1,1", "not a published result", "line 2"),
        ("default,FGD,42,1", "not a published result", "line 2"),
    ],
)
def test_a_bad_row_is_named_with_its_line(tmp_path, row, problem, where):
    path = tmp_path / "published.csv"
    path.write_text(f"{HEADER}\n{row}\n")
    with pytest.raises(InputError, match=problem) as caught:
        read_published(path)
    assert caught.value.where == f"{path}, {where}"
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "trace,policy,seed\n", "not,these\n1,2\n"])
def test_missing_columns_are_named(tmp_path, text):
    path = tmp_path / "published.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r"the columns .*alloc_100, alloc_130.* are missing"):
        read_published(path)


def test_without_the_file_something_is_missing(tmp_path):
    with pytest.raises(MissingError) as caught:
        read_published(tmp_path / "none.csv")
    assert "--published" in caught.value.hint


def test_everything_published_is_wanted_unless_named(published):
    assert select(published, Selection()) == list(published)


def test_traces_and_policies_narrow_the_selection(published):
    assert select(published, Selection(("cpu050", "default"), ("fgd",))) == [
        Experiment("cpu050", "fgd", 42),
        Experiment("default", "fgd", 42),
        Experiment("default", "fgd", 43),
    ]


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        (Selection(traces=("defualt",)), "did you mean default"),
        (Selection(policies=("best-fitt",)), "did you mean best-fit"),
    ],
)
def test_what_was_never_published_is_an_unknown_name(published, wanted, hint):
    with pytest.raises(UnknownName, match="unknown published") as caught:
        select(published, wanted)
    assert caught.value.hint == hint


def test_runs_without_an_order_are_left_out(published, tmp_path):
    write_orders(tmp_path, "default", {"seed": 43, "arrivals": [0]}, {"seed": 44, "arrivals": [0]})
    found = with_orders(select(published, Selection()), tmp_path)
    assert found == [Experiment("default", "fgd", 43)]


def test_without_any_order_something_is_missing(published, tmp_path):
    with pytest.raises(MissingError) as caught:
        with_orders(list(published), tmp_path)
    assert "--orders" in caught.value.hint


def test_a_run_is_repeated_on_its_order_and_ranks(tmp_path):
    # 20 GPUs; the pods of 1 GPU arrive in an order in which every percent divisible by 5 occurs.
    cluster = Cluster.of(NodeSpec(f"n{i}", 10_000, 10_000, 10, "X") for i in range(2))
    workload = Workload.of([gpu_pod("small", 1), gpu_pod("big", 8)])
    arrivals = [0, 1] + [0] * 17
    write_orders(tmp_path, "tiny", {"seed": 7, "arrivals": arrivals, "node_rank": [1, 0]})
    experiment = Experiment("tiny", "best-fit", 7)
    published = {experiment: dict.fromkeys(COLUMNS, 100.0)}
    found = repeat(experiment, cluster, workload, load("best-fit"), tmp_path, published)
    # Each node has room for ten pods of 1000 milli CPU: 9 small ones beside the big one, then 1.
    assert found.ours["alloc_95"] == 95.0
    assert found.ours["alloc_100"] == 100.0
    assert found.ours["alloc_130"] == 100.0
    assert found.ours["frag_130"] == 0.0
    assert found.is_reproduced


def outcome(ours_100, ours_130):
    experiment = Experiment("default", "fgd", 42)
    ours = {"alloc_100": ours_100, "alloc_130": ours_130}
    return Outcome(experiment, ours, {"alloc_100": 95.0, "alloc_130": 95.25})


@pytest.mark.parametrize(
    ("ours", "is_reproduced"),
    [
        ((95.0, 95.25), True),
        ((95.01, 95.24), True),
        ((95.02, 95.25), False),
        ((95.0, 95.23), False),
        ((math.nan, 95.25), False),
        ((95.0, math.nan), False),
    ],
)
def test_a_run_is_reproduced_within_a_hundredth_of_a_point(ours, is_reproduced):
    assert outcome(*ours).is_reproduced is is_reproduced


def test_the_larger_difference_counts():
    assert outcome(95.5, 95.0).largest_difference == pytest.approx(0.5)
    assert math.isnan(outcome(95.0, math.nan).largest_difference)
