"""`podium kube try` shows a real kube-scheduler with and without Podium, and leaves nothing."""

import json
import signal
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.binary import PODIUM, clean_environment
from support.kubelike import write_dump
from support.manifests import bound, node, pod
from support.terminal import pressed_ctrl_c

START_S = 300.0


pytestmark = pytest.mark.usefixtures("programs")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Names the folder in which everything temporary is made, so that one sees what stays."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def started(folder, *arguments):
    return subprocess.Popen(
        [*PODIUM, "kube", "try", *arguments],
        cwd=folder, env=clean_environment(folder), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def done(folder, *arguments, code=0):
    with started(folder, *arguments) as process:
        output, words = process.communicate(timeout=START_S * 2)
    assert process.returncode == code, words
    return output, words


def processes_in(folder):
    """Lists the programs that work in a folder or are told of it."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            where, command = (each / "cwd").readlink(), (each / "cmdline").read_text()
        except OSError:  # it has ended meanwhile
            continue
        if str(where).startswith(str(folder)) or str(folder) in command:
            found.append((each.name, command))
    return found


def wait_until_gone(folder):
    deadline = time.monotonic() + START_S
    while processes_in(folder):
        assert time.monotonic() < deadline, processes_in(folder)
        time.sleep(0.05)


def test_podium_binds_what_kube_scheduler_leaves_and_the_simulator_foresees_it(tmp_path, temporary):
    output, words = done(tmp_path, "--json")
    found = json.loads(output)
    assert (found["nodes"], found["gpus"], found["policy"]) == (20, 102, "keep-room")
    stock, packing, podium = found["stock"], found["packing"], found["podium"]
    assert stock["submitted"] == packing["submitted"] == podium["submitted"] == found["pods"]
    assert 0 < stock["bound"] <= podium["bound"] <= found["pods"]
    assert stock["gpus_allocated"] < podium["gpus_allocated"] <= found["gpus"]
    assert packing["gpus_allocated"] <= podium["gpus_allocated"]
    # kube-scheduler draws lots among equals, so that no run is foreseen pod by pod.
    for each in (stock, packing, podium):
        assert abs(each["bound"] - each["simulated"]["bound"]) <= 4
    assert "filter and bind of" in words
    assert not list(temporary.iterdir())
    assert not processes_in(temporary)


def test_whole_gpus_need_no_filter_and_a_policy_may_be_a_file(tmp_path, temporary):
    (tmp_path / "nodes.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\n"
        + "".join(f"n{i},64000,262144,4,A100\n" for i in "abc")
    )
    (tmp_path / "pods.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
        + "".join(f"p{i},1000,1024,{gpus},1000\n" for i, gpus in enumerate([1, 1, 1, 4, 4]))
    )
    (tmp_path / "pack.py").write_text(
        '"""Fills nodes."""\n\n\ndef score(pod, node):\n    """Prefers full nodes."""\n'
        "    return -sum(node.gpu_milli_left)\n"
    )
    arguments = ("--trace", "pods.csv", "--cluster", "nodes.csv", "--policy", "pack.py")
    output, words = done(tmp_path, *arguments, code=1)
    assert "the packing profile of Podium's chart" in words
    rows = {line[:15].strip(): line.split()[-7:] for line in output.splitlines()[1:7]}
    assert rows["pods bound"] == ["5", "3", "3", "5", "5", "5", "5"]
    assert rows["- 4 GPUs"] == ["2", "0", "0", "2", "2", "2", "2"]
    assert (
        "no ranking: pack allocates as many GPUs to as many pods as the packing profile" in output
    )
    assert not list(temporary.iterdir())


@pytest.mark.usefixtures("temporary")
def test_what_runs_in_a_dump_stays_and_what_waits_is_tried(tmp_path):
    asked = {"nvidia.com/gpu": "2"}
    running = [bound(pod(f"runs-{i}", requests=asked), f"n{i}") for i in range(2)]
    waiting = [pod(f"waits-{i}", requests=asked) for i in range(4)]
    whole = pod("whole", requests={"nvidia.com/gpu": "4"})
    dump = write_dump(tmp_path, [*map(node, ("n0", "n1", "n2")), *running, *waiting, whole])
    output, words = done(tmp_path, "--trace", str(dump), code=1)
    assert "2 pods run already and stay where they are" in words
    rows = {line[:15].strip(): line.split()[-7:] for line in output.splitlines()[1:6]}
    assert rows["pods bound"] == ["5", *rows["pods bound"][1:]]
    # Eight GPUs are free beside those that run.
    assert rows["GPUs allocated"][0] == "12.0"
    assert {float(each) for each in rows["GPUs allocated"][1:]} <= {8.0}


def test_a_policy_that_fails_is_refused_before_anything_is_started(tmp_path, temporary):
    (tmp_path / "broken.py").write_text("def score(pod, node):\n    return 1 // (node.rack + 1)\n")
    with started(tmp_path, "--policy", "broken.py") as process:
        _, words = process.communicate(timeout=START_S)
    assert process.returncode == 2
    assert "broken" in words
    assert "starting etcd" not in words
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("cue", ["starting etcd", "pods are placed"])
def test_ctrl_c_ends_everything(tmp_path, temporary, cue):
    code, words = pressed_ctrl_c(
        ["kube", "try", "--nodes", "60"], tmp_path, cue=cue, after_s=0.3, deadline_s=START_S
    )
    assert (code, "interrupted" in words) == (130, True), words
    assert not list(temporary.iterdir())
    assert not processes_in(temporary)


def test_nothing_outlives_a_parent_that_is_killed(tmp_path, temporary):
    with started(tmp_path, "--nodes", "60") as process:
        for line in process.stderr:
            if line.startswith("kube-scheduler: "):
                break
        names = " ".join(command for _, command in processes_in(temporary))
        assert all(name in names for name in ("etcd", "kube-apiserver", "kube-scheduler", "serve"))
        process.kill()
    wait_until_gone(temporary)
    # The next run removes what could not be removed.
    (left,) = temporary.iterdir()
    done(tmp_path, "--nodes", "2", "--pods", "3", code=1)
    assert not left.exists()


def test_what_is_kept_answers_until_it_is_ended(tmp_path, temporary):
    with started(tmp_path, "--nodes", "3", "--pods", "4", "--keep") as process:
        for line in process.stderr:
            if "KUBECONFIG=" in line:
                break
        kubeconfig = line.strip().partition("KUBECONFIG=")[2]
        server = json.loads(Path(kubeconfig).read_text())["clusters"][0]["cluster"]["server"]
        port = urlsplit(server).port
        environ = clean_environment(tmp_path, KUBECONFIG=kubeconfig)
        command = [*PODIUM, "kube", "snapshot", "kept.json"]
        taken = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
        assert "3 Node, 4 Pod" in taken.stderr
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=START_S)
    assert process.returncode == 1  # four pods on three nodes tell no policy apart
    assert not list(temporary.iterdir())
    assert not processes_in(temporary)
    with socket.create_server(("127.0.0.1", port), reuse_port=False):
        pass
