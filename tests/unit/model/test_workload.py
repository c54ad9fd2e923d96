import math
from dataclasses import replace

import numpy as np
import pytest

from podium.errors import InputError
from podium.model import ANY_MODEL, PodSpec, TypicalPods, Workload
from podium.model.cluster import LIMIT
from podium.model.constraints import Constraints, PodSelector, Spread
from podium.model.workload import gpu_demand, model_mask, models_of, pod_problem
from support.traces import assert_same_workload, small_pods

SPREAD = Spread(PodSelector(()), "zone")
GOOD = PodSpec("p", 1000, 1024, 1, 500)


def test_descriptions_come_back_as_they_were_given():
    workload = Workload.of(small_pods())
    assert workload.specs() == small_pods()
    assert_same_workload(workload, Workload.of(workload.specs()))


def test_a_workload_needs_a_pod():
    with pytest.raises(InputError, match="no pods"):
        Workload.of([])


def test_demand_counts_every_gpu_of_a_pod():
    workload = Workload.of(small_pods())
    assert gpu_demand(workload.pods).tolist() == [500, 2000, 0]
    assert workload.gpu_milli_total == 2500


def test_gangs_are_numbered_from_one():
    pods = [replace(GOOD, gang=gang) for gang in ["", "x", "y", "x"]]
    workload = Workload.of(pods)
    assert workload.gangs == ("x", "y")
    assert workload.pods["gang"].tolist() == [0, 1, 2, 1]


def test_times_count_only_if_every_pod_has_them():
    timed = replace(GOOD, arrival_s=1.0, duration_s=2.0)
    assert Workload.of([timed, timed]).has_times
    partly = Workload.of([timed, replace(timed, duration_s=None)])
    assert partly.arrival_s is not None
    assert partly.duration_s is None
    assert not partly.has_times


def test_a_constraint_is_a_mask_over_the_models_that_pods_name():
    pods = [replace(GOOD, gpu_spec=spec) for spec in ["", "T4", "G2|T4|T4"]]
    workload = Workload.of(pods)
    assert workload.gpu_models == ("G2", "T4")
    assert workload.pods["gpu_models"].tolist() == [ANY_MODEL, 0b10, 0b11]


def test_masks_follow_the_cluster_they_are_aligned_with():
    workload = Workload.of([replace(GOOD, gpu_spec="T4|X"), GOOD])
    aligned = workload.aligned(("A10", "P100", "T4"))
    assert aligned.pods["gpu_models"].tolist() == [0b100, ANY_MODEL]
    assert workload.pods["gpu_models"].tolist() == [0b11, ANY_MODEL]
    assert workload.aligned(workload.gpu_models) is workload


def test_a_constraint_on_absent_models_allows_none():
    assert model_mask("X|Y", ("A", "B")) == 0


def test_the_last_bit_of_a_mask_fits_its_field():
    models = tuple(f"M{i:02d}" for i in range(53))
    workload = Workload.of([replace(GOOD, gpu_spec="|".join(models))])
    assert int(workload.pods["gpu_models"][0]) == 2**53 - 1


def test_more_models_than_bits_are_refused():
    with pytest.raises(InputError, match="more than 53 GPU models"):
        Workload.of([replace(GOOD, gpu_spec="|".join(f"M{i}" for i in range(54)))])


def test_empty_parts_of_a_constraint_name_nothing():
    assert models_of("|T4||G2|") == ["T4", "G2"]
    assert model_mask("||", ("T4",)) == ANY_MODEL


def test_shapes_count_equal_pods_whose_constraints_are_written_alike():
    specs = ["", "T4", "T4|T4", "", "T4"]
    workload = Workload.of([replace(GOOD, gpu_spec=spec) for spec in specs])
    shapes = workload.shapes()
    assert shapes.gpu_specs == ("", "T4", "T4|T4")
    assert shapes.weights.tolist() == [2.0, 2.0, 1.0]
    assert workload.shape_of().tolist() == [0, 1, 2, 0, 1]
    assert len(shapes) == 3


def test_shapes_carry_the_typical_pods_settings():
    typical = TypicalPods(pod_popularity_threshold=60)
    assert replace(Workload.of([GOOD]), typical=typical).shapes().typical == typical


def test_taking_pods_keeps_everything_beside_the_records():
    workload = Workload.of(small_pods())
    taken = workload.taken(np.array([2, 1, 1]))
    assert taken.names == ("p2", "p1", "p1")
    assert taken.gpu_specs == ("", "G2|P100|P100", "G2|P100|P100")
    assert taken.arrival_s.tolist() == [9.0, 5.0, 5.0]
    assert taken.duration_s.tolist() == [1.0, 60.0, 60.0]
    assert taken.job_types == ("", "train", "train")
    assert taken.pods.tolist() == workload.pods[[2, 1, 1]].tolist()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"cpu_milli": -1}, "cpu_milli is -1"),
        ({"memory_mib": LIMIT + 1}, f"memory_mib is {LIMIT + 1}"),
        ({"gpu_count": 17, "gpu_milli": 1000}, "gpu_count is 17"),
        ({"gpu_count": 0}, "gpu_milli is 500 without a GPU"),
        ({"gpu_milli": 0}, "gpu_milli is 0"),
        ({"gpu_milli": 1001}, "gpu_milli is 1001"),
        ({"gpu_count": 2, "gpu_milli": 1500}, "gpu_milli is 1500"),
        ({"gpu_memory_mib": -1}, "gpu_memory_mib is -1"),
        ({"constraints": Constraints(spread=(SPREAD,) * 129)}, "spread has 129 terms"),
        ({"priority": 2**31}, "priority is 2147483648"),
        ({"priority": -(2**31)}, "priority is -2147483648"),
        ({"arrival_s": math.nan}, "arrival_s is nan"),
        ({"arrival_s": -1.0}, "arrival_s is -1.0"),
        ({"duration_s": math.inf}, "duration_s is inf"),
    ],
)
def test_a_bad_description_says_what_is_wrong(change, problem):
    spec = replace(GOOD, **change)
    assert pod_problem(spec).startswith(problem)
    with pytest.raises(InputError, match='pod "p"'):
        Workload.of([spec])
