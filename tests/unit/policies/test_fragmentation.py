from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.model import POD, PodSpec, Shapes, TypicalPods, Workload
from podium.policies.fragmentation import CLASSES, fragmentation, fragments, typical_pods
from podium.policies.jit import compiled
from support.views import node, node_record, pod, pod_record

ANY = (2**32 - 1, 2**32 - 1)


def table(*rows):
    """Rows of cpu milli, milli per GPU, GPUs, share of pods, and the two halves of the models."""
    return np.array([(*row, *ANY) if len(row) == 4 else row for row in rows], float)


def classes(view, *rows):
    return dict(zip(CLASSES, fragments(view, table(*rows)), strict=True))


def only(**found):
    return {**dict.fromkeys(CLASSES, 0.0), **found}


NODE = node((4000, 8000), gpus=(1000, 600, 300))  # 1900 milli idle


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ((1000, 0, 0, 1.0), only(xl_satisfied=1900)),
        ((5000, 0, 0, 1.0), only(xr_lack_cpu=1900)),
        ((1000, 500, 1, 1.0), only(q2_lack_gpu=300)),
        ((1000, 1000, 1, 1.0), only(q2_lack_gpu=900)),
        ((1000, 1000, 2, 1.0), only(q2_lack_gpu=1900)),
        ((5000, 1000, 2, 1.0), only(q1_lack_both=1900)),
        ((5000, 500, 1, 1.0), only(q4_lack_cpu=1900)),
        ((4000, 100, 1, 1.0), only()),
    ],
)
def test_idle_gpu_is_split_by_why_a_typical_pod_cannot_use_it(row, expected):
    assert classes(NODE, row) == expected


def test_a_pod_of_another_model_has_no_access_to_any_of_it():
    first, second = (1000, 500, 1, 1.0, 0b01, 0), (1000, 500, 1, 1.0, 0b10, 0)
    assert classes(NODE, second) == only(no_access=1900)
    assert classes(NODE, first) == only(q2_lack_gpu=300)


@pytest.mark.parametrize("model", [0, 31, 32, 62])
def test_every_model_bit_is_exact(model):
    masks = [1 << bit for bit in range(63)]
    shapes = Workload.of([PodSpec("p", 1000, 0, 1, 500)]).shapes()
    for bit, mask in enumerate(masks):
        pods = shapes.pods.copy()
        pods["gpu_models"] = mask
        typical = typical_pods(replace(shapes, pods=pods))
        found = dict(zip(CLASSES, fragments(NODE._replace(gpu_model=model), typical), strict=True))
        assert (found["no_access"] == 0) == (bit == model)


def test_the_fragmentation_of_a_node_is_the_sum_over_the_typical_pods_by_their_share():
    # 0.5 of 300, 0.25 of 1900 and 0.25 of 1900.
    rows = table((1000, 500, 1, 0.5), (1000, 0, 0, 0.25), (5000, 500, 1, 0.25))
    assert fragmentation(NODE, rows) == 150 + 475 + 475


def test_a_demand_is_taken_from_the_node_before_it_is_measured():
    rows = table((1000, 500, 1, 1.0))
    assert fragmentation(NODE, rows, 0, 1, 600, 0) == 300  # the second GPU is full
    assert fragmentation(NODE, rows, 0, 0, 700, 0) == 300 + 300  # the first has 300 left
    assert fragmentation(NODE, rows, 0, 0, 0, 1) == 300  # a whole GPU is gone
    assert fragmentation(NODE, rows, 3500, 0, 0, 0) == 1900  # the CPU is


def test_a_node_without_idle_gpu_has_no_fragments():
    assert fragmentation(node((1000, 1000)), table((5000, 0, 0, 1.0))) == 0
    assert fragmentation(node((1000, 1000), gpus=(0, 0)), table((5000, 500, 1, 1.0))) == 0


def test_no_typical_pods_make_no_fragments():
    assert fragmentation(NODE, np.zeros((0, 6))) == 0


def test_classes_are_summed_one_by_one_and_then_in_the_published_order():
    # One running sum over the pods would give another last bit.
    rows = table((1000, 0, 0, 0.1), (1000, 1000, 2, 0.1), (1000, 0, 0, 0.4))
    one = node((4000, 8000), gpus=(1,))
    assert fragmentation(one, rows) == 0.1 + (0.1 + 0.4)
    assert fragmentation(one, rows) != (0.1 + 0.1) + 0.4


milli = st.sampled_from([0, 1, 250, 500, 999, 1000])
rows = st.tuples(
    st.sampled_from([0, 1000, 4000, 4001]), milli, st.integers(1, 4), st.floats(0.001, 1)
).map(lambda row: (row[0], row[1], row[2] if row[1] else 0, row[3]))


@settings(max_examples=100, deadline=None)
@given(st.lists(milli, min_size=1, max_size=8), st.lists(rows, max_size=6), st.integers(0, 3))
def test_compiled_code_measures_the_same_bits(free, typical, model):
    view = node((4000, 8000), gpus=tuple(free), model=model)
    given_table = table(*typical).reshape(-1, 6)
    found = COMPILED(node_record(view), given_table, 1000, 0, min(free[0], 250), 0)
    assert found == fragmentation(view, given_table, 1000, 0, min(free[0], 250), 0)


COMPILED = compiled(fragmentation)


PUBLISHED = TypicalPods()


def shapes_of(*pods, typical=PUBLISHED):
    """Makes shapes of (cpu, gpus, milli, count, spec)."""
    records = [
        pod_record(pod(cpu, 7 * i, gpus, milli)) for i, (cpu, gpus, milli, *_) in enumerate(pods)
    ]
    return Shapes(
        np.array(records, POD),
        tuple(each[4] if len(each) > 4 else "" for each in pods),
        np.array([each[3] for each in pods], float),
        typical,
    )


def listed(shapes):
    return [(int(row[0]), int(row[1]), int(row[2]), row[3]) for row in typical_pods(shapes)]


def test_the_most_frequent_shapes_that_cover_95_percent_are_typical():
    shapes = shapes_of((100, 0, 0, 15), (200, 1, 500, 50), (300, 1, 1000, 30), (400, 0, 0, 5))
    assert listed(shapes) == [
        (200, 500, 1, 0.5 / 0.95),
        (300, 1000, 1, 0.3 / 0.95),
        (100, 0, 0, 0.15 / 0.95),
    ]


def test_shapes_that_differ_in_memory_alone_are_one():
    shapes = shapes_of((100, 0, 0, 1), (100, 0, 0, 2), (200, 0, 0, 1))
    assert listed(shapes) == [(100, 0, 0, 0.75), (200, 0, 0, 0.25)]


def test_equal_counts_are_ordered_by_cpu_then_milli_then_gpus_then_models_largest_first():
    shapes = shapes_of(
        (100, 1, 500, 1, "A"), (100, 1, 500, 1, "B"), (100, 1, 1000, 1), (100, 2, 1000, 1),
        (200, 0, 0, 1),
    )  # fmt: skip
    assert [row[:3] for row in listed(shapes)] == [
        (200, 0, 0), (100, 1000, 2), (100, 1000, 1), (100, 500, 1), (100, 500, 1),
    ]  # fmt: skip


def test_models_written_differently_are_different_shapes():
    shapes = shapes_of((100, 1, 500, 1, "A|B"), (100, 1, 500, 1, "B|A"))
    assert len(typical_pods(shapes)) == 2


def test_pods_without_gpus_can_be_left_out():
    shapes = shapes_of((100, 0, 0, 9), (200, 1, 500, 1), typical=TypicalPods(False))
    assert listed(shapes) == [(200, 500, 1, 1.0)]


def test_a_weight_lets_whole_gpus_count_for_more():
    # One pod with 4 whole GPUs and weight 0.5 counts 1 + 4 * 0.5 = 3.
    shapes = shapes_of((100, 0, 0, 2), (200, 4, 1000, 1), typical=TypicalPods(gpu_res_weight=0.5))
    assert [row[3] for row in listed(shapes)] == [0.6, 0.4]


def test_shapes_are_added_a_step_at_a_time():
    settings_of = TypicalPods(pod_popularity_threshold=50, pod_increase_step=2)
    shapes = shapes_of((1, 0, 0, 6), (2, 0, 0, 2), (3, 0, 0, 2), typical=settings_of)
    assert [row[3] for row in listed(shapes)] == [0.6 / 0.8, 0.2 / 0.8]


def test_a_threshold_and_a_step_of_0_mean_60_percent_and_10_shapes():
    settings_of = TypicalPods(pod_popularity_threshold=0, pod_increase_step=0)
    shapes = shapes_of(*[(cpu, 0, 0, 1) for cpu in range(1, 13)], typical=settings_of)
    assert len(typical_pods(shapes)) == 10


def test_a_workload_without_any_pod_that_counts_has_no_typical_pods():
    shapes = shapes_of((100, 0, 0, 9), typical=TypicalPods(is_involved_cpu_pods=False))
    assert typical_pods(shapes).shape == (0, 6)


def test_typical_pods_are_counted_once_and_nobody_can_spoil_them_for_others():
    shapes = Workload.of([PodSpec("a", 1000, 1000, 1, 500), PodSpec("b", 1000, 1000)]).shapes()
    first = typical_pods(shapes)
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(typical_pods(shapes), kept)
