"""A twin places pods exactly as the simulator does, with the same policy and order of nodes."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.kube import LiveState
from podium.model import Cluster, Workload
from podium.policies import load
from podium.service.extender.scorer import Scorer
from podium.service.extender.twin import Twin
from podium.sim import simulate
from podium.sim.engine import Setup
from podium.sim.protocols import Holding, Replay
from support.kubelike import gpu_node, gpu_pod, live

POLICIES = ("first-fit", "best-fit", "worst-fit", "fgd", "fed-gpu", "patient-93")
MILLI = "alibabacloud.com/gpu-milli"
COUNT = "alibabacloud.com/gpu-count"
TAINT = {"key": "team", "value": "red", "effect": "NoSchedule"}
TOLERATION = {"key": "team", "operator": "Exists"}


@dataclass(frozen=True)
class Asked:
    """Is a pod that comes, and how long it runs."""

    gpus: int
    milli: int  # of one GPU, 0: whole ones
    cpu: int
    model: str
    is_tolerant: bool
    priority: int
    after_s: int  # the pod before
    duration_s: int

    def manifest(self, name):
        whole = self.gpus if not self.milli else 0
        notes = {COUNT: "1", MILLI: str(self.milli)} if self.milli else {}
        selector = {"nvidia.com/gpu.product": self.model} if self.model else {}
        more = {"tolerations": [TOLERATION]} if self.is_tolerant else {}
        made = gpu_pod(name, whole, notes, nodeSelector=selector, priority=self.priority, **more)
        made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(self.cpu)
        made["spec"]["containers"][0]["resources"]["limits"]["cpu"] = str(self.cpu)
        return made


@st.composite
def nodes(draw):
    made = []
    for number in range(draw(st.integers(1, 5))):
        model = draw(st.sampled_from(["A100", "T4"]))
        each = gpu_node(f"n{number}", draw(st.sampled_from([0, 1, 2, 4, 8])), model)
        each["spec"]["taints"] = [TAINT] * draw(st.booleans())
        made.append(each)
    return made


asked = st.builds(
    Asked,
    gpus=st.sampled_from([0, 1, 1, 2, 4]),
    milli=st.sampled_from([0, 0, 300, 500]),
    cpu=st.integers(1, 4),
    model=st.sampled_from(["", "", "A100", "T4"]),
    is_tolerant=st.booleans(),
    priority=st.sampled_from([0, 0, 0, 5]),
    after_s=st.integers(0, 3),
    duration_s=st.integers(1, 12),
)


def described(objects, pods):
    """Reads nodes and pods as the simulator takes them."""
    state = LiveState()
    state.replace("Node", objects)
    arrivals = np.cumsum([each.after_s for each in pods])
    specs = []
    for number, (each, arrival_s) in enumerate(zip(pods, arrivals.tolist(), strict=True)):
        made = live(each.manifest(f"p{number:02}"), f"u{number:02}")
        state.apply("Pod", "ADDED", made)
        spec = state.pod(f"u{number:02}").spec
        specs.append(replace(spec, arrival_s=float(arrival_s), duration_s=float(each.duration_s)))
    cluster = Cluster.of([state.node(name) for name in sorted(state.index)])
    return cluster, Workload.of(specs)


def events(result):
    """Lists what happens at each time: pods that leave, and then pods that come."""
    found = {}
    for number in range(len(result.arrival_s)):
        found.setdefault(result.arrival_s[number], ([], []))[1].append(number)
        if result.is_placed[number]:
            found.setdefault(result.finish_s[number], ([], []))[0].append(number)
    return sorted(found.items())


def no_time(_uid):
    return 0.0


class Play:
    """Holds a state and a twin of it."""

    def __init__(self, objects, policy, shapes):
        self.state = LiveState()
        self.state.replace("Node", objects)
        self.placed = {}
        self.twin = Twin(self.state, Scorer(load(policy), shapes), None, self.start)
        self.state.watch(lambda kind, name: self.twin.hear(kind, name, 0.0))
        list(self.twin.begin(no_time, 0.0))

    def start(self, waiter, _now_s):
        self.placed[waiter.uid] = self.twin.seats[waiter.uid]

    def step(self, gone, come):
        for uid in gone:
            self.state.apply("Pod", "DELETED", {"metadata": {"uid": uid}})
        for uid, made in come:
            self.state.apply("Pod", "ADDED", live(made, uid))
        list(self.twin.work(no_time, 0.0))


@settings(deadline=None, max_examples=200)
@given(nodes(), st.lists(asked, min_size=1, max_size=24), st.sampled_from(POLICIES))
def test_a_twin_places_pods_as_the_simulator_does(objects, pods, policy):
    cluster, workload = described(objects, pods)
    never = Replay(holding=Holding(max_holds=0))
    result = simulate(cluster, workload, load(policy), never, Setup(ranks="listed"))
    play = Play(objects, policy, workload.on(cluster).shapes())
    for _, (gone, come) in events(result):
        play.step(
            [f"u{number:02}" for number in gone],
            [(f"u{number:02}", pods[number].manifest(f"p{number:02}")) for number in come],
        )
    expected = {
        f"u{number:02}": (cluster.names[result.node[number]], int(result.slots[number]))
        for number in np.flatnonzero(result.is_placed).tolist()
    }
    found = {
        uid: (seat.node, sum(1 << slot for slot in seat.slots)) for uid, seat in play.placed.items()
    }
    assert found == expected
    assert set(play.twin.waiting) == {f"u{number:02}" for number in range(len(pods))} - set(found)
