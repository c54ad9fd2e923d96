"""Draws worlds: from traces of every kind, by seed, with as much demand as asked for."""

import json
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import pytest

from podium.errors import UnknownName, UsageError
from podium.evaluation.splits import HELD_OUT
from podium.kube.record import Recorder
from podium.kube.resources import NODES, PODS
from podium.model.workload import gpu_demand
from podium.rl import Placement, World
from podium.rl.environment.world import TRAINING_SEEDS
from podium.sim import Inflation, Replay, Rounds
from podium.traces import save_trace
from support.kubelike import gpu_node, gpu_pod, live
from support.manifests import write_dump_without_claims
from support.traces import small_trace, write_originals

BEGIN = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC).timestamp()


def demand_of(plan):
    return gpu_demand(plan.arrivals.pods).sum() / plan.cluster.gpu_milli_total


def test_training_seeds_are_none_that_judge():
    assert not any(seed in held for held in HELD_OUT for seed in TRAINING_SEEDS)


@pytest.mark.parametrize("demand", [0.5, 1.0, 1.3])
@pytest.mark.parametrize("trace", ["openb", "openb-multi-gpu", "openb-share-only", "openb:16"])
def test_rounds_ask_for_the_demand_that_is_wanted(trace, demand):
    nodes = {} if trace == "openb:16" else {"nodes": 24}
    world = World.of_trace(trace, demand=demand, **nodes)
    for seed in range(1000, 1004):
        plan = world.plan(seed)
        assert len(plan.cluster) == nodes.get("nodes", 16)
        largest = 8000 / plan.cluster.gpu_milli_total  # of one pod
        assert demand - largest < demand_of(plan) <= demand


def test_an_inflation_goes_by_its_own_ratio():
    plan = World.of_trace("openb", nodes=16, protocol=Inflation(1.2)).plan(1000)
    assert 1.1 < demand_of(plan) <= 1.2


def test_a_seed_gives_the_same_plan_and_another_one_a_different_plan():
    world = World.of_trace("openb", nodes=16)
    one, same, other = world.plan(1000), world.plan(1000), world.plan(1001)
    assert one.arrivals.pods.tobytes() == same.arrivals.pods.tobytes()
    assert one.cluster.nodes.tobytes() == same.cluster.nodes.tobytes()
    assert one.arrivals.pods.tobytes() != other.arrivals.pods.tobytes()


def test_perturbed_clusters_have_fewer_nodes_of_other_sizes():
    plain = World.of_trace("openb", nodes=20).plan(1000)
    changed = World.of_trace("openb", nodes=20, is_perturbed=True).plan(1000)
    assert len(changed.cluster) == 18
    assert set(changed.cluster.nodes["cpu_milli_total"].tolist()) - set(
        plain.cluster.nodes["cpu_milli_total"].tolist()
    )


def files(folder):
    """Writes traces of every kind that files can hold; gives how to read them."""
    originals = write_originals(folder)
    manifests = str(save_trace(small_trace(), folder / "small.yaml")[0])
    return {
        "original": ("openb:default", {"folder": str(originals)}),
        "dump": (manifests, {}),
        "pods on other nodes": ("openb:default", {"folder": str(originals), "cluster": "openb:16"}),
    }


@pytest.mark.parametrize("kind", ["original", "dump", "pods on other nodes"])
@pytest.mark.parametrize("protocol", [Rounds(), Inflation()])
def test_files_are_worlds(tmp_path, kind, protocol):
    trace, settings = files(tmp_path)[kind]
    environment = Placement(
        World.of_trace(trace, protocol=protocol, seeds=range(1000, 1003), **settings), 2
    )
    for _ in range(100):
        environment.step(environment.mask.argmax(axis=1))
    assert environment.finished()


def test_nodes_of_a_file_are_drawn_by_number(tmp_path):
    trace, settings = files(tmp_path)["original"]
    world = World.of_trace(trace, nodes=1, **settings)
    drawn = {tuple(world.plan(seed).cluster.names) for seed in range(1000, 1006)}
    assert {len(names) for names in drawn} == {1}
    assert len(drawn) > 1


def test_a_recorded_replay_is_drawn_in_stretches_by_the_seed(tmp_path):
    trace, settings = files(tmp_path)["dump"]
    world = World.of_trace(trace, protocol=Replay(), **settings)
    plans = [world.plan(seed) for seed in range(1000, 1004)]
    orders = {plan.arrivals.pods.tobytes() for plan in plans}
    assert len(orders) > 1
    assert all(np.all(np.diff(plan.arrivals.arrival_s) >= 0) for plan in plans)


def test_an_unknown_setting_is_told_with_the_closest():
    with pytest.raises(UnknownName, match='unknown setting of a world "node"') as caught:
        World.of_trace("openb", node=4)
    assert "nodes" in caught.value.hint


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"demand": np.nan}, "demand is nan"),
        ({"demand": np.inf}, "demand is inf"),
        ({"demand": "much"}, "demand is 'much'"),
        ({"nodes": -1}, "nodes is -1"),
        ({"nodes": 2.5}, "nodes is 2.5"),
        ({"nodes": 10**9}, "nodes is 1000000000"),
        ({"seeds": range(42, 52)}, "seed 42 is held out"),
        ({"seeds": [1000, 2003]}, "seed 2003 is held out"),
    ],
)
def test_what_makes_no_world_is_refused_in_words(settings, told):
    with pytest.raises(UsageError, match=told) as caught:
        World.of_trace("openb", **{"nodes": 4, **settings})
    assert caught.value.hint


def test_preemption_and_no_seeds_are_refused():
    with pytest.raises(UsageError, match="preemption cannot be learned on"):
        World.of_trace("openb", nodes=4, protocol=Rounds(preemption=True))
    with pytest.raises(UsageError, match="no seeds"):
        World.of_trace("openb", nodes=4, seeds=[])


def moment(seconds):
    return datetime.fromtimestamp(BEGIN + seconds, UTC).isoformat().replace("+00:00", "Z")


def recorded(path, pods=6):
    """Records a cluster of two nodes on which pods run one after the other."""
    clock_s = [0.0]
    with Recorder(path, now=lambda: BEGIN + clock_s[0]) as recorder:
        for name in ("n0", "n1"):
            recorder.apply(NODES, "ADDED", json.dumps(gpu_node(name)).encode())
        recorder.retain(NODES, {("Node", "", "n0"), ("Node", "", "n1")})
        for i in range(pods):
            pod = live(gpu_pod(f"p{i}", 1 + i % 2), f"p{i}")
            pod["metadata"]["creationTimestamp"] = moment(10 * i)
            clock_s[0] = 10 * i + 2
            pod["spec"]["nodeName"] = "n0"
            over = {
                "startedAt": moment(10 * i + 1),
                "finishedAt": moment(10 * i + 2),
                "exitCode": 0,
            }
            pod["status"] = {
                "phase": "Succeeded",
                "startTime": moment(10 * i + 1),
                "containerStatuses": [{"name": "main", "state": {"terminated": over}}],
            }
            recorder.apply(PODS, "ADDED", json.dumps(pod).encode())


@pytest.mark.parametrize("protocol", [Rounds(), Inflation(0.9), Replay()])
def test_a_recorded_cluster_is_a_world(tmp_path, protocol):
    recorded(tmp_path / "cluster.jsonl")
    world = World.of_trace(
        str(tmp_path / "cluster.jsonl"), protocol=protocol, seeds=range(1000, 1004)
    )
    environment = Placement(world, 2)
    assert environment.num_nodes == 2
    while not (results := environment.finished()):
        environment.step(environment.mask.argmax(axis=1))
    assert results[0].is_placed.any()


@pytest.mark.parametrize("state", ["now", "empty"])
def test_the_dump_of_a_cluster_begins_with_what_runs(tmp_path, state):
    dump = write_dump_without_claims(tmp_path / "dump.yaml")
    world = World.of_trace(dump, state=state, demand=2.0, seeds=range(1000, 1004))
    environment = Placement(world, 2)
    free = environment.context[:, 0]
    assert (free < 1).all() if state == "now" else (free == 1).all()
    while not environment.finished():
        environment.step(environment.mask.argmax(axis=1))


BARE = """
import sys
for name in ("gymnasium", "sqlalchemy", "pydantic", "tensorboardX", "fastapi", "polars", "jax"):
    sys.modules[name] = None
from podium.rl import Placement, World
environment = Placement(World.of_trace("openb", nodes=4, seeds=range(1000, 1002)), 2)
environment.step(environment.mask.argmax(axis=1))
print(environment.reward.shape)
"""


def test_environments_need_numpy_and_numba_alone():
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=False)
    assert done.stdout == "(2,)\n", done.stderr
