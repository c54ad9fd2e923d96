import json

import numpy as np
import pytest

from podium.experiments.listener import Listener
from podium.experiments.train import NO_TEACHING, TrainingRequest, train_in_passing
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import load
from podium.rl.configuration import create_config
from podium.rl.mlp.gradient import draw
from podium.rl.mlp.imitation import record
from podium.rl.mlp.parameters import first_arrays, flat
from podium.rl.mlp.trials import Trials, allocations, inflation_case
from podium.sim import Inflation, simulate
from podium.traces import save_trace
from podium.traces.trace import Trace
from support.gpu_cluster import dump

UNITS = 8


@pytest.fixture
def case(tmp_path):
    """Takes every sixth node of the cluster, and the pods."""
    found = dump()
    nodes = [each for each in found["items"] if each["kind"] == "Node"][::4]
    names = {each["metadata"]["name"] for each in nodes}
    pods = [each for each in found["items"] if each["kind"] == "Pod"]
    kept = [each for each in pods if each["spec"].get("nodeName", "") in {"", *names}]
    path = tmp_path / "small.json"
    path.write_text(json.dumps(found | {"items": nodes + kept}))
    return inflation_case(str(path), 100, 1000)


@pytest.mark.parametrize("teacher", ["fed-gpu", "first-fit"])
def test_a_teacher_decides_among_nodes_that_taints_and_selectors_leave(case, teacher):
    rng = np.random.default_rng(1)
    decisions = record(load(teacher), [case], first_arrays(UNITS, rng), 1, rng)
    assert len(decisions.seen) > 10


def test_a_net_learns_by_trial_and_is_judged_on_a_cluster_with_taints(case):
    rng = np.random.default_rng(1)
    net = first_arrays(UNITS, rng)
    drawn = draw(net, [case], 2, rng)
    assert len(drawn) > 10
    assert drawn.allocation > 10
    found = Trials(UNITS, 1).run([flat(net), "first-fit"], [case])
    assert (found[:, 0, -1] > 10).all()


def test_pods_on_shared_gpus_count_as_what_they_hold():
    pods = [PodSpec(f"p{i}", 1_000, 100, 1, 1_000) for i in range(40)]
    node = NodeSpec("a", 64_000, 8_000, 4, "T4", gpu_replicas=4)
    own = NodeSpec("b", 64_000, 8_000, 8, "A100")
    result = simulate(Cluster.of([node, own]), Workload.of(pods), "first-fit", Inflation(3.0))
    assert 20 < max(allocations(result)) <= 100


def written(path, nodes, gpus):
    """Writes a trace of nodes of 4 GPUs, and of pods that ask for so many."""
    cluster = Cluster.of([NodeSpec(f"n{i}", 64_000, 64_000, 4, "T4") for i in range(nodes)])
    pods = Workload.of([PodSpec(f"p{i}", 1_000, 100, each, 1_000) for i, each in enumerate(gpus)])
    save_trace(Trace("few", cluster, pods), path)
    return str(path)


@pytest.mark.parametrize(("nodes", "has_choice"), [(2, True), (1, False)])
def test_where_few_decisions_could_be_recorded_all_are(tmp_path, nodes, has_choice):
    rng = np.random.default_rng(1)
    case = inflation_case(written(tmp_path / "few.yaml", nodes, (1, 1)), nodes, 1000)
    found = record(load("first-fit"), [case], first_arrays(UNITS, rng), 1000, rng)
    assert len(found.seen) == len(found.mask)
    assert (len(found.seen) > 0) == has_choice


def test_a_net_is_trained_where_there_is_nothing_to_imitate(tmp_path):
    own = create_config(
        "mlp", training={"episodes": 3}, network={"hidden_units": UNITS},
        workload={"traces": [written(tmp_path / "few.yaml", 1, (4, 1, 1))]},
        imitation={"iterations": 1}, gradient={"iterations": 1, "environments": 2},
        evolution={"population": 4, "workers": 1}, validation={"seeds": 1},
    )  # fmt: skip
    notes = []
    hears = Listener()
    hears.note = notes.append
    assert train_in_passing(TrainingRequest("mlp", own), hears).is_complete
    assert notes.count(NO_TEACHING) == 1
