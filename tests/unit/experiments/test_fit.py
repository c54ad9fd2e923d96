from dataclasses import replace
from pathlib import Path

import pytest

import podium
import support
from podium.errors import InputError, UsageError
from podium.experiments.fit import Fit, PodFit

DUMP = str(Path(support.__path__[0]) / "cluster_dump.yaml")
NODE = """\
kind: Node
metadata: {name: %s}
status: {allocatable: {cpu: 8, memory: 16Gi, nvidia.com/gpu: %d}}
---
"""
POD = """\
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  %s
  containers: [{name: main, resources: {limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: %d}}}]
---
"""
JOB = """\
kind: %s
metadata: {name: sweep, namespace: ml}
spec:
  %s
  template:
    spec: {containers: [{name: main, resources: {limits: {cpu: 1, memory: 1Gi}}}]}
"""
pytestmark = [
    pytest.mark.usefixtures("_warm_cache"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture
def dump():
    """Writes a node with two GPUs, one of them in use."""
    path = Path("dump.yaml")
    path.write_text(NODE % ("n", 2) + POD % ("running", "ml", "nodeName: n", 1))
    return path


def add(path, *pods):
    path.write_text(path.read_text() + "".join(pods))


def test_pods_that_run_take_their_room_and_are_not_asked_about(dump):
    add(dump, POD % ("one", "ml", "", 1), POD % ("two", "web", "", 1))
    found = podium.fit(dump, policy="first-fit")
    assert [(pod.full_name, pod.node, pod.gpu_slots, pod.reason) for pod in found.pods] == [
        ("ml/one", "n", (1,), ""),
        ("web/two", "", (), "gpu"),
    ]
    assert (found.bound, found.is_yes, found.reasons) == (1, False, {"gpu": 1})
    assert found.summary == "1 of 2 pending pods fit; 1 does not: 1 gpu"
    assert [pod.would_fit_empty for pod in found.pods] == [True, True]


def test_an_empty_cluster_has_room_for_all(dump):
    add(dump, POD % ("one", "ml", "", 1))
    found = podium.fit(dump, state="empty")
    assert (found.bound, found.is_yes) == (0, True)
    assert found.summary == "all 2 pending pods fit"


def test_a_pod_that_no_empty_node_takes_is_known(dump):
    add(dump, POD % ("big", "ml", "", 4))
    (pod,) = podium.fit(dump).pods
    assert not pod.would_fit_empty
    assert pod.message.startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu")


def test_pods_of_a_further_file_come_last(dump):
    add(dump, POD % ("one", "ml", "", 1))
    Path("more.yaml").write_text(POD % ("one", "web", "", 0) + POD % ("three", "web", "", 1))
    found = podium.fit(dump, "more.yaml")
    assert [(pod.full_name, pod.node) for pod in found.pods] == [
        ("ml/one", "n"), ("web/one", "n"), ("web/three", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        ("Job", "parallelism: 3", 3),
        ("Job", "parallelism: 3\n  completions: 2", 2),
        ("Deployment", "replicas: 4", 4),
        ("StatefulSet", "serviceName: x", 1),
        ("ReplicaSet", "replicas: 0", 0),
    ],
)
def test_controllers_of_a_further_file_become_pods(dump, kind, spec, count):
    Path("job.yaml").write_text(JOB % (kind, spec))
    if not count:
        with pytest.raises(InputError, match="no Pod was found: it holds 1 ReplicaSet"):
            podium.fit(dump, "job.yaml")
        return
    found = podium.fit(dump, ["job.yaml"])
    assert [pod.full_name for pod in found.pods] == [f"ml/sweep-{i}" for i in range(count)]


def test_a_cron_job_becomes_the_pods_of_one_run(dump):
    template = "{spec: {template: {spec: {containers: [{name: a}]}}}}"
    text = f"kind: CronJob\nmetadata: {{name: nightly}}\nspec: {{jobTemplate: {template}}}\n"
    Path("job.yaml").write_text(text)
    assert [pod.full_name for pod in podium.fit(dump, "job.yaml").pods] == ["default/nightly-0"]


def test_the_pods_of_an_indexed_job_start_together_or_not_at_all(dump):
    text = """\
apiVersion: batch/v1
kind: Job
metadata: {name: ring}
spec:
  completionMode: %s
  completions: 2
  parallelism: 2
  template:
    metadata: {labels: {app: ring}, annotations: {note: kept}}
    spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""
    Path("job.yaml").write_text(text % "Indexed")
    assert podium.fit(dump, "job.yaml").reasons == {"gang": 2}
    Path("job.yaml").write_text(text % "NonIndexed")
    assert podium.fit(dump, "job.yaml").reasons == {"gpu": 1}


def test_controllers_of_the_dump_itself_have_their_pods_already(dump):
    add(dump, JOB % ("Job", "parallelism: 3"))
    found = podium.fit(dump)
    assert found.pods == ()
    assert (found.is_yes, found.summary) == (True, "no pod is pending")
    assert "Job is not read: 1 object" in found.notes


def test_nodes_may_come_from_elsewhere(dump):
    add(dump, POD % ("one", "ml", "", 4))
    Path("bigger.yaml").write_text(NODE % ("n", 2) + NODE % ("m", 4))
    found = podium.fit(dump, cluster="bigger.yaml")
    assert [(pod.node, found.bound) for pod in found.pods] == [("m", 1)]
    Path("other.yaml").write_text(NODE % ("m", 4))
    assert podium.fit(dump, cluster="other.yaml").bound == 0


def test_kube_default_decides_unless_somebody_chose(dump, monkeypatch):
    add(dump, POD % ("one", "ml", "", 1))
    assert podium.fit(dump).policy == "kube-default"
    monkeypatch.setenv("PODIUM_SIMULATE_POLICY", "fgd")
    assert podium.fit(dump).policy == "fgd"
    own = podium.fit(dump, policy=lambda pod, node: pod.cpu_milli + node.gpu_count)
    assert own.policy == "<lambda>"


def test_no_answer_is_given_for_a_cluster_that_nobody_named():
    Path("pods.yaml").write_text(POD % ("one", "ml", "", 1))
    with pytest.raises(UsageError, match="has no nodes") as caught:
        podium.fit("pods.yaml")
    assert "kubectl get nodes,pods" in caught.value.hint


@pytest.mark.parametrize(
    ("trace", "pods", "message"),
    [
        ("dump.yaml", "nope.yaml", 'there is no file "nope.yaml"'),
        ("openb:16", "dump.yaml", "pods can only be added to the dump of a cluster"),
    ],
)
@pytest.mark.usefixtures("dump")
def test_further_pods_that_cannot_be_read_are_an_error(trace, pods, message):
    with pytest.raises(UsageError, match=message) as caught:
        podium.fit(trace, pods)
    assert caught.value.where == "argument pods"


def test_further_pods_need_the_file_of_the_dump(dump):
    with pytest.raises(UsageError, match="pods cannot be added to a trace"):
        podium.fit(podium.load_trace(dump), "more.yaml")


def test_the_pods_of_a_gang_wait_for_each_other():
    found = podium.fit(DUMP)
    assert found.reasons == {"gang": 4, "not known": 1}
    (tokenize,) = [pod for pod in found.pods if pod.reason == "not known"]
    assert tokenize.full_name == "ml/tokenize-28393-w5t8p"
    assert tokenize.message.startswith("volumes are not known")


def pod_fit(name, reason, message=""):
    return PodFit("ml", name, 1.0, "" if reason else "n", (), reason, message, would_fit_empty=True)


def test_an_answer_shows_itself():
    pods = [pod_fit("<a>", ""), pod_fit("b", "gpu", "none"), pod_fit("c", "gpu", "none")]
    found = Fit("dump", "cluster", "fgd", 3, (*pods, pod_fit("d", "taint", "tainted")))
    told = "1 of 4 pending pods fit; 3 do not: 2 gpu, 1 taint"
    assert repr(found) == f"<Fit on cluster by fgd: {told}>"
    assert "ml/&lt;a&gt;" in found._repr_html_()
    assert found.explanations() == ["gpu (2 pods): none", "taint (1 pod): tainted"]
    assert Fit("", "", "", 0, (pods[0],)).summary == "the pending pod fits"


def test_of_many_pods_those_alike_share_a_row():
    waiting = [pod_fit(f"w{i}", "gpu", "none is free") for i in range(30)]
    placed = [replace(pod_fit(f"p{i}", ""), node=f"n{i % 3}") for i in range(8)]
    others = (replace(pod_fit("big", "gpu", "none is free"), gpus=8.0), pod_fit("last", "taint"))
    few = Fit("", "", "", 0, (*waiting, *placed, *others))
    assert len(few.rows()) == 40
    many = replace(few, pods=(*few.pods, pod_fit("w30", "gpu", "none is free")))
    assert many.rows() == [
        ("ml/w0 and 30 like it", "1", None, "gpu"),
        ("ml/p0 and 7 like it", "1", "3 nodes", None),
        ("ml/big", "8", None, "gpu"),
        ("ml/last", "1", None, "taint"),
    ]


def test_only_so_many_explanations_are_told():
    pods = tuple(pod_fit(f"{i}", "gpu", f"message {i}") for i in range(12))
    assert Fit("", "", "", 0, pods).explanations()[-1] == "... and 2 more; --json lists them all"


CONTAINERS = "{containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}"
JOB_SET = f"""\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: ring, namespace: ml}}
spec:
  replicatedJobs:
  - {{name: head, template: {{spec: {{template: {{spec: {CONTAINERS}}}}}}}}}
  - name: rank
    replicas: 2
    template: {{spec: {{parallelism: 2, completions: 2, template: {{spec: {CONTAINERS}}}}}}}
---
"""
LEADER_WORKER_SET = f"""\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: serve, namespace: ml}}
spec:
  replicas: 2
  leaderWorkerTemplate: {{size: 2, workerTemplate: {{spec: {CONTAINERS}}}}}
---
"""


def test_a_job_set_becomes_the_pods_of_one_gang(dump):
    Path("more.yaml").write_text(JOB_SET)
    found = podium.fit(dump, "more.yaml")
    names = ["head-0-0", "rank-0-0", "rank-0-1", "rank-1-0", "rank-1-1"]
    assert [pod.full_name for pod in found.pods] == [f"ml/ring-{name}" for name in names]
    assert found.reasons == {"gang": 5}
    add(dump, NODE % ("m", 5))
    assert podium.fit(dump, "more.yaml").is_yes


def test_each_group_of_a_leader_worker_set_is_a_gang(dump):
    add(dump, NODE % ("m", 2))
    Path("more.yaml").write_text(LEADER_WORKER_SET)
    found = podium.fit(dump, "more.yaml")
    assert [(pod.full_name, pod.reason) for pod in found.pods] == [
        ("ml/serve-0", ""), ("ml/serve-0-1", ""), ("ml/serve-1", "gang"), ("ml/serve-1-1", "gang"),
    ]  # fmt: skip


def test_an_object_that_may_make_pods_and_is_not_understood_is_no_yes(dump):
    others = "kind: Service\nmetadata: {name: s}\n---\nkind: RayJob\nmetadata: {name: r}\n---\n"
    Path("more.yaml").write_text(others + POD % ("one", "ml", "", 1))
    found = podium.fit(dump, "more.yaml")
    assert not found.is_yes
    told = "the pending pod fits; objects that are not understood: 1 RayJob"
    assert found.summary == told


def test_pods_whose_claims_are_not_in_the_dump_are_no_yes(dump):
    claims = "resourceClaims: [{name: gpu, resourceClaimTemplateName: missing}]"
    add(dump, POD % ("bound", "ml", f"nodeName: n\n  {claims}", 0))
    add(dump, POD % ("plain", "ml", "", 0))
    assert podium.fit(dump).is_yes  # one that runs has its devices
    add(dump, POD % ("asks", "ml", claims, 0))
    found = podium.fit(dump)
    assert not found.is_yes
    told = "1 of 2 pending pods fit; of 1 it is not known; 1 pod asks for resource claims that"
    assert found.summary.startswith(f"{told} the dump lacks: try kubectl get nodes,pods,resource")
    assert found.pods[1].message.startswith("resource claims that the dump does not hold")


def test_pods_that_could_not_be_read_are_no_yes(dump):
    bad = POD % ("bad", "ml", "", 1)
    add(dump, POD % ("one", "ml", "", 1), POD % ("two", "ml", "", 0))
    add(dump, bad.replace("cpu: 1", "cpu: much"))
    done = bad.replace("cpu: 1", "cpu: much").replace("spec:", "status: {phase: Failed}\nspec:")
    add(dump, done.replace("name: bad", "name: done"))
    found = podium.fit(dump, skip_bad=True)
    assert not found.is_yes
    assert found.summary == "2 of 2 pending pods fit; 1 pod could not be read"


@pytest.mark.parametrize("named", ["name: ring", "generateName: ring-"])
@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_an_indexed_job_is_a_gang_however_it_is_named(dump, kind, named):
    template = f"template: {{spec: {CONTAINERS}}}"
    job = f"{{completionMode: Indexed, completions: 2, parallelism: 2, {template}}}"
    spec = job if kind == "Job" else f"{{jobTemplate: {{spec: {job}}}}}"
    text = f"apiVersion: batch/v1\nkind: {kind}\nmetadata: {{{named}}}\nspec: {spec}\n"
    Path("job.yaml").write_text(text)
    assert podium.fit(dump, "job.yaml").reasons == {"gang": 2}


def test_one_pod_that_does_not_fit_is_told_in_english(dump):
    add(dump, POD % ("big", "ml", "", 4))
    assert podium.fit(dump).summary == "the pending pod does not fit: gpu"


@pytest.mark.parametrize(
    ("pods", "summary"),
    [
        ("", "no pod is pending"),
        (POD % ("a", "ml", "schedulingGates: [{name: x}]", 1),
         "no pod is pending; 1 is gated: --waiting gated"),
    ],
)  # fmt: skip
def test_nothing_that_is_pending_fits(pods, summary):
    Path("dump.yaml").write_text(NODE % ("n", 2) + pods)
    found = podium.fit("dump.yaml")
    assert (found.is_yes, found.summary, found.pods) == (True, summary, ())
    assert any("schedulingGates" in note for note in found.notes) is bool(pods)
    assert podium.fit("dump.yaml", cluster="dump.yaml").summary == summary


def test_preemption_is_told_where_it_might_help(dump):
    add(dump, POD % ("low", "ml", "", 2))
    assert not any("preemption" in note for note in podium.fit(dump).notes)
    add(dump, POD % ("high", "ml", "priority: 10", 2))
    told = "1 pod that does not fit has a higher priority than pods that run"
    note = podium.fit(dump).notes[-1]
    hint = "--preemption says which of them would have to leave"
    assert note == f"preemption is not simulated: {told}; {hint}"


def test_preemption_says_who_would_have_to_leave(dump):
    add(dump, POD % ("high", "ml", "priority: 10", 2))
    found = podium.fit(dump, preemption=True)
    assert (found.is_yes, found.pods[0].node, found.pods[0].evicts) == (True, "n", ("ml/running",))
    assert found.pods[0].message == "fits on node n if 1 pod of lower priority leaves: ml/running"
    assert found.rows() == [("ml/high", "2", "n", "preemption")]
    assert found.explanations() == [f"preemption: ml/high {found.pods[0].message}"]
    price = "1 pod of lower priority would be evicted and finds no other node"
    assert found.summary == f"the pending pod fits; {price}"
    told = found.as_object()
    assert told["evicted"] == [
        {"pod": "ml/running", "node": "n", "preemptor": "ml/high", "moves_to": ""}
    ]
    assert told["pods"][0]["evicts"] == ("ml/running",)
    assert not any("preemption" in note for note in found.notes)
    plain = podium.fit(dump).as_object()
    assert "evicted" not in plain
    assert "evicts" not in plain["pods"][0]


def test_victims_that_leave_anyway_are_told(dump):
    leaving = "running, deletionTimestamp: 2026-03-01T10:00:00Z"
    dump.write_text(dump.read_text().replace("running", leaving, 1))
    add(dump, POD % ("high", "ml", "priority: 10", 2))
    told = "1 pod that would be evicted is being deleted already"
    assert podium.fit(dump, preemption=True).notes[-1].startswith(told)


def test_a_nominated_node_is_told_and_not_honoured(dump):
    pending = POD % ("high", "ml", "priority: 10", 2)
    add(dump, pending.replace("---", "status: {nominatedNodeName: n}\n---"))
    told = "status.nominatedNodeName is not honoured"
    assert any(note.startswith(told) for note in podium.fit(dump, preemption=True).notes)


def test_who_has_to_leave_may_find_another_node(dump):
    add(dump, NODE % ("m", 1), POD % ("high", "ml", "priority: 10", 2))
    found = podium.fit(dump, preemption=True)
    assert [(each.pod, each.moves_to) for each in found.evicted] == [("ml/running", "m")]
    assert found.summary == "the pending pod fits; 1 pod of lower priority would be evicted"


def test_pods_that_never_preempt_do_not_fit(dump):
    add(dump, POD % ("meek", "ml", "priority: 10\n  preemptionPolicy: Never", 2))
    found = podium.fit(dump, preemption=True)
    assert (found.is_yes, found.evicted) == (False, ())


def test_run_times_are_not_spoken_of():
    told = podium.load_trace(DUMP).notes
    about = ("run times are drawn", "assumed to run as long again", "durations are not used")
    assert any(note.startswith(about) for note in told)
    assert not any(note.startswith(about) for note in podium.fit(DUMP).notes)


def test_a_pod_with_odd_devices_is_left_out_and_told(dump):
    add(dump, POD % ("one", "ml", "", 1))
    marked = "annotations: {gpu-fraction: lots}, name: odd"
    add(dump, (POD % ("odd", "ml", "", 1)).replace("name: odd", marked))
    found = podium.fit(dump)
    assert not found.is_yes
    assert found.summary == "the pending pod fits; 1 pod could not be read"
    assert any(note.startswith("left out: ") and '"odd"' in note for note in found.notes)
    assert found.as_object()["fits"] is False


@pytest.mark.parametrize("asks", ["cpu: '3000000'", "memory: 8Pi", "cpu: 1e30", "memory: 1e25"])
def test_a_request_beyond_measure_does_not_fit_and_costs_nobody_else(dump, asks):
    typo = (POD % ("typo", "ml", "", 0)).replace("cpu: 1, memory: 1Gi", asks)
    add(dump, typo, POD % ("one", "ml", "", 1))
    found = podium.fit(dump)
    assert [(pod.name, pod.node, pod.reason) for pod in found.pods] == [
        ("typo", "", asks.partition(":")[0]),
        ("one", "n", ""),
    ]
    assert "asks for more CPU or memory than any node can have: 1 pod" in found.notes


@pytest.mark.parametrize("listed", [20, "100", "x"])
def test_what_a_node_would_take_that_is_left_out_is_not_known(dump, listed):
    box = (NODE % ("box", 0)).replace("nvidia.com/gpu: 0", f"nvidia.com/gpu: {listed}")
    box = box.replace("{name: box}", "{name: box, labels: {pool: l4}}")
    for_box = "nodeSelector: {pool: l4}"
    add(dump, box, POD % ("there", "ml", for_box, 1), POD % ("one", "ml", "", 1))
    add(dump, POD % ("far", "ml", "nodeSelector: {pool: a}", 1))
    found = podium.fit(dump)
    assert [(pod.name, pod.node, pod.reason) for pod in found.pods] == [
        ("there", "", "not known"), ("one", "n", ""), ("far", "", "selector"),
    ]  # fmt: skip
    assert found.pods[0].message.startswith("node box is left out and might take it; 0/1 nodes")
    told = "1 of 3 pending pods fit; 1 does not: 1 selector; of 1 it is not known"
    assert (found.is_yes, found.summary) == (False, told)


def test_one_pod_of_which_nothing_is_known_is_told_in_english(dump):
    add(dump, NODE % ("box", 20), POD % ("big", "ml", "", 8))
    assert podium.fit(dump).summary == "it is not known whether the pending pod fits"
    Path("box.yaml").write_text(NODE % ("box", 20) + NODE % ("n", 2))
    assert podium.fit(dump, cluster="box.yaml").reasons == {"not known": 1}
