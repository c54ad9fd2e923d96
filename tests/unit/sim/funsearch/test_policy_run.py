# ruff: noqa: ARG001, ARG005 - a policy takes the pod and the node, whatever it reads of them
import numpy as np
import pytest

from podium.errors import InputError, PolicyError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import HOLD, from_function, load
from podium.sim.funsearch import FUNSEARCH_POLICIES, FunsearchCase, run_funsearch, run_policy
from podium.sim.funsearch.events import CREATED, DELETED
from podium.sim.funsearch.scores import fits


def crowded(pods=300, seed=5):
    """Builds a cluster on which pods of all kinds wait and fail again and again."""
    random = np.random.default_rng(seed)
    nodes = [NodeSpec(f"n{i}", 32000, 64000, gpus, "P100") for i, gpus in enumerate((4, 2, 8, 1))]
    specs = []
    for i in range(pods):
        gpus = int(random.choice([0, 1, 1, 1, 2, 4]))
        milli = int(random.choice([200, 500, 750, 1000])) if gpus == 1 else 1000 * (gpus > 0)
        specs.append(
            PodSpec(
                f"p{random.integers(10**6)}-{i}", int(random.integers(1, 12)) * 1000,
                int(random.integers(1, 24)) * 1000, gpus, milli, "A100" if i % 7 == 0 else "",
                float(random.integers(0, 900)), float(random.integers(1, 400)),
            )
        )  # fmt: skip
    return Cluster.of(nodes), Workload.of(specs)


def fullest(pod, node):
    """Prefers nodes with little CPU left, then with little memory."""
    return 1e9 - node.cpu_milli_left * 100 - node.memory_mib_left / 1000


def fullest_by_their_rules(pod, node):
    return fullest(pod, node) if fits(pod, node) else 0


def test_a_policy_of_podium_meets_the_events_of_the_original_to_the_last_figure():
    cluster, workload = crowded()
    ours = run_policy(cluster, workload, load("first-fit"))
    assert ours == run_funsearch(cluster, workload, FUNSEARCH_POLICIES["first_fit"])
    assert ours.failed_attempts > 100


def test_machine_code_and_plain_python_are_played_alike():
    cluster, workload = crowded()
    case, policy = FunsearchCase.of(cluster, workload), from_function(fullest)
    expected = run_funsearch(cluster, workload, fullest_by_their_rules)
    assert case.run(policy) == case.run_plainly(policy) == expected


def test_a_policy_that_scores_gpus_is_asked_about_the_one_that_a_share_would_get():
    seen = []

    def by_gpu(pod, node, gpu):
        seen.append((pod.gpu_milli, gpu, node.gpu_milli_left[gpu] if gpu >= 0 else -1))
        return 1.0

    pods = [
        PodSpec("a", 0, 0, 1, 600, "", 0, 100), PodSpec("b", 0, 0, 1, 300, "", 1, 100),
        PodSpec("c", 0, 0, 2, 1000, "", 2, 100), PodSpec("d", 0, 0, 0, 0, "", 3, 100),
    ]  # fmt: skip
    cluster = Cluster.of([NodeSpec("n", 1000, 1000, 4, "P100")])
    FunsearchCase.of(cluster, Workload.of(pods)).run_plainly(from_function(by_gpu))
    assert seen == [(600, 0, 1000), (300, 0, 400), (1000, -1, -1), (0, -1, -1)]


def test_a_cluster_policy_chooses_among_the_nodes_that_fit_by_those_rules():
    cluster, workload = crowded(60)
    found = run_policy(cluster, workload, load("round-robin"))
    assert found.placed == 60
    assert found.events == 2 * 60 + found.failed_attempts


def test_holding_is_a_failed_attempt_with_room_and_is_counted():
    def picky(pod, node):
        return 1.0 if node.cpu_milli_left == 2000 else HOLD

    pods = [PodSpec(name, 1000, 0, 0, 0, "", i, 10) for i, name in enumerate("ab")]
    cluster = Cluster.of([NodeSpec("n", 2000, 2000, 0, "")])
    found = run_policy(cluster, Workload.of(pods), from_function(picky))
    assert (found.placed, found.failed_attempts, found.held) == (2, 1, 1)


def test_the_log_has_every_event_that_is_counted():
    cluster, workload = crowded(60)
    case, policy = FunsearchCase.of(cluster, workload), load("first-fit")
    log, found = case.log(policy), case.run(policy)
    assert len(log.kind) == found.events
    assert (log.kind == CREATED).sum() == (log.kind == DELETED).sum() == found.placed
    lost = log.lost_milli[(log.kind != CREATED) & (log.kind != DELETED)]
    assert lost.mean() / cluster.gpu_milli_total == pytest.approx(found.fragmentation)


def test_what_retries_add_to_the_score_is_seen_beside_it():
    cluster, workload = crowded()
    found = run_policy(cluster, workload, load("first-fit"))
    assert found.score != found.score_without_retries
    alone = Workload.of([PodSpec("a", 1000, 0, 0, 0, "", 0, 10)])
    found = run_policy(cluster, alone, load("first-fit"))
    assert found.score == found.score_without_retries


@pytest.mark.parametrize("run", ["run", "run_plainly"])
def test_a_policy_that_fails_is_named_with_pod_and_node(run):
    def broken(pod, node):
        return 1.0 / (node.cpu_milli_left - 2000)

    cluster = Cluster.of([NodeSpec("n", 2000, 2000, 0, "")])
    case = FunsearchCase.of(cluster, Workload.of([PodSpec("a", 1000, 0, 0, 0, "", 0, 10)]))
    with pytest.raises(PolicyError, match="division by zero") as caught:
        getattr(case, run)(from_function(broken))
    assert 'pod "a" on node "n"' in caught.value.where


def test_a_score_without_end_is_refused():
    cluster, workload = crowded(5)
    with pytest.raises(PolicyError, match="NaN or infinite"):
        run_policy(cluster, workload, from_function(lambda pod, node: float("inf")))


def test_a_policy_that_holds_for_ever_is_given_up():
    cluster, _ = crowded(1)
    pods = [PodSpec(f"p{i}", i % 2, 0, 0, 0, "", 0, 10_000 + i) for i in range(2000)]
    held = from_function(lambda pod, node: HOLD if pod.cpu_milli else 1.0)
    with pytest.raises(PolicyError, match="failed to find a node more than"):
        run_policy(cluster, Workload.of(pods), held)


def test_pods_without_times_are_refused():
    cluster, _ = crowded(1)
    with pytest.raises(InputError, match="no arrival and run times"):
        run_policy(cluster, Workload.of([PodSpec("a", 1, 1)]), load("first-fit"))


def test_load_divides_the_time_between_arrivals():
    cluster = Cluster.of([NodeSpec("n", 1000, 1000, 0, "")])
    pods = [PodSpec(name, 1000, 0, 0, 0, "", 20 * i, 10) for i, name in enumerate("ab")]
    policy = load("first-fit")
    assert FunsearchCase.of(cluster, Workload.of(pods)).run(policy).waited == 0
    assert FunsearchCase.of(cluster, Workload.of(pods), load=4.0).run(policy).waited == 1
