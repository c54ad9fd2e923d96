from dataclasses import replace

import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import UNCONSTRAINED, Constraints, Taint, Toleration
from podium.policies import load
from podium.reports.idle import busier_load, idle_note
from podium.reports.summary import summarise
from podium.sim import Inflation, Replay, Rounds, simulate


def nodes(count):
    specs = [NodeSpec(f"node-{i}", 8000, 16000, gpu_count=1) for i in range(count)]
    return Cluster.of(specs, name="few")


def pods(count, every_s=100.0, duration_s=10.0):
    return Workload.of(
        [
            PodSpec(
                f"pod-{i}", 1000, 1000, gpu_count=1, gpu_milli=1000, arrival_s=i * every_s,
                duration_s=duration_s,
            )
            for i in range(count)
        ],
        name="pods",
    )  # fmt: skip


def noted(cluster, workload, protocol):
    result = simulate(cluster, workload, load("first-fit"), protocol)
    return idle_note(cluster, workload, [summarise(result)])


def test_a_replay_in_which_nobody_waits_names_a_load_at_which_somebody_does():
    cluster, workload = nodes(1), pods(20)
    load_found = busier_load(cluster, workload, 1.0)
    assert load_found is not None
    assert f"--load {load_found:g} " in noted(cluster, workload, Replay())
    assert noted(cluster, workload, Replay(load_found)) == ""


TOLERANT = Constraints(tolerations=(Toleration(operator="Exists"),))
TAINTED = (Taint("team", "vision", "NoSchedule"),)


@pytest.mark.parametrize(
    ("taints", "constraints", "cpu_milli", "told"),
    [
        (TAINTED, UNCONSTRAINED, 1000, "not placed: taint 3: give the pods tolerations"),
        ((), Constraints((("zone", "b"),)), 1000, "not placed: selector 3: let the pods"),
        ((), UNCONSTRAINED, 9000, "not placed: 3: compare the requests of the pods with the nodes"),
    ],
)
def test_pods_that_a_node_never_takes_are_told_why_and_not_of_a_load(
    taints, constraints, cpu_milli, told
):
    node = NodeSpec("node", 8000, 16000, gpu_count=1, taints=taints)
    spec = PodSpec(
        "pod", cpu_milli, 1000, 1, 1000, arrival_s=0.0, duration_s=9.0, constraints=constraints
    )
    refused = [replace(spec, name=f"pod-{i}") for i in range(3)]
    found = noted(Cluster.of([node]), Workload.of(refused), Replay())
    assert told in found
    assert "--load" not in found
    tolerant = PodSpec("ok", 1, 1, arrival_s=0.0, duration_s=9.0, constraints=TOLERANT)
    mixed = noted(Cluster.of([node]), Workload.of([*refused, tolerant]), Replay())
    assert "not placed" in mixed
    assert "--load" in mixed


def test_pods_that_all_fit_at_once_are_told_that_no_load_helps():
    cluster, workload = nodes(10), pods(8)
    told = noted(cluster, workload, Replay())
    assert "80 % of the GPUs" in told
    assert "--protocol inflation" in told
    assert busier_load(cluster, workload, 1.0) is None
    assert noted(cluster, workload, Replay(1e6))


def test_an_inflation_that_drops_nobody_names_the_ratio():
    cluster, workload = nodes(10), pods(20)
    assert "--ratio 1.3" in noted(cluster, workload, Inflation(0.5))
    assert noted(cluster, workload, Inflation(1.3)) == ""


def test_rounds_and_clusters_without_gpus_have_no_such_note():
    assert noted(nodes(10), pods(2), Rounds()) == ""
    bare = Cluster.of([NodeSpec("node", 8000, 16000)], name="bare")
    asking = Workload.of([PodSpec("pod", 100, 100, arrival_s=0.0, duration_s=1.0)], name="cpu")
    assert noted(bare, asking, Replay()) == ""


@pytest.mark.parametrize("every_s", [0.0, 1.0])
def test_the_search_for_a_load_ends(every_s):
    assert busier_load(nodes(1), pods(3, every_s, 0.0), 1.0) is not None
