import json
from pathlib import Path

import pytest

from podium.policies.jit import cache_folder
from support.binary import PODIUM, run
from support.hostile import GOOD, hostile_candidates

# Read before any test cleans its environment.
COMPILED = cache_folder()
QUICK = ["--trace", "openb", "--nodes", "32", "--seeds", "1", "--json"]


def judged(folder, text, *options):
    """Judges a text as anyone would, from a file."""
    (folder / "candidate.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    command = [*PODIUM, "search", "evaluate", "candidate.py", *options]
    kept = {"PODIUM_COMPILE_CACHE": str(COMPILED)} if COMPILED else {}
    return run(command, folder, OPENROUTER_API_KEY="secret", **kept)


@pytest.fixture
def evaluate(tmp_path):
    """Judges texts in a folder of their own."""
    return lambda text, *options: judged(tmp_path, text, *options)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Is how a good candidate was judged."""
    return judged(tmp_path_factory.mktemp("good"), GOOD, *QUICK)


def test_a_good_candidate_is_accepted_with_its_scores(good):
    assert (good.returncode, good.stderr) == (0, "")
    found = json.loads(good.stdout)
    assert list(found) == ["accepted", "gate", "reason", "scores", "seconds"]
    assert (found["accepted"], found["gate"], found["reason"]) == (True, "training", "")
    assert 0 < found["scores"]["fitness"] <= 100
    assert found["scores"]["cases"][0]["case"] == "openb inflation seed 1000"
    assert found["seconds"] > 0


def test_the_same_candidate_gets_the_same_scores(good, evaluate):
    one, other = (json.loads(done.stdout)["scores"] for done in (good, evaluate(GOOD, *QUICK)))
    assert one == other


NAMES = (
    "import os", "an endless while", "a tuple that doubles", "infinity", "prose",
    "a tuple of two kinds",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_candidate_is_rejected_with_gate_and_reason(evaluate, name):
    hostile = next(each for each in hostile_candidates() if each.name == name)
    done = evaluate(hostile.text, *QUICK, "--memory-limit", "256")
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    assert (found["accepted"], found["gate"], found["scores"]) == (False, hostile.gate, {})
    assert hostile.reason in found["reason"]


def test_a_file_that_is_no_text_is_rejected(evaluate):
    done = evaluate(b"\xff\xfe\x00binary", *QUICK)
    assert done.returncode == 1
    assert json.loads(done.stdout)["gate"] == "syntax"


def test_people_are_told_the_formula_and_every_case(evaluate):
    done = evaluate(GOOD, "--seeds", "1", "--fitness", "mix:inflation=3,waiting=1")
    assert done.returncode == 0
    assert "fitness of fgd" in done.stdout
    assert "openb:16 replay seed 1000" in done.stdout
    assert "0.75 x (mean GPU allocation" in done.stderr


def test_people_are_told_why_a_candidate_is_rejected(evaluate):
    done = evaluate("def score(pod, node):\n    return pod.name\n")
    assert done.returncode == 1
    assert "gate      allow-list" in done.stdout
    assert "line 2: reads pod.name; the fields of pod are" in done.stdout


def test_a_file_that_is_not_there_is_a_mistake_of_usage(tmp_path):
    done = run([*PODIUM, "search", "evaluate", "nothing.py"], tmp_path)
    assert done.returncode == 2
    assert "no such file" in done.stderr


def test_a_file_that_never_ends_is_bad_input(tmp_path):
    if not Path("/dev/zero").exists():
        pytest.skip("this system has no such file")
    done = run([*PODIUM, "search", "evaluate", "/dev/zero", "--json"], tmp_path)
    assert done.returncode == 2
    assert "larger than 1 MiB" in json.loads(done.stderr)["error"]["message"]
