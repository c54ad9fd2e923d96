"""The verb train: runs in the store, resuming, what is learned by name, and what is refused."""

import json
from pathlib import Path

import pytest

from podium.cli.main import app
from podium.policies import load

pytestmark = pytest.mark.usefixtures("_warm_cache", "_clean_surroundings")

SMALL = """
[world]
pods = 40

[learning]
environments = 4
"""


@pytest.fixture
def run(runner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PODIUM_STORE_URL", f"sqlite:///{tmp_path / 'runs.db'}")
    monkeypatch.setenv("PODIUM_SEARCH_FOLDER", str(tmp_path / "runs"))
    Path("small.toml").write_text(SMALL)
    return lambda *arguments: runner.invoke(app, [str(each) for each in arguments])


@pytest.fixture
def trained(run):
    def begin(*more, name="first", episodes=8):
        done = run(
            "train", "qtable", "--config", "small.toml", "--episodes", episodes,
            "--save-interval", 4, "--save", name, "--json", *more,
        )  # fmt: skip
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    return begin


def test_the_summary_tells_the_validation_of_the_policy_that_is_kept(run, trained):
    careless = ("--set", "learning.least_visits=1", "--set", "learning.errors=0")
    found = trained(*careless, "--seed", 1001, episodes=16)
    assert found["best_episode"] < 16
    assert found["validation"]["score"] == found["best_score"]
    told = f"score {found['best_score']:.3f} after {found['best_episode']} episodes"
    assert told in run("runs", "list").stdout


def test_a_plan_of_a_q_table_on_a_gpu_is_refused(run, trained):
    file = Path(trained()["folder"]) / "plan.json"
    file.write_text(file.read_text().replace('"device": "cpu"', '"device": "gpu"'))
    done = run("train", "resume", "first", "--episodes", 12)
    assert done.exit_code == 2
    assert "corrupt run file: qtable is trained on the CPU" in done.stderr


@pytest.mark.parametrize("verb", ["qtable", "mlp", "ppo", "resume", "ablate"])
def test_help_says_that_no_minutes_are_no_limit(run, verb):
    told = " ".join(run("train", verb, "--help").stdout.split())
    assert "End after so many minutes; 0: no limit." in told


@pytest.mark.parametrize("algorithm", ["mlp", "ppo"])
def test_a_gpu_that_is_not_there_is_refused_before_a_run_begins(run, monkeypatch, algorithm):
    pytest.importorskip("jax", reason="training nets needs JAX")

    def without_gpus(_name):
        raise RuntimeError("unknown backend")

    monkeypatch.setattr("jax.devices", without_gpus)
    done = run("train", algorithm, "--device", "gpu")
    assert done.exit_code == 3
    assert done.stderr.splitlines() == [
        "error: JAX finds no gpu on this machine", "  at:  flag --device",
        "  try: train with --device cpu",
    ]  # fmt: skip
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    "flags",
    [
        ("qtable", "--minutes", "nan"),
        ("qtable", "--device", "gpu"),
        ("qtable", "--set", "training.minutes=nan"),
        ("qtable", "--config", "."),
        ("mlp", "--set", "evolution.floor=nobody"),
        ("mlp", "--set", "imitation.teacher=nobody"),
        ("mlp", "--set", "evolution.nodes=[-1]"),
        ("mlp", "--set", "evolution.workers=100000"),
        ("mlp", "--set", 'workload.traces=["nope.csv"]'),
        ("mlp", "--set", "workload.cluster=nope.csv"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_three_lines_before_a_run_begins(run, flags):
    done = run("train", *flags)
    assert done.exit_code == 2
    told = done.stderr.strip().splitlines()
    assert [line.split(":")[0].strip() for line in told] == ["error", "at", "try"]
    assert not Path("runs").exists()


def test_a_training_is_a_run_in_the_store(run, trained):
    found = trained()
    listed = json.loads(run("runs", "list", "--kind", "training", "--json").stdout)
    assert [(each["id"], each["name"], each["status"]) for each in listed] == [
        (found["run"], "first", "finished")
    ]
    best = f"qtable: score {found['best_score']:.3f} after {found['best_episode']} episodes"
    assert best in run("runs", "list").stdout
    shown = run("runs", "show", "first").stdout
    assert "best_score" in shown
    assert "steps" in shown


def test_runs_are_compared_and_deleted(run, trained):
    trained()
    trained("--seed", 1001, name="second")
    differing = json.loads(run("runs", "diff", "first", "second", "--json").stdout)
    assert "seed" in [each["name"] for each in differing["inputs"]]
    assert "best_score" in [each["name"] for each in differing["metrics"]]
    assert run("runs", "delete", "first", "--yes").exit_code == 0
    assert "first" not in run("runs", "list").stdout


def test_what_a_run_learned_is_a_policy(run, trained):
    found = trained()
    shown = run("policies", "show", "run:first")
    assert "states of 3 nodes" in shown.stdout
    assert run("policies", "show", f"run:{found['run'][:5]}").stdout == shown.stdout
    done = run("simulate", "--policy", "run:first", "--trace", "openb", "--nodes", 3,
               "--pods", 20, "--json")  # fmt: skip
    assert json.loads(done.stdout)["policy"] == "run:first"


def test_weights_that_were_changed_are_refused(run, trained):
    file = Path(trained()["folder"]) / "best.npz"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    refused = run("policies", "show", "run:first")
    assert refused.exit_code == 2
    assert "was changed after it was validated" in refused.stderr


def test_a_training_is_continued_as_if_it_had_not_ended(run, trained):
    whole = trained(name="whole", episodes=16)
    trained(name="parted")
    done = run("train", "resume", "parted", "--episodes", 16, "--json")
    parted = json.loads(done.stdout)
    assert parted["episodes"] == 16
    first, second = (Path(each["folder"]) / "best.npz" for each in (whole, parted))
    assert first.read_bytes() == second.read_bytes()


def test_a_training_with_an_unknown_setting_is_refused(run, trained):
    file = Path(trained()["folder"]) / "plan.json"
    plan = json.loads(file.read_text())
    plan["configuration"]["learning"]["weight_100"] = 0.05
    file.write_text(json.dumps(plan))
    refused = run("train", "resume", "first", "--episodes", 16)
    assert refused.exit_code == 2
    assert "corrupt run file" in refused.stderr
    assert "weight_100" in refused.stderr


def test_the_files_of_a_run_are_there(trained):
    folder = Path(trained()["folder"])
    rows = [json.loads(line) for line in (folder / "figures.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["training", "validation"] * 2
    assert list((folder / "tensorboard").glob("events*"))
    card = json.loads((folder / "best.json").read_text())
    assert card["origin"] == "trained"
    assert card["training"]["seed"] == 1000
    assert card["training"]["validation"]["score"] > 0
    assert card["training"]["command"].startswith("podium")


def test_without_tensorboard_it_trains_all_the_same(run, trained, monkeypatch):
    monkeypatch.setattr("podium.rl.records.has_tensorboard", lambda: False)
    folder = Path(trained()["folder"])
    assert not (folder / "tensorboard").exists()
    noted = run("train", "resume", "first", "--episodes", 12).stderr
    assert "no TensorBoard event files are written" in noted
    assert "install" in noted


def test_the_learning_curve_is_drawn(run, trained, tmp_path):
    trained("--plot", tmp_path / "curve.svg")
    assert "<svg" in (tmp_path / "curve.svg").read_text()
    refused = run("train", "qtable", "--plot", "curve.txt")
    assert refused.exit_code == 2
    assert "ends in .svg or .png" in refused.stderr


def test_single_keys_are_changed_on_the_command_line(run, trained):
    trained("--set", "learning.aim=balance")
    assert "aim balance" in run("policies", "show", "run:first").stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--config", "none.toml"], "podium train template qtable"),
        (["--set", "learning.gama=1"], "did you mean gamma"),
        (["--set", "learning.aim=compakt"], "did you mean compact"),
        (["--save", " "], "cannot be the name of a run"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_a_run_exists(run, arguments, told):
    refused = run("train", "qtable", *arguments)
    assert refused.exit_code == 2
    assert told in refused.stderr
    listed = run("runs", "list", "--json")
    assert listed.exit_code == 3 or json.loads(listed.stdout) == []


def test_only_trainings_are_resumed_as_such(run, trained):
    trained()
    run("simulate", "--nodes", 4, "--pods", 10, "--save", "simulated")
    refused = run("train", "resume", "simulated")
    assert refused.exit_code == 2
    assert "is a simulation, not a training" in refused.stderr
    assert "is a training, not a search" in run("search", "resume", "first").stderr
    assert run("train", "resume", "nobody").exit_code == 2


def test_a_template_reads_back(run, trained):
    written = run("train", "template", "qtable").stdout
    Path("small.toml").write_text(written.replace("pods = 300", "pods = 40"))
    assert trained()["episodes"] >= 8


def test_other_names_of_policies_are_understood():
    assert load("binpack").summary == load("compact").summary
    assert load("spread").name == "spread"
    assert load("spread").summary == load("worst-fit").summary


@pytest.mark.parametrize("seeds", ["42-51", "1000-1003", "3000,2000"])
def test_ablations_are_measured_on_unseen_seeds_alone(run, seeds):
    refused = run("train", "ablate", "no-hold", "--episodes", 1, "--seeds", seeds)
    assert refused.exit_code == 2
    assert "flag --seeds" in refused.stderr
    assert "3000 to 9999" in refused.stderr


def test_a_refused_resume_leaves_the_run_as_it_was(run, trained):
    folder = Path(trained()["folder"])
    for path in folder.glob("checkpoint-*.npz"):
        path.write_bytes(b"")
    assert run("train", "resume", "first", "--episodes", 20).exit_code == 2
    (listed,) = json.loads(run("runs", "list", "--json").stdout)
    assert listed["status"] == "finished"


@pytest.mark.parametrize("change", ["foo.bar=1", "state.foo=1", 'state.resources=["gpu", "gpu"]'])
def test_a_change_that_cannot_be_is_blamed_on_its_flag(run, change):
    refused = run("train", "qtable", "--set", change)
    assert refused.exit_code == 2
    assert "flag --set" in refused.stderr


def test_a_resource_that_is_there_twice_is_found_in_the_file(run):
    Path("twice.toml").write_text('[state]\nresources = ["gpu", "gpu"]\n')
    refused = run("train", "qtable", "--config", "twice.toml")
    assert "twice.toml" in refused.stderr
    assert "line 2" in refused.stderr
    assert "each resource once" in refused.stderr
