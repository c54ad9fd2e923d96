import itertools
from dataclasses import replace

import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Constraints, Taint, Toleration
from podium.model.fit import fits
from podium.traces import LoadOptions, Trace, load_trace, save_trace
from podium.traces.check import findings
from support.traces import originals, small_nodes, small_trace

POD = PodSpec("p", 1000, 1024, 1, 500, arrival_s=0.0, duration_s=10.0)


def found(*pods, nodes=None):
    cluster = Cluster.of(nodes or small_nodes())
    return findings(Trace("t", cluster, Workload.of(pods)))


def check(reference, **options):
    return findings(load_trace(str(reference), LoadOptions(is_skipping_bad=True, **options)))


def test_a_good_trace_has_no_findings():
    assert findings(small_trace()) == []
    assert check("openb") == []


def test_a_cluster_alone_has_no_findings():
    assert findings(Trace("t", Cluster.of(small_nodes()), None)) == []


def test_bad_rows_are_findings(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu\na,1,2,0\nb,x,2,0\n")
    assert check(path) == [
        f'left out: {path}, line 3, column cpu_milli: a whole number is expected, not "x"'
    ]


def test_other_notes_are_no_findings(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,colour\na,1,2,0,red\n")
    assert check(path) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cpu_milli": 200_000}, "it asks for 200000 milli-CPU, the largest node has 96000"),
        ({"memory_mib": 900_000}, "it asks for 900000 MiB of memory, the largest node has 393216"),
        ({"gpu_count": 16, "gpu_milli": 1000}, "it asks for 16 GPUs, no node has more than 8"),
        ({"gpu_spec": "P100", "cpu_milli": 90_000}, "no single node has all of it together"),
    ],
)
def test_a_pod_that_fits_no_empty_node_is_found_with_the_reason(change, reason):
    assert f"p cannot fit any empty node: {reason}" in found(replace(POD, **change), POD)


def test_a_constraint_on_models_that_the_cluster_lacks_is_found():
    assert found(replace(POD, gpu_spec="A|B")) == [
        "the cluster lacks the GPU model A, named by 1 pod",
        "the cluster lacks the GPU model B, named by 1 pod",
        "p cannot fit any empty node: no node has the GPU model A or B",
    ]
    assert found(replace(POD, gpu_spec="A|G2"), POD) == [
        "1 name shared by several pods: p",
        "the cluster lacks the GPU model A, named by 1 pod",
    ]


def test_pods_that_no_node_admits_are_found_unless_they_run_already():
    taints = (Taint("team", "web"),)
    nodes = [replace(node, taints=taints) for node in small_nodes()]
    picky = replace(POD, constraints=Constraints(node_labels=(("zone", "z"),)))
    tolerant = Constraints(tolerations=(Toleration("team", "Exists"),))
    pods = [
        picky,
        replace(picky, name="q"),
        replace(picky, name="bound", node="a"),
        replace(POD, name="r", constraints=tolerant),
    ]
    assert found(*pods, nodes=nodes) == [
        "p and 1 pod like it may run on no node: "
        "node selector, node affinity and taints leave none",
    ]


def test_pods_that_no_node_admits_for_reasons_of_their_own_are_found_apart():
    nodes = [replace(node, labels={"zone": "a"}, taints=(Taint("team"),)) for node in small_nodes()]
    tolerant = Constraints((("zone", "z"),), tolerations=(Toleration("team", "Exists"),))
    pods = [replace(POD, constraints=Constraints()), replace(POD, name="q", constraints=tolerant)]
    leave = "may run on no node: node selector, node affinity and taints leave none"
    assert found(*pods, nodes=nodes) == [f"p {leave}", f"q {leave}"]


def test_pods_of_a_source_with_namespaces_are_named_with_them():
    huge = replace(POD, gpu_count=16, gpu_milli=1000, duration_s=0.0)
    told = "\n".join(found(replace(huge, namespace="ml"), replace(huge, name="q")))
    assert "ml/p and 1 pod like it cannot fit any empty node" in told
    assert "2 pods with a duration of 0 s: ml/p, default/q" in told


def test_a_pod_that_fits_only_nodes_that_do_not_admit_it_is_found():
    shut, open_to_all = small_nodes()[0], NodeSpec("cpu", 64_000, 262_144)
    nodes = [replace(shut, taints=(Taint("nvidia.com/gpu"),)), open_to_all]
    tolerant = Constraints(tolerations=(Toleration("", "Exists"),))
    pods = [
        replace(POD, name="no-tol"),
        replace(POD, name="fine", constraints=tolerant),
        replace(POD, name="bound", node="a"),
    ]
    assert found(*pods, nodes=nodes) == [
        "no-tol cannot fit any empty node that admits it (node selector, node affinity and "
        "taints leave 1 of 2): it asks for 1 GPU, no node has any"
    ]


def test_pods_that_cannot_state_tolerations_are_found_where_every_node_has_a_taint():
    nodes = [replace(node, taints=(Taint("team", "web"),)) for node in small_nodes()]
    (told,) = found(POD, replace(POD, name="q"), nodes=nodes)
    assert told == (
        "p and 1 pod like it may run on no node: all have taints, and the trace states no "
        "tolerations: give pods as manifests that do, or nodes without these taints"
    )


def test_pods_alike_are_found_together():
    pods = [replace(POD, name=f"p{i}", cpu_milli=99_999) for i in range(3)]
    assert "p0 and 2 pods like it cannot fit any empty node" in "".join(found(*pods))


def test_names_that_occur_twice_are_found():
    assert found(POD, replace(POD, name="q"), POD) == ["1 name shared by several pods: p"]


def test_missing_times_are_found():
    assert found(replace(POD, arrival_s=None, duration_s=None)) == [
        "pods have no arrival times: a replay is not possible",
        "pods have no durations: a replay is not possible",
    ]


def test_arrivals_out_of_order_are_found():
    pods = [replace(POD, name=f"p{i}", arrival_s=t) for i, t in enumerate([0.0, 9.0, 5.0])]
    assert found(*pods) == ["arrivals are not in order: p2 is the first that is too late"]


def test_durations_of_zero_are_found():
    pods = [replace(POD, name=f"p{i}", duration_s=0.0) for i in range(7)]
    assert found(*pods) == ["7 pods with a duration of 0 s: p0, p1, p2, p3, p4, ..."]


def test_demand_beyond_the_cluster_is_found():
    whole = replace(POD, gpu_count=8, gpu_milli=1000)
    at_once = [replace(whole, name=f"p{i}") for i in range(2)]
    assert found(*at_once) == [
        "at its busiest the pods ask for 160 % of the cluster's GPU (16 of 10): some must wait"
    ]
    one_by_one = [replace(pod, arrival_s=10.0 * i) for i, pod in enumerate(at_once)]
    assert found(*one_by_one) == []
    timeless = [replace(pod, arrival_s=None) for pod in at_once]
    assert "in all the pods ask for 160 %" in found(*timeless)[-1]


def test_gpu_demand_without_gpus_is_found():
    messages = found(POD, nodes=[NodeSpec("n", 64_000, 262_144)])
    assert messages[-1] == (
        "at its busiest the pods ask for more than the cluster's GPU (0.5 of 0): some must wait"
    )


def test_a_misfit_is_what_the_rules_of_fit_say():
    choices = itertools.product((0, 1, 3), ("", "P100", "X", "G2|X"), (1000, 65_000, 97_000))
    pods = [
        PodSpec(f"p{i}", cpu_milli, 1024, count, 1000 * bool(count), gpu_spec)
        for i, (count, gpu_spec, cpu_milli) in enumerate(choices)
    ]
    nodes = small_nodes()
    cluster = Cluster.of(nodes)
    workload = Workload.of(pods).aligned(cluster.gpu_models)
    misfits = sum(not any(fits(pod, node) for node in cluster.nodes) for pod in workload.pods)
    text = [message for message in found(*pods) if "cannot fit" in message]
    counted = sum(1 + int((m.split(" and ")[1].split()[0]) if " and " in m else 0) for m in text)
    assert counted == misfits > 0


@pytest.mark.openb
def test_every_pod_of_the_original_default_fits_somewhere():
    folder = originals()
    assert check("openb:default", folder=folder) == ["1 pod with a duration of 0 s: openb-pod-7285"]
    messages = check("openb:gpushare40", folder=folder)
    assert any("arrivals are not in order" in message for message in messages)


def test_a_saved_trace_checks_like_the_original(tmp_path):
    save_trace(small_trace(), tmp_path / "t.yaml")
    assert check(tmp_path / "t.yaml") == []


def test_devices_of_a_shared_card_are_no_whole_cards():
    shared = [NodeSpec("n", 8000, 8192, 2, "T4", gpu_replicas=4)]
    pods = [replace(POD, name=f"p{i}", gpu_count=4, gpu_milli=1000) for i in range(2)]
    assert found(*pods, nodes=shared) == []
    assert found(replace(POD, gpu_count=9, gpu_milli=1000), nodes=shared)[0] == (
        "p cannot fit any empty node: it asks for 9 GPUs, no node has more than 8"
    )
    (told,) = found(*pods, replace(pods[0], name="p2"), nodes=shared)
    assert told.startswith("at its busiest the pods ask for 150 % of the cluster's GPU (3 of 2)")


def test_memory_that_no_gpu_has_is_found():
    nodes = [NodeSpec("n", 8000, 8192, 2, "T4", gpu_memory_mib=16384)]
    ask = replace(POD, gpu_milli=1, gpu_memory_mib=8192)
    assert found(ask, nodes=nodes) == []
    assert found(ask, replace(ask, name="q", gpu_memory_mib=20000), nodes=nodes) == [
        "q cannot fit any empty node: it asks for 1 GPU with 20000 MiB of GPU memory, "
        "no node has that"
    ]
