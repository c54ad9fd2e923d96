"""A stock kube-scheduler with Podium as its extender binds pods as the policy says."""

import contextlib
import json
import random
import re
import socket
import threading
import time
from collections import Counter
from urllib.parse import urlsplit

import pytest

from podium.sim.engine import Setup, simulate
from podium.sim.protocols import Rounds
from podium.traces import load_trace
from support.binary import PODIUM, run
from support.extended import (
    configuration,
    difference,
    figure,
    podium,
    podium_process,
    wait_until,
    wait_until_decided,
)
from support.kube_api import unschedulable
from support.kubelike import gpu_node, gpu_pod

PODS = 40
LONG_S = 30
"""A machine that is busy with other things may take seconds to bind a pod."""

BEST = 'podium_extender_binds_total{node="best"}'
WRITTEN = 'podium_extender_events_total{outcome="written"}'
OTHER = 'podium_extender_binds_total{node="other"}'


# Parity with the simulator.


def workload(count, sizes):
    """Writes pods of several sizes, named in the order in which they are scheduled."""
    return [
        gpu_pod(f"pod-{i:03}", sizes[i % len(sizes)], priorityClassName=f"place-{i:03}")
        for i in range(count)
    ]


def priority_class(number):
    """Writes a class by which pods are scheduled in the order of their numbers."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"place-{number:03}"},
        "value": 1000 - number,
        "preemptionPolicy": "Never",
    }


@pytest.fixture(scope="module")
def classes(plane):
    """Makes classes of priorities for so many pods."""
    made = [priority_class(number) for number in range(PODS)]
    plane.api.create_all(made)
    yield made
    for each in made:
        plane.api.delete(each)


def simulated(folder, policy, objects):
    """Says where Podium's simulator places pods; ties go by the name of nodes there, too."""
    file = folder / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    trace = load_trace(str(file))
    setup = Setup(ranks="listed", demand="seen")
    result = simulate(trace.cluster, trace.workload, policy, Rounds(max_rounds=1), setup)
    names, at = result.plan.arrivals.names, result.node.tolist()
    return {
        name: trace.cluster.names[where]
        for name, where in zip(names, at, strict=True)
        if where >= 0
    }


@pytest.mark.parametrize("policy", ["first-fit", "fgd", "fed-gpu"])
def test_pods_are_bound_as_the_simulator_places_them(plane, api, classes, tmp_path, policy):
    nodes = [gpu_node(f"node-{i:02}", 4 if i % 3 else 8) for i in range(18)]
    pods = workload(PODS, [1, 2, 0, 4, 1, 1])
    expected = simulated(tmp_path, policy, [*classes, *nodes, *pods])
    api.create_all(nodes)
    api.create_all(pods)
    given = {"policy": policy, "assume_s": LONG_S, "ties": "order"}
    with podium(plane, tmp_path, **given) as process:
        with plane.scheduler(configuration(process.url)):
            found = wait_until_decided(api, pods)
        wait_until(lambda: figure(process, BEST) + figure(process, OTHER) == PODS)
        assert figure(process, BEST) >= 0.99 * PODS
        told = process.get("/v1/explain/default/pod-007").json
    assert len(difference(expected, found)) <= 0.01 * PODS, difference(expected, found)
    assert told["node"] == told["best"] == found["pod-007"]


@pytest.mark.parametrize("policy", ["first-fit", "fgd", "fed-gpu"])
def test_parts_of_gpus_are_counted_and_noted(plane, api, classes, tmp_path, policy):
    """Filter and bind do what kube-scheduler does not, until the cluster is full."""
    nodes = [gpu_node(f"node-{i:02}", 2) for i in range(6)]
    pods = workload(PODS, [1, 2, 0, 1])
    for number, each in enumerate(pods):
        if number % 4 != 1:
            each["metadata"]["annotations"] = share(200 + 300 * (number % 3))
            each["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    expected = simulated(tmp_path, policy, [*classes, *nodes, *pods])
    assert 15 < len(expected) < PODS
    api.create_all(nodes)
    api.create_all(pods)
    verbs = {"filterVerb": "filter", "bindVerb": "bind", "ignorable": False}
    given = {"policy": policy, "assume_s": LONG_S, "ties": "order", "filter": True, "bind": True}
    with (
        podium(plane, tmp_path, **given) as process,
        plane.scheduler(configuration(process.url, **verbs)),
    ):
        found = wait_until_decided(api, pods, len(expected))
        wait_until(lambda: waiting(api) == PODS - len(expected))
    assert len(difference(expected, found)) <= 0.01 * PODS, difference(expected, found)
    assert max(used_milli(api).values()) <= 1000


def test_no_gpu_is_given_out_twice_while_pods_come_and_go(plane, api, tmp_path):
    """Whole GPUs and parts of them: what was noted counts until the pod is gone."""
    rng, pods, most = random.Random(0), {}, Counter()
    api.create_all([gpu_node(f"node-{i:02}", 3) for i in range(3)])
    verbs = {"filterVerb": "filter", "bindVerb": "bind", "ignorable": False}
    with (
        podium(plane, tmp_path, policy="fed-gpu", filter=True, bind=True) as process,
        plane.scheduler(configuration(process.url, **verbs)),
    ):
        for number in range(20):
            made = [mixed_pod(rng, f"pod-{rng.randrange(100):02}-{number}-{i}") for i in range(4)]
            api.create_all(made)
            pods.update((each["metadata"]["name"], each) for each in made)
            wait_until(lambda: len(noted_gpus(api)) + waiting(api) >= len(pods))
            most |= used_milli(api)
            ended = rng.sample(sorted(noted_gpus(api)), min(4, len(noted_gpus(api))))
            for name in ended:
                api.delete(pods.pop(name))
    assert max(most.values()) == 1000, most


def mixed_pod(rng, name):
    """Writes a pod of a whole GPU, by its device plugin, or of a part, by an annotation."""
    milli = rng.choice([1000, 1000, 300, 600])
    made = gpu_pod(name, int(milli == 1000))
    if milli < 1000:
        made["metadata"]["annotations"] = share(milli)
        made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    return made


def noted_gpus(api):
    """Names the GPUs of pods that are bound, as they are noted, and how much of each is theirs."""
    found = {}
    for each in api.pods():
        if "nodeName" in each["spec"]:
            noted = each["metadata"]["annotations"]
            slots = noted["alibabacloud.com/gpu-index"].split("-")
            gpus = [(each["spec"]["nodeName"], slot) for slot in slots]
            found[each["metadata"]["name"]] = gpus, int(noted.get(MILLI, "1000"))
    return found


def used_milli(api):
    """Adds up what is given out of every GPU."""
    used = Counter()
    for gpus, milli in noted_gpus(api).values():
        used.update(dict.fromkeys(gpus, milli))
    return used


def test_no_part_of_a_gpu_is_given_out_twice_where_other_plugins_decide(plane, api, tmp_path):
    """Podium then learns only when it binds where a pod goes, and others are on their way."""
    policy = tmp_path / "indifferent.py"
    policy.write_text(INDIFFERENT)
    pods = workload(PODS, [1])
    for each in pods:
        del each["spec"]["priorityClassName"]
        each["metadata"]["annotations"] = share(600)
        each["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    api.create_all([gpu_node(f"node-{i:02}", 2) for i in range(6)])
    api.create_all(pods)
    verbs = {"filterVerb": "filter", "bindVerb": "bind", "ignorable": False}
    settings = {"policy": policy, "ties": "equal", "filter": True, "bind": True}
    with (
        podium(plane, tmp_path, **settings) as process,
        plane.scheduler(configuration(process.url, **verbs)),
    ):
        wait_until_decided(api, pods, 12)
        wait_until(lambda: waiting(api) == PODS - 12)
    bound = [each for each in api.pods() if "nodeName" in each["spec"]]
    used = [
        (each["spec"]["nodeName"], each["metadata"]["annotations"]["alibabacloud.com/gpu-index"])
        for each in bound
    ]
    assert len(used) == len({*used}) == 12, sorted(used)


INDIFFERENT = '''"""Prefers no node."""


def score(pod, node):
    """Scores all nodes alike."""
    return 0
'''


def test_a_bound_pod_tells_by_an_event_and_at_the_terminal_how_it_was_scored(plane, api, tmp_path):
    api.create_all([gpu_node(f"node-{i}") for i in range(3)])
    pods = [gpu_pod(f"pod-{i}") for i in range(2)]
    with (
        podium(
            plane, tmp_path, policy="fed-gpu", shadow="worst-fit", events=True, ties="order"
        ) as process,
        plane.scheduler(configuration(process.url)),
    ):
        api.create_all(pods)
        found = wait_until_decided(api, pods)
        wait_until(lambda: figure(process, WRITTEN) == len(pods))
        done = run([*PODIUM, "kube", "explain", "default/pod-1", "--url", process.url], tmp_path)
        unknown = run([*PODIUM, "kube", "explain", "other", "--url", process.url], tmp_path)
    assert done.returncode == 0, done.stderr
    node = found["pod-1"]
    assert re.search(rf"^bound to +{node}, as preferred$", done.stdout, re.MULTILINE)
    assert re.search(r"^shadow +worst-fit: node-\d$", done.stdout, re.MULTILINE)
    assert re.search(rf"^{node} \* +1,000 ", done.stdout, re.MULTILINE)
    assert "gpu_steps" in done.stdout
    assert (unknown.returncode, "nothing is known of pod default/other" in unknown.stderr) == (1, 1)
    (event,) = [
        each
        for each in api.ask("GET", "/api/v1/namespaces/default/events")["items"]
        if each["reason"] == "PodiumScored" and each["involvedObject"]["name"] == "pod-1"
    ]
    assert event["message"].startswith(f"fed-gpu preferred {node} (1,000 points) of 3 feasible")
    assert event["message"].endswith("; bound there")
    assert event["involvedObject"]["uid"] == uid_of(api, "pod-1")


def uid_of(api, name):
    (found,) = [each for each in api.pods() if each["metadata"]["name"] == name]
    return found["metadata"]["uid"]


MILLI = "alibabacloud.com/gpu-milli"


def share(milli):
    return {"alibabacloud.com/gpu-count": "1", MILLI: str(milli)}


def waiting(api):
    """Counts the pods that kube-scheduler could not place."""
    return sum(unschedulable(each) is not None for each in api.pods())


def test_whole_nodes_may_be_sent_instead_of_names(plane, api, tmp_path):
    api.create_all([gpu_node(f"node-{i}") for i in range(4)])
    pods = [gpu_pod(f"pod-{i}") for i in range(4)]
    with (
        podium(plane, tmp_path, policy="best-fit", ties="order") as process,
        plane.scheduler(configuration(process.url, nodeCacheCapable=False)),
    ):
        api.create_all(pods)
        found = wait_until_decided(api, pods)
        wait_until(lambda: figure(process, BEST) + figure(process, OTHER) == len(pods))
        assert figure(process, BEST) == len(pods)
    assert len(set(found.values())) == 1


def test_a_pod_that_is_gone_is_not_bound(plane, api, tmp_path):
    api.create(gpu_node("node"))
    gone = {"PodName": "gone", "PodNamespace": "default", "PodUID": "u", "Node": "node"}
    with podium(plane, tmp_path, bind=True) as process:
        reply = process.post("/extender/bind", gone)
    assert reply.status == 200
    assert 'pods "gone" not found' in reply.json["Error"]


def test_a_pod_that_the_policy_holds_waits_for_a_while(plane, api, tmp_path):
    policy = tmp_path / "patient.py"
    policy.write_text(PATIENT)
    api.create_all([gpu_node("small", 2), gpu_node("tiny", 2)])
    held = gpu_pod("held")
    settings = {"policy": policy, "filter": True, "max_hold_s": 3}
    with (
        podium(plane, tmp_path, **settings) as process,
        plane.scheduler(configuration(process.url, filterVerb="filter")),
    ):
        api.create(held)
        assert "2 refused by the policy" in api.wait_until_unschedulable(held)
        # A rejected pod is tried again on any event.
        time.sleep(3)
        api.create(gpu_node("late", 2))
        assert api.wait_until_scheduled(held) in ("late", "small", "tiny")
        assert figure(process, "podium_extender_held_total") >= 1


PATIENT = '''"""Waits for large nodes."""

from podium.policies import HOLD


def score(pod, node):
    """Refuses small nodes."""
    if node.gpu_count < 4 and pod.gpu_count > 0:
        return HOLD
    return 0
'''


# Failures: pods keep being scheduled, and scores count again once they are there.


class Broken(threading.Thread):
    """Is an extender that misbehaves in a way of its own."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.answer = answer
        self.asked = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError), connection:
            while connection.recv(65536):
                self.asked += 1
                if self.answer is None:
                    time.sleep(600)
                    return
                connection.sendall(self.answer)


@contextlib.contextmanager
def broken(answer):
    made = Broken(answer)
    made.start()
    try:
        yield made
    finally:
        made.listener.close()


def http(body, status="200 OK"):
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    "answer",
    [http("garbage"), http('[{"Host": "node-0", "Score": 1.5}]'), http("{}", "500 Broken"), None],
    ids=["garbage", "fractions", "failure", "hang"],
)
def test_pods_are_scheduled_beside_a_broken_extender(plane, api, answer):
    nodes, pods = [gpu_node(f"node-{i}") for i in range(3)], [gpu_pod(f"pod-{i}") for i in range(4)]
    api.create_all(nodes)
    with (
        broken(answer) as extender,
        plane.scheduler(configuration(extender.url, httpTimeout="200ms")),
    ):
        started_s = time.monotonic()
        api.create_all(pods)
        wait_until_decided(api, pods)
        took_s = time.monotonic() - started_s
        assert extender.asked
    # A hang costs every pod the timeout, one after another.
    assert (took_s > 0.8) if answer is None else (took_s < 120)


def test_pods_are_scheduled_while_the_extender_is_dead_and_scored_once_it_is_back(
    plane, api, tmp_path
):
    api.create_all([gpu_node(f"node-{i}") for i in range(4)])
    with podium_process(plane, tmp_path, policy="best-fit", ties="order") as process:
        url = process.url
        with plane.scheduler(configuration(url)):
            first = [gpu_pod(f"pod-{i}") for i in range(3)]
            api.create_all(first)
            assert len(set(wait_until_decided(api, first).values())) == 1
            process.end()
            second = [gpu_pod(f"dead-{i}") for i in range(3)]
            api.create_all(second)
            wait_until_decided(api, second)
            port = str(urlsplit(url).port)
            with podium_process(
                plane, tmp_path, "--port", port, policy="best-fit", ties="order"
            ) as again:
                third = [gpu_pod(f"back-{i}") for i in range(2)]
                api.create_all(third)
                wait_until_decided(api, third)
                wait_until(lambda: figure(again, BEST) == len(third))
