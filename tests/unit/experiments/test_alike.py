from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import podium
from podium.cli.main import app
from podium.errors import UndecidedError
from podium.experiments.training import CasesRequest, training_set, training_sources
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Taint
from podium.settings import load_settings
from support.gpu_cluster import write_dump

TAINT = Taint("nvidia.com/gpu", "present")


@pytest.fixture
def dump(tmp_path):
    return str(write_dump(tmp_path / "c180.json"))


def compared(cluster, pods, left_out=None, **others):
    trace = podium.Trace("mine", cluster, Workload.of(pods), left_out=left_out or {})
    return podium.compare(["fgd", "worst-fit"], trace=trace, seeds=[1000], **others)


def pods(count, gpus=1, cpu_milli=1_000):
    return [PodSpec(f"p{i}", cpu_milli, 100, gpus, 1_000) for i in range(count)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("protocol", ["inflation", "rounds"])
def test_where_nothing_is_placed_the_reason_is_told_instead_of_a_ranking(protocol):
    tainted = Cluster.of([NodeSpec("a", 8_000, 8_000, 4, "T4", taints=(TAINT,))])
    found = compared(tainted, pods(4), protocol=protocol)
    reason, way_out = found.alike.splitlines()
    asked = sum(run["pods"] for runs in found.runs.values() for run in runs)
    assert reason == (f"no policy places any pod (taint nvidia.com/gpu: {asked} of {asked} pods)")
    assert "tolerations" in way_out


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("left_out", "way_out"),
    [
        ({}, "--state empty places them anew, --protocol inflation fills the cluster with"),
        ({"gated": 2}, "--waiting gated tries what waits"),
    ],
)
def test_where_no_pod_is_pending_that_is_told_with_the_way_out(left_out, way_out):
    busy = Cluster.of([NodeSpec("a", 8_000, 8_000, 4, "T4")])
    running = [replace(pod, node="a") for pod in pods(2)]
    found = compared(busy, running, left_out, protocol="rounds")
    reason, told = found.alike.splitlines()
    assert reason == "no pod is pending: 2 pods run already and stay where they are"
    assert told.startswith(way_out)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_where_all_score_the_same_that_is_told_instead_of_a_ranking():
    small = Cluster.of([NodeSpec("a", 8_000, 8_000, 2, "T4")])
    found = compared(small, pods(6), protocol="rounds")
    assert found.alike.startswith("both policies place as many pods, with the same GPU allocation")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("cpu_milli", "others", "way_out"),
    [
        (1_000, {"protocol": "rounds"}, "--protocol inflation --ratio 1.3"),
        (5_000, {"protocol": "replay", "metric": "gpu_allocation"}, "--metric wait_mean_s"),
    ],
)
def test_where_every_pod_is_placed_no_policy_wins_by_which_cards_it_took(
    cpu_milli, others, way_out
):
    nodes = [
        NodeSpec("h100", 8_000, 8_000, 4, "H100"),
        NodeSpec("t4", 8_000, 8_000, 1, "T4", gpu_replicas=4),
    ]
    few = [
        PodSpec(f"p{i}", cpu_milli, 100, 1, 1_000, arrival_s=float(i), duration_s=9.0 - i)
        for i in range(3)
    ]
    found = compared(Cluster.of(nodes), few, **others)
    reason, told = found.alike.splitlines()
    assert reason == "every policy placed every pod, so GPU allocation prefers none"
    assert way_out in told
    assert [row.rank for row in found.ranking.rows] == [1, 1]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_policies_that_differ_are_ranked():
    pair = Cluster.of([NodeSpec(name, 8_000, 8_000, 4, "T4") for name in "ab"])
    found = compared(pair, [*pods(2), *pods(1, 4), *pods(1, 2)], protocol="rounds")
    assert not found.alike


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_running_pods_that_stay_are_named_as_the_cause(dump):
    found = podium.compare(
        ["fgd", "first-fit"], trace=dump, state="now", protocol="rounds", seeds=[1000]
    )
    assert found.alike.splitlines()[1] == (
        "118 of 130 pods run already and stay where they are; --state history places them anew, "
        "with those that ran"
    )


def test_the_command_prints_no_ranking_and_exits_with_1(dump):
    Path(dump).write_text(Path(dump).read_text().replace('"tolerations"', '"ignored"'))
    command = ["compare", "fgd", "best-fit", "--trace", dump, "--protocol", "rounds"]
    done = CliRunner().invoke(app, [*command, "--state", "empty", "--seeds", "1000"])
    assert done.exit_code == 1
    assert done.stdout.startswith("no ranking: both policies place as many pods")
    assert "try: give the pods tolerations" in done.stderr


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_seeds_that_change_nothing_are_told():
    pair = Cluster.of([NodeSpec(name, 8_000, 8_000, 4, "T4") for name in "ab"])
    waiting = [*pods(2), PodSpec("x", 1_000, 100, 4, 1_000), PodSpec("y", 1_000, 100, 3, 1_000)]
    trace = podium.Trace("pair", pair, Workload.of(waiting))
    found = podium.compare(["fgd", "worst-fit"], trace=trace, protocol="rounds", seeds=range(6))
    assert found.ranking.repeated.startswith("all 6 seeds come to one and the same run: nothing")
    assert {row.p_value for row in found.ranking.rows} == {None}
    assert found.as_object()["comparison"].repeated == found.ranking.repeated
    assert " .. " not in found._repr_html_()


def test_one_seed_deserves_a_note():
    small = ["--nodes", "8", "--pods", "90", "--protocol", "inflation"]
    done = CliRunner().invoke(app, ["compare", "fgd", "worst-fit", *small, "--seeds", "3"])
    told = "note: one seed, 3, tells nothing of chance: --seeds 1000-1009 are ten"
    assert told in done.stderr


@pytest.mark.parametrize(
    "begin",
    [
        lambda dump: training_set(load_settings(), CasesRequest(traces=(dump,), seeds=2)),
        lambda dump: training_sources(load_settings(), (dump,), None),
    ],
    ids=["search", "train"],
)
def test_learning_where_all_do_the_same_is_refused_with_the_cause(dump, begin):
    Path(dump).write_text(Path(dump).read_text().replace('"tolerations"', '"ignored"'))
    with pytest.raises(UndecidedError, match="nothing can be learnt: all 3 policies") as caught:
        begin(dump)
    assert "taint" in caught.value.message
    assert caught.value.exit_code == 1
    assert caught.value.hint.startswith("give the pods tolerations")


def test_a_search_on_a_dump_of_which_all_runs_already_has_something_to_find(dump):
    found = training_set(load_settings(), CasesRequest(traces=(dump,), seeds=2))
    assert {case.state for case in found.cases} == {"history"}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_comparison_announces_the_core_that_it_needs(dump, monkeypatch):
    told = []
    listen = "podium.experiments.compare.announce_compilation"
    monkeypatch.setattr(listen, lambda _, variant="plain": told.append(variant))
    podium.compare(["fgd", "first-fit"], trace=dump, protocol="rounds", seeds=2)
    podium.compare(["fgd", "first-fit"], trace="openb:16", pods=20, seeds=2)
    assert told == ["full", "plain"]
