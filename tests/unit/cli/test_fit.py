import json
from pathlib import Path

import pytest

import support
from podium.cli.main import app
from support.manifests import write_dump_without_claims

DUMP = str(Path(support.__path__[0]) / "cluster_dump.yaml")
SMALL = ["simulate", "--trace", "openb", "--nodes", "5", "--pods", "5"]
JOB = """\
kind: Job
metadata: {name: retry, namespace: ml}
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
    assert lines[5].split() == ["ml/tokenize-28393-w5t8p", "1", "-", "not", "known"]
    assert lines[-3].startswith('gang (4 pods): no one block holds gang "train"')
    assert lines[-1] == (
        "0 of 5 pending pods fit; 4 do not: 4 gang; of 1 it is not known; 1 is gated: "
        "--waiting gated; 1 pod uses volumes that the dump lacks: try kubectl get "
        "nodes,pods,pvc,pv,sc -A -o yaml"
    )
    assert "decided by kube-default; 6 pods already running" in found.stderr


def test_the_answer_is_yes_once_all_fit(run):
    nodes = "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 1, memory: 1Gi}}\n---\n"
    Path("dump.yaml").write_text(
        nodes + "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{}]}\n"
    )
    found = run("dump.yaml", "--policy", "first-fit")
    assert (found.exit_code, found.stdout.splitlines()[-1]) == (0, "the pending pod fits")
    assert "decided by first-fit; 0 pods already running" in found.stderr


GPU_NODE = """\
kind: Node
metadata: {name: n, labels: {nvidia.com/gpu.product: %s}}
status: {allocatable: {cpu: 64, memory: 64Gi, nvidia.com/gpu: %d}}
---
"""
GPU_POD = """\
kind: Pod
metadata: {name: %s}
spec: {%s containers: [{name: main, resources: {limits: {%s: %d}}}]}
---
"""


def test_a_pod_gets_no_gpu_of_another_vendor(run):
    pod = GPU_POD % ("p", "", "amd.com/gpu", 1)
    Path("dump.yaml").write_text(GPU_NODE % ("Tesla-T4", 4) + pod)
    found = run("dump.yaml")
    assert found.exit_code == 1, found.stderr
    assert "1 Insufficient amd.com/gpu (0 free at most, 1 asked)" in found.stdout


@pytest.mark.parametrize(("asked", "code"), [(6, 0), (7, 1), (99, 1)])
def test_a_pod_with_many_devices_holds_them_all(run, asked, code):
    running = GPU_POD % ("r", "nodeName: n,", "nvidia.com/gpu", 50)
    waiting = GPU_POD % ("p", "", "nvidia.com/gpu", asked)
    node = GPU_NODE % ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 56)
    Path("dump.yaml").write_text(node + running + waiting)
    found = run("dump.yaml")
    assert found.exit_code == code, found.stdout
    assert "1 pod already running" in found.stderr
    if code:
        assert f"Insufficient nvidia.com/gpu (6 free at most, {asked} asked)" in found.stdout


@pytest.mark.parametrize("fraction", ["0.3333", "0.33333"])
def test_three_thirds_of_a_gpu_fit(run, fraction):
    pods = (
        f"kind: Pod\nmetadata: {{name: p{i}, annotations: {{gpu-fraction: '{fraction}'}}}}\n"
        "spec: {containers: [{}]}\n---\n"
        for i in range(3)
    )
    Path("dump.yaml").write_text(GPU_NODE % ("Tesla-T4", 1) + "".join(pods))
    found = run("dump.yaml")
    assert found.exit_code == 0, found.stdout


def test_data_have_stable_names(run):
    found = run(DUMP, "--json", "--policy", "fgd")
    assert found.exit_code == 1
    answer = json.loads(found.stdout)
    assert list(answer) == [
        "trace", "cluster", "policy", "fits", "bound", "pending", "fitting", "reasons", "pods",
        "untried", "notes",
    ]  # fmt: skip
    assert list(answer["pods"][0]) == [
        "namespace", "name", "gpus", "node", "gpu_slots", "reason", "message", "would_fit_empty",
        "fits",
    ]  # fmt: skip
    assert (answer["fits"], answer["pending"], answer["fitting"]) == (False, 5, 0)
    assert answer["reasons"] == {"gang": 4, "not known": 1}
    assert "finished, so left out: 3 pods" in answer["notes"]


def test_pods_may_come_through_standard_input(run):
    found = run(DUMP, "--pods", "-", input=JOB)
    assert "ml/retry-0" in found.stdout, found.stderr
    assert found.stdout.splitlines()[-1].startswith("1 of 6 pending pods fit")


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


# The same dump in the other commands.


def test_a_simulation_tells_pods_that_run_from_those_that_wait(runner):
    found = runner.invoke(app, ["simulate", "--trace", DUMP, "--protocol", "rounds"])
    line = next(line for line in found.stdout.splitlines() if line.startswith("pods "))
    assert line.split(maxsplit=1)[1] == "10: 6 running, 4 pending: 0 placed, 4 unplaced, 0 held"
    given = ["simulate", "--trace", DUMP, "--protocol", "rounds", "--json"]
    assert json.loads(runner.invoke(app, given).stdout)["bound"] == 6
    assert "bound" not in json.loads(runner.invoke(app, [*SMALL, "--json"]).stdout)


def test_a_comparison_tells_whom_it_does_not_count(runner):
    dump = write_dump_without_claims(Path("dump.yaml"))
    given = ["compare", "fgd", "best-fit", "--trace", dump, "--protocol", "rounds"]
    found = runner.invoke(app, [*given, "--seeds", "1-2"])
    assert found.exit_code == 1
    assert "6 of 11 pods run already and stay where they are; --state history" in found.stderr


def test_info_tells_who_runs_and_what_pods_demand(runner):
    found = runner.invoke(app, ["traces", "info", DUMP])
    lines = [" ".join(line.split()) for line in found.stdout.splitlines()]
    assert {"running 6", "pending 5", "left out 3 finished, 1 gated, 1 elsewhere"} <= set(lines)
    assert {"tainted 3", "cordoned 1", "train 4 4 block"} <= set(lines)
    assert any(line.startswith("pods with node selector 1, node affinity 2") for line in lines)


def test_info_tells_as_how_many_devices_a_gpu_is_advertised(runner):
    labels = "{nvidia.com/gpu.count: '2', nvidia.com/gpu.replicas: '4'}"
    status = "{allocatable: {cpu: 8, memory: 8Gi, nvidia.com/gpu: 8}}"
    text = f"kind: Node\nmetadata: {{name: n, labels: {labels}}}\nstatus: {status}\n"
    Path("shared.yaml").write_text(text)
    found = runner.invoke(app, ["traces", "info", "shared.yaml"])
    assert "devices a GPU" in found.stdout


@pytest.mark.parametrize(
    "verb",
    [
        ["simulate", "--trace", DUMP],
        ["compare", "--trace", DUMP],
        ["policies", "explain", "fgd", "--pod", "train-0", "--trace", DUMP],
        ["traces", "info", DUMP],
        ["traces", "check", DUMP],
        ["traces", "convert", DUMP, "out.yaml"],
        ["search", "run", "--trace", DUMP],
        ["search", "compare", "--trace", DUMP],
    ],
)
def test_every_command_that_reads_a_dump_takes_its_flags(runner, verb):
    for flag, value in (("--state", "nwo"), ("--duration", "soon"), ("--topology", "awss")):
        found = runner.invoke(app, [*verb, flag, value])
        assert (found.exit_code, f"at:  flag {flag}" in found.stderr) == (2, True), found.stderr


def test_a_dump_is_converted_as_it_is_meant(runner):
    for state, bound in (("now", 6), ("empty", 3)):
        runner.invoke(app, ["traces", "convert", DUMP, f"{state}.json", "--state", state])
        items = json.loads(Path(f"{state}.json").read_text())["items"]
        assert sum("nodeName" in item["spec"] for item in items if item["kind"] == "Pod") == bound


def test_what_was_asked_for_is_told_in_its_own_unit(run):
    shared = "Tesla-T4-SHARED, nvidia.com/gpu.replicas: '4', nvidia.com/gpu.memory: '15360'"
    mig = GPU_NODE % ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 7)
    asking = "kind: Pod\nmetadata: {name: %s, annotations: {%s}}\nspec: {containers: [{}]}\n---\n"
    pods = [
        asking % ("mib", "gpu-memory: '8000'"),
        asking % ("twice", "gpu-memory: '1000', gpu-fraction-num-devices: '2'"),
        asking % ("half", "gpu-fraction: '0.5'"),
        GPU_POD % ("one", "", "nvidia.com/gpu", 1),
        GPU_POD % ("three", "", "nvidia.com/gpu", 3),
    ]
    Path("dump.yaml").write_text(GPU_NODE % (shared, 16) + "".join(pods))
    found = run("dump.yaml", "--policy", "first-fit")
    assert found.exit_code == 0, found.stdout
    rows = [line.split("  ") for line in found.stdout.splitlines()[1:6]]
    asked = {row[0]: next(filter(None, row[1:])).strip() for row in rows}
    assert asked == {
        "default/mib": "8,000 MiB", "default/twice": "2 x 1,000 MiB", "default/half": "0.5",
        "default/one": "1 replica", "default/three": "3 replicas",
    }  # fmt: skip
    assert "asked" not in json.loads(run("dump.yaml", "--json").stdout)["pods"][0]
    Path("dump.yaml").write_text(mig + GPU_POD % ("p", "", "nvidia.com/gpu", 2))
    assert "  2 MIG devices  n " in run("dump.yaml").stdout


@pytest.mark.parametrize(
    "resource", ["google.com/tpu", "aws.amazon.com/neuroncore", "habana.ai/gaudi"]
)
def test_other_accelerators_are_told_by_name(run, resource):
    nodes = (GPU_NODE % ("A", 8)).replace("nvidia.com/gpu: 8", f"{resource}: 8")
    Path("dump.yaml").write_text(nodes + GPU_POD % ("p", "", resource, 4))
    assert f"  4 x {resource.partition('/')[2]}  n " in run("dump.yaml").stdout


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu"])
def test_more_than_16_gpus_are_told_with_what_nodes_have(run, resource):
    nodes = (GPU_NODE % ("A", 8)).replace("nvidia.com/gpu: 8", f"{resource}: 8")
    Path("dump.yaml").write_text(nodes + GPU_POD % ("p", "", resource, 20))
    found = run("dump.yaml")
    assert found.exit_code == 1
    row, _, reason, _ = found.stdout.splitlines()[1:]
    assert row.split() == ["default/p", "20", "-", "gpu"]
    told = f"1 Insufficient {resource} (8 free at most, 20 asked)"
    assert reason == f"gpu (1 pod): 0/1 nodes are available: {told}"


def test_pods_that_wait_for_their_gates_need_no_node(run, runner):
    gated = "spec: {schedulingGates: [{name: kueue.x-k8s.io/admission}], containers: [{}]}"
    Path("dump.yaml").write_text(f"kind: Pod\nmetadata: {{name: p}}\n{gated}\n")
    found = run("dump.yaml")
    assert found.exit_code == 0
    assert found.stdout.strip() == "no pod is pending; 1 is gated: --waiting gated"
    simulated = runner.invoke(app, ["simulate", "--trace", "dump.yaml"])
    assert simulated.exit_code == 2
    assert "there are no pods to place; left out: 1 " in simulated.stderr
    written = runner.invoke(app, ["traces", "convert", "dump.yaml", "other.yaml"])
    assert written.exit_code == 2
    assert "neither nodes nor pods" in written.stderr
