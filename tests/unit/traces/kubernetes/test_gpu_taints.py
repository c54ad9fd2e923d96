from pathlib import Path

import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Constraints, Taint
from podium.sim import Rounds, simulate
from podium.traces.catalogue import LoadOptions, load_on, load_trace
from podium.traces.kubernetes.gpu_taints import tolerating
from support.gpu_cluster import write_dump

CSV = """name,cpu_milli,memory_mib,num_gpu,gpu_milli
a,1000,100,1,1000
b,1000,100,0,0
"""


def cluster(*taints):
    return Cluster.of([NodeSpec("a", 8_000, 8_000, 4, "T4", taints=taints)])


def pods(**others):
    return Workload.of([PodSpec("a", 1, 1, 1, 1_000, **others), PodSpec("b", 1, 1, **others)])


@pytest.mark.parametrize(
    "taint",
    [
        Taint("nvidia.com/gpu", "present"), Taint("amd.com/gpu", "", "NoExecute"),
        Taint("sku", "gpu"),
    ],
)  # fmt: skip
def test_pods_that_ask_for_gpus_tolerate_the_usual_taints_of_gpu_nodes(taint):
    found, notes = tolerating(pods(), cluster(taint))
    assert [each.tolerates((taint,)) for each in found.constraints] == [True, False]
    told = f"the trace states no tolerations: its pods that ask for GPUs tolerate {taint.key}"
    assert notes == (told,)


def test_other_taints_and_pods_that_can_state_tolerations_stay_as_they_are():
    plain = pods()
    for taints in ((), (Taint("team", "a"),), (Taint("sku", "cpu"),)):
        assert tolerating(plain, cluster(*taints)) == (plain, ())
    usual = cluster(Taint("nvidia.com/gpu"))
    for other in (pods(namespace="team"), pods(constraints=Constraints(node_labels=(("a", "b"),)))):
        assert tolerating(other, usual) == (other, ())


def test_pods_of_a_csv_file_run_on_the_gpu_nodes_of_a_dump(tmp_path):
    csv, dump = Path(tmp_path / "jobs.csv"), write_dump(tmp_path / "c180.json")
    csv.write_text(CSV)
    given, nodes = load_on(str(csv), load_trace(str(dump)), LoadOptions())
    assert given.notes[-1].startswith("the trace states no tolerations")
    result = simulate(nodes.cluster, given.workload, "fgd", Rounds())
    assert result.is_placed.all()
