import gzip
import hashlib
import json
from copy import deepcopy

import pytest

from podium.errors import InputError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import (
    Constraints,
    Gang,
    HostPort,
    NodeTerm,
    PodSelector,
    PodTerm,
    Requirement,
    Spread,
    Taint,
    Toleration,
    VolumeRule,
)
from podium.sim import Replay, Result, Rounds, Setup, simulate
from podium.sim.audit import audit
from podium.sim.saved_constraints import CLUSTER_KEYS, WORKLOAD_KEYS

SAME_APP = PodSelector((Requirement("app", "In", ("x",)),), frozenset())
EVERYTHING = Constraints(
    node_labels=(("zone", "a"),),
    node_terms=(NodeTerm((Requirement("zone", "In", ("a", "b")),), ()),),
    tolerations=(Toleration("gpu", "Exists"),),
    affinity=(PodTerm(PodSelector((), None), "zone"),),
    anti_affinity=(PodTerm(SAME_APP, "host"),),
    spread=(Spread(SAME_APP, "zone", 2),),
    host_ports=(HostPort(80, "TCP", "10.0.0.1"),),
    extended=(("rdma/hca", 1),),
    volumes=(
        VolumeRule("none", ((NodeTerm((Requirement("zone", "Exists"),)),), None), ((0, 1), (1,))),
    ),
    sole_claims=("team/data",),
)
CLUSTER = Cluster.of(
    [
        NodeSpec(
            f"n{i}", 4000, 1000, 2, "A", rack="r", labels={"zone": "a", "host": f"n{i}"},
            gpu_memory_mib=16384, gpu_replicas=1 + i, has_partitions=not i,
            taints=(Taint("gpu", "yes"),), extended={"pods": 5, "rdma/hca": 2}, block="b", zone="z",
        )
        for i in range(2)
    ]
)  # fmt: skip
WORKLOAD = Workload.of(
    [
        PodSpec("runs", 1000, 10, 1, 1000, arrival_s=0, duration_s=9, node="n1", gpu_slots=(1,),
                is_terminating=True),
        *(
            PodSpec(
                f"x{i}", 500, 10, 1, 1, arrival_s=i, duration_s=2, gpu_memory_mib=4096,
                namespace="team", labels={"app": "x"}, constraints=EVERYTHING, gang="g",
            )
            for i in range(3)
        ),
        PodSpec("plain", 500, 10, arrival_s=1, duration_s=1),
    ],
    gangs=[Gang("g", 3, "rack")],
)  # fmt: skip
HOSTILE = (None, -1, 2**70, "x", [])


@pytest.fixture(params=[Replay(), Rounds()], ids=lambda each: each.name)
def result(request):
    return simulate(CLUSTER, WORKLOAD, "best-fit", request.param, Setup(3))


@pytest.fixture
def saved(tmp_path, result):
    path = tmp_path / "run.podium"
    result.save(path)
    return path


def parts(path):
    header, _, arrays = gzip.decompress(path.read_bytes())[:-32].partition(b"\n")
    return json.loads(header), arrays


@pytest.fixture
def replayed(tmp_path):
    """Saves a run of which the arrivals are written apart from the trace."""
    path = tmp_path / "run.podium"
    simulate(CLUSTER, WORKLOAD, "best-fit", Replay(), Setup(3)).save(path)
    return path


def write(path, header, arrays):
    content = json.dumps(header).encode() + b"\n" + arrays
    path.write_bytes(gzip.compress(content + hashlib.sha256(content).digest(), 1))


def test_a_loaded_run_is_complete_and_can_be_audited(saved, result):
    again = Result.load(saved)
    assert audit(again, again.metrics).problems == ()
    assert again.plan.cluster.specs() == CLUSTER.specs()
    assert again.plan.trace.specs() == WORKLOAD.specs()
    assert again.plan.arrivals.gang_rules == WORKLOAD.gang_rules
    assert again.plan.bound.node.tolist() == [1]
    assert again.plan.bound.slots.tolist() == [0b10]
    reasons = [row.reason for row in again.placements()]
    assert reasons == [row.reason for row in result.placements()]
    assert any("untolerated taint" in reason for reason in reasons)


def test_a_plain_result_has_none_of_the_keys(tmp_path):
    plain = Cluster.of([NodeSpec("n", 4000, 1000, 2, "A")])
    pods = Workload.of([PodSpec("p", 500, 10, arrival_s=1, duration_s=1)])
    path = tmp_path / "run.podium"
    simulate(plain, pods, "best-fit").save(path)
    header, _ = parts(path)
    assert not set(header["cluster"]) & set(CLUSTER_KEYS.split())
    assert not set(header["trace"]) & {*WORKLOAD_KEYS.split(), "has_gpu_memory"}
    assert "has_gang_order" not in header


def leaves(value, path=()):
    """Lists the paths to everything in a JSON value."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    if isinstance(value, dict | list):
        for key, each in items:
            yield from (
                leaves(each, (*path, key)) if isinstance(each, dict | list) else [(*path, key)]
            )


@pytest.mark.deep
def test_whatever_a_file_says_of_constraints_is_read_or_refused(replayed):
    header, arrays = parts(replayed)
    places = [("cluster", key) for key in CLUSTER_KEYS.split()]
    places += [("arrivals", key) for key in (*WORKLOAD_KEYS.split(), "has_gpu_memory")]
    refused = tried = 0
    for where, key in places:
        for path in leaves({key: header[where][key]}):
            for value in HOSTILE:
                changed = deepcopy(header)
                target = changed[where]
                for step in path[:-1]:
                    target = target[step]
                target[path[-1]] = value
                write(replayed, changed, arrays)
                tried += 1
                try:
                    Result.load(replayed)
                except InputError:
                    refused += 1
    assert tried > 300
    assert refused > tried / 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda h: h["cluster"]["taints"]["of"].append(0), "does not hold a result"),
        (lambda h: h["cluster"]["gpu_memory_mib"].pop(), "does not hold a result"),
        (lambda h: h["cluster"]["gpu_replicas"].__setitem__(0, 0), "does not hold a result"),
        (lambda h: h["arrivals"]["gang_rules"][0].__setitem__(2, "row"), "does not hold a result"),
        (
            lambda h: h["arrivals"]["gang_rules"][0].__setitem__(0, "other"),
            "does not hold a result",
        ),
        (lambda h: h["arrivals"]["bound_to"]["distinct"].__setitem__(0, "n9"), "not hold a result"),
        (
            lambda h: h["arrivals"]["bound_slots"]["distinct"].__setitem__(0, [-1]),
            "not hold a result",
        ),
        (lambda h: h["arrivals"]["constraints"].update(extra=1), "does not hold a result"),
        (lambda h: h.pop("has_gang_order"), "does not hold the arrays"),
    ],
)
def test_a_file_that_lies_about_constraints_is_refused_in_words(replayed, change, told):
    header, arrays = parts(replayed)
    change(header)
    write(replayed, header, arrays)
    with pytest.raises(InputError, match=told):
        Result.load(replayed)


def test_bound_pods_that_moved_contradict_the_file(replayed):
    header, arrays = parts(replayed)
    slots = header["arrivals"]["bound_slots"]["distinct"]
    slots[slots.index([1])] = [0]
    write(replayed, header, arrays)
    with pytest.raises(InputError, match="contradicts itself"):
        Result.load(replayed)


@pytest.mark.parametrize("bound", ["MOST_CHECKS", "MOST_CELLS"])
def test_rules_that_would_never_be_written_down_are_refused_at_once(replayed, monkeypatch, bound):
    monkeypatch.setattr(f"podium.sim.saved_constraints.{bound}", 5)
    with pytest.raises(InputError, match="does not hold a result"):
        Result.load(replayed)
