"""Podium and the real kube-scheduler give the same pods the same volumes, one after another."""

import contextlib
import json
import time

import pytest

import podium
from support.contest_worlds import DRIVERS, TRACKING, draw_contest_world, names_of, probe
from support.control_plane import control_plane
from support.kube_api import POLL_S, KubeApiError, unschedulable
from support.manifests import volume

WORLDS = 30
SELECTED = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


@pytest.fixture(scope="module")
def scheduled(programs):
    with control_plane(programs) as plane, plane.scheduler():
        plane.api.create(TRACKING)
        yield plane.api


def serve(api):
    """Completes what the scheduler bound, as the controller of volumes does."""
    for found in api.ask("GET", "/api/v1/persistentvolumeclaims")["items"]:
        if (
            SELECTED in found["metadata"].get("annotations", {})
            and "volumeName" not in found["spec"]
        ):
            provision(api, found["metadata"], DRIVERS[found["spec"]["storageClassName"]])
    for found in api.ask("GET", "/api/v1/persistentvolumes")["items"]:
        owner = found["spec"].get("claimRef")
        if not owner or found["status"].get("phase") == "Bound":
            continue
        kind = {"apiVersion": "v1", "kind": "PersistentVolume"}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": owner}
        done = {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}}
        api.patch(claim, {**done, "spec": {"volumeName": found["metadata"]["name"]}})
        api.patch_status({**kind, **found}, {"phase": "Bound"})
        api.patch_status(claim, {"phase": "Bound"})


def provision(api, owner, driver):
    """Makes a volume for a claim, anywhere, as a driver without topology does."""
    made = volume(f"made-{owner['name']}", gib=9, accessModes=["ReadWriteOnce"])
    del made["spec"]["hostPath"], made["status"]
    made["spec"]["csi"] = {"driver": driver, "volumeHandle": owner["name"]}
    made["spec"]["claimRef"] = {key: owner[key] for key in ("namespace", "name", "uid")}
    with contextlib.suppress(KubeApiError):  # it is there, and not bound yet
        api.create(made)


def decided(api, asked, *, waits=False):
    """Waits for what becomes of a pod: its node, or nothing unless that is waited for."""
    api.create(asked)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        serve(api)
        seen = api.get(asked)
        if seen["spec"].get("nodeName"):
            return seen["spec"]["nodeName"]
        # An error is of this moment, and the pod is tried again.
        if (unschedulable(seen) or "").startswith("Unschedulable") and not waits:
            return ""
        time.sleep(POLL_S)
    raise TimeoutError(asked["metadata"]["name"])


@pytest.mark.parametrize("seed", range(WORLDS))
def test_each_pod_finds_what_those_before_it_left(scheduled, tmp_path, seed):
    cluster, pending = draw_contest_world(seed)
    try:
        seen, probing = probe(seed)
        for each in (*cluster, *seen):
            scheduled.create(each)
        decided(scheduled, probing, waits=True)
        expected = [decided(scheduled, each) for each in pending]
    finally:
        scheduled.clear()
        scheduled.clear_volumes()
        for name in names_of(seed):
            scheduled.ask("DELETE", f"/apis/storage.k8s.io/v1/csinodes/{name}")
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"kind": "List", "items": [TRACKING, *cluster, *pending]}))
    found = podium.fit(str(file))
    for pod, node in zip(found.pods, expected, strict=True):
        assert pod.reason == "not known" or pod.node == node, file.read_text()


def test_most_answers_are_known(tmp_path):
    file, known, total = tmp_path / "dump.json", 0, 0
    for seed in range(WORLDS):
        cluster, pending = draw_contest_world(seed)
        file.write_text(json.dumps({"kind": "List", "items": [TRACKING, *cluster, *pending]}))
        found = podium.fit(str(file))
        known += sum(pod.reason != "not known" for pod in found.pods)
        total += len(found.pods)
    assert 0.8 * total < known < total
