import json
from dataclasses import replace
from pathlib import Path

import pytest

import podium
from podium.cli.main import app
from podium.cli.policies import show_explanation
from podium.cli.render import Screen
from podium.model import Cluster, NodeSpec, Workload
from podium.model.constraints import Gang
from podium.policies import catalogue
from podium.reports.explanation import explain
from podium.settings import Display
from podium.sim import Rounds, simulate
from support.runs import gpu_pod
from support.small_trace import SMALL, write_scheduler, write_simon_config

pytestmark = pytest.mark.usefixtures("_warm_cache", "small_trace")


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["policies", *map(str, arguments)])


def test_the_list_as_data_has_the_promised_names(run):
    listed = json.loads(run("list", "--json").stdout)
    keys = {"name", "kind", "origin", "may_hold", "summary", "source"}
    assert all(policy.keys() == keys for policy in listed)
    assert {policy["kind"] for policy in listed} == {"pair", "cluster"}
    assert {policy["origin"] for policy in listed} == {"written", "tuned", "found", "trained"}
    assert all(isinstance(policy["may_hold"], bool) for policy in listed)
    assert all(policy["summary"] and policy["source"] for policy in listed)
    assert {"fgd", "first-fit", "kube-default"} <= {policy["name"] for policy in listed}


def test_people_read_one_policy_a_line(run):
    lines = run("list").stdout.splitlines()
    assert lines[0].split()[:5] == ["name", "kind", "origin", "may", "hold"]
    assert len(lines) == 1 + len(catalogue())


def test_a_policy_shows_its_source(run):
    shown = run("show", "first-fit")
    assert "def score(pod, node)" in shown.stdout
    found = json.loads(run("show", "first-fit", "--json").stdout)
    assert (found["name"], found["kind"], found["origin"]) == ("first-fit", "pair", "written")
    assert found["source"].rstrip() == shown.stdout.rstrip()


def test_the_configuration_of_a_scheduler_shows_the_python_it_becomes(run):
    write_scheduler(Path("scheduler.yaml"), "HouseRules")
    result = run("show", "scheduler.yaml", "--ignore-unknown-plugins")
    assert "def score(pod, node" in result.stdout
    assert "HouseRules" in result.stderr


def test_one_profile_of_a_configuration_is_a_policy_to_every_command(run, runner):
    write_scheduler(Path("scheduler.yaml"))
    reference = "scheduler.yaml#packing"
    assert "profile packing" in run("show", reference).stdout
    assert run("check", reference).exit_code == 0
    simulated = runner.invoke(app, ["simulate", "--policy", reference, *SMALL, "--json"])
    assert json.loads(simulated.stdout)["policy"] == "scheduler#packing"
    compared = runner.invoke(app, ["compare", reference, "first-fit", *SMALL, "--json"])
    assert "scheduler#packing" in compared.stdout
    assert podium.load_policy(reference).name == "scheduler#packing"
    unknown = run("show", "scheduler.yaml#pcking")
    assert unknown.exit_code == 2


def test_a_sound_policy_keeps_every_promise(run):
    result = run("check", "first-fit", "--json")
    assert result.exit_code == 0, result.stdout
    found = json.loads(result.stdout)
    assert (found["policy"], found["ok"]) == ("first-fit", True)
    assert found["findings"]


def test_a_policy_that_breaks_a_promise_is_a_no(run):
    Path("nan.py").write_text('def score(pod, node):\n    return float("nan")\n')
    result = run("check", "nan.py")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].split() == ["promise", "kept", "detail"]
    assert "FAILED" in result.stdout


@pytest.mark.parametrize("verb", [["show"], ["check"], ["explain", "--pod", "p0"]])
def test_an_unknown_policy_is_told_with_a_suggestion(run, verb):
    result = run(*verb, "fdg")
    assert (result.exit_code, result.stdout) == (2, "")
    first, second, third = result.stderr.splitlines()
    assert first == 'error: unknown policy "fdg"'
    assert second == "  at:  argument POLICY"
    assert third == "  try: did you mean fgd; podium policies list shows all"


def test_a_placement_is_explained(run):
    result = run("explain", "first-fit", "--pod", "p2", *SMALL)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        "pod            p2",
        "asks for       1,000 milli CPU, 3,000 MiB, 2 GPUs",
        "policy         first-fit",
        "placed on      b, GPU 0-1",
        "could take it  1 node",
        "could not      1 node: not enough free GPUs",
        "",
        "node  score  CPU milli left  memory MiB left  GPU milli left",
        "b *       0           4,000            8,000  1000 1000 1000",
    ]


def test_a_decision_is_explained_without_run_times(run):
    text = Path("pods.csv").read_text().splitlines()
    Path("pods.csv").write_text("".join(f"{line.rsplit(',', 2)[0]}\n" for line in text))
    result = run("explain", "first-fit", "--pod", "p0", *SMALL)
    assert result.exit_code == 0, result.stderr
    assert "placed on      a" in result.stdout


def test_an_explanation_is_data_too(run):
    found = json.loads(run("explain", "first-fit", "--pod", "p2", *SMALL, "--json").stdout)
    assert (found["node"], found["gpu_slots"], found["feasible"]) == ("b", [0, 1], 1)
    assert found["reasons"] == {"not enough free GPUs": 1}
    assert found["candidates"][0]["is_chosen"] is True


def test_a_pod_without_a_place_says_why(run):
    write_simon_config(Path.cwd())
    Path("pods.csv").write_text(Path("pods.csv").read_text() + "big,1,1,8,1000,20,30\n")
    result = run("explain", "first-fit", "--pod", "big", *SMALL)
    assert "placed on      no node: fits no node, even an empty one" in result.stdout
    assert "could not      2 nodes: not enough free GPUs" in result.stdout
    assert "CPU milli left" not in result.stdout


def test_refused_nodes_are_shown_as_refused(run):
    text = "from podium.policies import HOLD\n\n\ndef score(pod, node):\n    return HOLD\n"
    Path("holding.py").write_text(text)
    result = run("explain", "holding.py", "--pod", "p0", "--protocol", "rounds", *SMALL)
    assert "placed on      no node: held back by the policy" in result.stdout
    assert result.stdout.splitlines()[-1].split()[:2] == ["b", "refused"]


def test_a_bound_pod_and_a_gang_are_told_as_such(capsys):
    node = NodeSpec("a", 4000, 4000, 2, "X", rack="r")
    pods = [replace(gpu_pod("runs", 1), node="a", gpu_slots=(1,))]
    pods += [replace(gpu_pod(f"p{i}", 1), gang="g") for i in range(2)]
    workload = Workload.of(pods, gangs=[Gang("g", 2, "rack")])
    result = simulate(Cluster.of([node]), workload, "first-fit", Rounds())
    for pod in ("runs", "p0"):
        show_explanation(Screen(Display()), explain(result, pod))
    told = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "placed on a, GPU 1, where it ran before the run began" in told
    assert "gang g: 0 of 2 pods placed, 2 start together, all in one rack" in told
    assert any(line.startswith('placed on no node: no one rack holds gang "g"') for line in told)


def test_a_share_of_a_gpu_is_told_as_such(run):
    Path("pods.csv").write_text(Path("pods.csv").read_text() + "half,1,1,1,500,20,30\n")
    result = run("explain", "first-fit", "--pod", "half", *SMALL)
    assert "asks for       1 milli CPU, 1 MiB, 1 GPU of 500 milli" in result.stdout


def test_an_unknown_pod_is_told_before_the_run(run, monkeypatch):
    def never(*_arguments):
        raise AssertionError("the run began")

    monkeypatch.setattr("podium.experiments.simulate.run_case", never)
    result = run("explain", "first-fit", "--pod", "nobody", *SMALL)
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        'error: unknown pod "nobody"',
        "  at:  flag --pod",
        "  try: known: p0, p1, p2",
    ]
