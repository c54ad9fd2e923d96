"""Judges where a wall of the sandbox is missing, and candidates that need all of the compiler."""

import json
import sys

import pytest

from podium.policies.jit import cache_folder
from podium.store import open_store
from support.binary import PODIUM, run
from support.confined import IS_FILTERED

# Read before any test cleans its environment.
COMPILED = cache_folder()
GIVEN = {
    "PODIUM_SEARCH_WORKERS": "1",
    **({"PODIUM_COMPILE_CACHE": str(COMPILED)} if COMPILED else {}),
}
PLAIN = "def score(pod, node):\n    return -node.cpu_milli_left\n"
HELPER = """def gap(node, slot):
    return 1000 - node.gpu_milli_left[slot]


def score(pod, node):
    total = 0
    for slot in range(node.gpu_count):
        total += gap(node, slot)
    return total / 1000 - node.cpu_milli_left / 100000
"""
WHILE = """def score(pod, node):
    left = node.cpu_milli_left
    halves = 0
    while left > 1:
        left = left // 2
        halves += 1
    return -halves - node.gpu_count
"""
TUPLE = """WEIGHTS = (1.0, 2.0, 3.5)


def both(first, second):
    return first + 1, second * 2


def score(pod, node):
    cpu, gpus = both(node.cpu_milli_left, node.gpu_count)
    kept = (cpu, gpus, 3)
    return -kept[0] * WEIGHTS[node.gpu_count % 3] + kept[1]
"""
SMALL = [
    *("--trace", "openb", "--nodes", "32", "--seeds", "1", "--batch", "8", "--islands", "1"),
    *("--largest", "20", "--tune-every", "0"),
]
KEPT = ["--store", "runs.db"]
WALL = "missing system calls"


def podium(folder, *arguments, **environ):
    """Runs Podium as it is."""
    return run([*PODIUM, *arguments], folder, **{**GIVEN, **environ})


@pytest.fixture
def unfiltered(tmp_path):
    """Runs Podium where the kernel takes no filter."""
    if not IS_FILTERED:
        pytest.skip("this system has no filter that could be missing")

    def start(*arguments, **environ):
        command = [sys.executable, "-m", "support.unfiltered", *PODIUM, *arguments]
        done = run(command, tmp_path, **{**GIVEN, **environ})
        if done.returncode == 77:
            pytest.skip("no filter can be taken away here")
        return done

    (tmp_path / "mine.py").write_text(PLAIN)
    return start


@pytest.mark.deep
@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "evaluate", "mine.py", "--trace", "openb", "--nodes", "32", "--seeds", "1"],
        ["search", "run", *SMALL, *KEPT, "--evaluations", "8"],
        [
            "search",
            "compare",
            "random",
            "--runs",
            "1",
            "--evaluations",
            "20",
            "--seeds",
            "1",
            *KEPT,
        ],
    ],
)
def test_candidates_are_not_judged_where_the_kernel_does_not_confine_them(unfiltered, arguments):
    done = unfiltered(*arguments)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"error: candidates cannot be confined on this machine: {WALL}" in done.stderr
    assert "--allow-unconfined" in done.stderr


@pytest.mark.deep
def test_who_asks_for_it_gets_them_judged_with_a_warning(unfiltered):
    done = unfiltered(
        "search",
        "evaluate",
        "mine.py",
        "--trace",
        "openb",
        "--nodes",
        "32",
        "--seeds",
        "1",
        "--allow-unconfined",
    )
    assert done.returncode == 0
    assert f"warning: candidates are not fully confined: {WALL}" in done.stderr


@pytest.mark.deep
def test_a_run_keeps_in_mind_that_its_candidates_were_not_confined(unfiltered, tmp_path):
    told = {"PODIUM_SEARCH_ALLOW_UNCONFINED": "true"}
    done = unfiltered("search", "run", *SMALL, *KEPT, "--evaluations", "8", "--json", **told)
    assert done.returncode == 0, done.stderr
    assert WALL in done.stderr
    found = json.loads(done.stdout)
    assert found["missing_walls"] == ["system calls"]
    status = podium(tmp_path, "search", "status", found["run"], *KEPT)
    assert "missing walls  system calls" in status.stdout
    shown = podium(tmp_path, "runs", "show", found["run"], *KEPT)
    assert "allow_unconfined  yes" in shown.stdout
    assert "system calls" in shown.stdout
    refused = unfiltered("search", "resume", found["run"], *KEPT, "--evaluations", "20")
    assert refused.returncode == 3
    refused = unfiltered("search", "promote", found["run"], *KEPT, "--seeds", "1")
    assert refused.returncode == 3
    assert WALL in refused.stderr
    # Confined from now on: what was is not forgotten.
    resumed = podium(
        tmp_path, "search", "resume", found["run"], *KEPT, "--evaluations", "20", "--json"
    )
    assert json.loads(resumed.stdout)["missing_walls"] == ["system calls"]


def test_doctor_says_which_wall_is_missing(unfiltered):
    done = unfiltered("doctor")
    assert done.returncode == 0
    assert (
        "sandbox         warning  candidates lack the walls system calls: none is run"
        in done.stdout
    )


@pytest.mark.deep
def test_a_run_of_confined_candidates_says_nothing_of_walls(tmp_path):
    if not IS_FILTERED:
        pytest.skip("this system has no such walls")
    done = podium(tmp_path, "search", "run", *SMALL, *KEPT, "--evaluations", "8")
    assert done.returncode == 0, done.stderr
    assert "wall" not in done.stdout + done.stderr


@pytest.mark.deep
def test_functions_loops_and_tuples_are_judged_on_large_cases(tmp_path):
    texts = {"helper": HELPER, "while": WHILE, "tuple": TUPLE}
    named = []
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
        named += ["--policy", f"{name}.py"]
    done = podium(
        tmp_path, "search", "run", "--trace", "openb", "--nodes", "200", "--seeds", "1",
        "--start", "random", "--islands", "1", "--batch", "4", "--evaluations", "3", *named, *KEPT,
        "--time-limit", "60", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        (record,) = store.runs.all()
        found = {each.source: each for each in store.candidates.of(record.id)}
    for name in texts:
        assert found[name].accepted, found[name].reason
