"""Trainings that are stopped or killed in the midst go on as if nothing had happened."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.binary import PODIUM, clean_environment, run

CONFIG = "[world]\npods = 100\n\n[learning]\nenvironments = 4\n"
TRAIN = [*PODIUM, "train", "qtable", "--config", "small.toml", "--save-interval", "8"]


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "small.toml").write_text(CONFIG)
    store, runs = f"sqlite:///{tmp_path / 'runs.db'}", str(tmp_path / "runs")
    return {"PODIUM_STORE_URL": store, "PODIUM_SEARCH_FOLDER": runs}


def _begun(folder, environ, episodes):
    process = subprocess.Popen(
        [*TRAIN, "--episodes", str(episodes), "--save", "parted"], cwd=folder, text=True,
        env=clean_environment(folder, **environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not list(folder.glob("runs/*/checkpoint-*.npz")):
        assert time.monotonic() < deadline, process.poll()
        time.sleep(0.02)
    return process


def _best(folder, environ, *command):
    done = run([*command, "--json"], folder, **environ)
    assert done.returncode == 0, done.stderr
    return (Path(json.loads(done.stdout)["folder"]) / "best.npz").read_bytes()


@pytest.mark.deep
def test_a_training_that_was_killed_ends_with_the_same_weights(tmp_path, environ):
    process = _begun(tmp_path, environ, 200)
    process.kill()
    process.communicate()
    (listed,) = json.loads(run([*PODIUM, "runs", "list", "--json"], tmp_path, **environ).stdout)
    assert listed["status"] == "interrupted"
    done = run([*PODIUM, "train", "resume", "parted", "--json"], tmp_path, **environ)
    found = json.loads(done.stdout)
    assert found["episodes"] == 200
    whole = _best(tmp_path, environ, *TRAIN, "--episodes", "200", "--save", "whole")
    assert (Path(found["folder"]) / "best.npz").read_bytes() == whole


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_training_that_is_asked_to_end_saves_and_says_how_to_go_on(tmp_path, environ, number):
    process = _begun(tmp_path, environ, 1_000_000)
    process.send_signal(number)
    out, told = process.communicate(timeout=300)
    assert process.returncode == 130
    assert out == ""
    (listed,) = json.loads(run([*PODIUM, "runs", "list", "--json"], tmp_path, **environ).stdout)
    assert listed["status"] == "interrupted"
    assert f"stopped; podium train resume {listed['id']} continues" in told
    rows = (Path(listed["folder"]) / "figures.jsonl").read_text().splitlines()
    newest = max(Path(listed["folder"]).glob("checkpoint-*.npz")).stem
    assert int(newest.removeprefix("checkpoint-")) == json.loads(rows[-1])["iteration"]


@pytest.mark.deep
def test_two_processes_do_not_work_on_one_training(tmp_path, environ):
    process = _begun(tmp_path, environ, 1_000_000)
    try:
        refused = run([*PODIUM, "train", "resume", "parted"], tmp_path, **environ)
    finally:
        process.kill()
        process.communicate()
    assert refused.returncode == 2
    assert "another process is working on this run" in refused.stderr
