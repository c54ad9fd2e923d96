from pathlib import Path

import pytest

import podium
from podium.errors import UsageError
from podium.experiments.case import Inputs, load_case
from podium.experiments.explain import explain
from podium.policies import load
from podium.settings import load_settings

pytestmark = [
    pytest.mark.usefixtures("_warm_cache"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

NODE = "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 9, memory: 9Gi, nvidia.com/gpu: 4}}\n---\n"  # noqa: E501
BODY = "{containers: [{resources: {limits: {nvidia.com/gpu: %d}}}]}"
TEMPLATE = "{template: {spec: " + BODY % 1 + "}, replicas: %d}"


def gated(name, gpus=1, more=""):
    body = (BODY % gpus)[1:]
    return (
        f"kind: Pod\nmetadata: {{name: {name}, namespace: ml{more}}}\n"
        f"spec: {{schedulingGates: [{{name: kueue.x-k8s.io/admission}}], {body}\n---\n"
    )


def job(kind, version, spec, more=""):
    metadata = f"{{name: j, namespace: ml{more}}}"
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {metadata}\nspec: {spec}\n---\n"


def batch(spec, more="", gpus=1):
    return job("Job", "batch/v1", f"{{{spec}, template: {{spec: {BODY % gpus}}}}}", more)


JOB_SET = ", labels: {jobset.sigs.k8s.io/jobset-name: j}"
DELETED = ", deletionTimestamp: 2026-01-01T00:00:00Z"
SUSPENDED = batch("suspend: true, parallelism: 2, completions: 2, completionMode: Indexed")


POD = "kind: Pod\nmetadata: {name: %s, namespace: ml%s}\nspec: " + BODY % 1 + "\n---\n"


def names(found):
    return [pod.name for pod in found.pods if pod.fits]


def dump(*objects):
    Path("dump.yaml").write_text(NODE + "".join(objects))
    return "dump.yaml"


def test_what_waits_for_something_else_is_counted_in_the_last_line():
    found = podium.fit(dump(gated("g"), SUSPENDED))
    told = "1 is gated, 1 Job of 2 pods is suspended: --waiting gated,suspended"
    assert found.summary == f"no pod is pending; {told}"
    assert "suspended, so left out: 1 Job of 2 pods" in found.notes
    assert found.is_yes


@pytest.mark.parametrize(
    ("waiting", "fitting"),
    [("gated", ["g"]), ("suspended", ["j-0", "j-1"]), ("gated,suspended", ["g", "j-0", "j-1"])],
)
def test_what_waits_is_tried_where_somebody_asks_for_it(waiting, fitting):
    assert names(podium.fit(dump(gated("g"), SUSPENDED), waiting=waiting)) == fitting


def test_every_verb_that_places_pods_of_a_dump_tries_what_waits_and_counts_what_it_does_not():
    path = dump(gated("g"), SUSPENDED)
    told = "not tried: 1 is gated, 1 Job of 2 pods is suspended: --waiting gated,suspended"
    flags = {"simulate.trace": path, "simulate.protocol": "rounds"}
    with pytest.raises(UsageError, match="no pods to place; left out: 1 gated, 2 suspended") as no:
        load_case(load_settings(flags), Inputs())
    assert no.value.hint == "--waiting gated,suspended tries what waits"
    tried = podium.simulate("first-fit", path, protocol="rounds", waiting="suspended")
    assert [each.pod for each in tried.placements()] == ["j-0", "j-1"]
    case = load_case(load_settings(flags), Inputs(waiting=("suspended",)))
    assert case.untried == "not tried: 1 is gated: --waiting gated"
    path = dump(gated("g"), SUSPENDED, POD % ("p", ""))
    found = podium.compare(["fgd", "worst-fit"], path, seeds=1, protocol="rounds")
    assert found.untried == found.as_object()["untried"] == told
    everything = podium.compare(
        ["fgd", "worst-fit"], path, seeds=1, protocol="rounds", waiting="gated,suspended"
    )
    assert (everything.untried, everything.runs["fgd"][0]["pods"]) == ("", 4)


def test_what_waits_is_chosen_before_a_trace_is_loaded():
    loaded = podium.load_trace(dump(gated("g"), POD % ("p", "")))
    with pytest.raises(UsageError, match="waiting cannot be set for a trace that is already"):
        podium.simulate("fgd", loaded, protocol="rounds", waiting="gated")


def test_a_suspended_indexed_job_is_a_gang():
    large = "suspend: true, parallelism: 3, completions: 3, completionMode: Indexed"
    found = podium.fit(dump(batch(large, gpus=2)), waiting="suspended")
    assert found.reasons == {"gang": 3}


def test_unknown_kinds_of_waiting_work_are_refused():
    with pytest.raises(UsageError, match="gatd"):
        podium.fit(dump(gated("g")), waiting="gatd")


def test_a_job_that_another_suspended_one_made_counts_once():
    owner = ", ownerReferences: [{kind: JobSet, name: j, controller: true}]"
    child = batch("suspend: true", owner).replace("name: j,", "name: j-w-0,", 1)
    spec = f"{{suspend: true, replicatedJobs: [{{name: w, template: {{spec: {{template: {{spec: {BODY % 1}}}}}}}}}]}}"  # noqa: E501
    parent = job("JobSet", "jobset.x-k8s.io/v1alpha2", spec)
    assert "1 JobSet of 1 pod is suspended" in podium.fit(dump(parent, child)).summary
    assert "1 Job of 1 pod is suspended" in podium.fit(dump(child)).summary


def test_a_suspended_cron_job_waits_for_nothing():
    spec = f"{{suspend: true, jobTemplate: {{spec: {{template: {{spec: {BODY % 1}}}}}}}}}"
    found = podium.fit(dump(job("CronJob", "batch/v1", spec)))
    assert found.untried == ()


def test_a_gated_pod_of_a_further_file_is_tried():
    Path("more.yaml").write_text(gated("mine"))
    assert names(podium.fit(dump(), "more.yaml")) == ["mine"]


KUBEFLOW = "kubeflow.org/v1"
OPERATED = [
    ("Job", "batch.volcano.sh/v1alpha1",
     "{minAvailable: 3, tasks: [{name: w, replicas: 3, template: {spec: %s}}]}" % (BODY % 1),
     ["j-w-0", "j-w-1", "j-w-2"], True),
    ("PyTorchJob", KUBEFLOW,
     f"{{pytorchReplicaSpecs: {{Master: {TEMPLATE % 1}, Worker: {TEMPLATE % 2}}}}}",
     ["j-master-0", "j-worker-0", "j-worker-1"], True),
    ("TFJob", KUBEFLOW, "{tfReplicaSpecs: {Worker: %s}}" % (TEMPLATE % 2),
     ["j-worker-0", "j-worker-1"], True),
    ("MPIJob", "kubeflow.org/v2beta1", "{mpiReplicaSpecs: {Worker: %s}}" % (TEMPLATE % 2),
     ["j-worker-0", "j-worker-1"], True),
    ("RayCluster", "ray.io/v1",
     f"{{headGroupSpec: {TEMPLATE % 1}, workerGroupSpecs: "
     f"[{{groupName: g, numOfHosts: 1, {(TEMPLATE % 2)[1:]}]}}",
     ["j-head-0", "j-g-0", "j-g-1"], False),
    ("RayJob", "ray.io/v1", "{rayClusterSpec: {headGroupSpec: %s}}" % (TEMPLATE % 1),
     ["j-head-0"], False),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "version", "spec", "made", "is_gang"), OPERATED)
def test_jobs_of_other_projects_become_their_pods(kind, version, spec, made, is_gang):
    Path("more.yaml").write_text(job(kind, version, spec))
    found = podium.fit(dump(), "more.yaml")
    assert names(found) == made
    assert [pod.gpus for pod in found.pods] == [1] * len(made)
    busy = f"kind: Pod\nmetadata: {{name: b}}\nspec: {{nodeName: n, {(BODY % 3)[1:]}\n"
    found = podium.fit(dump(busy), "more.yaml")
    assert len(names(found)) == (0 if is_gang else 1)
    assert ("gang" in found.reasons) == is_gang


@pytest.mark.parametrize(("kind", "version", "spec", "made", "is_gang"), OPERATED)
def test_suspended_jobs_of_other_projects_wait_as_well(kind, version, spec, made, is_gang):
    del is_gang
    suspended = "{suspend: true, " if version == "ray.io/v1" else "{runPolicy: {suspend: true}, "
    path = dump(job(kind, version, suspended + spec[1:]))
    pods = f"{len(made)} pod{'s' * (len(made) > 1)}"
    assert f"1 {kind} of {pods} is suspended" in podium.fit(path).summary
    assert names(podium.fit(path, waiting="suspended")) == made


def owned(name, owner, more=""):
    kind, _, title = owner.partition("/")
    return POD % (
        name,
        f", ownerReferences: [{{kind: {kind}, name: {title}, controller: true}}]{more}",
    )


def test_what_controllers_have_in_the_dump_is_not_doubled_and_what_lacks_is_tried():
    pods = [
        owned("a", "Job/j"),
        owned("d-5f6-x", "ReplicaSet/d-5f6"),
        owned("e", "ReplicaSet/d-e-5f6"),
    ]
    path = dump(*pods)
    deployment = job("Deployment", "apps/v1", TEMPLATE % 2).replace("name: j", "name: d", 1)
    Path("more.yaml").write_text(batch("parallelism: 1") + deployment)
    found = podium.fit(path, "more.yaml")
    assert names(found) == ["a", "d-5f6-x", "e", "d-1"]
    assert "Job j: 1 of 1 pod is in the dump already, so none is tried" in found.notes
    assert "Deployment d: 1 of 2 pods is in the dump already, so 1 is tried" in found.notes


@pytest.mark.parametrize(
    ("kind", "there", "spec", "lacking"),
    [
        ("StatefulSet", [("j-1", "StatefulSet/j", "")], TEMPLATE % 3, ["j-0", "j-2"]),
        ("Deployment", [("j-5-a", "ReplicaSet/j-5", DELETED)], TEMPLATE % 1, ["j-0"]),
        ("Deployment", [("j-5-a", "ReplicaSet/j-5", ""), ("j-5-b", "ReplicaSet/j-5", "")],
         TEMPLATE % 1, []),
        ("Job", [("j-2-vwxyz", "Job/j", "")], "{parallelism: 3, " + (TEMPLATE % 1)[1:],
         ["j-0", "j-1"]),
        ("Job", [("j-2-vwxyz", "Job/j", "")],
         "{parallelism: 3, completions: 4, " + (TEMPLATE % 1)[1:], ["j-0", "j-1"]),
        ("JobSet", [("j-w-0-0-vwxyz", "Job/j-w-0", JOB_SET)],
         "{replicatedJobs: [{name: w, replicas: 2, template: {spec: {template: {spec: %s}}}}]}"
         % (BODY % 1), ["j-w-1-0"]),
        ("LeaderWorkerSet", [("j-0", "StatefulSet/j", ""), ("j-0-1", "StatefulSet/j-0", "")],
         "{replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: %s}}}" % (BODY % 1),
         ["j-1", "j-1-1"]),
    ],
)  # fmt: skip
def test_the_replicas_that_a_controller_lacks_are_tried(kind, there, spec, lacking):
    running = [
        owned(*each).replace("spec: {", "spec: {nodeName: n, ").replace("gpu: 1", "gpu: 0")
        for each in there
    ]
    versions = {"JobSet": "jobset.x-k8s.io/v1", "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
                "Job": "batch/v1"}  # fmt: skip
    Path("more.yaml").write_text(job(kind, versions.get(kind, "apps/v1"), spec))
    found = podium.fit(dump(*running), "more.yaml")
    assert names(found) == lacking
    assert found.is_yes
    if not lacking:
        told = "no pod is pending: the dump has all pods that --pods names already"
        assert found.summary == told


def test_a_job_that_is_nearly_done_lacks_no_more_than_its_completions():
    running = owned("j-a", "Job/j").replace("spec: {", "spec: {nodeName: n, ")
    ended = "status: {phase: Succeeded}\nspec: {nodeName: n, "
    done = [owned(f"j-{i}", "Job/j").replace("spec: {", ended) for i in "bc"]
    Path("more.yaml").write_text(batch("parallelism: 3, completions: 4"))
    assert names(podium.fit(dump(running, *done), "more.yaml")) == ["j-2"]


def test_all_replicas_are_tried_where_nothing_tells_whose_the_pods_are():
    running = (POD % ("d-5f6-x", "")).replace("spec: {", "spec: {nodeName: n, ")
    Path("more.yaml").write_text(
        job("Deployment", "apps/v1", TEMPLATE % 2).replace(": j", ": d", 1)
    )
    found = podium.fit(dump(running), "more.yaml")
    assert names(found) == ["d-0", "d-1"]
    told = "nothing tells who made 1 pod of that name in the dump, so all 2 pods are tried"
    assert f"Deployment d: {told}" in found.notes


def test_nodes_in_a_file_of_further_pods_are_left_out():
    Path("more.yaml").write_text(NODE + gated("mine"))
    found = podium.fit(dump(), "more.yaml")
    assert names(found) == ["mine"]
    assert any(note.startswith("nodes in a file of wanted pods") for note in found.notes)


def test_placements_and_explanations_name_namespaces():
    pod = "kind: Pod\nmetadata: {name: %s, namespace: ml}\nspec: " + BODY % 2 + "\n---\n"
    path = dump(pod % "a", pod % "b")
    found = podium.simulate("first-fit", path, protocol="rounds").placements()
    assert [(each.namespace, each.pod, each.gpus) for each in found] == [
        ("ml", "a", 2.0), ("ml", "b", 2.0),
    ]  # fmt: skip
    settings = load_settings({"simulate.trace": path, "simulate.protocol": "rounds"})
    assert explain(settings, Inputs(), load("first-fit"), "ml/b").pod == "ml/b"


@pytest.mark.parametrize("waiting", [None, "suspended"])
def test_jobs_of_which_pods_are_counted_or_tried_are_not_called_unread(waiting):
    spec = "{runPolicy: {suspend: %s}, pytorchReplicaSpecs: {Worker: %s}}"
    jobs = [job("PyTorchJob", KUBEFLOW, spec % (each, TEMPLATE % 2)) for each in ("true", "false")]
    found = podium.fit(dump(jobs[0]), waiting=waiting)
    assert not [note for note in found.notes if "is not read" in note]
    # The pods of one that runs are in a dump.
    found = podium.fit(dump(jobs[0], jobs[1].replace("name: j", "name: k")), waiting=waiting)
    assert "PyTorchJob is not read: 1 object" in found.notes
