from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import podium

pytestmark = [
    pytest.mark.usefixtures("_warm_cache"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

GPU, SHARED, AMD, MIG = "nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "mig-1g.5gb"
SLICED = "nvidia.com/gpu.count: '2', nvidia.com/gpu.replicas: '4', nvidia.com/gpu.product: T4"
KINDS = {
    "plain": f"labels: {{}}| {GPU}: 4",
    "sliced": f"labels: {{{SLICED}}}| {GPU}: 8",
    "shared": f"labels: {{{SLICED}}}| {SHARED}: 8",
    "amd": f"labels: {{}}| {AMD}: 2",
    "mig": "labels: {nvidia.com/gpu.product: A100-SXM4-40GB, nvidia.com/gpu.count: '1'}"
    f"| nvidia.com/{MIG}: 7",
    "hami": "labels: {}, annotations: {hami.io/node-nvidia-register: "
    "'GPU-1,10,16384,100,NVIDIA-T4,0,true:'}| nvidia.com/gpu: 10",
    "cpu": "labels: {}| pods: 9",
}
ASKS = (f"{GPU}: 1", f"{GPU}: 2", f"{SHARED}: 1", f"{AMD}: 1", f"nvidia.com/{MIG}: 2", "pods: 0",
        "nvidia.com/gpu: 1, nvidia.com/gpumem: 4000")  # fmt: skip


def node(name, kind):
    labels, listed = KINDS[kind].split("|")
    return (
        f"kind: Node\nmetadata: {{name: {name}, {labels}}}\n"
        f"status: {{allocatable: {{cpu: 8, memory: 16Gi, {listed}}}}}\n---\n"
    )


def pod(name, asks, bound=""):
    place = f"nodeName: {bound}, " if bound else ""
    return (
        f"kind: Pod\nmetadata: {{name: {name}, namespace: ml}}\n"
        f"spec: {{{place}containers: [{{resources: {{limits: {{cpu: 1, {asks}}}}}}}]}}\n---\n"
    )


def job(version, spec, asks):
    return (
        f"apiVersion: {version}\nkind: Job\nmetadata: {{name: j, namespace: ml}}\nspec: {{{spec}, "
        f"template: {{spec: {{containers: [{{resources: {{limits: {{cpu: 1, {asks}}}}}}}]}}}}}}\n"
    )


def answers(old, new, pods, wanted):
    """Asks of one folder, and of a dump with other nodes beside the files that replace them."""
    folder = Path("folder")
    folder.mkdir(exist_ok=True)
    (folder / "nodes.yaml").write_text(new)
    (folder / "pods.yaml").write_text(pods or "kind: Namespace\nmetadata: {name: ml}\n")
    Path("nodes.yaml").write_text(new)
    Path("dump.yaml").write_text(old + pods)
    Path("wanted.yaml").write_text(wanted)
    return podium.fit("folder", "wanted.yaml"), podium.fit(
        "dump.yaml", "wanted.yaml", cluster="nodes.yaml"
    )


def same(one, other):
    plain = [replace(each, trace="", cluster="", notes=()) for each in (one, other)]
    return plain[0] == plain[1]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    old=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3),
    new=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3),
    bound=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(ASKS)), max_size=2),
    pending=st.lists(st.sampled_from(ASKS), max_size=3),
    wanted=st.lists(st.sampled_from(ASKS), min_size=1, max_size=2),
)
def test_files_in_one_folder_are_a_dump_with_other_nodes_and_pods(old, new, bound, pending, wanted):
    pods = "".join(pod(f"b{i}", asks, f"n{at}") for i, (at, asks) in enumerate(bound))
    pods += "".join(pod(f"p{i}", asks) for i, asks in enumerate(pending))
    one, other = answers(
        "".join(node(f"n{i}", kind) for i, kind in enumerate(old)),
        "".join(node(f"n{i}", kind) for i, kind in enumerate(new)),
        pods,
        "".join(pod(f"w{i}", asks) for i, asks in enumerate(wanted)),
    )
    assert same(one, other)


@pytest.mark.parametrize(
    ("old", "new", "asks", "fits"),
    [
        (node("t", "sliced") + node("p", "plain"), node("h", "plain"), f"{GPU}: 4", True),
        (node("a", "amd") + node("p", "plain"), node("h", "plain"), f"{GPU}: 1", True),
        (node("p", "plain"), node("a", "amd"), f"{GPU}: 1", False),
        (node("p", "plain"), node("a", "amd") + node("b", "plain"), f"{AMD}: 2", True),
    ],
)
def test_the_nodes_of_another_file_say_themselves_what_they_have(old, new, asks, fits):
    one, other = answers(old, new, "", pod("w", asks))
    assert (one.is_yes, other.is_yes) == (fits, fits)
    Path("all.yaml").write_text(old + pod("w", asks))
    assert podium.fit("all.yaml", cluster=podium.load_trace("nodes.yaml")).is_yes == fits


def test_gangs_and_jobs_are_read_alike():
    wanted = job("batch/v1", "completionMode: Indexed, parallelism: 3, completions: 3", f"{GPU}: 2")
    one, other = answers(node("n", "amd"), node("n", "plain"), "", wanted)
    assert same(one, other)
    assert one.reasons == {"gang": 3}


def test_nodes_without_manifests_stand_in_for_those_of_a_dump():
    Path("dump.yaml").write_text(node("t", "sliced") + node("p", "plain") + pod("w", f"{GPU}: 8"))
    assert podium.fit("dump.yaml", cluster="openb").is_yes


def test_a_job_of_another_api_group_is_no_batch_job():
    wanted = job("batch.example.org/v1alpha1", "parallelism: 2", f"{GPU}: 1")
    Path("dump.yaml").write_text(node("n", "plain") + pod("p", f"{GPU}: 1"))
    Path("wanted.yaml").write_text(wanted + "---\n" + pod("w", f"{GPU}: 1"))
    found = podium.fit("dump.yaml", "wanted.yaml")
    assert [each.name for each in found.pods] == ["p", "w"]
    assert found.gaps == ("objects that are not understood: 1 Job",)
