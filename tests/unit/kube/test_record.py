"""A recording holds the lives of pods, whatever cut it short."""

import json
import signal
import sys
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from podium.errors import InputError, UsageError
from podium.kube.hashing import Hasher
from podium.kube.record import Recorder
from podium.kube.resources import NODES, PODS, Resource
from podium.sim.engine import simulate
from podium.sim.protocols import Replay
from podium.traces import load_trace, save_trace
from podium.traces.kubernetes.recording import exits, load_recording
from podium.traces.save import losses
from support.kubelike import gpu_node, gpu_pod, group, live

BEGIN = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC).timestamp()
CLASSES = Resource("DeviceClass", "deviceclasses", "resource.k8s.io", "v1")
GROUPS = Resource("PodGroup", "podgroups", "scheduling.k8s.io", "v1alpha2")


def date(seconds):
    moment = datetime.fromtimestamp(BEGIN + seconds, UTC)
    return moment.isoformat().replace("+00:00", "Z")


class Cluster:
    """Plays a cluster to a recorder, at times that it chooses."""

    def __init__(self, path):
        self.path, self.time_s, self.pods = path, 0.0, {}

    def recorder(self, **how):
        return Recorder(self.path, now=lambda: BEGIN + self.time_s, **how)

    def tell(self, recorder, type_, value, resource=PODS):
        return recorder.apply(resource, type_, json.dumps(value).encode()).identity

    def list_all(self, recorder):
        recorder.retain(PODS, {self.tell(recorder, "ADDED", value) for value in self.pods.values()})

    def create(self, recorder, name, at_s, gpus=1, **spec):
        self.time_s = max(self.time_s, at_s)
        pod = live(gpu_pod(name, gpus, **spec), name)
        pod["metadata"]["creationTimestamp"] = date(at_s)
        return self.put(recorder, pod)

    def put(self, recorder, pod):
        uid = pod["metadata"]["uid"]
        type_ = "MODIFIED" if uid in self.pods else "ADDED"
        self.pods[uid] = json.loads(json.dumps(pod))
        if recorder is not None:
            self.tell(recorder, type_, pod)
        return self.pods[uid]

    def start(self, recorder, name, at_s, node="n0"):
        self.time_s = max(self.time_s, at_s)
        pod = self.pods[name]
        pod["spec"]["nodeName"] = node
        running = {"name": "main", "state": {"running": {"startedAt": date(at_s)}}}
        pod["status"] = {
            "phase": "Running",
            "startTime": date(at_s),
            "containerStatuses": [running],
        }
        return self.put(recorder, pod)

    def finish(self, recorder, name, at_s, phase="Succeeded", **status):
        self.time_s = max(self.time_s, at_s)
        pod = self.pods[name]
        started = pod["status"]["startTime"]
        over = {"startedAt": started, "finishedAt": date(at_s), "exitCode": 0}
        ended = {"name": "main", "state": {"terminated": over}}
        pod["status"] |= {"phase": phase, "containerStatuses": [ended], **status}
        return self.put(recorder, pod)

    def delete(self, recorder, name, at_s):
        self.time_s = max(self.time_s, at_s)
        pod = self.pods.pop(name)
        if recorder is not None:
            self.tell(recorder, "DELETED", pod)


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path / "cluster.jsonl")


def begin(cluster, recorder, nodes=2):
    listed = [gpu_node(f"n{i}") for i in range(nodes)]
    recorder.retain(NODES, {cluster.tell(recorder, "ADDED", each, NODES) for each in listed})


def pods_of(path):
    trace = load_trace(str(path))
    found = {pod.name: pod for pod in trace.workload.specs()}
    return trace, found


def test_pods_arrive_when_they_were_made_and_run_as_long_as_they_ran(cluster):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        for i in range(3):
            cluster.create(recorder, f"p{i}", 10 + i, gpus=i)
        for i in range(3):
            cluster.start(recorder, f"p{i}", 40 + i, f"n{i % 2}")
        for i in range(3):
            cluster.finish(recorder, f"p{i}", 100 + 2 * i)
            cluster.delete(recorder, f"p{i}", 200)
    trace, pods = pods_of(cluster.path)
    times = {name: (pod.arrival_s, pod.duration_s, pod.node) for name, pod in pods.items()}
    assert times == {"p0": (10, 60, ""), "p1": (11, 61, ""), "p2": (12, 62, "")}
    assert len(trace.cluster) == 2
    assert simulate(trace.cluster, trace.workload, "first-fit", Replay()).metrics.placed == 3


def test_who_comes_later_leaves_the_gpus_that_a_bind_noted(cluster):
    cluster.create(None, "old", -50)
    cluster.pods["old"]["metadata"]["annotations"] = {"alibabacloud.com/gpu-index": "3"}
    cluster.start(None, "old", -40)
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        cluster.list_all(recorder)
        cluster.create(recorder, "p", 10)
        cluster.pods["p"]["metadata"]["annotations"] = {"alibabacloud.com/gpu-index": "2"}
        cluster.start(recorder, "p", 40)
        cluster.finish(recorder, "p", 100)
    trace, pods = pods_of(cluster.path)
    assert (pods["old"].gpu_slots, pods["p"].gpu_slots) == ((3,), ())
    assert not any("not honoured" in note for note in trace.notes)


def test_who_waits_behind_a_gate_arrives_when_it_opens(cluster):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        gated = cluster.create(recorder, "p", 5, schedulingGates=[{"name": "quota"}])
        cluster.time_s = 50
        del gated["spec"]["schedulingGates"]
        cluster.put(recorder, gated)
        cluster.start(recorder, "p", 60)
        cluster.finish(recorder, "p", 90)
    _, pods = pods_of(cluster.path)
    assert (pods["p"].arrival_s, pods["p"].duration_s) == (50, 30)


@pytest.mark.parametrize("bound_s", [None, 55])
@pytest.mark.parametrize("end_s", [90, 200])
def test_a_gate_that_fell_unseen_was_open_when_its_pod_was_bound(cluster, bound_s, end_s):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        cluster.create(recorder, "p", 5, schedulingGates=[{"name": "quota"}])
        cluster.create(recorder, "waits", 5, schedulingGates=[{"name": "quota"}])
    for pod in cluster.pods.values():
        del pod["spec"]["schedulingGates"]
    cluster.start(None, "p", 60)
    if bound_s is not None:
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": date(bound_s)}
        cluster.pods["p"]["status"]["conditions"] = [bound]
    if end_s == 90:
        cluster.finish(None, "p", end_s)
    cluster.time_s = 100
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        cluster.list_all(recorder)
        if end_s == 200:
            cluster.finish(recorder, "p", end_s)
        cluster.create(recorder, "later", 300)
    _, pods = pods_of(cluster.path)
    assert pods["p"].arrival_s == (60 if bound_s is None else bound_s)
    assert pods["p"].duration_s == end_s - 60
    assert pods["waits"].arrival_s == 100  # as soon as anybody knew


def test_who_runs_already_runs_on_where_it_is(cluster):
    cluster.create(None, "old", -500)
    cluster.start(None, "old", -400, "n1")
    cluster.create(None, "done", -500)
    cluster.start(None, "done", -400)
    cluster.finish(None, "done", -100)
    cluster.time_s = 0
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        cluster.list_all(recorder)
        cluster.finish(recorder, "old", 70)
    trace, pods = pods_of(cluster.path)
    assert list(pods) == ["old"]
    assert (pods["old"].node, pods["old"].arrival_s, pods["old"].duration_s) == ("n1", 0, 70)
    assert trace.workload.bound_to == ("n1",)


def test_who_ran_before_the_beginning_runs_as_long_as_it_did_after_it(cluster):
    cluster.create(None, "before", -20)
    cluster.start(None, "before", -10)
    cluster.create(None, "just-before", -0.5)
    cluster.start(None, "just-before", -0.5, "n1")
    cluster.create(None, "just-after", -0.5)
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        cluster.list_all(recorder)
        cluster.start(recorder, "just-after", -0.5)  # as whole seconds have it
        cluster.finish(recorder, "before", 3)
        cluster.finish(recorder, "just-before", 6)
        cluster.finish(recorder, "just-after", 7)
        cluster.create(recorder, "last", 500)
    _, pods = pods_of(cluster.path)
    assert (pods["before"].node, pods["before"].duration_s, pods["before"].age_s) == ("n0", 3, 10)
    assert (pods["just-before"].node, pods["just-before"].duration_s) == ("n1", 6)
    assert (pods["just-after"].node, pods["just-after"].duration_s) == ("", 7.5)


def test_runs_without_an_end_are_estimated_and_noted(cluster):
    disruption = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        for name, end_s in (("a", 100), ("b", 300), ("c", 900)):
            cluster.create(recorder, name, 0)
            cluster.start(recorder, name, 0)
            cluster.finish(recorder, name, end_s)
        for name in ("evicted", "running", "failed", "deleted"):
            cluster.create(recorder, name, 1000)
            cluster.start(recorder, name, 1000)
        cluster.create(recorder, "waiting", 1000)
        cluster.create(recorder, "given-up", 1000)
        cluster.delete(recorder, "given-up", 1050)
        cluster.finish(recorder, "evicted", 1200, "Failed", **disruption)
        cluster.finish(recorder, "failed", 1200, "Failed")
        cluster.delete(recorder, "deleted", 1200)
        cluster.time_s = 1500
    assert exits(load_recording(cluster.path)) == {
        "completed": 3, "evicted": 1, "running": 1, "failed": 1, "deleted": 2, "waiting": 1,
    }  # fmt: skip
    trace, pods = pods_of(cluster.path)
    assert (pods["failed"].duration_s, pods["deleted"].duration_s) == (200, 200)
    assert pods["evicted"].duration_s == 900  # the median of those that ran for longer than 200 s
    assert pods["running"].duration_s == 900
    assert pods["waiting"].duration_s in (200, 300)
    assert "given-up" not in pods
    assert "nobody saw the end of the run: its time is estimated from pods like it: 3 pods" in (
        trace.notes
    )


@pytest.mark.parametrize("name", ["pods.yaml", "pods.json.gz", "pods.csv"])
def test_how_runs_ended_is_kept_in_every_format(cluster, name):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        for end in ("completed", "failed", "deleted", "running"):
            cluster.create(recorder, end, 0)
            cluster.start(recorder, end, 0)
        cluster.finish(recorder, "completed", 100)
        cluster.finish(recorder, "failed", 200, "Failed")
        cluster.delete(recorder, "deleted", 300)
    trace, pods = pods_of(cluster.path)
    assert {pod.name: pod.exit for pod in pods.values()} == {end: end for end in pods}
    files = save_trace(trace, cluster.path.with_name(name))
    assert losses(trace, files[-1]) == []
    again = load_trace(str(files[-1]))
    assert {pod.name: pod.exit for pod in again.workload.specs()} == {end: end for end in pods}
    assert "nobody saw the end of the run: its time is estimated from pods like it: 1 pod" in (
        again.notes
    )


def test_a_name_that_is_used_again_is_another_pod(cluster):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        for uid in ("first", "second"):
            pod = live(gpu_pod("web-0", 1), uid)
            pod["metadata"]["creationTimestamp"] = date(len(uid))
            cluster.put(recorder, pod)
            cluster.start(recorder, uid, 10)
            cluster.finish(recorder, uid, 20)
            cluster.delete(recorder, uid, 20)
    assert sorted(pods_of(cluster.path)[1]) == ["web-0", "web-0-2"]


def test_a_recorder_that_was_killed_goes_on_and_finds_what_it_missed(cluster):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        for name in ("missed", "stays", "ended"):
            cluster.create(recorder, name, 10)
            cluster.start(recorder, name, 20)
        # It is killed in the middle of a line: nothing is closed.
        whole = cluster.path.read_bytes()
    cluster.path.write_bytes(whole + b'{"at":1794744030.0,"event":"li')
    cluster.time_s = 100
    cluster.delete(None, "missed", 100)
    cluster.finish(None, "ended", 60)
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        cluster.list_all(recorder)
        cluster.finish(recorder, "stays", 150)
    assert exits(load_recording(cluster.path)) == {"lost": 1, "completed": 2}
    _, pods = pods_of(cluster.path)
    assert (pods["stays"].duration_s, pods["ended"].duration_s) == (130, 40)
    assert pods["missed"].duration_s > 80


def test_each_line_is_there_before_the_next_event(cluster):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        cluster.create(recorder, "p", 10)
        assert b'"uid":"p"' in cluster.path.read_bytes()


def test_nothing_new_writes_nothing(cluster):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        cluster.create(recorder, "p", 10)
        cluster.start(recorder, "p", 20)
        before = recorder.lines
        cluster.start(recorder, "p", 20)
        cluster.tell(recorder, "MODIFIED", gpu_node("n0"), NODES)
        assert recorder.lines == before


def test_gangs_and_constraints_are_recorded(cluster):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        cluster.tell(recorder, "ADDED", group("train", 2), GROUPS)
        for i in range(3):
            cluster.create(recorder, f"m{i}", 10, schedulingGroup={"podGroupName": "train"},
                           nodeSelector={"pool": "a"})  # fmt: skip
            cluster.start(recorder, f"m{i}", 20)
            cluster.finish(recorder, f"m{i}", 30)
        cluster.tell(recorder, "DELETED", group("train", 2), GROUPS)
    trace, pods = pods_of(cluster.path)
    assert [(rule.name, rule.minimum) for rule in trace.workload.gang_rules] == [("train", 2)]
    assert pods["m0"].constraints.node_labels == (("pool", "a"),)


def test_hashed_names_fit_together(cluster):
    with cluster.recorder(hasher=Hasher(b"salt")) as recorder:
        begin(cluster, recorder)
        cluster.create(recorder, "secret", 10)
        cluster.start(recorder, "secret", 20)
        cluster.finish(recorder, "secret", 50)
        cluster.delete(recorder, "secret", 60)
    assert b"secret" not in cluster.path.read_bytes()
    assert exits(load_recording(cluster.path)) == {"completed": 1}


def test_hashed_names_are_hashed_also_where_an_object_goes(cluster):
    with cluster.recorder(hasher=Hasher(b"salt")) as recorder:
        begin(cluster, recorder)
        cluster.tell(recorder, "ADDED", gpu_node("secret"), NODES)
        cluster.tell(recorder, "ADDED", group("secret", 2), GROUPS)
        cluster.tell(recorder, "ADDED", {"metadata": {"name": "gpu.nvidia.com"}}, CLASSES)
        before = len(load_recording(cluster.path).here)
        cluster.tell(recorder, "DELETED", gpu_node("secret"), NODES)
        recorder.retain(GROUPS, set())
        recorder.retain(CLASSES, set())
    assert b"secret" not in cluster.path.read_bytes()
    assert b"default" not in cluster.path.read_bytes()
    assert (before, len(load_recording(cluster.path).here)) == (5, 2)


@pytest.mark.parametrize("hasher", [None, Hasher(b"salt")], ids=["plain", "hashed"])
def test_a_recording_that_goes_on_keeps_its_names(cluster, hasher):
    with cluster.recorder(hasher=hasher) as recorder:
        begin(cluster, recorder)
        cluster.tell(recorder, "ADDED", group("secret", 2), GROUPS)
        for name in ("stays", "missed", "ends"):
            cluster.create(recorder, name, 10)
            cluster.start(recorder, name, 20)
    cluster.time_s = 100
    cluster.delete(None, "missed", 100)
    cluster.finish(None, "ends", 60)
    with cluster.recorder(hasher=hasher) as recorder:
        begin(cluster, recorder)
        recorder.retain(GROUPS, set())
        cluster.list_all(recorder)
        cluster.finish(recorder, "stays", 150)
        cluster.delete(recorder, "stays", 160)
    known = load_recording(cluster.path)
    assert exits(known) == {"completed": 2, "lost": 1}
    assert (len(known.pods), len(known.objects), len(known.here)) == (3, 3, 2)
    trace, pods = pods_of(cluster.path)
    assert sorted(pod.duration_s for pod in pods.values()) == [40, 130, 130]
    assert len(trace.cluster) == 2
    assert (b"secret" in cluster.path.read_bytes()) == (hasher is None)


def test_names_are_not_written_in_two_ways_into_one_recording(cluster):
    ways = {"plain": None, "hashed": Hasher(b"salt"), "otherwise": Hasher(b"other")}
    said = {
        ("hashed", "plain"): "its names are hashed",
        ("plain", "hashed"): "its names are not hashed",
        ("otherwise", "hashed"): "hashed with another salt",
    }
    for (first, then), problem in said.items():
        cluster.path.unlink(missing_ok=True)
        with cluster.recorder(hasher=ways[first]) as recorder:
            begin(cluster, recorder)
        before = cluster.path.read_bytes()
        with pytest.raises(UsageError, match=problem), cluster.recorder(hasher=ways[then]):
            pass
        assert cluster.path.read_bytes() == before


def test_what_pods_run_is_not_recorded(cluster):
    with cluster.recorder() as recorder:
        pod = live(gpu_pod("p", 1, annotations={"vault.example/token": "secret"}), "p")
        pod["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "secret"}]
        cluster.tell(recorder, "ADDED", pod)
    assert b"secret" not in cluster.path.read_bytes()


def test_only_recordings_are_read_and_written(tmp_path):
    with (
        pytest.raises(UsageError, match=r"a recording is a \.jsonl file"),
        Recorder(tmp_path / "x.json"),
    ):
        pass
    for text in ("hello\n", '{"at": 1}\n', '{"at": 1, "event": "began", "format": 99}\n', "[]\n\n"):
        file = tmp_path / "bad.jsonl"
        file.write_text(text)
        with pytest.raises(InputError):
            load_trace(str(file))


def test_a_line_that_is_broken_in_the_middle_is_named(cluster):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
    lines = cluster.path.read_text().splitlines()
    lines[1] = lines[1][:20]
    cluster.path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"line 2: this is no line of a recording"):
        load_trace(str(cluster.path))


def test_half_a_line_that_others_follow_is_named(cluster):
    """Whoever begins anew lists everything, so that nothing is lost but a line."""
    half = '{"at":1794744030.0,"event":"pu'
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
    for _ in range(2):
        with cluster.path.open("a") as file:
            file.write(f"{half}\n{half}\n")
        with cluster.recorder() as recorder:
            begin(cluster, recorder)
            cluster.list_all(recorder)
            if "p" not in cluster.pods:
                cluster.create(recorder, "p", 10)
                cluster.start(recorder, "p", 20)
    with cluster.path.open("a") as file:
        file.write(f'{half}{{"at":{BEGIN + 90},"event":"alive"}}\n{half}')
    trace, pods = pods_of(cluster.path)
    assert list(pods) == ["p"]
    (note,) = [note for note in trace.notes if "cut off" in note]
    assert note.endswith(": 5, 6, 13, 14, 20, ..."), note
    assert load_recording(cluster.path).ended_s == BEGIN + 90


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on files there")
@pytest.mark.parametrize("room", [0, 1, 20])
def test_a_line_is_there_or_it_is_not_where_the_disk_is_full(cluster, room):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        before = cluster.path.read_bytes()
        with no_larger_than(len(before) + room), pytest.raises(InputError, match="be written"):
            cluster.create(recorder, "p", 10)
        assert cluster.path.read_bytes() == before
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        cluster.list_all(recorder)
    assert list(pods_of(cluster.path)[1]) == ["p"]


@contextmanager
def no_larger_than(size):
    """Lets no file grow beyond a size: what is over it is not written, as on a full disk."""
    import resource

    known = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, known[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, known)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("ahead_s", [3600, -3600])
def test_the_clock_of_a_recorder_may_be_wrong(cluster, ahead_s):
    """Pods tell the cluster's times: none of them was over before the recording began."""
    with Recorder(cluster.path, now=lambda: BEGIN + cluster.time_s + ahead_s) as recorder:
        begin(cluster, recorder)
        cluster.create(recorder, "p", 10)
        cluster.start(recorder, "p", 40)
        cluster.finish(recorder, "p", 100)
    trace, pods = pods_of(cluster.path)
    assert (pods["p"].arrival_s, pods["p"].duration_s) == (10, 60)
    how = "ahead of" if ahead_s > 0 else "behind"
    assert any(f"the recorder's clock was 3,600 s {how} the cluster's" in n for n in trace.notes)


def test_an_old_pod_that_is_deleted_says_nothing_of_clocks(cluster):
    cluster.create(None, "p", -5000)
    cluster.start(None, "p", -4000)
    cluster.time_s = 0
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
        cluster.list_all(recorder)
        cluster.time_s = 50
        pod = cluster.pods["p"]
        pod["metadata"]["deletionTimestamp"] = date(80)
        cluster.put(recorder, pod)
    assert load_recording(cluster.path).ahead_s == 0


ODD = (
    '{"at": 1e400, "event": "alive"}', '{"at": NaN, "event": "alive"}',
    '{"at": Infinity, "event": "alive"}', '{"at": true, "event": "alive"}',
    '{"at": -1, "event": "alive"}', f'{{"at": 1{"0" * 400}, "event": "alive"}}',
    f'{{"at": 1{"0" * 20}, "event": "alive"}}', '{"at": null, "event": "alive"}',
    '{"at": "x", "event": "put"}', '{"at": 1, "event": "put", "object": []}',
    '{"at": 1, "event": "put", "object": {"kind": "Pod"}}', '{"at": 1, "event": "life"}',
    '{"at": 1, "event": "life", "uid": "none"}', '{"at": 1, "event": "gone"}', "[" * 5000,
    '{"at": 1, "event": "put", "object": {"kind": "Pod", "metadata": {"uid": "u"}, "spec": 3}}',
    '{"at": 1, "event": "put", "object": {"kind": "Pod", "metadata": {"uid": "u", "name": "p"},'
    ' "spec": {}, "status": {"containerStatuses": 7}}}',
    '{"at": 1, "event": "put", "object": {"kind": "Pod", "metadata": {"uid": "u",'
    ' "creationTimestamp": "never"}, "spec": {}}}',
)  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_an_odd_line_is_an_error_that_names_the_file(cluster, text):
    with cluster.recorder() as recorder:
        begin(cluster, recorder)
    with cluster.path.open("a") as file:
        file.write(f"{text}\n{cluster.path.read_text().splitlines()[-1]}\n")
    with pytest.raises(InputError, match=r"cluster\.jsonl"):
        load_trace(str(cluster.path))
