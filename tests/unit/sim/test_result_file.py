import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from podium.errors import InputError, MissingExtra, PolicyError, UsageError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import HOLD, from_function, load
from podium.reports.explanation import explain
from podium.reports.summary import summarise
from podium.sim import Holding, Inflation, Order, Replay, Result, Rounds, Setup, simulate

CLUSTER = Cluster.of(
    [
        NodeSpec("n0", 4000, 100, 2, "A", rack="r", labels={"zone": "a"}),
        NodeSpec("n1", 2000, 100, 12, "B"),
    ],
    name="two",
)
WORKLOAD = Workload.of(
    [
        PodSpec("late", 1000, 1, 1, 500, arrival_s=4, duration_s=3, gang="g", job_type="train"),
        PodSpec("first", 1000, 1, 2, 1000, "A", arrival_s=0, duration_s=10),
        PodSpec("huge", 9000, 1, arrival_s=5, duration_s=1),
        PodSpec("plain", 1000, 1, arrival_s=6, duration_s=0.5),
    ],
    name="four",
)
PROTOCOLS = [
    Replay(2.0, Holding(7, 8)),
    Inflation(0.4),
    Inflation(order=Order(np.array([3, 1, 1, 0]), np.array([1, 0]))),
    Rounds(3),
]


TYPICAL = (
    "is_involved_cpu_pods", "pod_popularity_threshold", "pod_increase_step", "gpu_res_weight",
)  # fmt: skip


def least_cpu(pod, node):
    return HOLD if pod.gpu_milli == 500 else -node.cpu_milli_left


class Chooser:
    """Is called like a function, and has no text."""

    def __call__(self, pod, node):
        return least_cpu(pod, node)


def run(policy="fgd", protocol=None):
    return simulate(CLUSTER, WORKLOAD, policy, protocol or Replay(), Setup(3))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run.podium"
    run().save(path)
    return path


def rewritten(path, change=lambda _header: None, tail=lambda data: data):
    """Changes the header and the arrays of a file, and gives it the right digest again."""
    data = gzip.decompress(path.read_bytes())[:-32]
    line, _, arrays = data.partition(b"\n")
    header = json.loads(line)
    change(header)
    content = json.dumps(header).encode() + b"\n" + tail(arrays)
    path.write_bytes(gzip.compress(content + hashlib.sha256(content).digest()))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda each: each.name)
def test_a_result_comes_back_with_every_figure(tmp_path, protocol):
    result = run(protocol=protocol)
    result.save(tmp_path / "run.podium")
    again = Result.load(str(tmp_path / "run.podium"))
    assert again.digest == result.digest
    assert summarise(again) == summarise(result)
    assert list(again.placements()) == list(result.placements())
    assert repr(again.plan) == repr(result.plan)
    assert again.plan.protocol.holding == protocol.holding
    assert again.plan.cluster.specs() == CLUSTER.specs()
    assert again.plan.trace.specs() == WORKLOAD.specs()
    assert again.plan.arrivals.specs() == result.plan.arrivals.specs()
    assert explain(again, "first") == explain(result, "first")


def test_the_same_result_makes_the_same_file(tmp_path):
    for name in ("a", "b"):
        simulate(CLUSTER, WORKLOAD, "fgd").save(tmp_path / name)
    first, second = (
        gzip.decompress((tmp_path / name).read_bytes()).partition(b"\n")[2][:-32] for name in "ab"
    )
    assert first == second


def test_a_policy_of_ones_own_is_not_executed_and_has_to_be_given_to_score(tmp_path):
    path = tmp_path / "run.podium"
    result = run(from_function(least_cpu))
    result.save(path)
    again = Result.load(path)
    assert summarise(again) == summarise(result)
    assert again.plan.policy.may_hold
    with pytest.raises(PolicyError) as caught:
        explain(again, "first")
    assert caught.value.hint == "load the result with the policy: Result.load(path, policy=...)"
    given = Result.load(path, policy=from_function(least_cpu))
    assert explain(given, "first") == explain(result, "first")


def test_another_policy_than_the_one_that_decided_is_refused(saved):
    with pytest.raises(UsageError, match="best-fit is not the policy of the result"):
        Result.load(saved, policy=load("best-fit"))
    assert Result.load(saved, policy=load("fgd")).plan.policy.name == "fgd"


def most_cpu(pod, node):
    return HOLD if pod.gpu_milli == 500 else node.cpu_milli_left


def test_a_policy_is_given_back_as_it_was_given_to_simulate(tmp_path, saved):
    path, text = tmp_path / "own.podium", "def score(pod, node):\n    return -node.cpu_milli_left\n"
    (tmp_path / "mine.py").write_text(text)
    assert Result.load(saved, policy="fgd").plan.policy.name == "fgd"
    for mine in (str(tmp_path / "mine.py"), tmp_path / "mine.py", least_cpu):
        policy = from_function(mine) if callable(mine) else load(str(mine))
        result = run(policy)
        result.save(path)
        assert explain(Result.load(path, policy=mine), "first") == explain(result, "first")


@pytest.mark.parametrize(
    "other",
    [
        most_cpu,
        "best-fit",
        from_function(most_cpu, "least_cpu"),
        lambda pod, node: pod.cpu_milli - node.rack,
        Chooser(),
    ],
)
def test_another_policy_than_the_function_that_decided_is_refused(tmp_path, other):
    path = tmp_path / "run.podium"
    run(from_function(least_cpu)).save(path)
    with pytest.raises(UsageError, match="is not the policy of the result"):
        Result.load(path, policy=other)


def test_a_function_that_has_no_text_is_told_by_its_name(tmp_path, saved):
    path = tmp_path / "own.podium"
    run(from_function(Chooser())).save(path)
    assert Result.load(path, policy=Chooser()).plan.policy.name == "Chooser"
    for name, policy in ((path, least_cpu), (saved, Chooser())):
        with pytest.raises(UsageError, match="its name differs"):
            Result.load(name, policy=policy)


@pytest.mark.parametrize(
    ("path", "policy", "where"),
    [("run.podium", 3, "argument policy"), (3, None, "argument path"), ("x", "fdg", "")],
)
def test_what_is_no_path_or_no_policy_is_told(path, policy, where):
    with pytest.raises(UsageError) as caught:
        Result.load(path, policy=policy)
    assert (caught.value.where, bool(caught.value.hint)) == (where, True)


@pytest.mark.parametrize("part", [0, 1, 10, 100, -1, -9])
def test_a_file_that_is_cut_off_is_refused(saved, part):
    saved.write_bytes(saved.read_bytes()[:part])
    with pytest.raises(InputError) as caught:
        Result.load(saved)
    assert caught.value.where == str(saved)


def test_no_changed_byte_goes_unnoticed(saved):
    content = gzip.decompress(saved.read_bytes())
    random = np.random.default_rng(7)
    for place in random.integers(len(content), size=60).tolist():
        changed = bytearray(content)
        changed[place] ^= 1 << int(random.integers(8))
        saved.write_bytes(gzip.compress(bytes(changed)))
        with pytest.raises(InputError):
            Result.load(saved)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda header: header.update(digest="0" * 64), "does not have the digest that it names"),
        (lambda header: header.update(version=2), "is a result of format 2"),
        (lambda header: header.update(format="other"), "is no saved result"),
        (lambda header: header["cluster"]["names"].append("n2"), "contradicts itself"),
        (lambda header: header["cluster"].update(gpu_models=[]), "contradicts itself"),
        (lambda header: header["cluster"].update(names=[[], []]), "does not hold a result"),
        (lambda header: header["cluster"].update(gpu_slots=10**9), "does not hold a result"),
        (lambda header: header["trace"].update(gangs=[]), "contradicts itself"),
        (lambda header: header["arrays"].pop(), "does not hold the arrays"),
        (lambda header: header["arrays"][0].__setitem__(1, 10**12), "claims an array"),
        (lambda header: header["arrays"][0].__setitem__(1, -1), "does not hold a result"),
        (lambda header: header["arrays"][0].__setitem__(1, 10**7), "is damaged or cut off"),
        (lambda header: header["protocol"].update(name="lottery"), "does not hold a result"),
        (lambda header: header.pop("policy"), "does not hold a result"),
        (lambda header: header.update(seed="x"), "does not hold a result"),
        (lambda header: header.update(wall_s=float("nan")), "does not hold a result"),
        (lambda header: header.update(tier="fast"), "does not hold a result"),
        (lambda header: header.update(extra=1), "does not hold a result"),
        (lambda header: header["trace"].update(extra=[]), "does not hold a result"),
        (lambda header: header["policy"].update(extra=[]), "does not hold a result"),
        (lambda header: header["protocol"].update(amount=-1), "does not hold a result"),
        (lambda header: header["protocol"]["holding"].update(max_holds=1.5), "not hold a result"),
        (lambda header: header["cluster"]["labels"][0].update(zone=[]), "does not hold a result"),
        (lambda header: header["trace"]["typical"].update(gpu_res_weight="x"), "not hold a result"),
        (
            lambda header: header["trace"].update(typical=dict.fromkeys(TYPICAL, "x")),
            "does not hold a result",
        ),
    ],
)
def test_a_file_that_lies_is_refused_in_words(saved, change, told):
    rewritten(saved, change)
    with pytest.raises(InputError, match=told):
        Result.load(saved)


def test_decisions_that_point_nowhere_are_refused(saved):
    rewritten(saved, tail=lambda data: data[:-1] + b"\x7f")
    with pytest.raises(InputError, match="contradicts itself"):
        Result.load(saved)


def with_nodes(result, **changes):
    nodes = result.plan.cluster.nodes.copy()
    for name, value in changes.items():
        nodes[name] = value
    return replace(result, plan=replace(result.plan, cluster=replace(CLUSTER, nodes=nodes)))


def with_pods(result, **changes):
    pods = result.plan.arrivals.pods.copy()
    for name, value in changes.items():
        pods[name] = value
    return replace(
        result, plan=replace(result.plan, arrivals=replace(result.plan.arrivals, pods=pods))
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda r: replace(r, changes=r.changes * 0 - 1), "impossible: .* was not placed as often"),
        (lambda r: replace(r, changes=r.changes[::-1].copy()), "impossible: .* ran back in time"),
        (lambda r: replace(r, node=r.node * 0), "was not placed and holds resources"),
        (lambda r: replace(r, slots=r.slots * 0), "impossible: .* has other GPUs"),
        (lambda r: replace(r, holds=r.holds - 1), "was held too often"),
        (lambda r: replace(r, decisions=0), "0 were made"),
        (lambda r: replace(r, changes_after=r.changes_after + 1), "step that was not counted"),
        (lambda r: with_nodes(r, gpu_count=0), "contradicts itself"),
        (lambda r: with_nodes(r, gpu_count=0, gpu_milli_left=0), "GPU that its node does not"),
        (lambda r: with_nodes(r, cpu_milli_total=0), "contradicts itself"),
        (lambda r: with_nodes(r, cpu_milli_total=0, cpu_milli_left=0), "milli CPU of its 0"),
        (lambda r: with_nodes(r, memory_mib_left=-1), "contradicts itself"),
        (lambda r: with_nodes(r, gpu_milli_left=1000), "contradicts itself"),
        (lambda r: with_pods(r, cpu_milli=-5), "contradicts itself"),
        (lambda r: with_pods(r, cpu_milli=2**31 - 1), "impossible: .* milli CPU of its"),
        (lambda r: with_pods(r, gpu_milli=5000), "contradicts itself"),
        (lambda r: with_pods(r, gpu_models=-2), "contradicts itself"),
    ],
)
def test_a_result_that_no_run_can_come_to_is_refused(tmp_path, change, told):
    path = tmp_path / "run.podium"
    change(run()).save(path)
    with pytest.raises(InputError, match=told) as caught:
        Result.load(path)
    assert caught.value.where == str(path)


def test_held_pods_come_back(tmp_path):
    result = run(from_function(least_cpu), Inflation(0.4))
    assert result.holds.any()
    result.save(tmp_path / "run.podium")
    assert Result.load(tmp_path / "run.podium").digest == result.digest


def test_a_header_of_empty_lists_is_refused_before_they_are_built(tmp_path):
    path = tmp_path / "bomb"
    header = b'{"format": "podium-result", "version": 1, "x": [' + b"[]," * 300_000 + b"[]]}"
    path.write_bytes(gzip.compress(header + b"\n"))
    with pytest.raises(InputError, match="more values in its header"):
        Result.load(path)


def test_a_header_that_outgrows_its_file_is_refused(tmp_path):
    path = tmp_path / "bomb"
    random = np.random.default_rng(3)
    text = b"".join(b"x" * 300 + random.bytes(1).hex().encode() for _ in range(20_000))
    path.write_bytes(gzip.compress(b'{"format": "' + text + b'"}\n'))
    with pytest.raises(InputError, match="longer header than a result has"):
        Result.load(path)


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_a_file_that_does_not_fit_into_memory_is_refused(saved, monkeypatch, error):
    def fail(_text):
        raise error

    monkeypatch.setattr("podium.sim.result_file.parse_value", fail)
    with pytest.raises(InputError, match="does not fit into memory"):
        Result.load(saved)


def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "bomb"
    with gzip.open(path, "wb") as file:
        for _ in range(64):
            file.write(b" " * (1 << 20))
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match="expands to more than a result does"):
        Result.load(path)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "text").write_text("hello")
    (tmp_path / "packed").write_bytes(gzip.compress(b"{}\n"))
    for name in ("text", "packed", "nothing", "."):
        with pytest.raises(InputError):
            Result.load(tmp_path / name)


def test_nothing_is_left_where_a_file_cannot_be_written(tmp_path):
    with pytest.raises(UsageError, match="cannot be written"):
        run().save(tmp_path / "no" / "where")
    assert list(tmp_path.iterdir()) == []


def test_a_frame_has_one_row_per_pod():
    polars = pytest.importorskip("polars")
    frame = run().to_frame()
    assert frame.columns == [
        "pod", "namespace", "gpus", "arrival_s", "start_s", "end_s", "node", "gpu_slots", "reason",
    ]  # fmt: skip
    assert frame["pod"].to_list() == ["first", "late", "huge", "plain"]
    assert frame.row(0) == ("first", "", 2.0, 0.0, 0.0, 10.0, "n0", "0-1", "")
    assert frame["start_s"].dtype == polars.Float64
    assert frame["start_s"][2] is None


def test_a_frame_without_the_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(MissingExtra, match="needs the extra 'plots'") as caught:
        run().to_frame()
    assert "install" in caught.value.hint


def test_a_notebook_shows_a_result_with_names_escaped():
    hostile = Cluster.of([NodeSpec("n", 9000, 100, 2, "A")], name="<b>bold</b>")
    shown = simulate(hostile, WORKLOAD, "fgd")._repr_html_()
    assert "<b>" not in shown
    assert "&lt;b&gt;bold&lt;/b&gt;" in shown
    assert "GPU allocation" in shown


def test_results_are_measured_once():
    result = run()
    assert result.metrics is result.metrics


def test_a_path_is_a_text_or_a_path(tmp_path):
    run().save(str(tmp_path / "a"))
    assert Result.load(Path(tmp_path / "a")).digest == run().digest


def test_names_are_shown_without_their_control_characters():
    name = "a\x1b[2J\nb\x9b\u202e"
    cluster = Cluster.of([NodeSpec("n", 9000, 100, 2, "A")], name=name)
    workload = Workload.of([PodSpec("p", 1000, 1, arrival_s=0, duration_s=1)], name=name)
    result = simulate(cluster, workload, from_function(least_cpu, name))
    for each in (result, result.plan, cluster, workload):
        assert repr(each).isprintable()
        assert "a\\x1b[2J\\nb\\x9b\\u202e" in repr(each)


def test_a_result_says_what_its_policy_knew_and_who_won_ties(tmp_path):
    setup = Setup(demand="warm", ties="profile")
    result = simulate(CLUSTER, WORKLOAD, "fgd", Rounds(3), setup)
    result.save(tmp_path / "run.podium")
    found = Result.load(tmp_path / "run.podium")
    assert (found.plan.demand, found.plan.ties) == ("warm", "profile")
    told = summarise(found)
    assert (told["demand"], told["ties"]) == ("warm", "profile")
    assert "demand" not in summarise(simulate(CLUSTER, WORKLOAD, "first-fit", Rounds(3), setup))
