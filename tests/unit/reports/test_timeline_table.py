import csv
import json

import pytest

from podium.errors import UsageError
from podium.reports.tables import write_timeline
from podium.sim.timeline import timeline
from support.runs import three_pods


def test_csv_and_json_hold_the_sampled_moments(tmp_path):
    result = three_pods()
    rows = timeline(result).as_rows()
    assert write_timeline(result, tmp_path / "line.csv") == len(rows)
    assert write_timeline(result, tmp_path / "line.json") == len(rows)
    assert json.loads((tmp_path / "line.json").read_text()) == rows
    with (tmp_path / "line.csv").open(newline="") as file:
        read = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    assert read == rows


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(UsageError) as caught:
        write_timeline(three_pods(), tmp_path / "line.parquet")
    assert caught.value.hint == "name a file that ends in .csv or .json"
