"""The MLP scorer as a policy: what it sees of a demand, and that all ways to run it agree."""

import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from podium.errors import InputError, PolicyError
from podium.model.records import ANY_MODEL, NODE_8, POD, node_view, pod_view
from podium.model.workload import Shapes
from podium.policies import load
from podium.policies.networks.demand import demand_of
from podium.policies.networks.mlp import (
    FEATURES,
    NUM_FEATURES,
    TWIN,
    features,
    mlp_policy,
    score,
    shapes_of_arrays,
    table_of,
)
from podium.policies.weights import unpacked
from podium.sim import Inflation, Setup, simulate
from podium.testing import check_policy
from podium.traces import LoadOptions, load_trace


def arrays(seed=0, units=8):
    rng = np.random.default_rng(seed)
    shapes = shapes_of_arrays(units)
    return {name: rng.normal(0, 0.5, shape) for name, shape in shapes.items()}


def shapes(*pods):
    """Makes shapes of (cpu, memory, GPUs, milli, count) or of the same with a mask of models."""
    records = [(*pod[:4], pod[5] if len(pod) > 5 else ANY_MODEL, 0, 0) for pod in pods]
    counts = np.array([pod[4] for pod in pods], np.float64)
    return Shapes(np.array(records, POD), ("",) * len(pods), counts)


def node(cpu=32000, memory=65536, left=(1000, 1000)):
    slots = [*left, *[0] * (8 - len(left))]
    return np.array([(cpu, 32000, memory, 65536, len(left), 0, -1, 0, slots)], NODE_8)


def pod(cpu=4000, memory=8192, count=1, milli=1000):
    return np.array([(cpu, memory, count, milli, ANY_MODEL, 0, 0)], POD)


def seen(pod, node, gpu=-1, demand=None):
    net = {name: np.zeros(shape) for name, shape in shapes_of_arrays(8).items()}
    net["worth"][:, 0] = 1.0  # a free part is worth what it is
    table = table_of(net, demand or shapes())
    values = features(pod_view(pod[0]), node_view(node[0]), gpu, table)
    return dict(zip(FEATURES, values, strict=True))


def saved(folder, found):
    np.savez(folder / "net.npz", **found)
    digest = hashlib.sha256((folder / "net.npz").read_bytes()).hexdigest()
    card = {"network": "mlp", "name": "net", "sha256": digest}
    (folder / "net.json").write_text(json.dumps(card))
    return str(folder / "net.npz")


def test_random_weights_keep_the_contract_of_policies():
    report = check_policy(mlp_policy("mlp", arrays()), seed=11)
    assert report.broken == ()


def test_all_tiers_place_alike_with_gpu_models_that_pods_name():
    options = LoadOptions(seed=1000, nodes=30, pods=200)
    trace = load_trace("openb-model-bound", options)
    policy = mlp_policy("mlp", arrays(3))
    tiers = ("python", "cached", "scan")
    digests = {
        simulate(
            trace.cluster, trace.workload, policy, Inflation(1.3), Setup(1000, tier)
        ).digest
        for tier in tiers
    }  # fmt: skip
    assert len(digests) == 1


def test_the_net_is_one_hidden_layer_and_a_direct_path():
    net, demand = arrays(1), shapes((2000, 4096, 1, 300, 5), (8000, 4096, 2, 1000, 1))
    table = table_of(net, demand)
    views = pod_view(pod()[0]), node_view(node(left=(1000, 400))[0])
    values = np.array(features(*views, -1, table))
    units = values @ net["hidden"] + net["bias"]
    expected = values @ net["linear"] + units / (1 + np.abs(units)) @ net["out"]
    assert score(*views, -1, table) == pytest.approx(expected)
    assert len(values) == NUM_FEATURES


def test_features_tell_what_would_remain():
    found = seen(pod(cpu=8000, milli=300), node(left=(1000, 400)), gpu=1)
    assert found["behind_on_gpu"] == pytest.approx(0.1)
    assert found["free_on_gpu"] == pytest.approx(0.4)
    assert found["opens_gpu"] == 0
    assert found["free_gpu_after"] == pytest.approx(1.1 / 8)
    assert found["whole_gpus_after"] == 1 / 8
    assert found["parts_after"] == 1 / 8
    assert found["cpu_part_after"] == pytest.approx(0.75)
    assert found["wasted_gpu"] == pytest.approx(0)


def test_a_whole_gpu_leaves_the_largest_part_of_the_others():
    found = seen(pod(), node(left=(1000, 400)))
    assert found["largest_part_after"] == pytest.approx(0.4)
    assert found["whole_gpus_after"] == 0
    assert seen(pod(), node())["largest_part_after"] == 1


def test_starved_gpu_is_what_loses_its_cpu():
    # One core a GPU is asked for, as all levels are: taking 31 of 32 leaves one for two GPUs.
    found = seen(pod(cpu=31000, count=0, milli=0), node())
    assert found["starved_gpu_1"] == pytest.approx(1)
    assert seen(pod(cpu=1000, count=0, milli=0), node())["starved_gpu_1"] == 0


def test_of_twin_gpus_the_lower_one_is_scored():
    table = table_of(arrays(), shapes())
    views = pod_view(pod(milli=300)[0]), node_view(node()[0])
    assert score(*views, 1, table) == TWIN < score(*views, 0, table)


def test_a_free_part_is_filled_by_what_fits():
    demand = demand_of(shapes((1000, 1024, 1, 500, 3)))
    assert [demand.filled[milli] for milli in (400, 500, 900, 1000)] == [0, 500, 500, 1000]
    assert demand.fitting[499] == 0
    assert demand.fitting[500] == 1


def test_demand_tells_shares_several_gpus_and_named_models():
    pods = (1000, 1024, 1, 500, 2), (1000, 1024, 2, 1000, 1, 0b10), (6000, 1024, 0, 0, 1)
    demand = demand_of(shapes(*pods))
    assert demand.shares == pytest.approx(1 / 3)
    assert demand.multiple == pytest.approx(2 / 3)
    assert demand.models[1] == pytest.approx(2 / 3)
    assert demand.models[0] == 0
    assert demand.cpu_only_per_gpu == pytest.approx(2)
    assert demand.cpu_per_gpu == pytest.approx(1)


def test_a_demand_of_nothing_is_a_demand():
    assert np.isfinite(table_of(arrays(), shapes())).all()


def test_a_demand_of_few_pods_is_filled_up_with_the_typical_one():
    typical = np.array([[1000, 1024, 1, 500, 30]])
    few, many = shapes((1000, 1024, 1, 250, 20)), shapes((1000, 1024, 1, 250, 400))
    assert demand_of(shapes(), typical).exact[500] == 1
    assert demand_of(few, typical).exact[[250, 500]].tolist() == pytest.approx([0.1, 0.9])
    assert demand_of(many, typical).exact[[250, 500]].tolist() == [1, 0]
    assert demand_of(few).exact[250] == 1  # where nothing is typical, the few are all


@pytest.mark.parametrize(
    "typical", [np.zeros((0, 5), int), np.ones((2, 4), int), np.ones((2, 5)), -np.ones((2, 5), int)]
)
def test_a_typical_demand_that_is_none_is_refused(tmp_path, typical):
    with pytest.raises(InputError, match="typical demand"):
        load(saved(tmp_path, {**arrays(), "typical": typical}))


def test_without_a_table_the_policy_says_so():
    with pytest.raises(PolicyError, match=r"prepare\(shapes\) makes it"):
        mlp_policy("mlp", arrays()).scores(pod()[0], node())


def test_saved_weights_decide_as_those_in_memory(tmp_path):
    found, demand = arrays(2), shapes((1000, 1024, 1, 500, 3))
    policy = load(saved(tmp_path, found))
    assert policy.origin == "trained"
    assert policy.name == "net"
    nodes = np.concatenate([node(), node(left=(700, 300)), node(cpu=9000)])
    expected = mlp_policy("mlp", found).session(demand).scores(pod(milli=300)[0], nodes)
    given = policy.session(demand).scores(pod(milli=300)[0], nodes)
    assert given.scores.tolist() == expected.scores.tolist()
    assert given.gpu_slots.tolist() == expected.gpu_slots.tolist()


@pytest.mark.parametrize("wrong", ["bias", "hidden", "worth"])
def test_weights_of_another_net_are_refused(tmp_path, wrong):
    found = arrays()
    found[wrong] = found[wrong][..., :-1]
    with pytest.raises(InputError, match="not those of this net"):
        load(saved(tmp_path, found))


def test_a_weight_that_is_no_number_is_refused(tmp_path):
    found = arrays()
    found["linear"][3] = np.nan
    with pytest.raises(InputError, match="not a finite number"):
        load(saved(tmp_path, found))


@pytest.mark.parametrize("dtype", ["U8", "c16", "V8", "M8[s]"])
def test_weights_that_are_no_numbers_are_refused(tmp_path, dtype):
    found = arrays()
    found["linear"] = np.zeros(found["linear"].shape, dtype)
    with pytest.raises(InputError, match="the array linear holds"):
        load(saved(tmp_path, found))


@pytest.mark.parametrize("size", [1e308, -1e15])
def test_weights_that_nobody_can_reckon_with_are_refused(tmp_path, size):
    found = arrays()
    found["hidden"][3, 0] = size
    with pytest.raises(InputError, match="hidden is beyond 1,000,000"):
        load(saved(tmp_path, found))


def test_a_member_that_is_no_array_is_refused():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        packed.writestr("bias", "hello")
    with pytest.raises(InputError, match="'bias' is no array"):
        unpacked(Path("mine.npz"), stream.getvalue(), 1 << 20)
