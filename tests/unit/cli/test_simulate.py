import csv
import json
from dataclasses import replace
from pathlib import Path

import polars
import pytest

from podium.cli.main import app
from podium.cli.render import Screen
from podium.cli.simulate import show
from podium.model import NodeSpec
from podium.model.constraints import Taint
from podium.reports.summary import summarise
from podium.settings import Display
from podium.sim.timeline import timeline
from support.runs import gpu_pod, run_in_rounds, three_pods
from support.small_trace import (
    PLAIN,
    SMALL,
    write_lines,
    write_orders,
    write_scheduler,
    write_simon_config,
)

pytestmark = pytest.mark.usefixtures("_warm_cache", "small_trace")

PROMISED = {
    "policy", "trace", "protocol", "seed", "nodes", "gpus", "pods", "placed", "unplaced", "held",
    "gpu_allocation", "cpu_allocation", "memory_allocation", "fragmentation", "wait_mean_s",
    "wait_p95_s", "wait_p99_s", "makespan_s", "decisions", "wall_s", "digest",
}  # fmt: skip


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["simulate", *map(str, arguments)])


@pytest.fixture
def found(run):
    """Gives the figures of a run as data."""

    def figures(*arguments):
        result = run(*arguments, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return figures


def test_the_figures_are_those_worked_out_by_hand(found):
    figures = found(*PLAIN)
    assert figures.keys() >= PROMISED
    assert (figures["policy"], figures["trace"]) == ("first-fit", "pods.csv")
    assert (figures["cluster"], figures["protocol"], figures["seed"]) == ("nodes.csv", "replay", 0)
    assert (figures["nodes"], figures["gpus"], figures["pods"]) == (2, 4, 3)
    assert (figures["placed"], figures["unplaced"], figures["held"]) == (3, 0, 0)
    assert figures["gpu_allocation"] == 38_000 / 16 / 4000
    assert figures["cpu_allocation"] == 0.25
    assert figures["memory_allocation"] == 44_000 / 16 / 12_000
    assert figures["fragmentation"] == pytest.approx(5 / 24)
    assert (figures["wait_mean_s"], figures["wait_max_s"]) == (2, 6)
    assert figures["wait_p95_s"] == pytest.approx(5.4)
    assert figures["makespan_s"] == 16
    assert figures["digest"] == three_pods().digest
    assert figures["notes"] == []


def test_inflation_gives_fractions_by_arrived_percent(found):
    write_orders(Path("orders.jsonl.gz"), {"seed": 7, "arrivals": [1, 0, 2], "node_rank": [1, 0]})
    figures = found(*PLAIN, "--orders", "orders.jsonl.gz", "--seed", 7)
    assert figures["protocol"] == "inflation"
    assert figures["allocation_at"] == {"50": 0.5, "75": 0.75, "125": 0.75}
    assert figures["arrived_ratio"] == 1.25
    assert (figures["placed"], figures["unplaced"]) == (2, 1)


def test_an_order_decides_ties_by_its_ranks(found):
    orders = [
        {"seed": i, "arrivals": [0], "node_rank": ranks} for i, ranks in enumerate([[0, 1], [1, 0]])
    ]
    write_orders(Path("orders.jsonl.gz"), *orders)
    placed = []
    for seed in (0, 1):
        found(*PLAIN, "--orders", "orders.jsonl.gz", "--seed", seed, "--placements", "p.csv")
        placed.append(rows("p.csv")[0]["node"])
    assert placed == ["a", "b"]


def test_rounds_need_no_times(found):
    write_lines(Path("untimed.csv"), [line.rsplit(",", 2)[0] for line in lines("pods.csv")])
    figures = found(*PLAIN, "--trace", "untimed.csv", "--protocol", "rounds")
    assert (figures["protocol"], figures["placed"], figures["makespan_s"]) == ("rounds", 2, 0)


def lines(path):
    return Path(path).read_text().splitlines()


def rows(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_same_seed_gives_the_same_digest_and_another_does_not(found):
    embedded = ("--nodes", 40, "--pods", 300, "--policy", "first-fit", "--tier", "python")
    first, again, other = (found(*embedded, "--seed", seed)["digest"] for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_the_embedded_trace_has_any_size(found):
    figures = found("--nodes", 7, "--pods", 11, "--policy", "first-fit")
    assert (figures["nodes"], figures["pods"], figures["trace"]) == (7, 11, "openb")


def test_people_read_one_figure_a_line(run):
    shown = run(*PLAIN).stdout.splitlines()
    assert shown[0] == "policy             first-fit"
    assert "trace              pods.csv, cluster nodes.csv, replay, seed 0" in shown
    assert "pods               3: 3 placed, 0 unplaced, 0 held" in shown
    assert "GPU allocation     59.38 %" in shown
    assert "waiting            1 pod; mean 2 s, p95 5.4 s, p99 5.88 s, max 6 s" in shown
    assert shown[-1] == f"digest             {three_pods().digest}"


def test_people_read_how_many_pods_were_bound_and_why_others_were_not_placed(capsys):
    node = NodeSpec("a", 4000, 4000, 2, "X", taints=(Taint("spot"),))
    pods = [replace(gpu_pod("runs", 1), node="a"), gpu_pod("p", 1), gpu_pod("q", 2)]
    show(Screen(Display()), summarise(run_in_rounds([node], pods)))
    told = capsys.readouterr().out.splitlines()
    assert told[3].split(None, 1) == [
        "pods",
        "3: 1 running, 2 pending: 0 placed, 2 unplaced, 0 held",
    ]
    assert told[4].split() == ["not", "placed", "for", "taint", "2"]


def test_people_read_allocation_at_round_loads(run):
    result = run("--nodes", 60, "--protocol", "inflation", "--policy", "first-fit")
    assert "allocated at 80 %" in result.stdout
    assert "allocated at 130 %" in result.stdout
    assert "waiting" not in result.stdout


def test_placements_are_written_as_csv_and_parquet(run):
    result = run(*PLAIN, "--placements", "p.csv")
    assert result.stderr == "wrote 3 placements to p.csv\n"
    run(*PLAIN, "--placements", "p.parquet")
    written = [(row["pod"], row["node"], row["gpu_slots"]) for row in rows("p.csv")]
    assert written == [("p0", "a", "0"), ("p1", "b", "0-1"), ("p2", "b", "0-1")]
    assert polars.read_parquet("p.parquet")["start_s"].to_list() == [0, 2, 10]


def test_placements_are_printed_instead_of_the_summary(run):
    run(*PLAIN, "--placements", "p.csv")
    result = run(*PLAIN, "--placements", "-")
    assert (result.stdout, result.stderr) == (Path("p.csv").read_text(), "")
    refused = run(*PLAIN, "--placements", "-", "--json")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "leave one of them out" in refused.stderr


def test_a_timeline_is_written_as_csv_and_json(run):
    result = run(*PLAIN, "--timeline", "t.json")
    expected = timeline(three_pods()).as_rows()
    assert result.stderr == f"wrote {len(expected)} moments to t.json\n"
    assert json.loads(Path("t.json").read_text()) == expected
    run(*PLAIN, "--timeline", "t.csv")
    assert len(rows("t.csv")) == len(expected)


def test_settings_come_from_the_file_below_the_environment_below_flags(found, monkeypatch):
    Path("podium.toml").write_text(
        '[simulate]\npolicy = "best-fit"\ntrace = "pods.csv"\ncluster = "nodes.csv"\nload = 2.0\n'
        "seed = 5\n"
    )
    figures = found()
    assert (figures["policy"], figures["load"], figures["seed"]) == ("best-fit", 2.0, 5)
    monkeypatch.setenv("PODIUM_SIMULATE_LOAD", "4")
    monkeypatch.setenv("PODIUM_SIMULATE_POLICY", "worst-fit")
    figures = found("--policy", "first-fit")
    assert (figures["policy"], figures["load"], figures["seed"]) == ("first-fit", 4.0, 5)


def test_load_compresses_the_time_between_arrivals(found):
    assert found(*PLAIN, "--load", 2)["makespan_s"] == 15


def test_quiet_leaves_nothing_but_the_result(run):
    result = run(*PLAIN, "--quiet", "--placements", "p.csv", "--ratio", 2)
    assert result.stderr == ""
    assert result.stdout.startswith("policy ")


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (["--ratio", 2], "--ratio has no effect with replay"),
        (["--load", 2, "--protocol", "rounds"], "--load has no effect with rounds"),
        (["--ratio", 2, "--orders", "o.jsonl.gz"], "--ratio has no effect: the order"),
    ],
)
def test_a_flag_that_changes_nothing_is_told(run, arguments, note):
    write_orders(Path("o.jsonl.gz"), {"seed": 0, "arrivals": [0]})
    result = run(*PLAIN, *arguments)
    assert result.exit_code == 0, result.stderr
    assert f"note: {note}" in result.stderr


def test_a_setting_for_another_protocol_is_no_matter(run, monkeypatch):
    monkeypatch.setenv("PODIUM_SIMULATE_RATIO", "2")
    assert run(*PLAIN).stderr == ""


def test_without_nodes_the_embedded_cluster_is_used_and_named(run):
    result = run("--policy", "first-fit", "--trace", "pods.csv", "--json")
    assert json.loads(result.stdout)["nodes"] == 1213
    assert "note: the trace has no nodes" in result.stderr
    assert json.loads(result.stdout)["notes"]


def test_a_config_of_the_published_simulator_brings_its_whole_experiment(found):
    write_simon_config(Path.cwd(), workloadTuningConfig={"ratio": 1.25, "seed": 233})
    figures = found("--policy", "first-fit", "--cluster", "config.yaml")
    assert (figures["trace"], figures["cluster"]) == ("config.yaml", "config.yaml")
    assert (figures["protocol"], figures["ratio"], figures["seed"]) == ("inflation", 1.25, 233)
    assert (figures["nodes"], figures["gpus"]) == (2, 4)


def test_flags_go_before_a_config_of_the_published_simulator(found):
    write_simon_config(Path.cwd(), workloadTuningConfig={"ratio": 1.25, "seed": 233})
    figures = found("--policy", "first-fit", "--cluster", "config.yaml", "--seed", 5, "--ratio", 2)
    assert (figures["ratio"], figures["seed"]) == (2, 5)
    figures = found("--policy", "first-fit", "--cluster", "config.yaml", "--protocol", "rounds")
    assert figures["protocol"] == "rounds"


def test_the_configuration_of_a_scheduler_is_a_policy(found):
    write_scheduler(Path("scheduler.yaml"))
    figures = found("--policy", "scheduler.yaml", *SMALL)
    assert (figures["policy"], figures["placed"]) == ("scheduler", 3)


def test_a_plugin_without_a_counterpart_is_refused_or_left_out_and_named(run):
    write_scheduler(Path("scheduler.yaml"), "HouseRules")
    refused = run("--policy", "scheduler.yaml", *SMALL)
    assert refused.exit_code == 2
    assert '"HouseRules"' in refused.stderr
    assert "--ignore-unknown-plugins" in refused.stderr
    left_out = run("--policy", "scheduler.yaml", *SMALL, "--ignore-unknown-plugins")
    assert left_out.exit_code == 0
    assert 'note: the score plugin "HouseRules" is left out' in left_out.stderr


def test_bad_rows_are_left_out_on_request_and_named(run):
    write_lines(Path("pods.csv"), [*lines("pods.csv"), "bad,-1,1,0,0,0,1"])
    assert run(*PLAIN).exit_code == 2
    result = run(*PLAIN, "--skip-bad")
    assert result.exit_code == 0
    assert "note: left out: " in result.stderr


POLICIES = {
    "nan.py": 'def score(pod, node):\n    return float("nan")\n',
    "broken.py": "def score(pod, node)\n    return 1\n",
    "zero.py": "def score(pod, node):\n    return 1 / (node.cpu_milli_left - 4000)\n",
    "empty.py": "",
}


@pytest.fixture
def policy_files():
    for name, text in POLICIES.items():
        Path(name).write_text(text)
    Path("folder.py").mkdir()


MISTAKES = [
    ("--policy fdg", 2, 'unknown policy "fdg"', "flag --policy", "did you mean fgd"),
    ("--policy none.py", 2, "no such file", "none.py", "policy file"),
    ("--policy run:ab12", 3, 'no policy is stored for a run "ab12"', "runs", "podium runs list"),
    ("--policy nan.py", 2, "NaN or infinite", 'nan, pod "p0" on node "a"', "finite number"),
    ("--policy zero.py", 2, "ZeroDivisionError", 'pod "p0" on node "a"', "policies check zero.py"),
    ("--policy broken.py", 2, "not Python: expected ':'", "broken.py, line 1", "correct the file"),
    ("--policy empty.py", 2, "the file defines no policy", "empty.py", "score(pod, node)"),
    ("--trace opneb", 2, 'unknown trace "opneb"', "flag --trace", "did you mean openb"),
    ("--trace none.csv", 2, 'no file or folder "none.csv"', "flag --trace", "traces list"),
    ("--trace openb:default", 3, "openb:default was not found", "flag --trace", "fetch openb"),
    ("--trace nodes.csv", 2, "there are no pods to place", "flag --trace", "--trace"),
    ("--trace untimed.csv", 2, "cannot be replayed", "untimed.csv", "--protocol inflation"),
    ("--trace pods.csv --pods 5", 2, "number of pods cannot be chosen", "flag --trace", "openb"),
    ("--cluster openb:none", 2, "unknown trace", "flag --cluster", "traces list"),
    ("--cluster pods.csv", 2, "pods.csv contains no nodes", "flag --cluster", "--trace"),
    ("--nodes 5", 2, "number of nodes cannot be chosen", "flag --cluster", "openb"),
    ("--nodes 0", 2, "'--nodes'", "simulate", "simulate --help"),
    ("--protocol reply", 2, '"reply" is not one of', "flag --protocol", "did you mean replay"),
    ("--load 0", 2, "0.0 is too small", "flag --load", "more than 0"),
    ("--load nan", 2, "nan is not a finite number", "flag --load", "more than 0"),
    ("--ratio -1", 2, "-1.0 is too small", "flag --ratio", "more than 0"),
    ("--seed -1", 2, "-1 is too small", "flag --seed", "at least 0"),
    (f"--seed {2**70}", 2, "seed is", "flag --seed", "a whole number"),
    ("--protocol inflation --ratio 1000", 2, "ratio is 1000", "flag --ratio", "up to 100"),
    ("--policy folder.py", 2, "cannot be read", "folder.py", "name another one"),
    ("--placements p.csv --timeline p.csv", 2, "name the same file", "p.csv", "name two files"),
    ("--hold-limit 0", 2, "0 is too small", "flag --hold-limit", "at least 1"),
    ("--tier fast", 2, '"fast" is not one of', "flag --tier", "auto"),
    ("--orders o.jsonl.gz --seed 9", 2, "no order for seed 9", "o.jsonl.gz", "seeds: 7, 8, 10"),
    ("--orders none.jsonl.gz", 2, "no such file", "none.jsonl.gz", ".jsonl.gz"),
    ("--orders pods.csv", 2, "not", "pods.csv", ".jsonl.gz"),
    (
        "--orders o.jsonl.gz --seed 8",
        2,
        "the order names pod 5",
        "flag --orders, o.jsonl.gz",
        "made",
    ),
    ("--orders o.jsonl.gz --seed 10", 2, "the order has no arrivals", "o.jsonl.gz", "made for"),
    ("--orders o.jsonl.gz --protocol replay", 2, "order", "flag --protocol", "leave out --orders"),
    ("--placements p.txt", 2, 'the format ".txt"', "p.txt", ".csv or .parquet"),
    ("--placements none/p.csv", 2, "folder does not exist", "none/p.csv", "create the folder"),
    ("--timeline t.parquet", 2, 'the format ".parquet"', "t.parquet", ".csv or .json"),
]


@pytest.mark.usefixtures("policy_files")
@pytest.mark.parametrize(
    ("arguments", "code", "what", "where", "advice"),
    [pytest.param(*mistake, id=mistake[0]) for mistake in MISTAKES],
)
def test_a_mistake_is_told_in_three_lines(run, arguments, code, what, where, advice):
    orders = {7: [0], 8: [0, 5], 10: []}
    rows = [{"seed": seed, "arrivals": arrivals} for seed, arrivals in orders.items()]
    write_orders(Path("o.jsonl.gz"), *rows)
    write_lines(Path("untimed.csv"), [line.rsplit(",", 2)[0] for line in lines("pods.csv")])
    result = run(*PLAIN, *arguments.split())
    assert (result.exit_code, result.stdout) == (code, "")
    told = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(told) == 3, result.stderr
    assert told[0].startswith("error: ")
    assert what in told[0]
    assert told[1].startswith("  at:  ")
    assert where in told[1]
    assert told[2].startswith("  try: ")
    assert advice in told[2]


def test_a_mistake_in_the_settings_names_file_and_line(run):
    Path("podium.toml").write_text('[simulate]\n\npolicy = "fdg"\n')
    result = run(*SMALL)
    assert result.exit_code == 2
    assert "  at:  podium.toml, line 3, [simulate] policy" in result.stderr


def test_a_mistake_is_an_object_when_json_is_asked_for(run):
    result = run(*PLAIN, "--policy", "fdg", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    error = json.loads(result.stderr)["error"]
    assert error["code"] == "UnknownName"
    assert error["where"] == "flag --policy, [simulate] policy"


def test_a_file_that_cannot_be_written_is_told_before_the_run(run, monkeypatch):
    def never(*_arguments):
        raise AssertionError("the run began")

    monkeypatch.setattr("podium.experiments.simulate.run_case", never)
    assert run(*PLAIN, "--placements", "none/p.csv").exit_code == 2
    assert run(*PLAIN, "--timeline", "t.txt").exit_code == 2


def test_the_number_of_pods_holds_where_the_cluster_brings_them(found):
    figures = found("--cluster", "openb:16", "--pods", 12, "--policy", "first-fit")
    assert (figures["nodes"], figures["pods"]) == (16, 12)


def test_held_pods_are_counted(found):
    Path("holding.py").write_text(
        "from podium.policies import HOLD\n\n\ndef score(pod, node):\n    return HOLD\n"
    )
    figures = found("--policy", "holding.py", *SMALL, "--protocol", "rounds")
    assert (figures["placed"], figures["held"]) == (0, 3)
    figures = found("--policy", "holding.py", *SMALL, "--protocol", "rounds", "--max-holds", 0)
    assert (figures["placed"], figures["held"]) == (2, 0)


def test_a_policy_that_holds_without_naming_it_is_noted(found, run):
    Path("sly.py").write_text("def score(pod, node):\n    return -1e308 * 10.0\n")
    for protocol in ("rounds", "inflation", "replay"):
        figures = found("--policy", "sly.py", *SMALL, "--protocol", protocol)
        told = f"at {figures['holds']:,} of {figures['decisions']:,} decisions"
        assert figures["holds"] > 0
        assert told in figures["notes"][-1]
        shown = run("--policy", "sly.py", *SMALL, "--protocol", protocol)
        assert "it holds pods without naming HOLD" in shown.stderr
        assert f"{figures['holds']:,} of them held" in shown.stdout


def test_figures_that_cannot_be_are_refused_by_name(run, monkeypatch):
    forged = property(lambda _self: 10**6)
    monkeypatch.setattr("podium.sim.result.Result.held_decisions", forged)
    shown = run("--policy", "first-fit", *SMALL, "--protocol", "rounds")
    assert shown.exit_code == 2
    assert "impossible: holds is 1000000, and 0 by the placements" in shown.stderr


def test_a_simulation_without_any_option_notes_that_nobody_waited(runner):
    result = runner.invoke(app, ["simulate", "--json"])
    assert result.exit_code == 0, result.stderr
    (note,) = json.loads(result.stdout)["notes"]
    assert "no pod waited" in note
    assert "--protocol inflation" in note
