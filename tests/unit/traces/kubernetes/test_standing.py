import pytest
import yaml

from podium.traces.fields import FieldError
from podium.traces.kubernetes.standing import read_standing

HOUR = 3600.0
NOON = 1772366400.0  # 2026-03-01T12:00:00Z


def read(text, annotations=None):
    return read_standing(yaml.safe_load(text), annotations or {})


FINISHED = """
metadata:
  name: train-7-x2k4m
  uid: 0f0e6f0c
  creationTimestamp: "2026-03-01T11:59:00Z"
  ownerReferences:
  - {apiVersion: batch/v1, kind: Job, name: train-7, controller: true}
spec: {nodeName: gpu-a}
status:
  phase: Succeeded
  startTime: "2026-03-01T12:00:00Z"
  initContainerStatuses:
  - state: {terminated: {startedAt: "2026-03-01T12:00:00Z", finishedAt: "2026-03-01T12:01:00Z"}}
  containerStatuses:
  - state: {terminated: {startedAt: "2026-03-01T12:01:00Z", finishedAt: "2026-03-01T14:00:00Z"}}
  - state: {terminated: {startedAt: "2026-03-01T12:01:00Z", finishedAt: "2026-03-01T13:00:00Z"}}
"""


def test_a_finished_pod_tells_its_run_time():
    standing = read(FINISHED)
    assert standing.is_finished
    assert standing.run_time_s == 2 * HOUR
    assert standing.owner == "Job/train-7"
    assert standing.latest_s == NOON + 2 * HOUR
    assert standing.is_live


def test_a_failed_pod_tells_no_run_time():
    standing = read(FINISHED.replace("Succeeded", "Failed"))
    assert standing.is_finished
    assert standing.run_time_s is None


def test_a_container_that_never_started_has_no_times():
    text = FINISHED.replace("2026-03-01T12:01:00Z", "1970-01-01T00:00:00Z")
    assert read(text).run_time_s == 2 * HOUR


def test_a_running_pod_started_when_its_first_container_did():
    standing = read("""
metadata: {name: p, creationTimestamp: "2026-03-01T10:00:00Z"}
spec: {nodeName: gpu-a}
status:
  phase: Running
  startTime: "2026-03-01T11:00:00Z"
  conditions:
  - {type: PodScheduled, status: "True", lastProbeTime: null,
     lastTransitionTime: "2026-03-01T10:59:59Z"}
  containerStatuses:
  - state: {running: {startedAt: "2026-03-01T12:00:00Z"}}
""")
    assert (standing.node, standing.started_s, standing.is_finished) == ("gpu-a", NOON, False)
    assert standing.latest_s == NOON
    assert not standing.is_live


def test_a_pod_that_is_about_to_start_counts_from_its_binding_or_creation():
    text = "{metadata: {creationTimestamp: '2026-03-01T11:00:00Z'}, status: {%s}}"
    assert read(text % "startTime: '2026-03-01T12:00:00Z'").started_s == NOON
    assert read(text % "").started_s == NOON - HOUR


@pytest.mark.parametrize(
    ("kind", "annotations", "stays"),
    [
        ("DaemonSet", {}, True),
        ("Node", {}, True),
        ("ReplicaSet", {}, False),
        ("ReplicaSet", {"kubernetes.io/config.mirror": "1f"}, True),
    ],
)
def test_pods_of_daemon_sets_and_static_pods_belong_to_their_nodes(kind, annotations, stays):
    owner = f"{{kind: {kind}, name: x, controller: true}}"
    assert read(f"metadata: {{ownerReferences: [{owner}]}}", annotations).stays == stays


def test_owners_that_do_not_control_a_pod_are_not_its_controller():
    assert read("metadata: {ownerReferences: [{kind: DaemonSet, name: x}]}").owner == ""


def test_gates_and_deletion_are_read():
    standing = read("""
metadata: {deletionTimestamp: "2026-03-01T12:00:00Z"}
spec: {schedulingGates: [{name: kueue.x-k8s.io/admission}]}
""")
    assert standing.is_gated
    assert standing.deleted_s == NOON
    assert standing.latest_s is None  # the deletion may lie ahead


def test_a_wrong_time_names_its_field():
    with pytest.raises(FieldError) as caught:
        read("status: {startTime: soon}")
    assert caught.value.field == "status.startTime"
