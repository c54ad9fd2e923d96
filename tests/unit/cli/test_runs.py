import json
import os
import pty
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from podium.cli.main import app
from podium.store import RunRecord, open_store
from podium.store.run_folder import RunFolder
from support.binary import PODIUM, clean_environment
from support.stored import RUN, bred, judged

LATER = replace(
    RUN, id="other", kind="planning", name="later", created_s=RUN.created_s + 3600, folder=""
)


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["runs", *map(str, arguments)])


@pytest.fixture
def store(tmp_path):
    """Fills the store of the user."""
    with open_store(str(tmp_path / "data" / "podium" / "podium.db")) as opened:
        opened.runs.create(RUN)
        opened.runs.create(LATER)
        opened.candidates.propose([bred(number) for number in range(3)])
        opened.candidates.judge([judged(bred(0), 90.5), judged(bred(2), 91.25)])
        yield opened


@pytest.mark.usefixtures("store")
def test_runs_are_listed_newest_first(run):
    assert run("list").stdout.splitlines() == [
        "run    kind      name          status   created               candidates  best fitness",
        "other  planning  later         running  2025-11-15 10:46 UTC           0             -",
        "run-a  search    a first look  running  2025-11-15 09:46 UTC           3        91.250",
    ]
    assert len(run("list", "--kind", "search").stdout.splitlines()) == 2


@pytest.mark.usefixtures("store")
def test_the_list_as_data_has_the_promised_names(run):
    listed = json.loads(run("list", "--json").stdout)
    assert [row["id"] for row in listed] == ["other", "run-a"]
    assert listed[1] == {
        "id": "run-a",
        "kind": "search",
        "name": "a first look",
        "status": "running",
        "created_s": RUN.created_s,
        "folder": "runs/run-a",
        "candidates": 3,
        "best_fitness": 91.25,
    }


def test_a_store_without_runs_is_told(run):
    open_store("here.db").close()
    result = run("list", "--store", "sqlite:///here.db")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "here.db contains no runs\n"
    told = run("list", "--kind", "simulation", "--store", "here.db").stderr
    assert told.endswith("runs of kind simulation\n")
    assert json.loads(run("list", "--json", "--store", "here.db").stdout) == []


@pytest.mark.usefixtures("store")
def test_a_run_is_shown_with_its_best_candidates(run):
    assert run("show", "run").stdout.splitlines() == [
        "run         run-a",
        "kind        search",
        "name        a first look",
        "status      running",
        "created     2025-11-15 09:46 UTC",
        "folder      runs/run-a",
        "candidates  3",
        "",
        "settings",
        "  seed     7",
        "  islands  [1, 2.5]",
        "  model    -",
        '  deep     {"is_on": true}',
        "",
        "summary",
        "  best  91.72",
        "",
        "candidate  fitness  kind  source  made by  parts  may hold",
        "#2          91.250  bred          -           12  yes",
        "#0          90.500  bred          -           12  yes",
    ]
    assert "fitness" not in run("show", "other").stdout


@pytest.mark.usefixtures("store")
def test_a_run_as_data_has_all_that_is_kept(run):
    found = json.loads(run("show", "run-a", "--best", 1, "--json").stdout)
    assert found["settings"] == RUN.settings
    assert found["candidates"] == 3
    assert [each["number"] for each in found["best"]] == [2]
    assert found["best"][0]["text"] == bred(2).text


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("verb", ["show", "delete"])
def test_an_unknown_run_is_told_with_a_suggestion(run, verb):
    result = run(verb, "run-b")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        'error: unknown run "run-b"',
        "  at:  argument RUN",
        "  try: did you mean run-a",
    ]


def test_a_run_is_deleted_with_its_candidates_when_that_is_sure(run, store):
    result = run("delete", "run-a", "--yes")
    assert result.stdout == "deleted run run-a and 3 candidates\n"
    assert result.stderr == "its files stay in runs/run-a\n"
    assert [each.id for each in store.runs.all()] == ["other"]
    assert store.candidates.count("run-a") == 0
    done = json.loads(run("delete", "other", "--yes", "--json").stdout)
    assert done == {"deleted": "other", "candidates": 0, "folder": ""}


def test_a_run_is_not_deleted_where_nobody_can_be_asked(run, store):
    result = run("delete", "run")
    assert result.exit_code == 2
    assert "podium runs delete run-a --yes" in result.stderr
    assert len(store.runs.all()) == 2


@pytest.mark.parametrize(("answer", "code", "left"), [("y", 0, 1), ("n", 130, 2)])
def test_a_terminal_is_asked_first(store, tmp_path, answer, code, left):
    terminal, user = pty.openpty()
    os.write(terminal, f"{answer}\n".encode())
    done = subprocess.run(
        [*PODIUM, "runs", "delete", "run-a", "--store", store.label],
        stdin=user,
        capture_output=True,
        text=True,
        env=clean_environment(tmp_path),
        check=False,
    )
    os.close(terminal)
    os.close(user)
    assert "Delete run run-a (a first look, 3 candidates)?" in done.stderr
    assert (done.returncode, len(store.runs.all())) == (code, left)


def test_a_store_that_cannot_be_used_is_told_with_its_origin(run, monkeypatch):
    monkeypatch.setenv("PODIUM_STORE_URL", "mysql://ada:secret@host/db")
    result = run("list")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        'error: "mysql" is not a supported database\n  at:  mysql://ada:****'
    )
    assert "secret" not in result.stderr


def test_the_store_lies_in_the_users_data_folder(run, tmp_path):
    file = tmp_path / "data" / "podium" / "podium.db"
    assert run("list").stderr == f"{file} contains no runs\n"
    assert json.loads(run("list", "--json").stdout) == []
    assert not file.parent.exists(), "a list makes nothing"
    open_store(str(file)).close()
    assert run("list").exit_code == 0
    assert not list(Path.cwd().iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs", "list"), ("runs", "show", "a"), ("runs", "delete", "a"),
        ("search", "status", "a"), ("search", "resume", "a"), ("search", "promote", "a"),
        ("search", "run", "--from", "a"),
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("is_empty", [False, True])
def test_a_store_that_is_not_there_is_not_made_by_whoever_reads(runner, arguments, is_empty):
    path = Path("nope/x.db")
    if is_empty:
        path.parent.mkdir()
        path.touch()
    result = runner.invoke(app, [*arguments, "--store", str(path)])
    assert result.exit_code == 3
    assert result.stderr.splitlines() == [
        "error: there is no store at nope/x.db",
        "  at:  flag --store, [store] url",
        "  try: check the path in --store or PODIUM_STORE_URL; podium search run creates a store",
    ]
    assert path.exists() == is_empty
    assert not is_empty or path.stat().st_size == 0


@pytest.fixture
def at_work(store, tmp_path):
    """Holds the lock of a run that is said to run, as the process at work on it does."""
    folder = RunFolder(tmp_path / "runs" / "alive")
    folder.lock()
    store.runs.create(replace(RUN, id="alive", folder=str(folder.path)))
    yield folder
    folder.unlock()


def statuses(run, runner, id):
    listed = {row["id"]: row["status"] for row in json.loads(run("list", "--json").stdout)}
    shown = json.loads(run("show", id, "--json").stdout)["status"]
    told = json.loads(runner.invoke(app, ["search", "status", id, "--json"]).stdout)["status"]
    return {listed[id], shown, told}


def test_every_verb_knows_a_run_that_nobody_works_on_any_more(run, runner, store, at_work):
    store.runs.update("alive", summary={"best": None})
    assert statuses(run, runner, "alive") == {"running"}
    at_work.unlock()
    assert statuses(run, runner, "alive") == {"interrupted"}


def test_a_run_that_a_process_works_on_is_not_deleted(run, store, at_work):
    result = run("delete", "alive", "--yes")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: another process is working on this run\n")
    assert store.runs.get("alive")
    at_work.unlock()
    assert run("delete", "alive", "--yes").exit_code == 0


def test_all_runs_that_failed_are_deleted_at_once(run, store):
    assert "no run has failed" in run("delete", "--failed").stderr
    store.runs.update("run-a", status="failed")
    refused = run("delete", "--failed")
    assert (refused.exit_code, len(store.runs.all())) == (2, 2)
    assert run("delete", "--failed", "--yes").stdout == "deleted run run-a and 3 candidates\n"
    assert [each.id for each in store.runs.all()] == ["other"]
    for wrong in (("delete",), ("delete", "other", "--failed")):
        assert "name a run or give --failed" in run(*wrong).stderr
    assert run("delete").stderr.startswith("error: no run is named\n")


@pytest.mark.parametrize("more", [(), ("--store", "new.db")])
def test_a_kind_that_is_not_there_is_told(run, store, more):
    store.runs.create(RunRecord("mine", "count", "to five", 0.0))
    if more:
        open_store("new.db").close()
    result = run("list", "--kind", "simulaton", *more)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        'error: unknown kind "simulaton"', "  at:  flag --kind", "  try: did you mean simulation",
    ]  # fmt: skip
    assert run("list", "--kind", "count", *more).exit_code == (2 if more else 0)


def spoil(store, statement, *values):
    with sqlite3.connect(store.label) as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("settings", "nope"),
        ("settings", "[" * 3000 + "]" * 3000),
        ("created_s", "abc"),
        ("name", b"\xff"),
        ("summary", "[1]"),
    ],
)
def test_a_damaged_run_hides_no_other_and_can_be_deleted(run, store, column, value):
    spoil(store, f"UPDATE runs SET {column} = ? WHERE id = 'run-a'", value)
    listed = run("list")
    assert listed.exit_code == 0
    assert "other" in listed.stdout
    assert 'table runs, row "run-a"' in listed.stderr
    assert run("show", "run-a").exit_code == 2
    assert run("delete", "run-a", "--yes").exit_code == 0
    assert [each.id for each in store.runs.all()] == ["other"]
    assert store.runs.damaged() == []


@pytest.mark.parametrize("created_s", [1e300, float("inf"), -1e300])
def test_a_moment_that_no_calendar_has_is_shown_as_a_number(run, store, created_s):
    spoil(store, "UPDATE runs SET created_s = ? WHERE id = 'run-a'", created_s)
    assert run("list").exit_code == 0
    assert f"{created_s:g} s after 1970" in run("show", "run-a").stdout


@pytest.mark.parametrize(
    ("column", "value"),
    [("fitness", "abc"), ("text", b"\xff"), ("scores", "nope"), ("complexity", "much")],
)
def test_a_damaged_candidate_is_left_out(run, store, column, value):
    spoil(store, f"UPDATE candidates SET {column} = ? WHERE number = 2", value)
    (best,) = json.loads(run("show", "run-a", "--json").stdout)["best"]
    assert best["number"] == 0
    assert "90.500" in run("list").stdout


@pytest.mark.parametrize("kind", ["simulation", "comparison"])
def test_a_strange_summary_hides_no_other_run(run, store, kind):
    strange = json.dumps({"comparison": 1})
    spoil(store, "UPDATE runs SET kind = ?, summary = ? WHERE id = 'run-a'", kind, strange)
    listed = run("list")
    assert listed.exit_code == 0
    assert "other" in listed.stdout
    assert "the summary is damaged" in listed.stdout
    assert run("show", "run-a").exit_code == (2 if kind == "comparison" else 0)


def test_a_damaged_name_keeps_no_other_run_from_being_named(run, store):
    spoil(store, "UPDATE runs SET name = ? WHERE id = 'run-a'", b"\xff")
    assert run("show", "other").exit_code == 0
    unknown = run("show", "othr")
    assert unknown.exit_code == 2
    assert "other" in unknown.stderr


@pytest.mark.usefixtures("store")
def test_the_status_of_a_run_with_a_strange_summary_is_refused(runner, store):
    spoil(store, "UPDATE runs SET summary = ? WHERE id = 'run-a'", '{"a": 1}')
    done = runner.invoke(app, ["search", "status", "run-a"])
    assert done.exit_code == 2
    assert "the summary is not that of a search" in done.stderr


def test_tables_that_were_changed_by_hand_are_not_blamed_on_the_disk(run, store):
    spoil(store, "DELETE FROM podium_schema")
    done = run("list")
    assert done.exit_code == 3
    assert "changed by hand" in done.stderr
    assert "space" not in done.stderr
