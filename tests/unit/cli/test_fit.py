import json
from pathlib import Path

import pytest

import support
from podium.cli.main import app

DUMP = str(Path(support.__path__[0]) / "cluster_dump.yaml")
JOB = """\
kind: Job
metadata: {name: sweep, namespace: ml}
spec: {template: {spec: {containers: [{name: main}]}}}
"""
pytestmark = pytest.mark.usefixtures("_warm_cache")


@pytest.fixture
def run(runner):
    return lambda *arguments, **given: runner.invoke(app, ["fit", *arguments], **given)


def test_the_answer_is_no_while_a_pod_does_not_fit(run):
    found = run(DUMP)
    assert found.exit_code == 1, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0].split() == ["pod", "GPUs", "node", "reason"]
    assert lines[1].split() == ["ml/train-0", "8", "-", "gang"]
    assert lines[5].split() == ["ml/tokenize-28393-w5t8p", "1", "gpu-b", "-"]
    assert lines[-2].startswith('gang (4 pods): no one block holds gang "train"')
    assert lines[-1] == "1 of 5 pending pods fit; 4 do not: 4 gang"
    assert "decided by kube-default; 6 pods already running" in found.stderr


def test_the_answer_is_yes_once_all_fit(run):
    nodes = "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 1, memory: 1Gi}}\n---\n"
    Path("dump.yaml").write_text(nodes + "kind: Pod\nmetadata: {name: a}\nspec: {}\n")
    found = run("dump.yaml", "--policy", "first-fit")
    assert (found.exit_code, found.stdout.splitlines()[-1]) == (0, "the pending pod fits")
    assert "decided by first-fit; 0 pods already running" in found.stderr


def test_data_have_stable_names(run):
    found = run(DUMP, "--json", "--policy", "fgd")
    assert found.exit_code == 1
    answer = json.loads(found.stdout)
    assert list(answer) == [
        "trace", "cluster", "policy", "fits", "running", "pending", "fitting", "reasons", "pods",
        "notes",
    ]  # fmt: skip
    assert list(answer["pods"][0]) == [
        "namespace", "name", "gpus", "node", "gpu_slots", "reason", "message", "would_fit_empty",
        "fits",
    ]  # fmt: skip
    assert (answer["fits"], answer["pending"], answer["fitting"]) == (False, 5, 1)
    assert answer["reasons"] == {"gang": 4}
    assert "finished, so left out: 3 pods" in answer["notes"]


def test_pods_may_come_through_standard_input(run):
    found = run(DUMP, "--pods", "-", input=JOB)
    assert "ml/sweep-0" in found.stdout, found.stderr
    assert found.stdout.splitlines()[-1].startswith("2 of 6 pending pods fit")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-", "--pods", "-"], "standard input can only be read once"),
        (["nope.yaml"], 'there is no file or folder "nope.yaml"\n  at:  argument DUMP'),
        ([DUMP, "--pods", "nope.yaml"], 'there is no file "nope.yaml"\n  at:  flag --pods'),
        ([DUMP, "--state", "nwo"], "did you mean now"),
        ([DUMP, "--policy", "fdg"], "did you mean fgd"),
    ],
)
def test_bad_input_is_no_answer(run, arguments, told):
    found = run(*arguments)
    assert found.exit_code == 2
    assert told in found.stderr
