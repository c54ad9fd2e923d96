import json

import pytest

from podium.cli.main import app
from podium.store import RunRecord, open_store
from support.stored import bred, judged


@pytest.fixture
def status(runner):
    return lambda *arguments: runner.invoke(app, ["search", "status", "run", *arguments])


@pytest.fixture
def store(tmp_path):
    """Holds a run of 42 candidates: 25 of a front, 15 of another, and two that are none."""
    islands = [{"island": 0, "family": "all", "members": 1, "best": 0, "fitness": 90.0,
                "stale": 0, "respawns": 0}]  # fmt: skip
    summary = {
        "evaluations": 42, "candidates": 42, "accepted": 40, "refused": {}, "best": 0,
        "fitness": 90.0, "fitness_fgd": 89.0, "complexity": 50, "seconds": 1.0, "calls": 0,
        "validation_fitness": None, "islands": islands,
    }  # fmt: skip
    with open_store(str(tmp_path / "data" / "podium" / "podium.db")) as opened:
        opened.runs.create(RunRecord("run-a", "search", "test", 0.0, summary=summary))
        yield opened


def fill(store, places, holds):
    """Stores candidates that trade allocation at 100 % for size."""
    records = [
        judged(
            bred(number), 90.0 - number, complexity=100 - number, may_hold=number >= places,
            source="genetic", scores={"mean": {"allocation_100": 90.0 - number}},
        )
        for number in range(places + holds)
    ]  # fmt: skip
    refused = judged(bred(len(records)), None, accepted=False, scores={})
    store.candidates.propose([bred(each.number) for each in (*records, refused)])
    store.candidates.judge([*records, refused])


def table(result):
    """Splits the rows of the front."""
    lines = result.stdout.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("candidate "))
    rows = [line.split() for line in lines[first : lines.index("", first)]]
    return " ".join(rows[0]), rows[1:]


def test_the_front_of_a_run_is_shown(status, store):
    fill(store, places=2, holds=1)
    result = status("--front")
    assert result.exit_code == 0, result.stderr
    titles, rows = table(result)
    assert titles == "candidate at 100 % parts fitness may hold source"
    assert rows[0] == ["#0", "90.00", "100", "90.000", "no", "genetic"]
    assert [row[4] for row in rows] == ["no", "no", "yes"]
    assert "best of its size" in result.stdout
    assert "more are on the front" not in result.stderr


@pytest.mark.parametrize(("places", "holds", "shown"), [(25, 15, (10, 10)), (25, 3, (17, 3))])
def test_twenty_rows_are_shown_of_both_fronts(status, store, places, holds, shown):
    fill(store, places, holds)
    result = status("--front")
    kinds = [row[4] for row in table(result)[1]]
    assert (kinds.count("no"), kinds.count("yes")) == shown
    assert f"{places + holds - 20} more on the front; --json lists them" in result.stderr


def test_the_whole_front_is_data(status, store):
    fill(store, places=25, holds=15)
    told = json.loads(status("--front", "--json").stdout)
    assert [len(each["candidates"]) for each in told["front"]] == [25, 15]
    assert [each["may_hold"] for each in told["front"]] == [False, True]
    assert "front" not in json.loads(status("--json").stdout)


def test_a_run_without_accepted_candidates_has_no_front_to_show(status, store):
    fill(store, places=0, holds=0)
    store.runs.update("run-a", summary={**store.runs.get("run-a").summary, "best": None})
    result = status("--front")
    assert result.exit_code == 0, result.stderr
    assert "no candidate has been accepted yet" in result.stderr
