from dataclasses import replace

import numpy as np
import pytest

from podium.traces.catalogue import LoadOptions, load_trace
from support.gpu_cluster import FINISHED, PENDING, dump, write_dump

HISTORY = LoadOptions(state="history")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_dump(tmp_path_factory.mktemp("cluster") / "c180.json")


@pytest.fixture(scope="module")
def trace(path):
    return load_trace(str(path), HISTORY)


def pods(**wanted):
    for each in dump()["items"]:
        if each["kind"] == "Pod" and each["metadata"]["namespace"] == "team":
            status = each["status"]["phase"]
            if status in wanted.get("phases", (status,)):
                yield each["metadata"]["name"]


def test_what_runs_ran_and_waits_arrives_on_empty_nodes(trace):
    workload = trace.workload
    assert sorted(workload.names) == sorted(pods())
    assert not workload.bound_to
    assert sum(name in workload.names for name in pods(phases=("Succeeded", "Failed"))) == FINISHED
    assert sum(name in workload.names for name in pods(phases=("Pending",))) == PENDING


def test_pods_of_daemon_sets_and_static_pods_keep_their_part_of_the_nodes(trace, path):
    empty = load_trace(str(path), LoadOptions(state="empty"))
    assert sum(bool(node) for node in empty.workload.bound_to) == 72
    nodes, before = trace.cluster.nodes, empty.cluster.nodes
    assert set(before["cpu_milli_total"] - nodes["cpu_milli_total"]) == {2_000}
    assert set(before["memory_mib_total"] - nodes["memory_mib_total"]) == {3 * 1024}
    assert {each["pods"] for each in trace.cluster.extended} == {108}
    assert trace.cluster.taints == empty.cluster.taints


def test_a_gang_that_runs_is_a_gang(trace):
    gang = trace.workload.pods["gang"]
    assert [trace.workload.names[pod] for pod in np.flatnonzero(gang)] == ["llm-0", "llm-1"]
    assert [rule.minimum for rule in trace.workload.gang_rules] == [2]


def test_finished_pods_come_when_they_were_created_and_run_as_long_as_they_did(trace):
    specs = {spec.name: spec for spec in trace.workload.specs()}
    begun = {}
    for each in dump()["items"]:
        if each["kind"] == "Pod" and each["status"]["phase"] in ("Succeeded", "Failed"):
            times = each["status"]["containerStatuses"][0]["state"]["terminated"]
            begun[each["metadata"]["name"]] = tuple(
                np.datetime64(times[key][:-1]) for key in ("startedAt", "finishedAt")
            )
    first = min(start for start, _ in begun.values())
    for name, (start, end) in begun.items():
        assert specs[name].arrival_s == (start - first) / np.timedelta64(1, "s")
        assert specs[name].duration_s == (end - start) / np.timedelta64(1, "s")


def test_one_note_says_what_demand_is(trace):
    assert (
        "pods arrive anew on empty nodes: 46 that run, 60 that ran and 12 that wait; "
        "72 of DaemonSets and static pods keep their part of the nodes"
    ) in trace.notes


def test_other_traces_have_no_other_history():
    plain = LoadOptions(nodes=4, pods=10)
    with_history = load_trace("openb", replace(plain, state="history"))
    assert with_history.notes == load_trace("openb", plain).notes == ()
