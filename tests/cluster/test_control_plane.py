"""The real control plane does what tests of Podium build on."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from podium.kube.local.daemon import free_ports, is_ready, running
from support.control_plane import ProgramsMissingError, find_programs
from support.feasibility import feasibility_oracle
from support.kube_api import KubeApi, KubeApiError
from support.manifests import bound, node, pod

PACKING = {
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "nvidia.com/gpu", "weight": 1}],
                        }
                    },
                }
            ],
            "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
        }
    ]
}


def gpu_pod(name, gpus=1):
    return pod(name, requests={"nvidia.com/gpu": str(gpus)})


def test_the_api_server_says_which_version_it_is(api):
    version = api.ask("GET", "/version")
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")


def test_the_scheduler_binds_a_pod_and_says_why_it_cannot(plane, api):
    asked, too_big = gpu_pod("asked", 4), gpu_pod("too-big", 5)
    with plane.scheduler():
        for manifest in (node("full"), node("free"), bound(gpu_pod("old"), "full")):
            api.create(manifest)
        api.create(asked)
        assert api.wait_until_scheduled(asked) == "free"
        api.create(too_big)
        message = api.wait_until_unschedulable(too_big)
    assert "0/2 nodes are available: 2 Insufficient nvidia.com/gpu." in message


def test_a_scheduler_started_anew_keeps_to_its_own_configuration(plane, api):
    api.create(node("used"))
    api.create(node("empty"))
    api.create(bound(gpu_pod("old"), "used"))
    with plane.scheduler():
        api.create(gpu_pod("first"))
        assert api.wait_until_scheduled(gpu_pod("first")) == "empty"
    api.create(gpu_pod("meanwhile"))
    assert "nodeName" not in api.get(gpu_pod("meanwhile"))["spec"]
    api.delete(gpu_pod("meanwhile"))
    api.delete(gpu_pod("first"))
    with plane.scheduler(PACKING):
        api.create(gpu_pod("second"))
        assert api.wait_until_scheduled(gpu_pod("second")) == "used"


def test_one_oracle_may_follow_another(plane):
    for _ in range(2):
        with feasibility_oracle(plane) as oracle:
            asked = pod("p", namespace="training")
            assert oracle.feasible_nodes(asked, [node("a")]) == {"a"}
        assert (plane.api.nodes(), plane.api.pods()) == ([], [])


def test_a_manifest_that_is_refused_is_an_error_with_the_reason(api):
    with pytest.raises(KubeApiError, match=r"answered with 422: .*spec.containers") as refused:
        api.create(pod("empty", containers=[]))
    assert refused.value.status == 422


def test_who_has_no_token_may_change_nothing(plane):
    stranger = replace(plane.access, token="none")
    with (
        contextlib.closing(KubeApi(stranger)) as api,
        pytest.raises(KubeApiError, match="answered with 401: Unauthorized"),
    ):
        api.nodes()


def test_a_program_that_does_not_start_shows_what_it_wrote(plane):
    bad = {"profiles": [{"schedulerName": "x", "plugins": {"score": {"enabled": [{"name": "N"}]}}}]}
    with (
        pytest.raises(
            RuntimeError, match=r'(?s)kube-scheduler ended with status 1.*"N\\" does not exist'
        ),
        plane.scheduler(bad),
    ):
        pass


def wait_until(is_so):
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


SPAWN = """
import sys, time
from pathlib import Path
from podium.kube.local.daemon import running
with running(["sleep", "300"], Path(sys.argv[1])) as daemon:
    print(daemon.process.pid, flush=True)
    time.sleep(300)
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_programs_end_with_the_tests_that_started_them(tmp_path, end):
    tests = Path(__file__).parents[1]
    parent = subprocess.Popen(
        [sys.executable, "-c", SPAWN, tmp_path / "log"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(tests)},
    )
    with parent:
        child = Path(f"/proc/{int(parent.stdout.readline())}")
        wait_until(lambda: (child / "comm").read_text() == "sleep\n")
        parent.send_signal(end)
    wait_until(lambda: not child.exists())


def test_a_program_that_ends_is_not_waited_for(tmp_path):
    (port,) = free_ports(1)
    with running(["false"], tmp_path / "log") as daemon:
        with pytest.raises(RuntimeError, match="false ended with status 1"):
            daemon.wait_until_ready(port)
        assert not is_ready(port, None)


def test_what_is_missing_is_named_with_the_command_that_builds_it(tmp_path):
    with pytest.raises(ProgramsMissingError, match="`make e2e` builds them"):
        find_programs({})
    (tmp_path / "etcd").touch(mode=0o755)
    with pytest.raises(
        ProgramsMissingError, match="lacks kube-apiserver, kube-scheduler: `tools/build"
    ):
        find_programs({"KUBEBUILDER_ASSETS": str(tmp_path)})
    for name in ("kube-apiserver", "kube-scheduler"):
        (tmp_path / name).touch(mode=0o755)
    assert find_programs({"KUBEBUILDER_ASSETS": str(tmp_path)}) == tmp_path
