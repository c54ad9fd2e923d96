"""A stock kube-scheduler with Podium as its extender binds pods as the policy says."""

import contextlib
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from podium.sim.engine import Setup, simulate
from podium.sim.protocols import Rounds
from podium.traces import load_trace
from support.kube_api import POLL_S
from support.kubelike import gpu_node, gpu_pod, group
from support.service import served

WEIGHT = 200
"""One place in the order outweighs all plugins of kube-scheduler together, which give 1,200."""

ANSWER_S = 60.0


def configuration(url, **more):
    """Writes what an administrator writes to use the extender; the profile stays as it is."""
    extender = {
        "urlPrefix": f"{url}/extender",
        "prioritizeVerb": "prioritize",
        "weight": WEIGHT,
        "nodeCacheCapable": True,
        "ignorable": True,
        "httpTimeout": "2s",
        **more,
    }
    return {
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": "default-scheduler"}],
        "extenders": [extender],
    }


@contextlib.contextmanager
def podium(plane, folder, **settings):
    """Runs Podium as the extender of a control plane."""
    given = {f"PODIUM_EXTENDER_{name.upper()}": str(value) for name, value in settings.items()}
    with served(
        folder,
        PODIUM_SERVE_COMPONENTS="extender",
        PODIUM_EXTENDER_KUBECONFIG=str(plane.kubeconfig),
        **given,
    ) as process:
        yield process


def wait_until_decided(api, pods, bound=None):
    """Waits until so many pods are bound, or all; gives the node of each that is."""
    wanted = len(pods) if bound is None else bound
    deadline = time.monotonic() + ANSWER_S
    while True:
        seen = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in api.pods()}
        found = {
            name: seen[name] for pod in pods if seen.get(name := pod["metadata"]["name"])
        }
        if len(found) >= wanted:
            return found
        assert time.monotonic() < deadline, f"{len(found)} of {wanted} pods were bound"
        time.sleep(POLL_S)


def figure(process, line):
    """Reads one figure."""
    for each in process.get("/metrics").body.decode().splitlines():
        name, _, value = each.rpartition(" ")
        if name == line:
            return float(value)
    return 0.0


# Parity with the simulator.


def workload(count, sizes):
    """Writes pods of several sizes, named in the order in which they are scheduled."""
    return [gpu_pod(f"pod-{i:03}", sizes[i % len(sizes)]) for i in range(count)]


def simulated(folder, policy, nodes, pods):
    """Says where Podium's simulator places pods; ties go by the name of nodes there, too."""
    file = folder / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, *pods]}))
    trace = load_trace(str(file))
    setup = Setup(ranks="listed")
    result = simulate(trace.cluster, trace.workload, policy, Rounds(max_rounds=1), setup)
    names, at = result.plan.arrivals.names, result.node.tolist()
    return {
        name: trace.cluster.names[where] for name, where in zip(names, at, strict=True) if where >= 0
    }


@pytest.mark.parametrize("policy", ["first-fit", "fgd", "fed-gpu", "best-fit"])
def test_pods_are_bound_as_the_simulator_places_them(plane, api, tmp_path, policy):
    nodes = [gpu_node(f"node-{i:02}", 4 if i % 3 else 8) for i in range(8)]
    pods = workload(40, [1, 2, 0, 4, 1, 1])
    expected = simulated(tmp_path, policy, nodes, pods)
    api.create_all(nodes)
    api.create_all(pods)
    with podium(plane, tmp_path, policy=policy) as process:
        with plane.scheduler(configuration(process.url)):
            found = wait_until_decided(api, pods, len(expected))
        counted = figure(process, 'podium_extender_binds_total{node="best"}')
        others = figure(process, 'podium_extender_binds_total{node="other"}')
    assert len(expected) > 30
    same = sum(expected.get(name) == node for name, node in found.items())
    assert same / len(expected) >= 0.99, (expected, found)
    assert counted > 0.9 * len(found) - 1
    assert others == 0


def test_a_gang_goes_to_one_rack(plane, api, tmp_path):
    nodes = [
        gpu_node(f"node-{rack}{i}", labels={"topology.kubernetes.io/rack": f"rack-{rack}"})
        for rack in range(4)
        for i in range(3)
    ]
    # The label of a group that kube-scheduler itself does not know.
    members = [gpu_pod(f"member-{i}", 4) for i in range(3)]
    for each in members:
        each["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
    api.create_all([*nodes, *members])
    with (
        podium(plane, tmp_path, policy="worst-fit") as process,
        plane.scheduler(configuration(process.url)),
    ):
        found = wait_until_decided(api, members)
    assert len({node[:6] for node in found.values()}) == 1
    assert group is not None


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
                    time.sleep(30)
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
    nodes, pods = [gpu_node(f"node-{i}") for i in range(3)], workload(4, [1])
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
    assert (took_s > 0.8) if answer is None else (took_s < 20)


def test_pods_are_scheduled_while_the_extender_is_dead_and_scored_once_it_is_back(
    plane, api, tmp_path
):
    api.create_all([gpu_node(f"node-{i}") for i in range(4)])
    with podium(plane, tmp_path, policy="best-fit") as process:
        url = process.url
        with plane.scheduler(configuration(url)):
            first = workload(3, [1])
            api.create_all(first)
            assert len(set(wait_until_decided(api, first).values())) == 1
            process.end()
            second = [gpu_pod(f"dead-{i}") for i in range(3)]
            api.create_all(second)
            wait_until_decided(api, second)
            port = str(urlsplit(url).port)
            with podium(plane, tmp_path, policy="best-fit", **{"SERVE": ""}) if False else _again(
                plane, tmp_path, port
            ) as again:
                third = [gpu_pod(f"back-{i}") for i in range(2)]
                api.create_all(third)
                wait_until_decided(api, third)
                assert figure(again, 'podium_extender_binds_total{node="best"}') == 2
