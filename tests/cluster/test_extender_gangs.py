"""Pods of a gang come to stand together, though nothing requires it."""

import contextlib
import sys

import pytest

from support.control_plane import GANGS, control_plane, find_programs
from support.extended import configuration, podium, wait_until_decided
from support.kubelike import gpu_node, gpu_pod, group

RACK = "topology.kubernetes.io/rack"
ZONE = "topology.kubernetes.io/zone"
LABEL = "scheduling.x-k8s.io/pod-group"


@pytest.fixture(scope="module")
def plane():
    """Runs a control plane of its own, with gangs switched on."""
    with control_plane(find_programs(), GANGS) as started:
        yield started


def racks(count, nodes):
    return [
        gpu_node(f"rack-{rack}-{i}", labels={RACK: f"rack-{rack}", ZONE: "zone"})
        for rack in range(count)
        for i in range(nodes)
    ]


def labelled(name):
    """Writes a member of a gang that kube-scheduler does not know of."""
    made = gpu_pod(name, 4)
    made["metadata"]["labels"] = {LABEL: "g"}
    return made


def grouped(name):
    """Writes a member of a gang that kube-scheduler starts as a whole."""
    return gpu_pod(name, 4, schedulingGroup={"podGroupName": "native"})


@pytest.mark.parametrize("member", [labelled, grouped])
def test_a_gang_goes_to_one_rack(plane, api, tmp_path, member):
    """The policy alone would spread it: other racks are as empty."""
    members = [member(f"member-{i}") for i in range(3)]
    api.create_all(racks(4, 3))
    if member is grouped:
        api.create(group("native", 3))
    with podium(plane, tmp_path, policy="worst-fit") as process:
        # Of a gang that labels alone tell of, Podium knows the members that the watch has shown.
        api.create_all(members)
        with plane.scheduler(configuration(process.url)):
            found = wait_until_decided(api, members)
    assert len({node[:6] for node in found.values()}) == 1, found


def test_a_gang_that_no_rack_holds_goes_to_as_few_as_possible(plane, api, tmp_path):
    members = [labelled(f"member-{i}") for i in range(5)]
    api.create_all(racks(4, 3))
    with podium(plane, tmp_path, policy="worst-fit") as process:
        # Of a gang that labels alone tell of, Podium knows the members that the watch has shown.
        api.create_all(members)
        with plane.scheduler(configuration(process.url)):
            found = wait_until_decided(api, members)
    assert len({node[:6] for node in found.values()}) == 2, found


@pytest.mark.parametrize("is_asked", [False, True], ids=["alone", "podium"])
def test_a_gang_of_eight_among_54_racks(plane, api, tmp_path, is_asked):
    """Whole nodes of 416, 7 or 8 in a rack, which kube-scheduler takes anywhere."""
    name = f"eight-{is_asked}".lower()
    sizes = [8] * 38 + [7] * 16
    cluster = [
        gpu_node(f"rack-{rack:02}-{i}", 8, labels={RACK: f"rack-{rack:02}", ZONE: "zone"})
        for rack, size in enumerate(sizes)
        for i in range(size)
    ]
    assert len(cluster) == 416
    members = [gpu_pod(f"{name}-{i}", 8, schedulingGroup={"podGroupName": name}) for i in range(8)]
    api.create_all(cluster)
    api.create(group(name, 8))
    with contextlib.ExitStack() as stack:
        chosen = {"percentageOfNodesToScore": 100}
        if is_asked:
            process = stack.enter_context(podium(plane, tmp_path, policy="worst-fit"))
            chosen = configuration(process.url)
        stack.enter_context(plane.scheduler(chosen))
        api.create_all(members)
        found = wait_until_decided(api, members)
    racks_used = {node[:7] for node in found.values()}
    sys.stdout.write(f"\n{'with' if is_asked else 'without'} Podium: {len(racks_used)} racks\n")
    assert (len(racks_used) == 1) == is_asked, found
