"""Runs the verbs that simulate, as the processes that a user starts."""

import json
import shlex
import subprocess
from pathlib import Path

import polars
import pytest

import support
from support.binary import PODIUM, clean_environment, run
from support.depth import every
from support.runs import three_pods
from support.small_trace import PLAIN, write_orders, write_small_trace
from support.terminal import interrupted, pressed_ctrl_c, words_on_terminal

SMALL_RUN = ("simulate", "--nodes", "30", "--pods", "200", "--policy", "first-fit")
BUSY_RUN = (*SMALL_RUN, "--protocol", "inflation")  # leaves something to compare, and no note
UNUSED = ("--ratio", "2")  # told before the run begins, so that a test knows how far it is


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory):
    """Compiles the core where this machine has not yet; the first start speaks of it."""
    run([*PODIUM, *SMALL_RUN], tmp_path_factory.mktemp("compile"))


@pytest.fixture
def podium(tmp_path):
    write_small_trace(tmp_path)
    return lambda *arguments, **environ: run([*PODIUM, *arguments], tmp_path, **environ)


def test_two_processes_give_the_same_digest(podium):
    first, second, other = (
        json.loads(podium(*SMALL_RUN, "--seed", seed, "--json").stdout) for seed in ("7", "7", "8")
    )
    assert first["digest"] == second["digest"]
    assert first["digest"] != other["digest"]
    assert {key for key in first if first[key] != second[key]} == {"wall_s"}


def test_a_run_writes_data_to_its_output_and_words_beside_it(podium, tmp_path):
    files = ("--placements", "p.parquet", "--timeline", "t.csv")
    result = podium("simulate", *PLAIN, *files, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["digest"] == three_pods().digest
    assert result.stderr == "wrote 3 placements to p.parquet\nwrote 200 moments to t.csv\n"
    assert polars.read_parquet(tmp_path / "p.parquet")["node"].to_list() == ["a", "b", "b"]
    assert (tmp_path / "t.csv").read_text().startswith("time_s,")


def test_orders_are_picked_by_the_seed(podium, tmp_path):
    write_orders(
        tmp_path / "o.jsonl.gz",
        {"seed": 1, "arrivals": [0], "node_rank": [0, 1]},
        {"seed": 2, "arrivals": [1, 2], "node_rank": [1, 0]},
    )
    result = podium("simulate", *PLAIN, "--orders", "o.jsonl.gz", "--seed", "2", "--json")
    found = json.loads(result.stdout)
    assert (found["protocol"], found["pods"], found["placed"]) == ("inflation", 2, 1)
    assert found["allocation_at"] == {"50": 0.5, "100": 0.5}
    assert found["arrived_ratio"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("--policy fdg", 2), ("--seed -1", 2), ("--trace openb:default", 3), ("--placements p.x", 2)],
)
def test_a_mistake_ends_with_three_lines_and_its_code(podium, arguments, code):
    result = podium("simulate", *PLAIN, *arguments.split())
    assert (result.returncode, result.stdout) == (code, "")
    assert [line[:7] for line in result.stderr.splitlines()] == ["error: ", "  at:  ", "  try: "]


@pytest.mark.deep
def test_bars_are_drawn_on_a_terminal_only(podium, tmp_path):
    words, output = words_on_terminal(BUSY_RUN, tmp_path)
    assert "first-fit" in words
    assert "\x1b[" in words
    assert output.startswith("policy ")
    assert words_on_terminal([*BUSY_RUN, "--no-progress"], tmp_path)[0] == ""
    assert podium(*BUSY_RUN).stderr == ""


def test_a_reader_that_has_seen_enough_ends_the_verb_quietly(tmp_path):
    command = f"{shlex.join([*PODIUM, *BUSY_RUN])} | head -n 1; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
    )
    first, code = result.stdout.splitlines()
    assert first.split() == ["policy", "first-fit"]
    # Where the reader is slow, everything fits into the pipe.
    assert code in ("0", "141")
    assert result.stderr == ""


SLOW_SCORE = """
def score(pod, node):
    total = 0
    for i in range({loops}):
        total += (node.cpu_milli_left + i) % 7
    return total
"""

SLOW_CHOICE = """
import time


class Policy:
    def __init__(self, seed):
        pass

    def choose(self, pod, nodes, feasible):
        time.sleep(0.05)
        return int(feasible.argmax())
"""


@pytest.mark.parametrize(
    ("policy", "arguments"),
    [
        (SLOW_SCORE.format(loops=20_000), ["--tier", "python", "--nodes", "400"]),
        (SLOW_SCORE.format(loops=20_000), ["--tier", "scan", "--nodes", "20", "--pods", "6000"]),
        (SLOW_CHOICE, ["--nodes", "400"]),
    ],
    ids=["plain Python", "compiled", "chooser"],
)
def test_an_interrupt_ends_a_run(tmp_path, policy, arguments):
    (tmp_path / "slow.py").write_text(policy)
    command = ["simulate", "--policy", "slow.py", *UNUSED, *arguments]
    code, output, words = interrupted(command, tmp_path, after_s=1.0)
    assert (code, output, words) == (130, "", "interrupted\n")


ENDLESS = """
def score(pod, node):
    total = node.cpu_milli_left
    while total != -1:
        total = total // 2 + 1
    return total
"""
INFLATION = ["--protocol", "inflation"]
LARGE = ["--nodes", "20000", "--pods", "200000"]  # takes minutes


@pytest.mark.parametrize(
    "arguments",
    every(
        3,
        [
            ["simulate", "--policy", "kube-default", *LARGE, "--tier", "scan", *INFLATION],
            ["simulate", "--policy", "fgd", *LARGE, "--tier", "scan", "--protocol", "rounds"],
            ["simulate", "--policy", "endless.py"],
            ["simulate", "--policy", "endless.py", "--tier", "scan"],
            ["simulate", "--policy", "endless.py", "--tier", "cached"],
            ["simulate", "--policy", "endless.py", "--tier", "python"],
            ["compare", "endless.py", "fgd"],
            ["policies", "explain", "endless.py", "--pod", "openb-pod-0000"],
        ],
    ),
    ids=lambda arguments: "-".join(word.strip("-") for word in arguments),
)
def test_ctrl_c_ends_what_compiled_code_would_never_end(tmp_path, arguments):
    (tmp_path / "endless.py").write_text(ENDLESS)
    cue = "simulating" if arguments[0] == "compare" else Path(arguments[2]).stem
    code, words = pressed_ctrl_c(arguments, tmp_path, cue=f"{cue} ")
    assert code == 130
    assert words.rstrip().endswith("interrupted")
    assert words.rindex("\x1b[?25h") > words.rindex("\x1b[?25l"), "the cursor is hidden"


def test_ctrl_c_ends_a_check(tmp_path):
    (tmp_path / "endless.py").write_text(ENDLESS)
    command = ["policies", "check", "endless.py"]
    code, words = pressed_ctrl_c(command, tmp_path, cue="checking ")
    assert code == 130
    assert words.rstrip().endswith("interrupted")


def test_an_interrupt_ends_a_comparison(tmp_path):
    command = ["compare", "first-fit", "best-fit", "--seeds", "1-2000", *UNUSED]
    code, output, words = interrupted(command, tmp_path, after_s=0.5)
    assert (code, output, words) == (130, "", "interrupted\n")


def test_policies_are_compared_on_a_file(podium, tmp_path):
    pods = tmp_path / "pods.csv"
    pods.write_text(pods.read_text().replace("p1,2000,2000,2,", "p1,2000,2000,3,"))
    result = podium("compare", "first-fit", "worst-fit", "--seeds", "1-3", *PLAIN[2:])
    assert result.returncode == 0, result.stderr
    ranked = [line.split()[1] for line in result.stdout.splitlines()[1:]]
    assert ranked == ["first-fit", "worst-fit"]
    assert "3 seeds" in result.stderr


def test_a_benchmark_is_a_list_of_figures(podium):
    result = podium("bench", "--only", "help", "--json")
    (figure,) = json.loads(result.stdout)
    promised = {"name", "value", "unit", "target", "ok", "reference", "machine"}
    assert figure.keys() >= promised
    assert result.returncode == (0 if figure["ok"] else 1)
    assert result.stderr == ""


def test_the_catalogue_is_data(podium):
    listed = json.loads(podium("policies", "list", "--json").stdout)
    assert listed[0].keys() == {"name", "kind", "origin", "may_hold", "summary", "source"}


def test_quiet_prints_results_only(podium):
    result = podium("simulate", *PLAIN, *UNUSED, "--placements", "p.csv", "--quiet")
    assert result.stderr == ""
    assert result.stdout.startswith("policy ")


def test_a_dump_is_piped_in_and_the_exit_code_is_the_answer(tmp_path):
    dump = Path(support.__path__[0]) / "cluster_dump.yaml"
    environ = clean_environment(tmp_path)
    with dump.open("rb") as stream:
        done = subprocess.run(
            [*PODIUM, "fit", "-", "--json"],
            stdin=stream, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["bound"], answer["pending"], answer["fitting"]) == (6, 5, 0)
