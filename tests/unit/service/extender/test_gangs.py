import json

import numpy as np
import pytest

from podium.model.cluster import Cluster, NodeSpec
from podium.model.records import ANY_MODEL, POD
from podium.service.extender.gangs import Target, choose_target, room_for
from support.extender import Asked, args
from support.kubelike import gpu_node, gpu_pod, group

NONE = np.zeros(0, np.int64)


def record(gpus=1, milli=1000, cpu=0, models=ANY_MODEL):
    pod = np.zeros(1, POD)[0]
    pod["gpu_count"], pod["gpu_milli"], pod["cpu_milli"], pod["gpu_models"] = (
        gpus,
        milli,
        cpu,
        models,
    )
    return pod


def test_room_is_what_runs_out_first():
    nodes = Cluster.of(
        [NodeSpec("a", 8000, 1000, 4, "T4"), NodeSpec("b", 1000, 1000, 4, "V100")]
    ).nodes
    nodes["gpu_milli_left"][0, :2] = [300, 0]
    assert room_for(record(2), nodes).tolist() == [1, 2]
    assert room_for(record(1, 300), nodes).tolist() == [7, 12]
    assert room_for(record(1, 1000, cpu=1000), nodes).tolist() == [2, 1]
    assert room_for(record(models=0b10), nodes).tolist() == [0, 4]


DOMAINS = np.array([[0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1], [0] * 6], np.int32)


@pytest.mark.parametrize(
    ("room", "wanted", "expected"),
    [
        ([2, 2, 1, 1, 4, 4], 2, Target(0, (1,))),  # the least room that is enough
        ([2, 2, 1, 1, 4, 4], 4, Target(0, (0,))),
        ([2, 2, 1, 1, 4, 4], 8, Target(0, (2,))),
        ([2, 2, 1, 1, 2, 2], 6, Target(0, (0, 1))),  # a block, in both of its racks
        ([2, 2, 1, 1, 2, 2], 5, Target(0, (0, 1))),
        ([2, 2, 1, 1, 2, 2], 7, Target(0, (0, 2))),  # a zone, in as few racks as possible
        ([2, 2, 1, 1, 2, 2], 99, None),
    ],
)
def test_the_narrowest_domain_with_the_least_room_takes_a_gang(room, wanted, expected):
    assert choose_target(np.array(room), DOMAINS, NONE, wanted) == expected


def test_domains_with_bound_members_come_first():
    room = np.array([1, 1, 4, 4, 4, 4])
    at = np.array([0])
    assert choose_target(room, DOMAINS, at, 2) == Target(0, (0,))
    assert choose_target(room, DOMAINS, at, 6) == Target(0, (0, 1))
    assert choose_target(room, DOMAINS, at, 99) == Target(0, (0,))


def test_where_no_rack_is_known_the_next_level_counts():
    domains = np.array([[-1] * 4, [0, 0, 1, 1], [-1] * 4], np.int32)
    assert choose_target(np.array([1, 1, 2, 2]), domains, NONE, 3) == Target(1, (1,))
    nothing = np.full((3, 4), -1, np.int32)
    assert choose_target(np.array([1, 1, 2, 2]), nothing, NONE, 3) is None


def racks(count, nodes=2, gpus=4):
    return [
        gpu_node(f"r{rack}-{i}", gpus, labels={"rack": f"r{rack}"})
        for rack in range(count)
        for i in range(nodes)
    ]


def gang(asked, size, gpus=4, name="g", least=None):
    asked.state.apply("PodGroup.scheduling.k8s.io", "ADDED", group(name, least or size))
    spec = {"schedulingGroup": {"podGroupName": name}}
    return [asked.wait(gpu_pod(f"{name}-{i}", gpus, **spec), f"{name}{i}") for i in range(size)]


def test_all_pods_of_a_gang_go_to_one_rack():
    asked = Asked(racks(3), policy="worst-fit")
    asked.bind(asked.wait(gpu_pod("old"), "o"), "r0-0")
    members = gang(asked, 2)
    assert [asked.best(pod)[:2] for pod in members] == ["r1", "r1"]
    # As kube-scheduler does when it tries a gang again.
    assert [asked.best(pod)[:2] for pod in members] == ["r1", "r1"]


def test_the_target_stays_while_others_come_and_go():
    asked = Asked(racks(3), policy="worst-fit")
    members = gang(asked, 2)
    first = asked.best(members[0])
    asked.bind(asked.wait(gpu_pod("other", 4), "x"), "r2-0" if first[:2] != "r2" else "r1-0")
    assert asked.best(members[1])[:2] == first[:2]


def test_a_target_that_fills_up_is_replaced():
    asked = Asked(racks(2), policy="first-fit")
    members = gang(asked, 2)
    assert asked.best(members[0]) == "r0-0"
    asked.bind(asked.wait(gpu_pod("other", 4), "x"), "r0-0")
    assert [asked.best(pod)[:2] for pod in members] == ["r1", "r1"]


def test_the_rest_of_a_gang_follows_those_who_are_bound():
    asked = Asked(racks(3), policy="first-fit")
    members = gang(asked, 2)
    asked.bind(members[0], "r2-1")
    assert asked.best(members[1]) == "r2-0"


def test_points_are_700_for_the_target_and_300_for_the_policy():
    asked = Asked(racks(2), policy="first-fit", decisive_points=1000)
    members = gang(asked, 2)
    assert asked.prioritize(members[0]) == {"r0-0": 1000, "r0-1": 999, "r1-0": 300, "r1-1": 299}


def test_a_full_target_is_left_for_elsewhere():
    asked = Asked(racks(2), policy="first-fit")
    members = gang(asked, 2)
    body = args(members[0], ["r1-0", "r1-1"])
    assert json.loads(asked.verbs.prioritize(body)) == [{"Host": "r1-1", "Score": -1}]


def test_gangs_may_be_left_to_the_policy():
    asked = Asked(racks(2), policy="first-fit", gang_points=0)
    members = gang(asked, 2)
    assert asked.prioritize(members[0]) == {"r0-0": 1000, "r0-1": 999, "r1-0": 998, "r1-1": 997}


def test_two_gangs_do_not_take_the_same_rack():
    asked = Asked(racks(2), policy="first-fit")
    one, other = gang(asked, 2, name="one"), gang(asked, 2, name="two")
    assert {asked.best(pod)[:2] for pod in one} == {"r0"}
    assert {asked.best(pod)[:2] for pod in other} == {"r1"}


def test_a_rack_that_admits_no_pods_is_no_target():
    nodes = racks(3)
    for each in nodes[:2]:
        each["spec"]["unschedulable"] = True
    nodes[2]["spec"]["taints"] = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    asked = Asked(nodes, policy="first-fit")
    members = gang(asked, 2)
    free = [name for name in asked.names if name[:2] == "r2" or name == "r1-1"]
    assert {asked.best(pod, free)[:2] for pod in members} == {"r2"}


def test_a_target_that_is_cordoned_is_replaced():
    nodes = racks(2)
    asked = Asked(nodes, policy="first-fit")
    members = gang(asked, 2)
    assert asked.best(members[0])[:2] == "r0"
    nodes[0]["spec"]["unschedulable"] = True
    asked.state.apply("Node", "MODIFIED", nodes[0])
    assert asked.best(members[1], ["r0-1", "r1-0", "r1-1"])[:2] == "r1"
