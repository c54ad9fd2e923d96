"""A recording of a real cluster tells how long its pods ran, though the recorder was killed."""

import json
import os
import signal
import stat
import subprocess
import time
from contextlib import contextmanager
from datetime import datetime

import pytest

from podium.traces import load_trace
from podium.traces.kubernetes.recording import exits, load_recording
from support.account import FAULTS, account
from support.binary import PODIUM, clean_environment
from support.control_plane import find_programs
from support.kubelike import gpu_node, gpu_pod
from support.manifests import bound
from support.tcp_proxy import tcp_proxy

WAIT_S = 120.0
RECOVERY_S = 10.0
BUSY_S = 20.0
"""What a machine that is busy with other things may need beside all that is promised."""


@pytest.fixture(autouse=True)
def kwok(plane):
    if not os.access(plane.programs / "kwok", os.X_OK):
        pytest.skip(f"{find_programs()} lacks kwok: `tools/build_control_plane.sh` builds it")
    with plane.kwok():
        yield


@contextmanager
def recording(plane, folder, *arguments, kubeconfig=None):
    """Records in a process of its own, from what there is, until the block has stopped it."""
    environ = clean_environment(folder, KUBECONFIG=str(kubeconfig or plane.kubeconfig))
    command = [*PODIUM, "kube", "record", "cluster.jsonl", *arguments]
    file = folder / "cluster.jsonl"
    before = file.stat().st_size if file.exists() else 0
    process = subprocess.Popen(
        command, cwd=folder, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            assert "recording into cluster.jsonl" in process.stderr.readline()
            wait_until(lambda: file.stat().st_size > before)  # the first list is in it
            yield process
        finally:
            process.kill()


def timed(name, seconds, node="n0"):
    return bound(gpu_pod(name, 1, annotations={"podium.dev/duration": f"{seconds}s"}), node)


def create(api, manifest):
    """Makes a pod that kwok is to start."""
    api.create({name: part for name, part in manifest.items() if name != "status"})


def wait_until(is_so):
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def phases(api):
    return phases_of(api.pods())


def recorded(folder):
    """Tells what the recording knows of pods by now."""
    pods = load_recording(folder / "cluster.jsonl").pods.values()
    return phases_of(each.value for each in pods)


def phases_of(pods):
    return {pod["metadata"]["name"]: pod["status"].get("phase") for pod in pods}


def run_times(api):
    """Gives the seconds for which pods ran that have ended."""
    found = {}
    for pod in api.pods():
        for each in pod["status"].get("containerStatuses", ()):
            if ended := each["state"].get("terminated"):
                times = (datetime.fromisoformat(ended[at]) for at in ("finishedAt", "startedAt"))
                finished, started = times
                found[pod["metadata"]["name"]] = (finished - started).total_seconds()
    return found


def test_a_recorder_that_is_killed_and_started_again_has_seen_it_all(plane, api, tmp_path):
    api.create_all([gpu_node(f"n{i}", 8) for i in range(2)])
    create(api, timed("before", 600, "n1"))
    wait_until(lambda: phases(api)["before"] == "Running")
    with recording(plane, tmp_path) as process:
        time.sleep(1.1)  # times are in whole seconds: who starts within this one ran before
        for i in range(4):
            create(api, timed(f"short-{i}", 1 + i % 2))
        wait_until(lambda: "Succeeded" in phases(api).values())
        create(api, timed("long", 4))
        create(api, timed("missed", 600))
        create(api, gpu_pod("pending", 1))
        wait_until(lambda: recorded(tmp_path).get("missed") == "Running")
        process.kill()
        process.wait()
    # While nobody looks, one ends and one is deleted.
    api.delete(timed("missed", 600))
    wait_until(lambda: phases(api)["long"] == "Succeeded")
    with recording(plane, tmp_path, "--json") as process:
        create(api, timed("late", 1))
        wait_until(lambda: recorded(tmp_path).get("late") == "Succeeded")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT_S)
        assert process.returncode == 130, err
    counts = json.loads(out)["pods"]
    assert counts == {"running": 1, "completed": 6, "lost": 1, "waiting": 1}
    assert exits(load_recording(tmp_path / "cluster.jsonl")) == counts
    trace = load_trace(str(tmp_path / "cluster.jsonl"))
    pods = {pod.name: pod for pod in trace.workload.specs()}
    assert pods["before"].node == "n1"
    ran_s = run_times(api)
    for name, seconds in (("short-0", 1), ("short-1", 2), ("long", 4), ("late", 1)):
        assert ran_s[name] >= seconds - 1, name  # times are in whole seconds
        assert pods[name].duration_s == ran_s[name], name
        assert pods[name].node == ""
    assert pods["late"].arrival_s > pods["long"].arrival_s > 0


def test_a_recording_ends_when_it_should(plane, api, tmp_path):
    api.create(gpu_node("n0"))
    with recording(plane, tmp_path, "--for", "1", "--hash-names") as process:
        create(api, timed("p", 600))
        out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out) == (0, "cluster.jsonl\n"), err
    assert "1 running" in err
    assert '"p"' not in (tmp_path / "cluster.jsonl").read_text()


def test_a_hashed_recording_goes_on_after_a_crash(plane, api, tmp_path):
    api.create_all([gpu_node("secret-node", 8)])
    create(api, timed("secret-missed", 600, "secret-node"))
    create(api, timed("secret-stays", 600, "secret-node"))
    wait_until(lambda: set(phases(api).values()) == {"Running"})
    with recording(plane, tmp_path, "--hash-names") as process:
        wait_until(lambda: len(recorded(tmp_path)) == 2)
        process.kill()
        process.wait()
    api.delete(timed("secret-missed", 600))
    with recording(plane, tmp_path, "--hash-names", "--json", "--for", "1") as process:
        out, err = process.communicate(timeout=WAIT_S)
        assert process.returncode == 0, err
    assert json.loads(out)["pods"] == {"running": 1, "lost": 1}
    file, salt = tmp_path / "cluster.jsonl", tmp_path / "cluster.jsonl.salt"
    assert "secret" not in file.read_text()
    assert stat.S_IMODE(salt.stat().st_mode) == 0o600
    known = load_recording(file)
    assert (len(known.pods), len(known.here & {*known.objects})) == (2, len(known.objects))
    salt.unlink()
    environ = clean_environment(tmp_path, KUBECONFIG=str(plane.kubeconfig))
    command = [*PODIUM, "kube", "record", "cluster.jsonl", "--for", "1"]
    for flags, said in ((["--hash-names"], "their salt is not there"), ([], "names are hashed")):
        done = subprocess.run(
            [*command, *flags], cwd=tmp_path, env=environ, text=True, capture_output=True
        )
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_a_recording_outlives_credentials_that_are_bad_for_a_while(plane, api, tmp_path, fault):
    api.create(gpu_node("n0"))
    with account(plane, tmp_path) as watcher, tcp_proxy(plane.access.port) as proxy:
        kubeconfig = watcher.kubeconfig(proxy.port, is_plugin=fault == "plugin")
        with recording(plane, tmp_path, kubeconfig=kubeconfig) as process:
            trouble = FAULTS[fault](watcher)
            trouble.begin()
            proxy.cut()
            create(api, timed("p", 600))
            time.sleep(0.0 if fault == "plugin" else 4.0)
            trouble.end()
            good_s = time.monotonic()
            wait_until(lambda: '"Running"' in (tmp_path / "cluster.jsonl").read_text())
            assert time.monotonic() - good_s < RECOVERY_S + BUSY_S
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=WAIT_S)
            assert process.returncode == 130, err
            assert "1 running" in err
