import json
from pathlib import Path

import pytest

from podium.cli.main import app
from podium.reports import funsearch_experiment
from support.small_trace import write_lines, write_orders

pytestmark = pytest.mark.usefixtures("_warm_cache")

HEADER = "trace,policy,seed,alloc_95,alloc_100,alloc_130,frag_100,frag_130"


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["reproduce", *map(str, arguments)])


@pytest.fixture
def originals(monkeypatch):
    """Makes a folder with ten nodes of ten GPUs, pods of one GPU, and orders that fill them."""
    nodes = [f"n{i},96000,393216,10,G2" for i in range(10)]
    write_lines(Path("openb_node_list_gpu_node.csv"), ["sn,cpu_milli,memory_mib,gpu,model", *nodes])
    pods = ["p0,1000,1024,1,1000", "p1,1000,1024,1,500"]
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
    write_lines(Path("openb_pod_list_default.csv"), [header, *pods])
    Path("protocol").mkdir()
    orders = [{"seed": seed, "arrivals": [0] * 130} for seed in (42, 43)]
    write_orders(Path("protocol/default.jsonl.gz"), *orders)
    monkeypatch.setenv("PODIUM_TRACES", ".")
    return publish


def publish(*rows):
    write_lines(Path("published.csv"), [HEADER, *rows])


FULL = "95,100,100,0,0"


def test_a_figure_as_published_is_a_success(run, originals):
    originals(f"default,BestFit,42,{FULL}", f"default,BestFit,43,{FULL}")
    result = run("fgd")
    assert result.exit_code == 0, result.stderr
    titles, row = result.stdout.splitlines()
    assert titles.split()[:3] == ["trace", "policy", "seed"]
    figures = ["100.00", "100.00", "100.00", "100.00", "0.00", "0.00", "0.00"]
    assert row.split() == ["default", "best-fit", "all", *figures]
    assert "2 of 2 deterministic runs within 0.01 points at 100 % and 130 %\n" in result.stderr


def test_a_figure_that_differs_is_a_no(run, originals):
    originals(f"default,BestFit,42,{FULL}", "default,BestFit,43,95,99.98,100,0,0")
    result = run("fgd", "--all-seeds")
    assert result.exit_code == 1
    assert [line.split()[2] for line in result.stdout.splitlines()[1:]] == ["42", "43"]
    assert result.stdout.splitlines()[2].split()[-1] == "0.02"
    assert "1 of 2 deterministic runs" in result.stderr


def test_random_is_shown_and_not_judged(run, originals):
    originals(f"default,BestFit,42,{FULL}", "default,Random,42,50,50,50,0,0")
    result = run("fgd")
    assert result.exit_code == 0
    assert "random" in result.stdout
    assert "1 of 1 deterministic runs" in result.stderr
    assert "random differs by design" in result.stderr


def test_the_outcome_is_data_too(run, originals):
    originals(f"default,BestFit,42,{FULL}")
    (row,) = json.loads(run("fgd", "--json").stdout)
    assert (row["trace"], row["policy"], row["seed"], row["ok"]) == (
        "default",
        "best-fit",
        42,
        True,
    )
    assert row["ours"]["alloc_95"] == row["published"]["alloc_95"] == 95.0
    assert row["difference"] == 0


def test_policies_and_traces_can_be_chosen(run, originals):
    originals(
        f"default,BestFit,42,{FULL}", f"default,GpuPacking,42,{FULL}", f"cpu050,FGD,42,{FULL}"
    )
    result = run("fgd", "--policy", "gpu-packing", "--trace", "default", "--json")
    assert [row["policy"] for row in json.loads(result.stdout)] == ["gpu-packing"]


def test_published_runs_without_an_order_are_counted(run, originals):
    originals(f"default,BestFit,42,{FULL}", f"default,BestFit,44,{FULL}", f"cpu050,FGD,42,{FULL}")
    result = run("fgd")
    assert result.exit_code == 0
    assert "note: 2 published runs have no arrival order here" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (["--trace", "defualt"], 2, 'unknown published trace "defualt"'),
        (["--policy", "fdg"], 2, 'unknown policy "fdg"'),
        (["--policy", "best-fit", "--policy", "first-fit"], 2, "first-fit was not"),
        (["--policy", "none.py"], 2, "none.py"),
        (["--orders", "none"], 3, "no arrival orders found"),
        (["--published", "none.csv"], 3, "no published results found"),
    ],
)
def test_what_is_not_there_is_told(run, originals, arguments, code, what):
    originals(f"default,BestFit,42,{FULL}")
    result = run("fgd", *arguments)
    assert result.exit_code == code
    assert what in result.stderr
    assert "  try: " in result.stderr


def test_a_policy_that_was_never_published_stands_beside_fgd(run, originals):
    originals("default,FGD,42,95,99,99.5,0,0", "default,FGD,43,95,98,98.5,0,0")
    result = run("fgd", "--policy", "first-fit")
    assert result.exit_code == 0, result.stderr
    first, titles, row, *means = result.stdout.splitlines()
    assert first == "first-fit beside the published FGD:"
    assert titles.split()[0] == "trace"
    at_both = ["100.00", "98.50", "+1.50", "100.00", "99.00", "+1.00"]
    assert row.split() == ["default", *at_both, "0.00", "0.00", "no", "0"]
    assert [line.split("  ")[0] for line in means] == ["mean of 1 named", "mean of all 1"]
    assert (
        "first-fit: at 130 % above published FGD on 1 of the 1 named traces (mean +1.00 points) "
        "and on 1 of all 1 (mean +1.00 points); at 100 % more than 0.5 points below it on 0 of 1\n"
    ) in result.stderr


def test_pods_that_a_policy_holds_are_counted(run, originals):
    originals("default,FGD,42,95,99,99.5,0,0")
    text = '''"""Keeps a part of every node free while it can."""

from podium.policies import HOLD


def score(pod, node):
    return HOLD if node.gpu_milli_left[9] < 1000 or node.gpu_milli_left[8] < 1000 else 1.0
'''
    Path("holding.py").write_text(text)
    result = run("fgd", "--policy", "holding.py", "--json")
    assert result.exit_code == 0, result.stderr
    (found,) = json.loads(result.stdout)
    assert (found["policy"], found["may_hold"]) == ("holding.py", True)
    assert found["held"] == found["traces"][0]["held"] == found["mean_all"]["held"] > 0
    assert "it may hold pods, which FGD never does" in result.stderr
    assert found["verdict"] in result.stderr


def test_several_policies_are_reported_one_after_the_other(run, originals):
    originals("default,FGD,42,95,99,99.5,0,0")
    result = run("fgd", "--policy", "worst-fit", "--policy", "first-fit", "--policy", "worst-fit")
    assert result.stdout.count("beside the published FGD:") == 2
    assert result.stdout.index("worst-fit beside") < result.stdout.index("first-fit beside")


@pytest.mark.openb
def test_first_fit_stands_where_the_reference_says(run, openb_folder):
    chosen = ("--trace", "cpu250", "--trace", "default", "--policy", "first-fit")
    result = run("fgd", "--traces", openb_folder, *chosen, "--json")
    assert result.exit_code == 0, result.stderr
    (found,) = json.loads(result.stdout)
    assert [row["trace"] for row in found["traces"]] == ["default", "cpu250"]
    # First-fit reaches 94.54 on the default trace, on the average of the published seeds.
    assert found["traces"][0]["ours"]["alloc_130"] == pytest.approx(94.54, abs=0.13)
    assert (found["held"], found["may_hold"]) == (0, False)


@pytest.mark.parametrize("verb", ["fgd", "funsearch"])
def test_without_the_original_files_something_is_missing(run, verb):
    result = run(verb)
    assert (result.exit_code, result.stdout) == (3, "")
    first, second, third = result.stderr.splitlines()
    assert first == "error: the original OpenB files are needed"
    assert second == "  at:  [traces] folder is not set"
    assert "PODIUM_TRACES" in third
    assert "podium traces fetch openb" in third


@pytest.mark.openb
def test_the_default_trace_gives_the_published_figures(run, openb_folder):
    chosen = ("--trace", "default", "--policy", "fgd", "--policy", "best-fit")
    result = run("fgd", "--traces", openb_folder, *chosen, "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    assert len(rows) == 6
    assert all(row["ours"] == row["published"] for row in rows)


PUBLISHED_TABLE = {
    "first_fit": 0.4292,
    "best_fit": 0.4465,
    "funsearch_4901": 0.4901,
    "funsearch_4816": 0.4816,
    "funsearch_4800": 0.4800,
}


def test_both_views_of_the_funsearch_table_are_shown_for_any_trace(run, monkeypatch):
    nodes = ["a,64000,262144,2,P100", "b,64000,262144,2,P100"]
    pods = ["p0,1000,1024,2,1000,0,100", "p1,1000,1024,2,1000,10,60", "p2,1000,1024,2,1000,20,40"]
    write_lines(Path("openb_node_list_16_node.csv"), ["sn,cpu_milli,memory_mib,gpu,model", *nodes])
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time"
    write_lines(Path("openb_pod_list_default.csv"), [header, *pods])
    write_lines(Path("openb_node_list_gpu_node.csv"), ["sn,cpu_milli,memory_mib,gpu,model", *nodes])
    monkeypatch.setenv("PODIUM_TRACES", ".")
    result = run("funsearch")
    assert result.exit_code == 0, result.stderr
    for policy in PUBLISHED_TABLE:
        assert result.stdout.count(policy) == 2
    found = json.loads(run("funsearch", "--json").stdout)
    assert [row["policy"] for row in found] == list(PUBLISHED_TABLE)
    assert found[0].keys() == {"policy", "compatible", "true"}


def test_any_policy_is_shown_by_the_rules_of_funsearch_too(run, monkeypatch):
    nodes = ["a,64000,262144,2,P100", "b,64000,262144,2,P100"]
    pods = ["p0,1000,1024,2,1000,0,100", "p1,1000,1024,2,1000,10,60", "p2,1000,1024,2,1000,20,40"]
    write_lines(Path("openb_node_list_16_node.csv"), ["sn,cpu_milli,memory_mib,gpu,model", *nodes])
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time"
    write_lines(Path("openb_pod_list_default.csv"), [header, *pods])
    write_lines(Path("openb_node_list_gpu_node.csv"), ["sn,cpu_milli,memory_mib,gpu,model", *nodes])
    monkeypatch.setenv("PODIUM_TRACES", ".")
    Path("mine.py").write_text("def score(pod, node):\n    return -node.cpu_milli_left\n")
    chosen = ["--policy", "first_fit", "--policy", "./mine.py", "--policy", "round-robin"]
    found = json.loads(run("funsearch", *chosen, "--json").stdout)
    assert [row["policy"] for row in found] == ["first_fit", "./mine.py", "round-robin"]
    assert all(row["compatible"]["placed"] == 3 for row in found)
    assert found[1]["compatible"] == found[0]["compatible"]  # all fit on the first node
    assert found[0]["compatible"]["score_without_retries"] > 0
    told = run("funsearch", "--policy", "fgdd")
    assert told.exit_code == 2
    assert "--policy fgdd" in told.stderr


@pytest.mark.openb
def test_the_funsearch_table_stands_beside_the_waits_that_it_hides(run, openb_folder):
    result = run("funsearch", "--traces", openb_folder, "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    assert {row["policy"]: round(row["compatible"]["score"], 4) for row in rows} == PUBLISHED_TABLE
    waits = {row["policy"]: row["true"]["wait_mean_s"] for row in rows}
    # The best by the table's score makes pods wait longest.
    assert max(waits, key=waits.get) == "funsearch_4901"
    assert all(row["true"]["placed"] == 8152 for row in rows)


@pytest.mark.openb
def test_people_read_both_tables_and_why_they_disagree(run, openb_folder, monkeypatch):
    # One row is enough to see how it looks.
    monkeypatch.setattr(funsearch_experiment, "POLICIES", ("funsearch_4901",))
    result = run("funsearch", "--traces", openb_folder)
    assert "own rules (retries count as events" in result.stdout
    assert "By Podium's rules" in result.stdout
    assert result.stdout.count("funsearch_4901") == 2
    assert "0.4901" in result.stdout
    assert "waiting times tell" in result.stdout
