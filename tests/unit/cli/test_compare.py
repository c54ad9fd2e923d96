import json
from pathlib import Path

import pytest

from podium.cli.compare import TITLES
from podium.cli.main import app
from podium.errors import UsageError
from podium.evaluation.comparison import METRICS
from podium.experiments.compare import DEFAULT_POLICIES, read_seeds
from support.small_trace import SMALL, write_orders, write_scheduler, write_simon_config

pytestmark = pytest.mark.usefixtures("_warm_cache", "small_trace")

BUSY = ("--cluster", "openb:16", "--pods", "400", "--load", "20")


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["compare", *map(str, arguments)])


@pytest.fixture
def found(run):
    def data(*arguments):
        result = run(*arguments, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return data


def test_policies_are_ranked_with_intervals_and_a_paired_test(found):
    data = found("first-fit", "worst-fit", "--seeds", "1000-1004", *BUSY)
    comparison = data["comparison"]
    assert (comparison["metric"], comparison["seeds"]) == ("wait_mean_s", [*range(1000, 1005)])
    first, second = comparison["rows"]
    assert (first["rank"], second["rank"]) == (1, 2)
    assert first["mean"] < second["mean"]
    assert comparison["yardstick"] == first["policy"]
    assert first["p_value"] is None
    assert 2 / 32 <= second["p_value"] <= 1
    assert second["low"] <= second["mean"] <= second["high"]
    assert second["difference"] == pytest.approx(second["mean"] - first["mean"])


def test_every_run_is_in_the_data(found):
    data = found("first-fit", "worst-fit", "--seeds", "3,5", *BUSY)
    assert [(run["policy"], run["seed"]) for run in data["runs"]] == [
        ("first-fit", 3), ("first-fit", 5), ("worst-fit", 3), ("worst-fit", 5),
    ]  # fmt: skip
    means = {row["policy"]: row["mean"] for row in data["comparison"]["rows"]}
    waits = [run["wait_mean_s"] for run in data["runs"][:2]]
    assert means["first-fit"] == pytest.approx(sum(waits) / 2)


def test_threads_do_not_change_a_result(found):
    one, two = (
        found("first-fit", "worst-fit", "--seeds", "1-2", "--jobs", jobs, *BUSY) for jobs in (1, 2)
    )
    assert [run["digest"] for run in one["runs"]] == [run["digest"] for run in two["runs"]]
    assert one["comparison"] == two["comparison"]


def test_people_read_a_ranking(run):
    result = run("first-fit", "worst-fit", "--seeds", "0-1", "--metric", "fragmentation", *SMALL)
    titles, first, second = result.stdout.splitlines()
    assert titles.split("  ")[0] == "#"
    for title in ("mean wait", "95 % interval", "vs first-fit", "p", "GPU", "fragmented", "placed"):
        assert title in titles
    assert " ".join(first.split()) == "1 first-fit 20.83 % - - - 59.38 % 3.0 2 s"
    assert " ".join(second.split()).startswith("2 worst-fit 22.92 % - +2.08 - 59.38 %")
    assert len(titles) == len(first) == len(second)
    assert result.stderr == (
        "note: all 2 seeds come to one and the same run: nothing is left to chance, so there is no "
        "interval and no p\n"
        "trace pods.csv, cluster nodes.csv, replay, 2 seeds; ranked by fragmentation\n"
    )


def test_without_time_policies_are_ranked_by_allocation(run):
    result = run("first-fit", "--seeds", "1", "--protocol", "rounds", *SMALL)
    assert "GPU" in result.stdout.splitlines()[0]
    assert "wait" not in result.stdout
    assert "75.00 %" in result.stdout


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_ranks_and_has_a_title(run, metric):
    result = run("first-fit", "--seeds", "1", "--metric", metric, *SMALL)
    assert result.exit_code == 0, result.stderr
    assert TITLES[metric] in result.stdout
    assert f"ranked by {metric}" in result.stderr


def test_the_usual_policies_are_compared_where_none_is_named(found):
    data = found("--seeds", "1", "--metric", "fragmentation", *SMALL)
    assert {row["policy"] for row in data["comparison"]["rows"]} == set(DEFAULT_POLICIES)


def test_policies_of_one_name_are_called_by_their_references(run):
    Path("first-fit.py").write_text("def score(pod, node):\n    return 0\n")
    data = json.loads(run("first-fit", "first-fit.py", "--seeds", "1", *SMALL, "--json").stdout)
    assert {row["policy"] for row in data["comparison"]["rows"]} == {"first-fit", "first-fit.py"}


def test_a_policy_that_may_hold_is_marked(run):
    text = "from podium.policies import HOLD\n\n\ndef score(pod, node):\n    return HOLD\n"
    Path("holding.py").write_text(text)
    result = run("first-fit", "holding.py", "--seeds", "1", "--protocol", "rounds", *SMALL)
    assert "holding (may hold)" in result.stdout
    assert "first-fit (may hold)" not in result.stdout


def test_a_policy_that_holds_without_naming_it_is_marked_and_noted(run, found):
    Path("sly.py").write_text("def score(pod, node):\n    return -1e308 * 10.0\n")
    given = ("first-fit", "sly.py", "--seeds", "1", "--protocol", "rounds", *SMALL)
    result = run(*given)
    assert "sly (may hold)" in result.stdout
    assert "note: sly: it holds pods without naming HOLD: at " in result.stderr
    rows = {row["policy"]: row["may_hold"] for row in found(*given)["comparison"]["rows"]}
    assert rows == {"first-fit": False, "sly": True}


def test_each_seed_picks_its_order(found):
    orders = [{"seed": seed, "arrivals": list(range(seed))} for seed in (1, 2, 3)]
    write_orders(Path("o.jsonl.gz"), *orders)
    data = found("first-fit", "--seeds", "1-3", "--orders", "o.jsonl.gz", *SMALL)
    assert [run["pods"] for run in data["runs"]] == [1, 2, 3]


def test_seeds_that_are_named_go_before_those_of_a_config(found):
    write_simon_config(Path.cwd(), workloadTuningConfig={"ratio": 1.25, "seed": 233})
    data = found("first-fit", "--seeds", "0-1", "--cluster", "config.yaml")
    assert [run["seed"] for run in data["runs"]] == [0, 1]
    assert [run["ratio"] for run in data["runs"]] == [1.25, 1.25]


def test_notes_are_told_once(run):
    write_scheduler(Path("scheduler.yaml"), "HouseRules")
    result = run(
        "scheduler.yaml", "--seeds", "1-3", "--ignore-unknown-plugins", "--ratio", 2, *SMALL
    )
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("HouseRules") == 1
    assert result.stderr.count("--ratio has no effect with replay") == 1


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("7", [7]),
        ("1000-1003", [1000, 1001, 1002, 1003]),
        ("1,5,9", [1, 5, 9]),
        ("9, 1-2", [9, 1, 2]),
        ("4-4", [4]),
    ],
)
def test_seeds_are_numbers_and_ranges(text, seeds):
    assert read_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a list of seeds"),
        ("a-b", "is not a list of seeds"),
        ("1,,2", "is not a list of seeds"),
        ("-3", "is not a list of seeds"),
        ("1.5", "is not a list of seeds"),
        ("5-1", "ends before it begins"),
        ("1-3,2", "names a seed twice"),
        ("1-1000000000000", "more than 10,000 seeds"),
    ],
)
def test_other_lists_of_seeds_are_refused(text, problem):
    with pytest.raises(UsageError, match=problem) as caught:
        read_seeds(text)
    assert (caught.value.where, caught.value.hint) == ("flag --seeds", "write 1000-1009 or 1,5,9")


@pytest.mark.parametrize(
    ("arguments", "what", "where", "advice"),
    [
        (["fgd", "fgd"], "a policy is named twice", "argument POLICY", "once"),
        (["fdg"], 'unknown policy "fdg"', "argument POLICY", "did you mean fgd"),
        (["fgd", "--metric", "speed"], 'unknown metric "speed"', "flag --metric", "wait_mean_s"),
        (["fgd", "--seeds", "x"], "not a list of seeds", "flag --seeds", "1000-1009"),
        (["fgd", "--trace", "opneb"], "unknown trace", "flag --trace", "did you mean openb"),
        (["zero.py", "--seeds", "1"], "ZeroDivisionError", "zero, pod", "check zero.py"),
    ],
)
def test_a_mistake_is_told_in_three_lines(run, arguments, what, where, advice):
    Path("zero.py").write_text("def score(pod, node):\n    return 1 / (pod.gpu_count - 1)\n")
    result = run(*SMALL, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    first, second, third = result.stderr.splitlines()
    assert what in first
    assert where in second
    assert advice in third


def test_a_wrong_metric_is_told_before_the_runs(run, monkeypatch):
    def never(*_arguments):
        raise AssertionError("a run began")

    monkeypatch.setattr("podium.experiments.compare._run_all", never)
    assert run("fgd", "--metric", "speed").exit_code == 2


PRINTING = """
class Policy:
    def __init__(self, seed):
        print("a new seed")

    def choose(self, pod, nodes, feasible):
        print("a choice")
        return int(feasible.argmax())


print("the file is read")
"""


@pytest.mark.parametrize(
    "verb",
    [
        ["simulate", "--policy", "printing.py", "--nodes", "9", "--pods", "9"],
        ["compare", "printing.py", "fgd", "--seeds", "1-2", "--nodes", "9", "--pods", "9"],
        ["policies", "show", "printing.py"],
        ["policies", "check", "printing.py"],
    ],
    ids=lambda verb: verb[0] + " " + verb[1],
)
def test_what_a_policy_prints_stays_out_of_the_data(runner, verb):
    Path("printing.py").write_text(PRINTING)
    result = runner.invoke(app, [*verb, "--json"])
    assert json.loads(result.stdout)
    assert "the file is read" in result.stderr


def test_a_comparison_in_which_nobody_waited_says_so(runner):
    given = ["compare", "fgd", "best-fit", "--seeds", "1-2", "--nodes", "40", "--pods", "60"]
    assert "no pod waited, so there is nothing to compare" in runner.invoke(app, given).stderr
    filled = runner.invoke(app, [*given, "--protocol", "inflation"])
    assert (filled.exit_code, "nobody waited" in filled.stderr) == (0, False)


def test_a_cluster_without_gpus_is_told(runner):
    Path("nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\na,4000,4000,0,\n")
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\n"
    Path("pods.csv").write_text(header + "p,100,100,0,0,0,10\n")
    given = ["--trace", "pods.csv", "--cluster", "nodes.csv"]
    for verb, code in ((["compare", "fgd", "best-fit", "--seeds", "1-2"], 1), (["simulate"], 0)):
        result = runner.invoke(app, [*verb, *given])
        assert (result.exit_code, result.stderr.count("no GPUs that can be modelled")) == (code, 1)


@pytest.mark.parametrize(("metric", "meant"), [("gpu_alocation", "gpu_allocation")])
def test_a_misspelt_metric_is_told_with_the_one_that_may_be_meant(runner, metric, meant):
    result = runner.invoke(app, ["compare", "fgd", "--metric", metric])
    assert result.stderr.splitlines()[2] == f"  try: did you mean {meant}"
