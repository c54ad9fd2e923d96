import json
from dataclasses import replace

import pytest

import podium
from podium.cli.main import app
from podium.errors import UsageError
from podium.experiments.runs import best_candidates, check_name, delete, diff, figures_of
from podium.store import RunRecord, open_store
from podium.store.run_folder import RunFolder
from support.stored import CANDIDATE, judged

pytestmark = pytest.mark.usefixtures("_warm_cache")

CASE = ("--trace", "openb:16", "--pods", "100", "--protocol", "inflation")


@pytest.fixture
def invoke(runner):
    """Runs a verb that succeeds."""

    def invoked(*arguments):
        result = runner.invoke(app, [*map(str, arguments)])
        assert result.exit_code == 0, result.stderr
        return result

    return invoked


@pytest.fixture
def data(invoke):
    return lambda *arguments: json.loads(invoke(*arguments, "--json").stdout)


@pytest.fixture
def simulated(invoke):
    """Keeps two simulations of one trace."""
    for policy, name in (("fgd", "with fgd"), ("worst-fit", "with worst-fit")):
        invoke("simulate", "--policy", policy, *CASE, "--save", name)


def test_a_simulation_is_kept_with_its_inputs_and_figures(invoke, data):
    done = invoke("simulate", "--policy", "fgd", *CASE, "--seed", 3, "--save", "first", "--json")
    assert "saved as run" in done.stderr
    printed, kept = json.loads(done.stdout), data("runs", "show", "first")
    assert (kept["kind"], kept["name"], kept["status"]) == ("simulation", "first", "finished")
    assert kept["summary"] == printed
    asked = kept["settings"]
    assert (asked["policy"], asked["trace"], asked["protocol"]) == ("fgd", "openb:16", "inflation")
    assert (asked["seed"], asked["ratio"], asked["version"]) == (3, 1.3, podium.__version__)
    assert len(asked["policy_digest"]) == len(asked["trace_digest"]) == 64


def test_a_comparison_is_kept_with_its_ranking(invoke, data):
    asked = ("compare", "fgd", "worst-fit", *CASE, "--seeds", "1,2", "--save", "ranked", "--json")
    printed = json.loads(invoke(*asked).stdout)
    kept = data("runs", "show", "ranked")
    assert kept["kind"] == "comparison"
    assert kept["summary"] == printed
    assert kept["settings"]["seeds"] == [1, 2]
    assert set(kept["settings"]["policy_digests"]) == {"fgd", "worst-fit"}
    shown = invoke("runs", "show", "ranked").stdout
    assert "fgd gpu_allocation" in shown


@pytest.mark.usefixtures("simulated")
def test_kinds_are_listed_together_and_apart(invoke, data):
    invoke("compare", "fgd", *CASE, "--seeds", "1", "--save", "ranked")
    listed = data("runs", "list")
    assert [row["kind"] for row in listed] == ["comparison", "simulation", "simulation"]
    assert listed[0]["result"] == "fgd, best of 1 by gpu_allocation"
    assert listed[2]["result"].startswith("fgd: ")
    assert [row["name"] for row in data("runs", "list", "--kind", "comparison")] == ["ranked"]
    shown = invoke("runs", "list").stdout.splitlines()
    assert shown[0].endswith("best fitness  result")


@pytest.mark.usefixtures("simulated")
def test_two_simulations_are_set_side_by_side(invoke, data):
    found = data("runs", "diff", "with fgd", "with worst-fit")
    assert found["kind"] == "simulation"
    assert [run["name"] for run in found["runs"]] == ["with fgd", "with worst-fit"]
    assert {each["name"] for each in found["inputs"]} == {"policy", "policy_digest", "demand"}
    allocation = next(each for each in found["metrics"] if each["name"] == "gpu_allocation")
    assert allocation["difference"] == pytest.approx(allocation["second"] - allocation["first"])
    shown = invoke("runs", "diff", "with fgd", "with worst-fit").stdout
    digest = next(each["first"] for each in found["inputs"] if each["name"] == "policy_digest")
    assert len(digest) == 64
    assert f" {digest[:12]} " in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "policy" in shown.splitlines()[1]
    assert "gpu_allocation" in shown


@pytest.mark.usefixtures("simulated")
def test_a_run_beside_itself_differs_in_nothing(invoke, data):
    found = data("runs", "diff", "with fgd", "with fgd")
    assert found["inputs"] == []
    assert all(each["difference"] in (0.0, None) for each in found["metrics"])
    assert "the inputs are the same" in invoke("runs", "diff", "with fgd", "with fgd").stderr


def test_a_trace_that_was_changed_under_its_name_is_told(invoke, data, small_trace):  # noqa: ARG001
    asked = ("simulate", "--policy", "fgd", "--trace", "pods.csv", "--cluster", "nodes.csv")
    invoke(*asked, "--save", "before")
    with open("pods.csv") as file:  # noqa: PTH123
        lines = file.read().splitlines()
    with open("pods.csv", "w") as file:  # noqa: PTH123
        file.write("\n".join(lines[:-1]) + "\n")
    invoke(*asked, "--save", "after")
    inputs = [each["name"] for each in data("runs", "diff", "before", "after")["inputs"]]
    assert inputs == ["trace_digest"]


def test_two_comparisons_are_set_side_by_side_by_policy(invoke, data):
    invoke("compare", "fgd", "worst-fit", *CASE, "--seeds", "1,2", "--save", "a")
    invoke("compare", "fgd", "best-fit", *CASE, "--seeds", "1,2", "--save", "b")
    found = {each["name"]: each for each in data("runs", "diff", "a", "b")["metrics"]}
    assert found["fgd gpu_allocation"]["difference"] == 0
    assert found["worst-fit gpu_allocation"]["second"] is None
    assert found["best-fit gpu_allocation"]["first"] is None


@pytest.mark.usefixtures("simulated")
def test_runs_of_different_kinds_are_not_compared(runner, invoke):
    invoke("compare", "fgd", *CASE, "--seeds", "1", "--save", "ranked")
    result = runner.invoke(app, ["runs", "diff", "with fgd", "ranked"])
    assert result.exit_code == 2
    first, second, third = result.stderr.splitlines()
    assert "is a simulation and" in first
    assert second == "  at:  arguments A and B"
    assert "podium runs list --kind simulation" in third


@pytest.mark.usefixtures("simulated")
def test_a_name_that_two_runs_have_is_ambiguous(runner, invoke, data):
    invoke("simulate", "--policy", "fgd", *CASE, "--save", "with fgd")
    result = runner.invoke(app, ["runs", "show", "with fgd"])
    assert result.exit_code == 2
    ids = sorted(row["id"] for row in data("runs", "list") if row["name"] == "with fgd")
    assert result.stderr.splitlines() == [
        'error: several runs are named "with fgd"',
        "  at:  argument RUN",
        f"  try: use an id: {', '.join(ids)}",
    ]


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("verb", [("resume",), ("status",), ("promote",)])
def test_verbs_of_searches_refuse_other_runs(runner, verb):
    result = runner.invoke(app, ["search", *verb, "with fgd"])
    assert result.exit_code == 2
    assert "is a simulation, not a search" in result.stderr
    begun = runner.invoke(app, ["search", "run", "--from", "with fgd"])
    assert "is a simulation, not a search" in begun.stderr


@pytest.mark.usefixtures("simulated")
def test_a_simulation_is_deleted_by_name(runner, data):
    refused = runner.invoke(app, ["runs", "delete", "with fgd"])
    assert refused.exit_code == 2
    assert "refusing to delete without confirmation" in refused.stderr
    assert data("runs", "delete", "with fgd", "--yes")["candidates"] == 0
    assert [row["name"] for row in data("runs", "list")] == ["with worst-fit"]


@pytest.mark.parametrize("name", ["", " ", "a\nb", " a", "\x1b[2J"])
def test_a_name_that_nobody_can_type_is_refused_before_the_run(runner, monkeypatch, name):
    def never(*_arguments):
        raise AssertionError("a run began")

    monkeypatch.setattr("podium.experiments.simulate.run_case", never)
    with pytest.raises(UsageError):
        check_name(name)
    assert runner.invoke(app, ["simulate", "--save", name]).exit_code == 2
    assert runner.invoke(app, ["compare", "--save", name]).exit_code == 2


def test_a_password_in_a_command_is_not_kept(invoke, monkeypatch):
    where = "sqlite:///here.db"
    typed = ["podium", "simulate", "--store", "postgresql://me:hunter2@db/x"]
    monkeypatch.setattr("sys.argv", typed)
    invoke("simulate", "--policy", "fgd", *CASE, "--save", "first", "--store", where)
    with open_store(where) as store:
        assert "hunter2" not in str(store.runs.get("first"))


@pytest.mark.deep
def test_searches_are_set_side_by_side(invoke):
    found = [
        podium.search(
            evaluations=20,
            trace="openb",
            nodes=32,
            seeds=2,
            workers=1,
            seed=seed,
            keep=f"seed {seed}",
        )
        for seed in (1000, 1001)
    ]
    with open_store(str(_default_store())) as store:
        first, second = (store.runs.get(each.run_id) for each in found)
    told = diff(first, second)
    assert {each.name for each in told.inputs} == {"seed"}
    assert {"evaluations", "fitness"} <= set(figures_of(first))
    shown = invoke("runs", "diff", "seed 1000", "seed 1001").stdout
    assert "fitness" in shown


def _default_store():
    from podium.settings import load_settings

    return load_settings().store.url


def test_a_run_is_deleted_without_a_mark_on_the_folder_that_it_names(tmp_path):
    folder = RunFolder(tmp_path / "foreign")
    folder.create()
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        for place in (str(folder.path), str(tmp_path / "gone"), "/" + "x" * 5000, "/a\0b", ""):
            record = RunRecord("ab12", "search", "planted", 0.0, folder=place)
            store.runs.create(record)
            delete(store, record)
            assert store.runs.all() == []
        assert list(folder.path.iterdir()) == []
        store.runs.create(record := RunRecord("ab12", "search", "", 0.0, folder=str(folder.path)))
        folder.lock()
        with pytest.raises(UsageError, match="another process"):
            delete(store, record)
        folder.unlock()
        assert store.runs.all() == [record]


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ({"best": 2}, [2, 0, 1]),
        ({"best": 0}, [0, 1, 2]),
        ({}, [0, 1, 2]),
        ({"best": 3}, [0, 1, 2]),
        ({"best": 99}, [0, 1, 2]),
        ({"best": "two"}, [0, 1, 2]),
    ],
    ids=["chosen", "first anyway", "none yet", "refused", "unknown", "no number"],
)
def test_the_winner_that_was_chosen_comes_before_the_best_by_training(tmp_path, summary, expected):
    record = RunRecord("run-a", "search", "a", 0.0, summary=summary)
    rows = [judged(replace(CANDIDATE, number=i), 9.0 - i, accepted=i < 3) for i in range(4)]
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        store.runs.create(record)
        store.candidates.propose([replace(CANDIDATE, number=row.number) for row in rows])
        store.candidates.judge(rows)
        assert [each.number for each in best_candidates(store, record, 3)] == expected
        assert [each.number for each in best_candidates(store, record, 1)] == expected[:1]
        assert best_candidates(store, record, 0) == []
