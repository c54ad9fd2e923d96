"""What `podium kube` writes about a real cluster is what the cluster is."""

import json

import numpy as np
import pytest

from podium.traces import load_trace
from support.binary import PODIUM, run
from support.following import write_kubeconfig
from support.kubelike import gpu_node, gpu_pod, write_dump
from support.manifests import bound


@pytest.fixture
def podium(plane, tmp_path):
    environ = {"KUBECONFIG": str(plane.kubeconfig)}
    return lambda *arguments, **more: run([*PODIUM, *arguments], tmp_path, **{**environ, **more})


def settle_in(api, pods=12):
    api.create_all([gpu_node(f"n{i}") for i in range(3)])
    api.create_all([bound(gpu_pod(f"runs-{i}", i % 3), f"n{i % 3}") for i in range(pods)])
    api.create_all([gpu_pod(f"waits-{i}", 2) for i in range(3)])


@pytest.mark.parametrize("name", ["cluster.json", "cluster.yaml", "cluster.json.gz"])
def test_a_snapshot_reads_as_a_dump_by_kubectl_does(plane, api, podium, tmp_path, name):
    settle_in(api)
    done = podium("kube", "snapshot", name)
    assert (done.returncode, done.stdout) == (0, f"{name}\n"), done.stderr
    assert "3 Node, 15 Pod" in done.stderr
    taken = load_trace(str(tmp_path / name))
    kinds = (("Node", plane.api.nodes()), ("Pod", plane.api.pods()))
    objects = [{"kind": kind, **each} for kind, listed in kinds for each in listed]
    dump = load_trace(str(write_dump(tmp_path, objects)))
    assert np.array_equal(taken.cluster.nodes, dump.cluster.nodes)
    assert taken.workload.specs() == dump.workload.specs()
    assert taken.notes == dump.notes


def test_a_snapshot_leads_to_an_answer(api, podium):
    settle_in(api)
    assert podium("kube", "snapshot", "cluster.json").returncode == 0
    assert "waits-0" in podium("fit", "cluster.json").stdout
    command = ("simulate", "--trace", "cluster.json", "--policy", "first-fit", "--duration", "1h")
    simulated = podium(*command, "--json")
    assert simulated.returncode == 0, simulated.stderr
    assert json.loads(simulated.stdout)["placed"] >= 1


def test_what_holds_the_pods_of_one_namespace_says_so(api, podium):
    settle_in(api)
    for command in (("snapshot", "one.json"), ("record", "one.jsonl", "--for", "1")):
        done = podium("kube", *command, "-n", "default")
        assert done.returncode == 0, done.stderr
        assert "only pods of the namespace default are in it" in done.stderr


def test_hashed_names_tell_nobody_who_runs_what(api, podium, tmp_path):
    settle_in(api)
    done = podium("kube", "snapshot", "hashed.json", "--hash-names", "--json")
    assert json.loads(done.stdout)["objects"]["Pod"] == 15
    text = (tmp_path / "hashed.json").read_text()
    assert "runs-" not in text
    assert podium("kube", "snapshot", "plain.json").returncode == 0
    one, other = (load_trace(str(tmp_path / f"{n}.json")) for n in ("hashed", "plain"))
    assert np.array_equal(np.sort(one.workload.pods), np.sort(other.workload.pods))


def test_more_pods_than_fit_a_page_are_all_there(api, podium):
    settle_in(api, pods=620)
    done = podium("kube", "snapshot", "many.json", "--json")
    assert json.loads(done.stdout)["objects"]["Pod"] == 623


def test_one_namespace_is_noted_to_be_one(api, podium):
    settle_in(api)
    api.create(gpu_pod("p", 1, namespace="kube-system"))
    done = podium("kube", "snapshot", "one.json", "-n", "default", "--json")
    answer = json.loads(done.stdout)
    assert answer["objects"]["Pod"] == 15
    assert any("only pods of the namespace default" in note for note in answer["notes"])


def test_what_is_wrong_is_said_with_what_to_do(plane, podium, tmp_path):
    wrong = podium("kube", "snapshot", "x.json", "--context", "tset")
    assert (wrong.returncode, "did you mean test" in wrong.stderr) == (2, True)
    guest = write_kubeconfig(tmp_path, plane.access, token=plane.guest_token)
    forbidden = podium("kube", "snapshot", "x.json", KUBECONFIG=str(guest))
    assert (forbidden.returncode, "you may not list nodes" in forbidden.stderr) == (3, True)
    stranger = write_kubeconfig(tmp_path, plane.access, token="expired")
    unknown = podium("kube", "snapshot", "x.json", KUBECONFIG=str(stranger))
    assert unknown.returncode == 3
    assert "the cluster does not accept the credentials" in unknown.stderr
    assert "kubectl auth whoami" in unknown.stderr
    assert not (tmp_path / "x.json").exists()
