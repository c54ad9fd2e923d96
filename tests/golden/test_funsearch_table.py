"""Holds the compatibility mode to the figures that the FunSearch simulator itself printed."""

import pytest

from podium.sim.funsearch import FUNSEARCH_POLICIES, run_funsearch
from support.openb import openb_cluster, openb_workload

pytestmark = pytest.mark.openb

# policy: CPU %, memory %, GPU count %, GPU milli %, fragmentation, score; failed attempts,
# snapshots, events
HEADLINE = {
    "first_fit": "43.40 24.18 69.71 60.47 0.0652 0.4292 3152 47 19456",
    "best_fit": "42.61 23.58 68.59 59.31 0.0387 0.4465 79 40 16383",
    "funsearch_4901": "45.92 26.12 73.39 63.91 0.0332 0.4901 11259 67 27563",
    "funsearch_4816": "44.34 24.93 71.39 61.68 0.0242 0.4816 2353 45 18657",
    "funsearch_4800": "44.69 25.20 71.53 61.98 0.0285 0.4800 2299 45 18603",
}

# policy: time-weighted GPU count %, time-weighted CPU %, mean wait s, pods that waited,
# max wait s, makespan s
UNREPORTED = {
    "first_fit": "26.04 16.44 453.1 39 1606410 12911324",
    "best_fit": "26.06 16.45 21.7 20 93762 12902960",
    "funsearch_4901": "25.86 16.32 3906.0 364 2269724 13004959",
    "funsearch_4816": "26.04 16.44 279.3 43 874638 12911144",
    "funsearch_4800": "26.04 16.44 284.9 30 874638 12911144",
}


@pytest.fixture(scope="module")
def cluster():
    return openb_cluster("16_node")


@pytest.fixture(scope="module")
def default_pods():
    return openb_workload("default")


@pytest.mark.parametrize("policy", HEADLINE)
def test_a_policy_gets_the_figures_of_the_original_and_the_waits_it_hides(
    policy, cluster, default_pods
):
    result = run_funsearch(cluster, default_pods, FUNSEARCH_POLICIES[policy])
    assert result.placed == 8152
    assert headline(result) == HEADLINE[policy]
    assert unreported(result) == UNREPORTED[policy]


@pytest.mark.parametrize("policy", ["first_fit", "best_fit", "funsearch_4901"])
def test_nothing_waits_when_every_pod_shares_a_gpu_so_that_all_policies_look_alike(policy, cluster):
    result = run_funsearch(cluster, openb_workload("gpushare100"), FUNSEARCH_POLICIES[policy])
    assert f"{100 * result.gpu_count:.2f} {100 * result.gpu_milli:.2f}" == "37.46 18.27"
    assert (result.fragmentation, result.failed_attempts, result.waited) == (0, 0, 0)
    assert f"{result.score:.4f}" == "0.2153"


def headline(result):
    shares = (result.cpu, result.memory, result.gpu_count, result.gpu_milli)
    figures = [f"{100 * share:.2f}" for share in shares]
    figures += [f"{result.fragmentation:.4f}", f"{result.score:.4f}"]
    figures += [str(result.failed_attempts), str(result.snapshots), str(result.events)]
    return " ".join(figures)


def unreported(result):
    shares = (result.time_weighted_gpu_count, result.time_weighted_cpu)
    figures = [f"{100 * share:.2f}" for share in shares]
    figures += [f"{result.wait_mean_s:.1f}", str(result.waited)]
    figures += [f"{result.wait_max_s:.0f}", f"{result.makespan_s:.0f}"]
    return " ".join(figures)
