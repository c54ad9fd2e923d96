"""The extender with a policy that never ends, over an API server that only lists."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import threading
import time
from urllib.parse import urlsplit

import pytest

from support.binary import PODIUM, clean_environment
from support.extender import args, points
from support.fake_api import fake_api, kubeconfig, listed
from support.kubelike import gpu_node, gpu_pod, live
from support.service import served

ENDLESS = """
def score(pod, node):
    total = 0.0
    while pod.gpu_count == 3:
        total += 1.0
    return total - node.cpu_milli_left
"""
NODES = [gpu_node(name) for name in "ab"]
NONE = {"a": 0, "b": 0}
SLOW = 'podium_extender_neutral_total{reason="slow",verb="prioritize"}'


@contextlib.contextmanager
def cluster(folder, *pods):
    """Runs an API server as long as the block; gives the kubeconfig."""
    loop, has_begun, file = asyncio.new_event_loop(), threading.Event(), []
    ending = asyncio.Event()

    async def serve():
        async with fake_api() as api:
            api.list_of["nodes"], api.list_of["pods"] = listed(*NODES), listed(*pods)
            file.append(kubeconfig(folder, api.port))
            has_begun.set()
            await ending.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert has_begun.wait(120)
    try:
        yield str(file[0])
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(120)
        loop.close()


@contextlib.contextmanager
def extender(folder, *pods):
    """Runs the extender with a policy that never ends for pods of three GPUs."""
    (folder / "endless.py").write_text(ENDLESS)
    with (
        cluster(folder, *pods) as config,
        served(
            folder, PODIUM_SERVE_COMPONENTS="extender", PODIUM_EXTENDER_POLICY="endless.py",
            PODIUM_EXTENDER_KUBECONFIG=config, PODIUM_EXTENDER_TIES="order",
        ) as process,
    ):  # fmt: skip
        yield process


def prioritize(process, name, gpus):
    sent = args(live(gpu_pod(name, gpus), name), "ab").decode()
    reply = process.ask("POST", "/extender/prioritize", sent)
    return points(reply.body, "ab")


def figures(process):
    return process.get("/metrics").body.decode().splitlines()


def test_a_score_that_never_ends_holds_up_neither_pods_nor_probes_nor_the_end(tmp_path):
    with extender(tmp_path) as process:
        assert max(prioritize(process, "p", 1).values()) == 1000
        assert prioritize(process, "q", 3) == NONE
        assert prioritize(process, "r", 1) == NONE
        assert f"{SLOW} 2.0" in figures(process)
        assert process.get("/healthz").status == 200
        while process.get("/readyz").json["slow_policies"] != "endless":
            time.sleep(0.05)  # until it took three times the limit
        assert process.end(signal.SIGTERM) == 0


def test_a_policy_that_never_ends_for_a_pod_that_runs_starts_neutral(tmp_path):
    with extender(tmp_path, live(gpu_pod("old", 3), "old", "a", "Running")) as process:
        assert process.get("/readyz").json["slow_policies"] == "endless"
        assert prioritize(process, "p", 1) == NONE
        assert process.end(signal.SIGTERM) == 0
    assert any("too slow" in line["message"] for line in process.logs)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="Windows has no such signal")
def test_requests_whose_caller_is_gone_are_not_scored(tmp_path):
    body = json.dumps({"pod": {"metadata": {"name": "p"}}, "nodes": []}).encode()
    head = b"POST /score HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    sent = head + b"content-length: %d\r\n\r\n" % len(body) + body
    scored = 'podium_webhook_duration_seconds_count{verb="score"} 1.0'
    environ = {"PODIUM_SERVE_COMPONENTS": "webhook", "PODIUM_EXTENDER_POLICY": "best-fit"}
    with served(tmp_path, **environ) as process:
        address = urlsplit(process.url)
        process.process.send_signal(signal.SIGSTOP)
        for _ in range(20):
            with socket.create_connection((address.hostname, address.port)) as impatient:
                impatient.sendall(sent)
        process.process.send_signal(signal.SIGCONT)
        assert process.post("/score", json.loads(body)).status == 200
        assert scored in figures(process)
        assert process.end() == 0
    assert not [line for line in process.logs if line["level"] == "error"]


def test_a_service_that_learns_nothing_needs_no_store(tmp_path):
    environ = {"PODIUM_SERVE_COMPONENTS": "webhook", "PODIUM_EXTENDER_POLICY": "best-fit"}
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    with served(tmp_path, "--store", str(nowhere / "podium.db"), **environ) as process:
        assert process.get("/readyz").status == 200
        assert process.end() == 0
    with served(tmp_path, **environ) as process:
        process.end()
    assert not (tmp_path / "podium.db").exists()


def test_the_check_ends_and_says_for_which_pod_and_node_the_policy_does_not(tmp_path):
    (tmp_path / "endless.py").write_text(ENDLESS)
    found = subprocess.run(
        [*PODIUM, "policies", "check", "endless.py", "--json"],
        cwd=tmp_path, env=clean_environment(tmp_path), capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    (finding,) = json.loads(found.stdout)["findings"]
    assert found.returncode == 1
    assert (finding["name"], finding["is_ok"]) == ("ends", False)
    assert "gpu_count=3" in finding["detail"]
    assert " on Node(" in finding["detail"]
