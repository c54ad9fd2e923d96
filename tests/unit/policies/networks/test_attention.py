"""Attention over nodes: what it says does not depend on the order or the number of the nodes."""

from __future__ import annotations

import numpy as np
import pytest

from podium.errors import InputError
from podium.model.records import POD, pod_view
from podium.policies import HOLD
from podium.policies.networks.attention import (
    AttentionChooser,
    AttentionNetwork,
    make,
    network_shapes,
)
from podium.policies.networks.features import CONTEXT_FEATURES, NODE_FEATURES, POD_FEATURES
from podium.policies.session import Situation
from podium.policies.weights import Weights
from podium.traces import LoadOptions, load_trace

WIDTH, HEADS, LOOK_AHEAD = 8, 2, 3


def drawn(attention: str = "cross", seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = network_shapes(WIDTH, HEADS, attention)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def observed(nodes: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pods = rng.random((1 + LOOK_AHEAD, POD_FEATURES), np.float32)
    return (
        rng.random((nodes, NODE_FEATURES), np.float32), pods,
        rng.random(CONTEXT_FEATURES, np.float32),
    )  # fmt: skip


@pytest.mark.parametrize("attention", ["cross", "self", "none"])
def test_the_order_of_nodes_does_not_matter(attention: str) -> None:
    network = AttentionNetwork(drawn(attention), attention=attention, may_hold=True)
    nodes, pods, context = observed()
    order = np.random.default_rng(1).permutation(len(nodes))
    logits, holding = network.decide(nodes, pods, context)
    moved, moved_holding = network.decide(nodes[order], pods, context)
    assert np.allclose(moved, logits[order], rtol=1e-4, atol=1e-4)
    assert moved_holding == pytest.approx(holding, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("attention", ["cross", "self", "none"])
def test_the_number_of_equal_nodes_does_not_matter(attention: str) -> None:
    network = AttentionNetwork(drawn(attention), attention=attention, may_hold=True)
    nodes, pods, context = observed()
    logits, holding = network.decide(nodes, pods, context)
    tripled, tripled_holding = network.decide(np.tile(nodes, (3, 1)), pods, context)
    assert np.allclose(tripled, np.tile(logits, 3), rtol=1e-4, atol=1e-4)
    assert tripled_holding == pytest.approx(holding, rel=1e-4, abs=1e-4)


def test_other_nodes_matter_only_with_attention() -> None:
    nodes, pods, context = observed()
    changed = nodes.copy()
    changed[1] += 1
    for attention, is_noticed in (("cross", True), ("self", True), ("none", False)):
        network = AttentionNetwork(drawn(attention), attention=attention, may_hold=True)
        (before, hold), (after, other) = (
            network.decide(x, pods, context) for x in (nodes, changed)
        )
        assert (not np.allclose(before[0], after[0]) or not np.isclose(hold, other)) == is_noticed


def test_the_pods_behind_matter_but_absent_ones_do_not() -> None:
    network = AttentionNetwork(drawn(), attention="cross", may_hold=True)
    nodes, pods, context = observed()
    pods[2] = 0
    _, holding = network.decide(nodes, pods, context)
    pods[2, 1:] = 5  # not present
    assert network.decide(nodes, pods, context)[1] == holding
    pods[1] += 1
    assert network.decide(nodes, pods, context)[1] != holding


def chooser(hold_bias: float) -> AttentionChooser:
    arrays = drawn()
    arrays["hold_v"] *= 0
    arrays["hold_c"][:] = hold_bias
    policy = make(Weights("net", arrays, {"look_ahead": LOOK_AHEAD}))
    found = policy.chooser(0)
    assert isinstance(found, AttentionChooser)
    return found


def test_it_holds_only_where_a_run_allows_another_round() -> None:
    trace = load_trace("openb", LoadOptions(seed=1000, nodes=4, pods=5))
    nodes, pod = trace.cluster.nodes, pod_view(trace.workload.pods[0])
    feasible = np.ones(len(nodes), np.bool_)
    eager = chooser(hold_bias=5.0)

    def choice(situation: Situation | None) -> float:
        if situation is not None:
            eager.observe(situation)
        return eager.choose(pod, nodes, feasible)

    assert choice(Situation(may_hold=True, max_rounds=3, num_pods=5)) == HOLD
    assert choice(None) in range(4)  # nobody says that it may be held
    assert choice(Situation(may_hold=True, round=2, max_rounds=3)) in range(4)  # the last round
    assert choice(Situation(may_hold=False, max_rounds=3)) in range(4)
    assert choice(Situation(may_hold=True, max_rounds=0)) in range(4)  # no rounds
    assert chooser(hold_bias=-5.0).choose(pod, nodes, feasible) in range(4)


def test_it_chooses_among_nodes_that_fit_and_scores_alike() -> None:
    trace = load_trace("openb", LoadOptions(seed=1000, nodes=8, pods=5))
    nodes, pod = trace.cluster.nodes, pod_view(trace.workload.pods[0])
    for only in range(8):
        feasible = np.arange(8) == only
        assert chooser(-5.0).choose(pod, nodes, feasible) == only
    feasible = np.ones(8, np.bool_)
    scores = chooser(-5.0).scores(pod, nodes, feasible)
    assert chooser(-5.0).choose(pod, nodes, feasible) == scores.argmax()


def test_the_order_of_node_records_does_not_matter() -> None:
    trace = load_trace("openb", LoadOptions(seed=1001, nodes=30, pods=5))
    nodes, pod = trace.cluster.nodes.copy(), pod_view(trace.workload.pods[1])
    nodes["cpu_milli_left"] -= np.arange(30, dtype=np.int32) * 100  # no two nodes are alike
    order = np.random.default_rng(3).permutation(30)
    feasible = np.random.default_rng(4).random(30) < 0.7
    scores = chooser(-5.0).scores(pod, nodes, feasible)
    moved = chooser(-5.0).scores(pod, nodes[order], feasible[order])
    assert np.allclose(moved, scores[order], rtol=1e-4, atol=1e-4)


def test_weights_of_another_network_are_refused() -> None:
    arrays = drawn()
    with pytest.raises(InputError, match="key_w"):
        make(Weights("net", {k: v for k, v in arrays.items() if k != "key_w"}, {}))
    with pytest.raises(InputError, match="attention"):
        make(Weights("net", arrays, {"attention": "global"}))
    arrays["node_w"] = arrays["node_w"][:-1]
    with pytest.raises(InputError, match="node_w has the shape"):
        make(Weights("net", arrays, {}))
    assert POD.names  # the records that features are read from


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("node_w", lambda each: each * np.nan),
        ("hold_c", lambda each: each * np.inf),
        ("hold_c", lambda each: np.full(each.shape, 1e300)),  # infinite as the network reads it
        ("query_b", lambda each: each.astype("U8")),
        ("query_b", lambda each: each.astype(complex)),
        ("query_b", lambda each: np.zeros(each.shape, "M8[s]")),
        ("query_b", lambda each: np.zeros(each.shape, "V4")),
        ("query_b", lambda each: each.astype(int)),
        ("pod_b", lambda _: np.float32(1.0)),
        ("pod_b", lambda each: each[:0]),
        ("pod_b", lambda _: np.zeros(1025, np.float32)),
        ("key_w", lambda each: np.zeros((65, *each.shape[1:]), np.float32)),
        ("key_w", lambda each: each[:0]),
    ],
)
def test_weights_that_are_no_finite_numbers_in_bounds_are_refused(name, wrong) -> None:
    arrays = drawn()
    assert make(Weights("net", arrays, {})).name == "net"
    with pytest.raises(InputError, match=f"array {name} ") as caught:
        make(Weights("net", arrays | {name: wrong(arrays[name])}, {}))
    assert caught.value.where
    assert caught.value.hint


@pytest.mark.parametrize(
    ("key", "value"),
    [("look_ahead", value) for value in ("abc", [1], None, 1e400, True, 2.5, -1, 65, 10**400)]
    + [("may_hold", value) for value in ("false", 0, None)]
    + [("attention", value) for value in (["cross"], None)],
)
def test_a_card_with_other_values_is_refused_in_three_lines(key, value) -> None:
    with pytest.raises(InputError, match=f"{key} is ") as caught:
        make(Weights("net", drawn(), {key: value}))
    assert caught.value.where
    assert caught.value.hint
