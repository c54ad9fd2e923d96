"""While Podium is killed, stopped, slow or started again, one kube-scheduler goes on scheduling."""

import itertools
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from support.account import FAULTS, account
from support.extended import configuration, figure, podium_process, wait_until, wait_until_decided
from support.kubelike import gpu_node, gpu_pod
from support.tcp_proxy import tcp_proxy

TIMEOUT_S = 1.0
PODS = 6
PAUSE_S = 31.0
RECOVERY_S = 10.0
"""How long it may take until a cluster is followed again once its credentials are good."""

BUSY_S = 20.0
"""What a machine that is busy with other things may need beside all timeouts."""

SCORED = 'podium_extender_duration_seconds_count{verb="prioritize"}'
BEST = 'podium_extender_binds_total{node="best"}'
FAILING = "podium_extender_failing_watches"
NUMBERS = itertools.count()


def scheduled(api):
    """Makes some pods; gives their nodes and the seconds until all were bound."""
    pods = [gpu_pod(f"pod-{next(NUMBERS):03}") for _ in range(PODS)]
    started_s = time.monotonic()
    api.create_all(pods)
    found = wait_until_decided(api, pods)
    return found, time.monotonic() - started_s


def follows_the_policy(api, process):
    """Tells whether pods go to the best node again; kube-scheduler alone would spread them."""
    before = figure(process, BEST)
    found, _ = scheduled(api)
    wait_until(lambda: figure(process, BEST) == before + PODS)
    return len(set(found.values())) <= 3


@pytest.fixture
def cluster(api):
    api.create_all([gpu_node(f"node-{i:02}", 4) for i in range(20)])
    return api


def test_a_hang_costs_no_more_than_the_timeout_and_ends_by_itself(plane, cluster, tmp_path):
    """The process is stopped: its sockets stay open, and nothing is answered."""
    with podium_process(plane, tmp_path, policy="best-fit", ties="order") as process:
        url = configuration(process.url, httpTimeout=f"{TIMEOUT_S}s")
        with plane.scheduler(url):
            assert follows_the_policy(cluster, process)
            process.process.send_signal(signal.SIGSTOP)
            try:
                _, took_s = scheduled(cluster)
            finally:
                process.process.send_signal(signal.SIGCONT)
            assert PODS * TIMEOUT_S <= took_s <= PODS * TIMEOUT_S + BUSY_S
            assert follows_the_policy(cluster, process)


def test_a_crash_costs_nothing_and_a_new_process_takes_over(plane, cluster, tmp_path):
    with podium_process(plane, tmp_path, policy="best-fit", ties="order") as process:
        port = str(urlsplit(process.url).port)
        with plane.scheduler(configuration(process.url, httpTimeout=f"{TIMEOUT_S}s")):
            assert follows_the_policy(cluster, process)
            process.end(signal.SIGKILL)
            found, took_s = scheduled(cluster)
            assert took_s < BUSY_S
            assert len(set(found.values())) > 3  # kube-scheduler spreads
            with podium_process(
                plane, tmp_path, "--port", port, policy="best-fit", ties="order"
            ) as again:
                wait_until(lambda: again.get("/readyz").status == 200)
                assert follows_the_policy(cluster, again)


@pytest.mark.parametrize("is_in_time", [True, False], ids=["in-time", "too-late"])
def test_slow_answers_count_if_they_come_in_time(plane, cluster, tmp_path, is_in_time):
    delay_s, timeout_s = (0.05, 30.0) if is_in_time else (5.0, 0.2)
    with (
        podium_process(plane, tmp_path, policy="best-fit", ties="order") as process,
        delayed(urlsplit(process.url).port, delay_s) as slow,
        plane.scheduler(configuration(slow, httpTimeout=f"{timeout_s}s")),
    ):
        found, took_s = scheduled(cluster)
        assert figure(process, SCORED) >= PODS
    cost_s = PODS * min(delay_s, timeout_s)
    assert cost_s <= took_s <= cost_s + BUSY_S
    assert (len(set(found.values())) <= 2) == is_in_time


@pytest.mark.parametrize("fault", FAULTS)
def test_credentials_that_are_bad_for_a_while_end_nothing(plane, cluster, tmp_path, fault):
    with account(plane, tmp_path) as watcher, tcp_proxy(plane.access.port) as proxy:
        kubeconfig = watcher.kubeconfig(proxy.port, is_plugin=fault == "plugin")
        with podium_process(
            plane, tmp_path, policy="best-fit", ties="order", kubeconfig=kubeconfig
        ) as process:
            wait_until(lambda: process.get("/readyz").status == 200)
            trouble = FAULTS[fault](watcher)
            trouble.begin()
            proxy.cut()
            if fault == "plugin":
                wait_until(lambda: not (tmp_path / "fails-once").exists())
            else:
                wait_until(lambda: figure(process, FAILING) > 0)
                time.sleep(4.0)
            assert process.get("/healthz").status == 200
            trouble.end()
            good_s = time.monotonic()
            cluster.create(gpu_node("late"))
            wait_until(lambda: figure(process, "podium_extender_nodes") == 21)
            wait_until(lambda: figure(process, FAILING) == 0)
            assert time.monotonic() - good_s < RECOVERY_S + BUSY_S
            with plane.scheduler(configuration(process.url)):
                assert follows_the_policy(cluster, process)


def policy_file(folder, text):
    """Writes a policy."""
    file = folder / "policy.py"
    file.write_text(text)
    return str(file)


ENDLESS = """
def score(pod, node):
    total = 0.0
    while pod.cpu_milli == 2000:
        total += 1.0
    return total - node.cpu_milli_left
"""

SLOW = """
import math

def score(pod, node):
    total = 0.0
    if pod.cpu_milli == 2000:
        for number in range(20000000):
            total += math.sin(number)
    return total - node.cpu_milli_left
"""


def large_pod(name):
    """Makes a pod of two CPUs, for which policies here are slow."""
    made = gpu_pod(name)
    for amounts in made["spec"]["containers"][0]["resources"].values():
        amounts["cpu"] = "2"
    return made


def test_a_policy_that_never_ends_for_one_pod_delays_no_other(plane, cluster, tmp_path):
    policy = policy_file(tmp_path, ENDLESS)
    with podium_process(plane, tmp_path, policy=policy, ties="order") as process:
        with plane.scheduler(configuration(process.url, httpTimeout=f"{TIMEOUT_S}s")):
            assert follows_the_policy(cluster, process)
            bad = large_pod("endless")
            cluster.create_all([bad])
            wait_until_decided(cluster, [bad])
            _, took_s = scheduled(cluster)
            assert took_s < BUSY_S
            assert process.get("/healthz").status == 200
            wait_until(lambda: process.get("/readyz").json["slow_policies"] == "policy")
        assert process.end(signal.SIGTERM) == 0


def test_a_slow_policy_is_neutral_until_it_is_in_time(plane, cluster, tmp_path):
    """It is tried again half a minute after it was late for the third time."""
    with (
        podium_process(
            plane, tmp_path, policy=policy_file(tmp_path, SLOW), ties="order"
        ) as process,
        plane.scheduler(configuration(process.url, httpTimeout=f"{TIMEOUT_S}s")),
    ):
        assert follows_the_policy(cluster, process)
        cluster.create_all([large_pod("slow")])
        wait_until(lambda: process.get("/readyz").json["slow_policies"] == "policy")
        scheduled(cluster)  # the pause begins
        time.sleep(PAUSE_S)
        scheduled(cluster)
        wait_until(lambda: process.get("/readyz").json["slow_policies"] == "")
        assert follows_the_policy(cluster, process)


def test_nodes_that_cannot_be_modelled_have_their_share_of_pods(plane, api, tmp_path):
    """Nobody knows more of the large ones than kube-scheduler, which spreads pods over all."""
    large = {f"large-{i}" for i in range(4)}
    api.create_all(
        [*(gpu_node(f"node-{i}", 4) for i in range(4)), *(gpu_node(n, 32) for n in large)]
    )
    with (
        podium_process(plane, tmp_path, policy="best-fit", ties="equal") as process,
        plane.scheduler(configuration(process.url)),
    ):
        pods = [gpu_pod(f"pod-{next(NUMBERS):03}") for _ in range(14)]
        api.create_all(pods)
        found = wait_until_decided(api, pods)
    assert large & set(found.values())
    assert {f"node-{i}" for i in range(4)} & set(found.values())


@contextmanager
def delayed(port, delay_s):
    """Stands before a server and keeps each answer back for a while; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", port))
                for pair in ((near, far, 0.0), (far, near, delay_s)):
                    threading.Thread(target=forward, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def forward(source, target, delay_s):
    """Passes bytes on, later."""
    with suppress(OSError), source, target:
        while received := source.recv(1 << 16):
            time.sleep(delay_s)
            target.sendall(received)
