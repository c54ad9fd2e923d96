"""The loop: limits, the best that is kept, early stop, and continuing exactly."""

from __future__ import annotations

import io
import json
import os
import resource
import struct
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from podium.errors import InputError, MissingError
from podium.rl.checkpoints import Checkpoint, Checkpoints
from podium.rl.learner import Trained, like, random_state, restored_generator
from podium.rl.records import FIGURES, TENSORBOARD, FigureRecords, read_figures
from podium.rl.training import Hooks, Limits, Training


class Walker:
    """Learns nothing, but walks: its weight is a sum of random numbers."""

    def __init__(self, seed=1000):
        self._random = np.random.default_rng(seed)
        self._weight = np.zeros(3)

    def iterate(self):
        self._weight += self._random.normal(size=3)
        return {"steps": 10, "reward": float(self._weight[0])}

    def trained(self):
        return Trained("walk", {"weight": self._weight}, {"sizes": [3]})

    def state(self):
        return {"weight": self._weight, "random": random_state(self._random)}

    def restore(self, state):
        self._weight = like(np.zeros(3), state, "weight").copy()
        self._random = restored_generator(state["random"])


def judge(trained):
    return {"score": float(trained.arrays["weight"].sum())}


def train(folder: Path, hooks=None, **limits):
    limits = Limits(**{"episodes": 40, "save_interval": 5, **limits})
    return Training(Walker(), judge, folder, limits, hooks).run()


def rows_without_times(folder: Path):
    rows = read_figures(folder / FIGURES)
    return [{name: row[name] for name in row if name != "steps_per_s"} for row in rows]


def test_the_validation_of_the_best_is_known_beside_the_last(tmp_path):
    scores = iter([1.0, 3.0, 2.0, 0.0])
    told = Training(
        Walker(), lambda _trained: {"score": (score := next(scores)), "other": 10 * score},
        tmp_path, Limits(20, save_interval=5),
    ).run().progress  # fmt: skip
    assert told.validation == {"score": 0.0, "other": 0.0}
    assert told.best_validation == {"score": 3.0, "other": 30.0}
    again = Training(Walker(), judge, tmp_path, Limits(20, save_interval=5)).run()
    assert again.progress.best_validation == told.best_validation


def test_it_ends_at_the_limit_and_keeps_the_best(tmp_path):
    end = train(tmp_path)
    scores = [row["score"] for row in read_figures(tmp_path / FIGURES) if "score" in row]
    assert end.is_complete
    assert end.progress.episodes == 40
    assert len(scores) == 8
    assert end.progress.best_score == max(scores) == judge(end.best)["score"]
    assert end.best.facts == {"sizes": [3]}


def test_two_checkpoints_are_kept(tmp_path):
    train(tmp_path)
    names = sorted(each.name for each in tmp_path.glob("checkpoint-*"))
    assert names == ["checkpoint-000000035.npz", "checkpoint-000000040.npz"]


@pytest.mark.parametrize("stop_after", [1, 7, 10, 33])
def test_a_stopped_training_goes_on_as_if_it_had_not_stopped(tmp_path, stop_after):
    heard = []
    hooks = Hooks(heard.append, is_stopped=lambda: len(heard) >= stop_after)
    first = train(tmp_path / "parted", hooks)
    assert not first.is_complete
    assert first.progress.episodes == stop_after
    parted, whole = train(tmp_path / "parted"), train(tmp_path / "whole")
    assert parted.best.arrays["weight"].tobytes() == whole.best.arrays["weight"].tobytes()
    assert parted.progress.best_episode == whole.progress.best_episode
    assert rows_without_times(tmp_path / "parted") == rows_without_times(tmp_path / "whole")


class Killed(BaseException):
    """Stands for a power cut: nothing is saved any more."""


def test_what_a_crash_lost_is_learned_again(tmp_path):
    heard = []

    def crash(progress):
        heard.append(progress)
        if len(heard) == 23:
            raise Killed

    with pytest.raises(Killed):
        train(tmp_path / "parted", Hooks(crash))
    parted, whole = train(tmp_path / "parted"), train(tmp_path / "whole")
    assert parted.best.arrays["weight"].tobytes() == whole.best.arrays["weight"].tobytes()
    assert rows_without_times(tmp_path / "parted") == rows_without_times(tmp_path / "whole")


def test_it_stops_when_nothing_gets_better(tmp_path):
    end = Training(
        Walker(), lambda _: {"score": 1.0}, tmp_path, Limits(500, save_interval=5, patience=3)
    ).run()
    assert end.progress.episodes == 20
    assert "no better validation 3 times" in end.ending


def test_time_ends_it_and_is_told(tmp_path):
    ticks = iter(range(10_000))
    end = train(tmp_path, Hooks(clock=lambda: float(next(ticks))), episodes=None, seconds=12.0)
    assert end.ending == "the time is up"
    assert end.progress.share == 1.0
    assert end.progress.eta_s == 0.0


def test_progress_tells_speed_and_what_is_left(tmp_path):
    heard, ticks = [], iter(range(10_000))
    train(tmp_path, Hooks(heard.append, clock=lambda: 2.0 * next(ticks)), save_interval=100)
    assert heard[9].steps_per_s == 5.0
    assert heard[9].share == 0.25
    assert heard[9].eta_s == 60.0


def test_a_damaged_checkpoint_gives_way_to_the_one_before(tmp_path):
    kept = Checkpoints(tmp_path)
    for number in (1, 2):
        kept.save(Checkpoint(number, {"a": np.full(2, number)}, {}))
    newest = tmp_path / "checkpoint-000000002.npz"
    newest.write_bytes(newest.read_bytes()[:100])
    found = kept.newest()
    assert found.iteration == 1
    assert found.arrays["a"].tolist() == [1, 1]
    (tmp_path / "checkpoint-000000001.npz").write_bytes(b"")
    with pytest.raises(InputError, match="not a checkpoint"):
        kept.newest()


def test_a_checkpoint_is_no_program(tmp_path):
    np.savez(tmp_path / "checkpoint-000000001.npz", facts=np.array([{"a": 1}], object))
    with pytest.raises(InputError, match="not a checkpoint"):
        Checkpoints(tmp_path).newest()


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    file = tmp_path / FIGURES
    file.write_text(json.dumps({"iteration": 1, "reward": 2.0}) + '\n{"iterat', encoding="utf-8")
    assert read_figures(file) == [{"iteration": 1, "reward": 2.0}]


def rewritten(path: Path, change) -> None:
    """Writes a checkpoint again with other arrays and facts."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    facts = json.loads(arrays.pop("facts").tobytes())
    change(arrays, facts)
    np.savez(path, **arrays, facts=np.frombuffer(json.dumps(facts).encode(), np.uint8))


DAMAGES = {
    "state/weight is missing": lambda arrays, _: arrays.pop("state/weight"),
    "state is shorter": lambda arrays, _: arrays.update({"state/weight": np.zeros(2)}),
    "state is text": lambda arrays, _: arrays.update({"state/weight": np.array(["a"] * 3)}),
    "state is not finite": lambda arrays, _: arrays["state/weight"].fill(np.nan),
    "negative": lambda _, facts: facts.update(episodes=-5),
    "a fraction": lambda _, facts: facts.update(stale=0.5),
    "another iteration": lambda _, facts: facts.update(iterations=7),
    "unknown network": lambda _, facts: facts.update(best_network="run"),
    "unknown fact": lambda _, facts: facts.update(other=1),
    "infinite": lambda _, facts: facts.update(seconds=1e400),
    "no object": lambda _, facts: facts.update(best_facts=[]),
    "another run": lambda _, facts: facts.update(plan="abc"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_cannot_be_taken_up_gives_way_to_the_one_before(tmp_path, damage):
    whole = train(tmp_path / "whole")
    train(tmp_path / "parted", episodes=20)
    rewritten(tmp_path / "parted/checkpoint-000000020.npz", DAMAGES[damage])
    notes = []
    parted = train(tmp_path / "parted", Hooks(note=notes.append))
    assert len(notes) == 1
    assert "checkpoint-000000020.npz" in notes[0]
    assert "goes on from checkpoint-000000015.npz" in notes[0]
    assert parted.best.arrays["weight"].tobytes() == whole.best.arrays["weight"].tobytes()
    for path in (tmp_path / "parted").glob("checkpoint-*.npz"):
        rewritten(path, DAMAGES[damage])
    with pytest.raises(InputError, match=r"checkpoint-000000040\.npz") as caught:
        train(tmp_path / "parted", episodes=50)
    assert caught.value.hint


def test_the_checkpoint_of_another_run_is_refused_as_such(tmp_path):
    limits = Limits(5, save_interval=5)
    Training(Walker(), judge, tmp_path, limits, plan_digest="one").run()
    again = Training(Walker(), judge, tmp_path, Limits(1), plan_digest="one").run()
    assert again.progress.episodes == 5
    with pytest.raises(InputError, match="the checkpoint of another run"):
        Training(Walker(), judge, tmp_path, limits, plan_digest="other")


def test_a_small_checkpoint_cannot_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("podium.rl.checkpoints.MOST_BYTES", 1 << 20)
    np.savez_compressed(tmp_path / "checkpoint-000000001.npz", a=np.zeros(1 << 20))
    with pytest.raises(InputError, match=r"8,388,\d+ bytes when unpacked"):
        Checkpoints(tmp_path).newest()


def test_later_checkpoints_that_nobody_can_read_cost_no_new_one(tmp_path):
    for number in (900, 901):
        (tmp_path / f"checkpoint-000000{number}.npz").write_bytes(b"")
    kept = Checkpoints(tmp_path)
    for number in (1, 2, 3):
        kept.save(Checkpoint(number, {}, {}))
    assert kept.newest().iteration == 3


def test_a_checkpoint_does_not_follow_a_link(tmp_path):
    (tmp_path / "other").write_bytes(b"mine")
    (tmp_path / "checkpoint-000000001.npz").symlink_to(tmp_path / "other")
    Checkpoints(tmp_path).save(Checkpoint(1, {}, {}))
    assert (tmp_path / "other").read_bytes() == b"mine"


def test_figures_are_not_written_through_a_link(tmp_path):
    (tmp_path / "other").write_bytes(b"mine")
    (tmp_path / FIGURES).symlink_to(tmp_path / "other")
    with pytest.raises(InputError, match="not a regular file"):
        train(tmp_path)
    assert (tmp_path / "other").read_bytes() == b"mine"
    (tmp_path / FIGURES).unlink()
    os.mkfifo(tmp_path / FIGURES)
    with pytest.raises(InputError, match="not a regular file"):
        read_figures(tmp_path / FIGURES)


def test_event_files_are_not_written_through_a_link(tmp_path):
    other, run = tmp_path / "other", tmp_path / "run"
    other.mkdir()
    run.mkdir()
    (run / TENSORBOARD).symlink_to(other)
    with pytest.raises(InputError, match="not a folder of its own"):
        train(run)
    assert not list(other.iterdir())


def test_lines_that_are_no_text_are_left_out(tmp_path):
    file = tmp_path / FIGURES
    file.write_bytes(b'{"iteration": 1}\n{"iteration": 2, "a": "\xff"}\n' + b"[" * 100_000)
    assert read_figures(file) == [{"iteration": 1}]


class Group(Walker):
    """Plays ten episodes in every iteration, and says so."""

    def iterate(self):
        return {**super().iterate(), "episodes": 10}


def test_figures_count_all_episodes_that_were_played(tmp_path):
    Training(Group(), judge, tmp_path, Limits(30, save_interval=10)).run()
    rows = read_figures(tmp_path / FIGURES)
    for kind in ("training", "validation"):
        assert [row["episodes"] for row in rows if row["kind"] == kind] == [10, 20, 30]


@pytest.fixture
def small_files():
    """Lets no file grow beyond a size, as a full disk would not."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_costs_no_figure_that_was_recorded(tmp_path, small_files):
    train(tmp_path)
    figures = tmp_path / FIGURES
    before = figures.read_bytes()
    small_files(len(before) // 2)
    with pytest.raises(MissingError, match="no space left") as caught:
        train(tmp_path, episodes=50)
    assert caught.value.where == str(figures)
    assert figures.read_bytes() == before
    assert not list(tmp_path.glob(".*.partial"))


def test_a_disk_that_fills_up_later_is_blamed_on_the_figures(tmp_path, small_files):
    train(tmp_path)
    size = (tmp_path / FIGURES).stat().st_size
    training = Training(Walker(), judge, tmp_path, Limits(50, save_interval=5))
    small_files(size + 10)
    with pytest.raises(MissingError, match="no space left") as caught:
        training.run()
    assert caught.value.where == str(tmp_path / FIGURES)


def test_what_a_killed_process_left_half_written_is_tidied(tmp_path):
    train(tmp_path)
    left = tmp_path / ".checkpoint-000000041.npz.123.partial"
    left.write_bytes(b"half")
    train(tmp_path, episodes=45)
    assert not left.exists()


class Talker(Walker):
    """Tells so many figures that TensorBoard's file is the one that grows."""

    def iterate(self):
        return {**super().iterate(), **{f"figure_{each}": 1.0 for each in range(50)}}


def test_a_disk_that_is_full_of_events_ends_the_training(tmp_path, small_files, monkeypatch):
    monkeypatch.setattr(FigureRecords, "_kept_until", lambda *_: io.StringIO())
    training = Training(Talker(), judge, tmp_path, Limits(5000, save_interval=5000))
    small_files(20_000)
    with pytest.raises(MissingError, match="no space left") as caught:
        training.run()
    assert TENSORBOARD in caught.value.where


def test_events_say_what_the_figures_say(tmp_path):
    train(tmp_path, episodes=10)
    train(tmp_path, episodes=20)
    loader = import_module("tensorboardX.proto.event_pb2").Event
    rows = [row for row in read_figures(tmp_path / FIGURES) if row["kind"] == "training"]
    found = {}
    for file in sorted((tmp_path / TENSORBOARD).iterdir(), key=lambda each: each.stat().st_mtime):
        content = file.read_bytes()
        while content:
            (size,) = struct.unpack("Q", content[:8])
            event = loader.FromString(content[12 : 12 + size])
            content = content[16 + size :]
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = value.simple_value
    reward = {row["episodes"]: pytest.approx(row["reward"]) for row in rows}
    assert found["training/reward"] == reward
