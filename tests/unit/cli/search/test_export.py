import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from podium.cli.main import app
from podium.store import RunRecord, open_store
from support.stored import bred, judged


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, list(arguments))


@pytest.fixture(autouse=True)
def store(tmp_path):
    """Holds a run that is known by its name: a seed, a child of it, and a refused one."""
    with open_store(str(tmp_path / "data" / "podium" / "podium.db")) as opened:
        opened.runs.create(RunRecord("abc123", "search", "r1", 0.0, summary={"best": 1}))
        rows = [
            replace(bred(0, "abc123"), kind="seed", source="typical"),
            replace(bred(1, "abc123"), parents=(0,), operators=("graft",), source="genetic"),
            replace(bred(2, "abc123"), parents=(0,), source="genetic"),
        ]
        opened.candidates.propose(rows)
        opened.candidates.judge(
            [
                judged(rows[0], 90.0),
                judged(rows[1], 90.75),
                judged(rows[2], None, accepted=False, gate="race", reason="trails,\nclearly"),
            ]
        )
        yield opened


def test_candidates_are_exported_by_the_name_of_their_run(run):
    rows = list(csv.DictReader(io.StringIO(run("search", "export", "r1").stdout)))
    assert [row["number"] for row in rows] == ["0", "1", "2"]
    assert (rows[1]["operator"], rows[1]["parents"], rows[1]["gain"]) == ("graft", "0", "0.75")
    assert (rows[2]["gate"], rows[2]["reason"], rows[2]["fitness"]) == (
        "race",
        "trails, clearly",
        "",
    )


@pytest.mark.parametrize("mark", "=+-@")
def test_no_cell_begins_a_formula(run, store, mark):
    formula = f"{mark}cmd|' /C calc'!A0"
    row = replace(bred(3, "abc123"), source=formula, operators=(formula,))
    store.candidates.propose([row])
    store.candidates.judge([judged(row, -1.5, accepted=False, gate="race", reason=f"  {formula}")])
    rows = list(csv.reader(io.StringIO(run("search", "export", "r1").stdout)))
    assert "-1.5" in rows[-1]
    assert rows[-1].count(f"'{formula}") == 3
    texts = [cell for cell in rows[-1] if cell != "-1.5"]
    assert not [cell for cell in texts if cell.startswith(("=", "+", "-", "@"))]


def test_a_file_is_written_where_one_is_named(run, tmp_path):
    result = run("search", "export", "r1", "--csv", str(tmp_path / "all.csv"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "3 candidates" in result.stderr
    assert Path(tmp_path / "all.csv").read_text().count("\n") == 4
    lost = run("search", "export", "r1", "--csv", str(tmp_path / "none" / "all.csv"))
    assert lost.exit_code == 2


def test_a_file_has_no_characters_that_a_terminal_acts_upon(run, store, tmp_path):
    row = replace(bred(3, "abc123"), source="model\x1b[2J", operators=("graft\n4,5",))
    store.candidates.propose([row])
    store.candidates.judge(
        [judged(row, None, accepted=False, gate="race", reason="\x1b]0;title\x07gone")]
    )
    run("search", "export", "r1", "--csv", str(tmp_path / "all.csv"))
    last = list(csv.DictReader(io.StringIO((tmp_path / "all.csv").read_text())))[-1]
    assert last["source"] == r"model\x1b[2J"
    assert last["operator"] == r"graft\n4,5"
    assert last["reason"] == r"\x1b]0;title\x07gone"


def test_a_dash_means_standard_output(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        run("search", "export", "r1", "--csv", "-").stdout == run("search", "export", "r1").stdout
    )
    assert not Path("-").exists()


def test_data_has_the_texts_too(run):
    told = json.loads(run("search", "export", "r1", "--json").stdout)
    assert told[1]["text"].startswith("def score")
    assert told[1]["parents"] == [0]


def test_a_run_is_shown_by_its_name_with_the_lineage_of_its_best(run):
    shown = run("runs", "show", "r1").stdout
    rows = [line.split() for line in shown.splitlines()]
    assert ["#0", "seed", "-", "typical", "90.000", "-", "12"] in rows
    assert ["#1", "graft", "#0", "genetic", "90.750", "+0.750", "12"] in rows
