import csv
import sys

import polars
import pytest

from podium.errors import MissingExtra, UsageError, install_line
from podium.model import NodeSpec, PodSpec
from podium.reports.tables import COLUMNS, check_placements, write_placements
from podium.sim import Replay
from podium.sim.result import FITS_NO_NODE, NO_ROOM
from support.runs import gpu_pod, run, run_in_order, three_pods

NODE = NodeSpec("a", 10_000, 10_000, 2, "X")


def test_csv_holds_one_row_per_pod_in_order_of_arrival(tmp_path):
    path = tmp_path / "placements.csv"
    assert write_placements(three_pods(), path) == 3
    assert path.read_text() == (
        "pod,namespace,gpus,arrival_s,start_s,end_s,node,gpu_slots,reason\n"
        "p0,,1.0,0.0,0.0,10.0,a,0,\n"
        "p1,,2.0,2.0,2.0,10.0,b,0-1,\n"
        "p2,,2.0,4.0,10.0,16.0,b,0-1,\n"
    )


def test_a_pod_without_a_place_has_a_reason_and_no_start(tmp_path):
    pods = [gpu_pod("p0", 2), gpu_pod("p1", 1), gpu_pod("p2", 3), PodSpec("p, 3", 1, 1)]
    path = tmp_path / "placements.csv"
    write_placements(run_in_order([NODE], pods), path)
    rows = read_csv(path)
    assert [row["reason"] for row in rows] == ["", NO_ROOM, FITS_NO_NODE, ""]
    assert [row["start_s"] for row in rows] == ["0.0", "", "", "3.0"]
    assert [row["node"] for row in rows] == ["a", "", "", "a"]
    assert [row["pod"] for row in rows] == ["p0", "p1", "p2", "p, 3"]


def test_parquet_holds_the_same_rows_with_types(tmp_path):
    pods = [gpu_pod("p0", 2, 1.5, 2.0), gpu_pod("big", 3, 0.25, 1.0), gpu_pod("p1", 1, 2.5, 1.0)]
    result = run([NODE], pods, Replay())
    assert write_placements(result, tmp_path / "placements.parquet") == 3
    write_placements(result, tmp_path / "placements.csv")
    frame = polars.read_parquet(tmp_path / "placements.parquet")
    assert tuple(frame.columns) == COLUMNS
    assert frame.schema["arrival_s"] == frame.schema["start_s"] == polars.Float64
    assert frame["start_s"].to_list() == [None, 1.5, 3.5]
    assert frame["gpu_slots"].to_list() == ["", "0-1", "0"]
    written = [{key: as_text(value) for key, value in row.items()} for row in frame.to_dicts()]
    assert written == read_csv(tmp_path / "placements.csv")


def as_text(value):
    return "" if value is None else str(value)


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_without_any_start_keeps_its_types(tmp_path):
    result = run([NODE], [gpu_pod("big", 3, 0.0, 1.0)], Replay())
    write_placements(result, tmp_path / "none.parquet")
    frame = polars.read_parquet(tmp_path / "none.parquet")
    assert frame.schema["start_s"] == polars.Float64
    assert frame["start_s"].to_list() == [None]


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(UsageError, match="xlsx") as caught:
        write_placements(three_pods(), tmp_path / "placements.xlsx")
    assert caught.value.hint == "name a file that ends in .csv or .parquet"


def test_parquet_without_its_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtra) as caught:
        check_placements(tmp_path / "placements.parquet")
    assert caught.value.hint == install_line("plots")
    assert check_placements(tmp_path / "placements.csv") == ".csv"
