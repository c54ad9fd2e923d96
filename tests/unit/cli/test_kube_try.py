"""What `podium kube try` says, without the programs that it runs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from podium.cli.kube_try import (
    Lines,
    headline,
    line_of,
    live_lines,
    next_steps,
    rows_of,
    verdict,
)
from podium.cli.main import app
from podium.cli.render import Rhythm, Screen
from podium.errors import UndecidedError
from podium.experiments.case import Inputs
from podium.experiments.kube_try import Forecast, Outcome, alike, forecast, objects_of
from podium.experiments.try_plan import Tally, TryPlan, plan_try
from podium.experiments.try_runs import unscored
from podium.model import Cluster, NodeSpec, PodSpec
from podium.policies import load
from podium.service.extender.metrics import ExtenderMetrics
from podium.settings import Display, load_settings
from support import manifests
from support.found import found_run
from support.kubelike import write_dump

NODES = [NodeSpec("a", 8000, 8192, 2, "A100"), NodeSpec("b", 8000, 8192, 2, "A100")]
PODS = (
    PodSpec("one", 1000, 1024, 1, 1000),
    PodSpec("half", 1000, 1024, 1, 500),
    PodSpec("plain", 1000, 1024),
    PodSpec("two", 1000, 1024, 2, 1000),
)


def plan_of(*pods):
    return TryPlan("small", 10, Cluster.of(NODES), pods, load("best-fit"), "best-fit")


PLAN = plan_of(*PODS)
SPREAD = PLAN.count(["a", "a", "b", ""])
PACKED = PLAN.count(["a", "a", "b", "b"])


def outcome(stock, policy, packing=None):
    runs = {"stock": stock, "packing": packing or stock, "podium": policy}
    return Outcome(runs, {arm: Forecast(runs[arm]) for arm in runs}, Path("kubeconfig"))


def test_pods_are_counted_by_what_they_ask_for():
    assert (SPREAD.submitted, SPREAD.bound, SPREAD.no_room) == (4, 3, 1)
    assert SPREAD.gpus_allocated == 1.5
    assert SPREAD.by_class == {
        "1 GPU": (1, 1), "part of a GPU": (1, 1), "no GPU": (1, 1), "2 GPUs": (1, 0),
    }  # fmt: skip


def test_a_pod_counts_the_same_gpus_on_every_node():
    plan = replace(plan_of(PODS[0], PODS[0]), weights=(0.25, 0.25))
    assert plan.count(["a", "b"]).gpus_allocated == plan.asked.gpus_allocated == 0.5
    assert plan.count(["a", ""]).gpus_allocated == plan.count(["", "b"]).gpus_allocated == 0.25


def test_where_every_run_places_every_pod_no_policy_is_said_to_win():
    full = PLAN.count(["a", "a", "b", "b"])
    assert alike(PLAN, outcome(full, full)) == (
        "every policy placed every pod, so GPU allocation prefers none\n"
        "podium compare --protocol inflation draws more pods like these"
    )


def test_a_table_has_a_row_for_each_class_the_smallest_first():
    rows = rows_of(PLAN, [SPREAD, None])
    assert rows == [
        ("GPUs allocated", "3.5", "1.5", None),
        ("pods bound", 4, 3, None),
        ("- no GPU", 1, 1, None),
        ("- part of a GPU", 1, 1, None),
        ("- 1 GPU", 1, 1, None),
        ("- 2 GPUs", 1, 0, None),
        ("found no room", None, 1, None),
    ]


def test_the_live_table_fits_a_narrow_terminal_as_well():
    wide = live_lines(PLAN, [SPREAD, SPREAD, PACKED], 80)
    assert wide[0].endswith("asked for  kube-scheduler  packing  with Podium")
    assert wide[1].split() == ["█████·········", "███····", "██████████·"]
    narrow = live_lines(PLAN, [SPREAD, SPREAD, PACKED], 56)
    assert max(map(len, narrow)) <= 56
    assert narrow[0].split() == ["kube-scheduler", "packing", "with", "Podium"]


def test_what_is_used_is_said_for_parts_of_gpus_and_without():
    told = headline(PLAN)
    assert told.startswith("2 nodes with 4 GPUs, 4 pods of small, seed 10\n")
    assert "filter and bind of" in told
    assert max(map(len, told.splitlines())) <= 80
    whole = headline(plan_of(PODS[0], PODS[3]))
    assert "the packing profile of Podium's chart" in whole
    assert "filter" not in whole


@pytest.mark.parametrize(
    ("stock", "packing", "policy", "words"),
    [
        (SPREAD, SPREAD, PACKED, "With best-fit: 2 more GPUs allocated and 1 more pod bound than "
         "with kube-scheduler's defaults"),
        (SPREAD, PACKED, SPREAD, "With best-fit: 2 fewer GPUs allocated and 1 fewer pod bound than "
         "with the packing profile"),
    ],
)  # fmt: skip
def test_the_verdict_is_over_the_better_of_the_runs_without_podium(stock, packing, policy, words):
    found = outcome(stock, policy, packing)
    assert verdict(PLAN, found) == words
    assert not alike(PLAN, found)


def test_what_is_equal_or_within_what_lots_move_is_not_ranked():
    told = alike(PLAN, outcome(SPREAD, SPREAD))
    assert told.startswith("all 3 policies place as many pods, with the same GPU allocation\n")
    told = alike(PLAN, outcome(SPREAD, PACKED, PACKED))
    assert told.startswith(
        "best-fit allocates as many GPUs to as many pods as the packing profile\n"
    )
    runs = {"stock": SPREAD, "packing": SPREAD, "podium": PACKED}
    lucky = {**{arm: Forecast(runs[arm]) for arm in runs}, "packing": Forecast(SPREAD, (PACKED,))}
    reason, way_out = alike(PLAN, Outcome(runs, lucky, Path("kubeconfig"))).split("\n")
    assert reason == (
        "draws among equal nodes move as much: 1.5 to 1.5 GPUs and 3 to 3 pods with "
        "kube-scheduler's defaults, 3.5 to 3.5 GPUs and 4 to 4 pods with best-fit"
    )
    assert way_out == "podium compare --protocol inflation draws more pods like these"


def test_sums_that_differ_by_rounding_are_equal_and_small_differences_are_told():
    near = replace(PACKED, gpus_allocated=PACKED.gpus_allocated + 1e-12)
    assert "allocates as many GPUs to as many pods" in alike(PLAN, outcome(SPREAD, near, PACKED))
    more = replace(PACKED, gpus_allocated=PACKED.gpus_allocated + 0.04)
    found = outcome(SPREAD, more, PACKED)
    assert (
        verdict(PLAN, found)
        == "With best-fit: 0.04 more GPUs allocated than with the packing profile"
    )


def test_where_no_pod_is_placed_the_reason_is_named():
    nothing = PLAN.count([""] * len(PODS))
    refused = Forecast(nothing, (), {"taint": 4}, {"taint team": 4})
    runs = dict.fromkeys(("stock", "packing", "podium"), nothing)
    found = Outcome(runs, dict.fromkeys(runs, refused), Path("kubeconfig"))
    assert alike(PLAN, found) == (
        "no policy places any pod (taint team: 4 of 4 pods)\n"
        "give the pods tolerations, or take the taints off the nodes"
    )
    busy = replace(PLAN, running=PODS[:1], is_in_place=True)
    full = Outcome(runs, dict.fromkeys(runs, Forecast(nothing, (), {"gpu": 4})), Path("k"))
    assert alike(busy, full).endswith(
        "\n1 pod runs already and stays where it is; --state empty places them anew"
    )


def test_without_a_terminal_there_is_a_line_now_and_then_and_one_at_the_end(capsys):
    now_s = 0.0
    lines = Lines(Screen(Display()), PLAN, Rhythm(2.0, lambda: now_s))
    lines.status("starting kube-scheduler")
    tally = Tally()
    for pod in PODS:
        tally = tally.plus("1 GPU", pod.gpu_count * pod.gpu_milli / 1000, is_bound=True)
        lines.decided("stock", tally)
        now_s += 0.9
    assert capsys.readouterr().err.splitlines() == [
        "starting kube-scheduler",
        "kube-scheduler: 4 of 4 pods bound, 3.5 of 4 GPUs allocated, 0 found no room",
    ]
    now_s = 10.0
    lines.decided("podium", Tally().plus("part of a GPU", 0.5, is_bound=False))
    assert capsys.readouterr().err.startswith("with Podium: 0 of 4 pods bound, 0.0 of 4 GPUs")


def test_a_line_counts_what_found_no_room():
    assert line_of(PLAN, SPREAD).endswith("1.5 of 4 GPUs allocated, 1 found no room")


@pytest.mark.usefixtures("_warm_cache")
def test_the_simulator_is_given_the_same_pods_in_the_same_order():
    pods = [PodSpec(f"p{i}", 1000, 1024, 1, 1000) for i in range(2)]
    plan = plan_of(*pods, PodSpec("large", 1000, 1024, 2, 1000), PodSpec("late", 1, 1, 1, 1000))
    objects = objects_of(plan)
    packed, spread = (
        forecast(plan, objects, load(name)).listed for name in ("best-fit", "kube-default")
    )
    assert packed.by_class == {"1 GPU": (3, 2), "2 GPUs": (1, 1)}
    assert spread.by_class == {"1 GPU": (3, 3), "2 GPUs": (1, 0)}


def test_json_has_all_runs_and_their_predictions():
    found = {**PLAN.as_object(), **outcome(SPREAD, PACKED).as_object()}
    assert json.loads(json.dumps(found)) == found
    assert found["stock"]["by_class"]["2 GPUs"] == {"submitted": 1, "bound": 0}
    assert (found["podium"]["bound"], found["podium"]["simulated"]["no_room"]) == (4, 0)
    assert found["packing"]["bound"] == 3


def test_a_policy_that_is_not_validated_is_tried_with_a_note(tmp_path, monkeypatch):
    found_run(tmp_path / "runs", monkeypatch)
    settings = load_settings({"simulate.protocol": "rounds"}, environ={}, folder=tmp_path)
    plan = plan_try(settings, Inputs(nodes=4), "run:ab12", 3)
    assert plan.notes[-1] == "run:ab12 is not validated: it was not promoted"


def planned(folder, objects, most=None, **flags):
    given = {"simulate.trace": str(write_dump(folder, objects)), "simulate.protocol": "rounds"}
    given |= {f"simulate.{name}": value for name, value in flags.items()}
    return plan_try(load_settings(given, environ={}), Inputs(), "best-fit", most)


def dumped(waiting=6):
    """Gives a full node with a DaemonSet, pods that run, and more that wait than it has GPUs."""
    agent = manifests.bound(manifests.pod("agent"), "n")
    owner = {"kind": "DaemonSet", "name": "agent", "controller": True}
    agent["metadata"]["ownerReferences"] = [owner]
    named = [f"run-{i}" for i in range(4)] + [f"wait-{i}" for i in range(waiting)]
    pods = [manifests.pod(name, requests={"nvidia.com/gpu": "1"}) for name in named]
    running = [manifests.bound(each, "n") for each in pods[:4]]
    return [manifests.node("n"), agent, *running, *pods[4:]]


def test_what_waits_in_a_dump_is_tried_and_what_runs_stays(tmp_path):
    plan = planned(tmp_path, dumped())
    assert [each.name for each in plan.pods] == [f"wait-{i}" for i in range(6)]
    assert [each.node for each in plan.running] == ["n"] * 5
    assert plan.gpus_free == 0
    assert "5 pods run already and stay where they are" in headline(plan)
    few = planned(tmp_path, dumped(), 2)
    assert "left out, as --pods says: 4 pods (--pods 6 tries all)" in few.notes
    assert replace(few, is_in_place=False).more == "--pods 6 tries all pods"


def test_pods_that_volumes_tie_to_nodes_are_left_out(tmp_path):
    template = {"resources": {"requests": {"storage": "1Gi"}}}
    claim = {
        "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": {**template, "volumeName": "disk", "accessModes": ["ReadWriteOnce"]},
    }  # fmt: skip
    terms = [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}
    ]}]  # fmt: skip
    disk = {
        "kind": "PersistentVolume", "metadata": {"name": "disk"},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}},
    }  # fmt: skip
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    tied = [claim, disk, manifests.pod("tied", volumes=volumes)]
    plan = planned(tmp_path, [*dumped(), *tied])
    assert [each.name for each in plan.pods] == [f"wait-{i}" for i in range(6)]
    told = "tied to volumes, which are not made here, so left out: 1 pod"
    assert told in plan.notes
    with pytest.raises(UndecidedError, match="no pod waits that can be tried") as caught:
        planned(tmp_path, [*dumped(0), *tied])
    assert caught.value.hint.endswith(told)


def test_classes_are_named_by_the_devices_that_pods_ask_for(tmp_path):
    shared = manifests.node("shared", {"nvidia.com/gpu.product": "T4-SHARED",
                                       "nvidia.com/gpu.replicas": "4"})  # fmt: skip
    shared["status"] = {"allocatable": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "8"}}
    mig = manifests.node("mig")
    mig["status"] = {"allocatable": {"cpu": "8", "memory": "32Gi", "nvidia.com/mig-3g.40gb": "2"}}
    asked = {"plain": {}, "some": {"nvidia.com/gpu": "2"}, "mig": {"nvidia.com/mig-3g.40gb": "1"}}
    pods = [manifests.pod(name, requests=requests) for name, requests in asked.items()]
    plan = planned(tmp_path, [shared, mig, *pods])
    assert plan.class_names == ("no GPU", "2 replicas", "1 x mig-3g.40gb")
    assert plan.asked.by_class == dict.fromkeys(plan.class_names, (1, 1))


def test_what_runs_is_placed_anew_where_somebody_asks_for_it(tmp_path):
    plan = planned(tmp_path, dumped(), state="empty")
    assert (len(plan.pods), len(plan.running), plan.gpus_free) == (10, 1, 4)
    told = "pods arrive anew on empty nodes: 4 that run and 6 that wait"
    assert any(note.startswith(told) for note in plan.notes)
    assert "--state empty" not in plan.more


def test_where_nothing_waits_nothing_is_started(tmp_path):
    with pytest.raises(UndecidedError, match="no pod waits") as caught:
        planned(tmp_path, [*dumped(0), manifests.pod("gated", schedulingGates=[{"name": "queue"}])])
    assert caught.value.hint == (
        "5 pods run already and stay where they are; --state empty places them anew; "
        "not tried: 1 is gated: --waiting gated"
    )


def test_a_drawn_trace_is_cut_where_it_asks_for_all_gpus_and_a_line_says_so():
    settings = load_settings({"simulate.protocol": "rounds"}, environ={})
    plan = plan_try(settings, Inputs(nodes=4, pods=300), "best-fit", None)
    rest = 300 - len(plan.pods)
    assert plan.asked.gpus_allocated >= plan.cluster.gpu_total
    told = "left out, as those before them ask for all GPUs"
    assert f"{told}: {rest} pods (--pods 300 tries all)" in plan.notes


def test_pods_that_podium_gave_no_scores_for_are_noted():
    metrics = ExtenderMetrics()
    registry = CollectorRegistry()
    for each in metrics.collectors({}):
        registry.register(each)
    assert not list(unscored(generate_latest(registry).decode()))
    metrics.neutral("filter", "stale")
    assert not list(unscored(generate_latest(registry).decode()))
    metrics.neutral("prioritize", "policy")
    metrics.neutral("prioritize", "policy")
    (note,) = unscored(generate_latest(registry).decode())
    assert note.endswith("kube-scheduler decided alone: policy (2 times)")


def test_without_the_programs_it_says_how_to_get_them(runner, monkeypatch):
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    done = runner.invoke(app, ["kube", "try"])
    assert done.exit_code == 3
    assert "needs etcd, kube-apiserver and kube-scheduler, and they are not there" in done.stderr
    assert "build_control_plane.sh" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policy", "fdg"), 'unknown policy "fdg"'),
        (("--trace", "opnb"), 'unknown trace "opnb"'),
        (("--nodes", "0"), "--nodes"),
    ],
)
def test_mistakes_are_refused_before_anything_is_started(
    runner, monkeypatch, tmp_path, arguments, words
):
    for name in ("etcd", "kube-apiserver", "kube-scheduler"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    done = runner.invoke(app, ["kube", "try", *arguments])
    assert (done.exit_code, words in done.stderr) == (2, True), done.stderr


def test_next_steps_go_on_with_the_trace_that_was_tried():
    own = load_settings(flags={"simulate.trace": "my dump.yaml"})
    command = "podium compare kube-packing mlp{} --protocol inflation"
    assert command.format(" --trace 'my dump.yaml'") in next_steps("mlp", own)
    assert command.format("") in next_steps("mlp", load_settings())
