from collections import Counter

import numpy as np
import pytest

from podium.errors import UsageError
from podium.model import Workload
from podium.model.workload import gpu_demand
from podium.traces.catalogue import LoadOptions, load_trace
from podium.traces.demand import pod_classes
from podium.traces.openb.families import FAMILIES, generate_family
from podium.traces.openb.profile import openb_profile
from support.traces import assert_same_trace, assert_same_workload, originals

PROFILE = openb_profile()
EVERY = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def drawn(family, count, seed=1000):
    return generate_family(PROFILE, family, count, np.random.default_rng(seed))


def demand_of(workload):
    """Returns what part of GPU demand each class of pods has, in percent."""
    demand = gpu_demand(workload.pods)
    found = dict.fromkeys(("share", "1-gpu", "2-gpu", "4-gpu", "8-gpu"), 0.0)
    for name, chosen in pod_classes(workload.pods).items():
        if name != "cpu-only":
            found[name] = 100 * float(demand[chosen].sum() / demand.sum())
    return found


def cores_per_gpu(workload):
    """Returns CPU by GPU asked for: of all pods, and of those that ask for a GPU."""
    demand, cpu = gpu_demand(workload.pods), workload.pods["cpu_milli"]
    return cpu.sum() / demand.sum(), cpu[demand > 0].sum() / demand.sum()


def part_of_cpu_only(workload):
    return 100 * float((workload.pods["gpu_count"] == 0).mean())


def accepted_models(workload):
    """Returns how many percent of the GPU pods accept which models."""
    with_gpu = np.flatnonzero(workload.pods["gpu_count"])
    specs = Counter("|".join(sorted(set(workload.gpu_specs[i].split("|")))) for i in with_gpu)
    return {spec: 100 * count / len(with_gpu) for spec, count in specs.items() if spec}


@pytest.mark.openb
@EVERY
def test_a_family_asks_for_what_its_original_asks_for(family):
    workload = drawn(family, family.pods)
    original = load_trace(f"openb:{family.original}", LoadOptions(originals())).workload
    assert original is not None
    assert len(workload) == len(original)
    assert demand_of(workload) == pytest.approx(demand_of(original), abs=1.0)
    assert cores_per_gpu(workload) == pytest.approx(cores_per_gpu(original), rel=0.03)
    assert part_of_cpu_only(workload) == pytest.approx(part_of_cpu_only(original), abs=0.3)
    assert accepted_models(workload) == pytest.approx(accepted_models(original), abs=0.1)


@EVERY
@pytest.mark.parametrize("seed", [1000, 1001])
def test_a_small_workload_has_the_proportions_of_a_large_one(family, seed):
    small, large = drawn(family, 1000, seed), drawn(family, 50_000)
    assert demand_of(small) == pytest.approx(demand_of(large), abs=2.0)
    assert cores_per_gpu(small) == pytest.approx(cores_per_gpu(large), rel=0.03)
    assert part_of_cpu_only(small) == pytest.approx(part_of_cpu_only(large), abs=0.2)


def test_each_family_is_what_its_name_says():
    assert part_of_cpu_only(drawn(FAMILIES["openb-cpu-heavy"], 8000)) == pytest.approx(25, abs=0.1)
    assert demand_of(drawn(FAMILIES["openb-share-heavy"], 8000))["share"] == pytest.approx(
        60, abs=1
    )
    assert demand_of(drawn(FAMILIES["openb-share-only"], 8000))["share"] == 100
    for name, percent in (("openb-multi-gpu", 20), ("openb-multi-heavy", 50)):
        several = demand_of(drawn(FAMILIES[name], 8000))
        found = several["2-gpu"] + several["4-gpu"] + several["8-gpu"]
        assert found == pytest.approx(percent, abs=1)
    named = accepted_models(drawn(FAMILIES["openb-model-bound"], 8000))
    assert sum(named.values()) == pytest.approx(33.8, abs=0.5)
    assert max(named, key=named.__getitem__) == "T4"


@EVERY
@pytest.mark.parametrize("count", [1, 2, 50, 20_000])
def test_a_family_of_any_size_has_pods_with_times(family, count):
    workload = drawn(family, count)
    assert len(workload) == len(set(workload.names)) == count
    assert (np.diff(workload.arrival_s) >= 0).all()
    assert (workload.duration_s >= 1).all()
    assert_same_workload(workload, Workload.of(workload.specs()))


@EVERY
def test_a_family_is_a_trace_that_is_drawn_by_its_seed(family):
    options = LoadOptions(seed=1000, nodes=20, pods=100)
    first, again = (load_trace(family.name, options) for _ in range(2))
    assert_same_trace(first, again)
    assert (first.name, len(first.cluster), len(first.workload)) == (family.name, 20, 100)
    other = load_trace(family.name, LoadOptions(seed=1001, nodes=20, pods=100))
    assert not np.array_equal(first.workload.pods, other.workload.pods)


def test_pods_that_name_models_meet_nodes_that_have_them():
    trace = load_trace("openb-model-bound", LoadOptions(seed=1000, nodes=200, pods=2000))
    named = {model for spec in trace.workload.gpu_specs for model in spec.split("|") if model}
    assert named - {"A10"} <= set(trace.cluster.gpu_models)


def test_no_pods_cannot_be_generated():
    with pytest.raises(UsageError, match="0 pods"):
        load_trace("openb-cpu-heavy", LoadOptions(pods=0))
