"""Figures of a small cluster that are worked out by hand, and what its twins make of it."""

import io
from copy import deepcopy

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from podium.evaluation.waste import MedianPod
from podium.kube import LiveState
from podium.kube.pod import Unreadable
from podium.model.workload import PodSpec, Workload
from podium.policies import load
from podium.service.extender.capacity import Demand, measure_capacity, open_nodes
from podium.service.extender.outcome import CLUSTER, Outcome
from podium.service.extender.waits import MOST_NAMESPACES, NamespaceLabels
from podium.service.extender.window import LiveWindow
from podium.service.http.logs import Log
from podium.settings import Extender
from podium.traces.kubernetes.keys import GPU_COUNT, GPU_MILLI
from support.extender import Clock
from support.kubelike import gpu_node, gpu_pod, live

CREATED_S = 1794736800.0  # as support.kubelike.live says
DEMAND = Demand(MedianPod(2000.0, 2048.0, 500.0), 2000, 2048)


class Followed:
    """Holds a cluster that tests write, and what becomes of it."""

    def __init__(self, *objects, policy="best-fit", shadow=(), **settings):
        self.clock = Clock()
        self.clock.now_s = CREATED_S
        self.state = LiveState()
        self.recent = LiveWindow(2000)
        self.log = Log(io.StringIO())
        self.apply(*objects)
        own = Extender(**{"ties": "order", **settings})
        self.outcome = Outcome(self.state, self.recent, own, self.log.logger, self.clock)
        self.outcome.follow()
        policies = [load(name) for name in (policy, *shadow)]
        self.outcome.prepare(policies, self.recent.shapes(), self.state.nodes.dtype)
        self.account()

    def apply(self, *objects, type_="ADDED"):
        for each in objects:
            self.state.apply(each["kind"], type_, each)
            known = self.state.request(each) if each["kind"] == "Pod" else None
            if known is not None and not isinstance(known, Unreadable):
                self.recent.add(known)

    def remove(self, *objects):
        self.apply(*objects, type_="DELETED")

    def account(self, scheduler=CLUSTER):
        for _ in self.outcome.advance():
            pass
        return next(each for each in self.outcome.accounts if each.scheduler == scheduler)

    def allocated(self, scheduler=CLUSTER):
        return self.account(scheduler).capacity.gpus_allocated


def asking(name, gpus, cpu="1", **more):
    made = gpu_pod(name, gpus, **more)
    for part in ("requests", "limits"):
        made["spec"]["containers"][0]["resources"][part]["cpu"] = cpu
    return made


def part(name, milli):
    return asking(name, 0, annotations={GPU_COUNT: "1", GPU_MILLI: str(milli)})


def test_free_gpus_are_stranded_broken_or_idle():
    state = LiveState()
    state.replace("Node", [gpu_node(name) for name in "abc"])
    state.replace("Pod", [
        live(asking("wide", 1, "7"), "u1", "a"),  # leaves 3 GPUs and 1 CPU
        live(part("small", 700), "u2", "b"),  # leaves 300 of a GPU, and 3 GPUs with 7 CPUs
    ])  # fmt: skip
    found = measure_capacity(state.nodes, open_nodes(state.specs), DEMAND)
    assert (found.gpus, found.gpus_allocated) == (12, pytest.approx(1.7))
    assert found.gpus_free == {"stranded": 3.0, "broken": pytest.approx(0.3), "idle": 7.0}
    # b has 3 whole GPUs and 7 CPUs; c has 4 and 8, for 2 CPUs each.
    assert found.largest_pod_gpus == 4
    assert found.fitting_pods == {1: 7, 2: 3, 4: 1, 8: 0}


def test_pods_would_not_go_to_nodes_that_are_cordoned():
    cordoned = gpu_node("b")
    cordoned["spec"]["unschedulable"] = True
    own = gpu_node("c", 2)
    own["spec"]["taints"] = [{"key": "team", "value": "red", "effect": "NoSchedule"}]
    state = LiveState()
    state.replace("Node", [gpu_node("a", 1), cordoned, own])
    found = measure_capacity(state.nodes, open_nodes(state.specs), DEMAND)
    assert (found.gpus, found.largest_pod_gpus) == (7, 2)
    assert found.fitting_pods == {1: 3, 2: 1, 4: 0, 8: 0}


def test_a_cluster_without_nodes_has_nothing():
    state = LiveState()
    found = measure_capacity(
        state.nodes, open_nodes(state.specs), Demand.of(LiveWindow(1).records())
    )
    assert (found.gpus, found.gpus_allocated, found.largest_pod_gpus) == (0, 0.0, 0)


def test_demand_is_the_median_of_pods_with_whole_gpus():
    specs = [PodSpec("a", 4000, 8192, 2, 1000), PodSpec("b", 3000, 2048, 1, 1000)]
    specs += [PodSpec("c", 9000, 9000, 1, 300), PodSpec("d", 90_000, 90_000)]
    found = Demand.of(Workload.of(specs).pods)
    assert (found.cpu_milli_per_gpu, found.memory_mib_per_gpu) == (2500, 3072)
    assert found.median_pod == MedianPod(4000.0, 8192.0, 300.0)


def test_pods_wait_from_their_creation_until_they_are_bound():
    one, two = live(gpu_pod("one"), "u1"), live(part("two", 500), "u2")
    followed = Followed(gpu_node("a"), one, two)
    followed.clock.now_s = CREATED_S + 61
    waiting = followed.account().waiting
    assert {group: each.longest_s for group, each in waiting.items()} == {
        ("1-gpu", "default"): 61.0, ("share", "default"): 61.0,
    }  # fmt: skip
    followed.apply(live(gpu_pod("one"), "u1", "a"))
    followed.clock.now_s = CREATED_S + 121
    found = followed.account()
    assert found.waiting["1-gpu", "default"].pods == 0
    assert found.waiting["share", "default"].mean_s == 121.0
    bound = found.waited["1-gpu", "default"]
    assert (bound.pods, bound.total_s) == (1, 61.0)


def test_a_gated_pod_waits_from_the_fall_of_its_last_gate():
    gated = live(gpu_pod("p", schedulingGates=[{"name": "later"}]), "u")
    followed = Followed(gpu_node("a"), gated)
    assert followed.account().waiting == {}
    followed.clock.now_s = CREATED_S + 500
    followed.apply(live(gpu_pod("p"), "u"))
    followed.account()
    followed.clock.now_s = CREATED_S + 530
    assert followed.account().waiting["1-gpu", "default"].longest_s == 30.0


def test_a_pod_that_is_seen_late_waits_since_it_was_created():
    followed = Followed(gpu_node("a"))
    followed.clock.now_s = CREATED_S + 101
    followed.apply(live(gpu_pod("p"), "u"))
    assert followed.account().waiting["1-gpu", "default"].longest_s == 100.0


def test_namespaces_beyond_the_first_are_one():
    labels = NamespaceLabels()
    named = [labels.of(f"team-{number}") for number in range(MOST_NAMESPACES + 2)]
    assert named[-3:] == [f"team-{MOST_NAMESPACES - 1}", "other", "other"]
    assert labels.of("team-0") == "team-0"


def test_without_shadow_there_is_no_twin():
    followed = Followed(gpu_node("a"))
    assert [each.scheduler for each in followed.outcome.accounts] == [CLUSTER]


def test_a_twin_begins_as_the_cluster_is_and_goes_its_own_way():
    """The real scheduler spreads; the twin packs, so that the large pod finds room there."""
    nodes = [gpu_node(name) for name in "ab"]
    followed = Followed(*nodes, live(gpu_pod("old"), "u0", "a"), shadow=("best-fit",))
    twin = "best-fit (shadow)"
    assert followed.allocated(twin) == 1.0
    followed.apply(live(gpu_pod("new"), "u1", "b"), live(gpu_pod("large", 4), "u2"))
    assert (followed.allocated(), followed.allocated(twin)) == (2.0, 6.0)
    found = followed.account(twin)
    assert found.waiting["4-gpu", "default"].pods == 0
    assert followed.account().waiting["4-gpu", "default"].pods == 1
    assert (found.policy, found.started_s) == ("best-fit", CREATED_S)
    followed.remove(live(gpu_pod("large", 4), "u2"))
    assert followed.allocated(twin) == 2.0


def test_who_waits_in_a_twin_is_tried_when_something_leaves():
    full = [live(gpu_pod(f"old-{i}", 2), f"o{i}", "a") for i in range(2)]
    followed = Followed(gpu_node("a"), *full, shadow=("best-fit",))
    twin = "best-fit (shadow)"
    followed.apply(live(gpu_pod("low", 2), "u1"), live(gpu_pod("high", 2, priority=9), "u2"))
    assert followed.account(twin).waiting["2-gpu", "default"].pods == 2
    followed.clock.now_s += 30
    followed.remove(full[0])
    found = followed.account(twin)
    assert (found.waiting["2-gpu", "default"].pods, found.waited["2-gpu", "default"].pods) == (1, 1)
    assert found.waited["2-gpu", "default"].total_s == 30.0
    assert list(followed.outcome._twins[twin].waiting) == ["u1"]
    followed.remove(live(gpu_pod("low", 2), "u1"))
    assert followed.account(twin).waiting["2-gpu", "default"].pods == 0


def test_nodes_of_a_twin_come_and_go_with_the_real_ones():
    followed = Followed(gpu_node("a"), shadow=("best-fit",))
    twin = "best-fit (shadow)"
    followed.apply(live(gpu_pod("p", 4), "u1"), live(gpu_pod("q", 4), "u2"))
    assert followed.allocated(twin) == 4.0
    followed.apply(gpu_node("b", 8))
    assert (followed.allocated(twin), followed.account(twin).capacity.gpus) == (8.0, 12)
    followed.remove(gpu_node("a"))
    assert (followed.allocated(twin), followed.account(twin).capacity.gpus) == (8.0, 8)
    followed.remove(gpu_node("b"))
    found = followed.account(twin)
    assert (found.capacity.gpus, found.waiting["4-gpu", "default"].pods) == (0, 2)


def test_a_twin_respects_taints_selectors_and_models():
    tainted = gpu_node("a")
    tainted["spec"]["taints"] = [{"key": "team", "value": "red", "effect": "NoSchedule"}]
    followed = Followed(tainted, gpu_node("b", 1, "T4"), shadow=("best-fit",))
    twin = "best-fit (shadow)"
    followed.apply(live(gpu_pod("p", 2), "u1"))
    assert followed.allocated(twin) == 0.0
    followed.apply(live(gpu_pod("q", 2, tolerations=[{"operator": "Exists"}]), "u2"))
    assert followed.allocated(twin) == 2.0
    wished = {"nvidia.com/gpu.product": "A100"}
    followed.apply(live(gpu_pod("r", 1, nodeSelector=wished), "u3"))
    assert followed.allocated(twin) == 2.0
    followed.apply(live(gpu_pod("s", 1), "u4"))
    assert followed.allocated(twin) == 3.0
    untainted = gpu_node("a")
    followed.apply(untainted, type_="MODIFIED")
    assert followed.allocated(twin) == 5.0  # p came before r, and leaves no room for it


def test_pods_of_a_daemon_set_stay_where_they_are():
    followed = Followed(gpu_node("a"), gpu_node("b"), shadow=("best-fit",))
    made = deepcopy(live(gpu_pod("d"), "u1", "b"))
    owner = {"kind": "DaemonSet", "name": "d", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    followed.apply(made)
    followed.account()
    assert followed.outcome._twins["best-fit (shadow)"].seats["u1"].node == "b"


def test_a_policy_that_refuses_holds_nobody_up_in_its_twin():
    """In the real cluster, too, kube-scheduler places a pod that no node has points for."""
    followed = Followed(gpu_node("a"), shadow=("patient-93",))
    followed.apply(live(gpu_pod("p"), "u1"))
    assert followed.allocated("patient-93 (shadow)") == 1.0


def test_a_twin_begins_anew_after_its_lifetime():
    followed = Followed(gpu_node("a"), gpu_node("b"), twin=True, twin_lifetime_s=3600.0)
    schedulers = [each.scheduler for each in followed.outcome.accounts]
    assert schedulers == [CLUSTER, "policy", "baseline"]
    followed.apply(live(gpu_pod("waits", 8), "u0"), live(gpu_pod("p", 3), "u1"))
    followed.account()
    followed.apply(live(gpu_pod("p", 3), "u1", "b"))
    twin = followed.outcome._twins["policy"]
    assert twin.seats["u1"].node == "a"
    followed.clock.now_s += 3600
    found = followed.account("policy")
    assert followed.outcome._twins["policy"].seats["u1"].node == "b"
    assert found.started_s == followed.clock.now_s
    assert list(followed.outcome._twins["policy"].waiting) == ["u0"]
    assert found.waited["8-gpu", "default"].pods == 0


def test_equal_nodes_are_taken_as_kube_scheduler_would_and_then_by_lot():
    nodes = [gpu_node(f"n{number}") for number in range(8)]
    followed = Followed(*nodes, shadow=("first-fit",), ties="equal")
    followed.apply(*(live(gpu_pod(f"p{i}", 4), f"u{i}") for i in range(8)))
    followed.account()
    seats = followed.outcome._twins["first-fit (shadow)"].seats
    order = [seats[f"u{i}"].node for i in range(8)]
    assert sorted(order) == [f"n{number}" for number in range(8)]
    assert order != sorted(order)


def test_figures_are_written_for_prometheus():
    followed = Followed(gpu_node("a"), live(gpu_pod("p"), "u1"), twin=True)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(followed.outcome)
    lines = generate_latest(registry).decode().splitlines()
    start = '{policy="best-fit",scheduler="policy"}'
    group = 'pod_class="1-gpu",pod_namespace="default"'
    expected = {
        'podium_cluster_gpus{scheduler="cluster"} 4.0',
        'podium_cluster_gpus_allocated{scheduler="cluster"} 0.0',
        'podium_cluster_gpus_allocated{scheduler="baseline"} 1.0',
        'podium_cluster_gpus_free{kind="idle",scheduler="policy"} 3.0',
        'podium_cluster_largest_pod_gpus{scheduler="policy"} 3.0',
        'podium_cluster_fitting_pods{gpus="4",scheduler="cluster"} 1.0',
        f'podium_cluster_waiting_pods{{{group},scheduler="cluster"}} 1.0',
        f'podium_cluster_wait_seconds_count{{{group},scheduler="policy"}} 1.0',
        f"podium_cluster_twin_start_time_seconds{start} {CREATED_S!r}",
    }
    found = {_sorted_labels(line) for line in lines}
    assert expected <= found, expected - found


def _sorted_labels(line):
    if "{" not in line or line.startswith("#"):
        return line
    name, _, rest = line.partition("{")
    labels, _, value = rest.rpartition("} ")
    return f"{name}{{{','.join(sorted(labels.split(',')))}}} {float(value)!r}"
