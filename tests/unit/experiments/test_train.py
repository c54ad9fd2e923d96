"""Trainings from Python: what comes back, what is kept, and how it is shown."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import podium
from podium.errors import InputError, PodiumError, UsageError
from podium.experiments.listener import Cancelled, Listener
from podium.experiments.runs import open_runs
from podium.experiments.train import find_training, resume
from podium.policies import load
from podium.settings import load_settings

SMALL = {"world": {"pods": 40}, "learning": {"environments": 4}}


@pytest.fixture(autouse=True)
def _own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_STORE_URL", f"sqlite:///{tmp_path / 'runs.db'}")
    monkeypatch.setenv("PODIUM_SEARCH_FOLDER", str(tmp_path / "runs"))


def test_what_was_learned_is_a_policy_and_nothing_stays(tmp_path):
    found = podium.train("qtable", SMALL, episodes=8, save_interval=4)
    assert found.is_complete
    assert found.run_id == found.folder == ""
    assert podium.simulate(found.best, "openb", nodes=3, pods=12).plan.policy.origin == "trained"
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "runs.db").exists()


def test_it_is_shown_with_its_learning_curve():
    found = podium.train("qtable", SMALL, episodes=8, save_interval=4)
    shown = found._repr_html_()
    assert "<svg" in shown
    assert "best_score" in shown
    best, episode = found.summary["best_score"], found.summary["best_episode"]
    told = f"best score {best:.3f} after {episode} episodes"
    assert repr(found) == f"<TrainingOutcome of qtable: {told}>"


def test_what_was_learned_is_written_to_a_file(tmp_path):
    found = podium.train("qtable", SMALL, episodes=4)
    assert load(str(found.save_policy(tmp_path / "mine.npz"))).name == "mine"
    assert json.loads((tmp_path / "mine.json").read_text())["training"]["episodes"] == 4
    with pytest.raises(UsageError, match=r"ends in \.npz"):
        found.save_policy(tmp_path / "mine.txt")


class Impatient(Listener):
    """Cancels at once."""

    def training_progress(self, _progress):
        raise Cancelled


def test_a_cancelled_training_that_is_kept_can_be_resumed():
    with pytest.raises(Cancelled):
        podium.train(
            "qtable", SMALL, episodes=8, save_interval=4, keep="mine", listener=Impatient()
        )
    with open_runs(load_settings()) as store:
        assert find_training(store, "mine").status == "interrupted"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"algorithm": "dqn"}, "algorithm"),
        ({"config": {"wrld": {}}}, "did you mean world"),
        ({"seed": -1}, "seed"),
        ({"config": "none.toml"}, "no such file"),
        ({"keep": " "}, "name of a run"),
    ],
)
def test_what_cannot_be_trained_is_refused(arguments, told):
    with pytest.raises(PodiumError) as caught:
        podium.train(**{"config": SMALL, "episodes": 4, **arguments})
    assert told in f"{caught.value} {caught.value.hint}"


def test_a_training_goes_on_with_its_own_checkpoints_alone():
    one, other = (
        podium.train("qtable", SMALL, episodes=4, seed=seed, keep=f"seed-{seed}")
        for seed in (1000, 1001)
    )
    assert resume(load_settings(), "seed-1000", {"episodes": 8}).summary["episodes"] == 8
    for each in Path(one.folder).glob("checkpoint-*.npz"):
        shutil.copy(next(Path(other.folder).glob("checkpoint-*.npz")), each)
    with pytest.raises(InputError, match="the checkpoint of another run"):
        resume(load_settings(), "seed-1000", {"episodes": 12})


BARE = """
import sys

for name in {missing}:
    sys.modules[name] = None  # as if it were not installed
from pathlib import Path
from podium.rl.configuration import create_config
from podium.rl.qtable.algorithm import make_judge, make_learner
from podium.rl.training import Limits, Training

of = create_config("qtable", world={{"pods": 30}}, learning={{"environments": 2}})
end = Training(make_learner(of, 1000), make_judge(of), Path({folder!r}), Limits(2)).run()
print(end.progress.episodes)
"""


@pytest.mark.deep
def test_training_needs_neither_database_nor_web_nor_gymnasium(tmp_path):
    missing = {"sqlalchemy", "pydantic", "gymnasium", "tensorboardX", "jax", "fastapi", "cma"}
    text = BARE.format(missing=missing, folder=str(tmp_path / "run"))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout == "2\n", done.stderr
    assert list(Path(tmp_path / "run").glob("checkpoint-*.npz"))


@pytest.mark.parametrize("name", ["best.npz", "best.json"])
def test_a_link_in_the_place_of_the_policy_is_neither_written_to_nor_read(tmp_path, name):
    found = podium.train("qtable", SMALL, episodes=4, keep="mine")
    path, other = Path(found.folder) / name, tmp_path / name
    path.rename(other)
    path.symlink_to(other)
    before = other.read_bytes()
    with pytest.raises(InputError, match="is not a regular file"):
        resume(load_settings(), "mine", {"episodes": 8})
    with pytest.raises(InputError, match="is not a regular file"):
        podium.load_policy("run:mine")
    assert other.read_bytes() == before


def test_nothing_is_written_to_a_folder_that_only_the_store_names(tmp_path, monkeypatch):
    podium.train("qtable", SMALL, episodes=4, save_interval=4, keep="mine")
    with open_runs(load_settings()) as store:
        record = find_training(store, "mine")
        elsewhere = tmp_path / "elsewhere" / record.id
        shutil.copytree(record.folder, elsewhere)
        with store.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE runs SET folder = ?", (str(elsewhere),))
    before = sorted((path.name, path.stat().st_mtime_ns) for path in elsewhere.iterdir())
    with pytest.raises(UsageError, match="outside the folder for runs") as told:
        resume(load_settings(), "mine", {"episodes": 8})
    assert f"PODIUM_SEARCH_FOLDER={elsewhere.parent} podium train resume" in told.value.hint
    assert before == sorted((path.name, path.stat().st_mtime_ns) for path in elsewhere.iterdir())
    monkeypatch.setenv("PODIUM_SEARCH_FOLDER", str(elsewhere.parent))
    assert resume(load_settings(), "mine", {"episodes": 8}).is_complete
