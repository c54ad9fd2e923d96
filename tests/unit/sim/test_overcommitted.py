"""Nodes that gave more GPUs to their pods than they list: one failed, and the plugin says so."""

import json

import pytest

import podium
from podium.sim import Rounds, Setup, simulate
from podium.sim.audit import audit
from podium.sim.metrics import measure
from podium.sim.result import PLACED
from podium.sim.result_file import load_result, save_result
from podium.traces import load_trace
from support.manifests import bound, node, pod

GPU = "nvidia.com/gpu"


def listing(name, gpus):
    made = node(name)
    made["status"]["allocatable"] = made["status"]["allocatable"] | {GPU: str(gpus)}
    return made


def running(name, where, gpus=1, priority=0):
    made = bound(pod(name, requests={GPU: str(gpus)}, priority=priority), where)
    started = f"2026-03-01T{8 + int(name[-1]):02}:00:00Z"
    return {**made, "status": {"phase": "Running", "startTime": started}}


def write(folder, *items):
    file = folder / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


@pytest.fixture
def three_on_two(tmp_path):
    """Writes a node of two GPUs on which three pods have one each."""

    def make(asked, *nodes):
        others = [running(f"r{i}", "n1", priority=i) for i in (1, 2, 3)]
        urgent = pod("urgent", requests={GPU: str(asked)}, priority=100)
        return write(tmp_path, listing("n1", 2), *nodes, *others, urgent)

    return make


@pytest.mark.parametrize(("asked", "leaving"), [(1, ("r2", "r1")), (2, ("r3", "r2", "r1"))])
def test_as_many_leave_as_kube_scheduler_evicts(three_on_two, asked, leaving):
    with pytest.warns(UserWarning, match="lists 2"):
        fit = podium.fit(three_on_two(asked), preemption=True)
    assert fit.pods[0].evicts == tuple(f"default/{name}" for name in leaving)


def test_who_is_evicted_still_asks_for_its_gpus(three_on_two):
    trace = load_trace(three_on_two(2, listing("without", 0)))
    protocol = Rounds(max_rounds=3, preemption=True)
    result = simulate(trace.cluster, trace.workload, "first-fit", protocol, Setup(ranks="listed"))
    assert result.node.tolist() == [-1, -1, -1, 0]
    assert result.plan.arrivals.pods["gpu_count"].tolist() == [1, 1, 1, 2]


def test_a_note_names_the_node(three_on_two):
    told = f"node n1 lists 2 {GPU}, and the pods on it have 3"
    assert any(note.startswith(told) for note in load_trace(three_on_two(1)).notes)


def test_nothing_is_said_where_all_is_listed(tmp_path):
    file = write(tmp_path, listing("n1", 2), running("r1", "n1"), running("r2", "n1"))
    trace = load_trace(file)
    assert not any("lists" in note for note in trace.notes)
    assert all(GPU not in each for each in trace.cluster.extended)


def test_pods_wait_until_enough_have_left(tmp_path):
    items = [running(f"r{i}", "n1") for i in (1, 2, 3)]
    file = write(tmp_path, listing("n1", 2), *items, pod("next", requests={GPU: "1"}))
    with pytest.warns(UserWarning, match="lists 2"):
        assert podium.fit(file).pods[0].reason == "gpu"


@pytest.mark.parametrize("preemption", [False, True])
@pytest.mark.parametrize("gpus", [0, 2])
def test_such_a_run_is_possible_and_can_be_kept(tmp_path, gpus, preemption):
    pods = [running("r1", "n1", 3, 1), running("r2", "n1", 1, 2)]
    urgent = pod("urgent", requests={GPU: "2"}, priority=100)
    trace = load_trace(write(tmp_path, listing("n1", gpus), listing("n2", 1), *pods, urgent))
    result = simulate(trace.cluster, trace.workload, "fgd", Rounds(2, preemption=preemption))
    assert audit(result, measure(result)).is_possible
    assert measure(result).gpu_allocation <= 1
    assert (result.status[-1] == PLACED) == (preemption and gpus == 2)
    save_result(result, tmp_path / "run.npz")
    assert load_result(tmp_path / "run.npz").node.tolist() == result.node.tolist()
