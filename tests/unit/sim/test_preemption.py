from dataclasses import replace

import numpy as np
import pytest

from podium.errors import InputError, PolicyError, UsageError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import PodSelector, Requirement
from podium.model.disruption import DisruptionBudget
from podium.reports.explanation import explain
from podium.reports.summary import summarise
from podium.sim import Replay, Result, Rounds, Setup, preemption, simulate
from podium.sim.audit import audit
from podium.sim.feasible import moment_at
from podium.sim.recount import recount
from podium.sim.state_at import state_at
from podium.sim.stepping import VectorEnvironment, stepped_plan
from podium.sim.timeline import timeline

NODE = NodeSpec("n", 8000, 8000, 2, "A")
PREEMPTING = Replay(preemption=True)


def pod(name, arrival_s, priority, *, gpus=2, duration_s=10.0, **more):
    return PodSpec(
        name, 1000, 100, gpus, 1000, arrival_s=arrival_s, duration_s=duration_s,
        priority=priority, **more,
    )  # fmt: skip


def run(pods, nodes=(NODE,), protocol=PREEMPTING, policy="first-fit", budgets=()):
    workload = Workload.of(pods, budgets=budgets)
    result = simulate(Cluster.of(nodes), workload, policy, protocol, Setup(ranks="listed"))
    assert audit(result, result.metrics).problems == ()
    return result


def evicted(result):
    names = result.plan.arrivals.names
    found = zip(result.evicted, result.evictions.preemptor, strict=True)
    return [(names[victim], names[preemptor]) for victim, preemptor in found]


def test_a_pod_evicts_one_of_lower_priority_which_begins_anew():
    result = run([pod("low", 0.0, 0), pod("high", 4.0, 1)])
    assert evicted(result) == [("low", "high")]
    assert result.changes.tolist() == [1, -1, 2, -2, 1, -1]
    assert result.start_s.tolist() == [14.0, 4.0]
    assert result.finish_s.tolist() == [24.0, 14.0]
    assert (result.evictions.start_s.tolist(), result.evictions.end_s.tolist()) == ([0.0], [4.0])


def test_without_the_setting_it_waits():
    result = run([pod("low", 0.0, 0), pod("high", 4.0, 1)], protocol=Replay())
    assert (result.evictions, result.start_s.tolist()) == (None, [0.0, 10.0])


def test_equal_priorities_and_pods_that_never_preempt_evict_nobody():
    assert evicted(run([pod("one", 0.0, 1), pod("two", 4.0, 1)])) == []
    assert evicted(run([pod("low", 0.0, 0), pod("meek", 4.0, 1, never_preempts=True)])) == []


def test_a_meek_pod_in_front_does_not_keep_its_twin_from_evicting():
    pods = [pod("low", 0.0, 0), pod("meek", 4.0, 1, never_preempts=True), pod("bold", 5.0, 1)]
    assert evicted(run(pods)) == [("low", "bold")]


def test_as_many_as_possible_stay_and_the_less_important_leave():
    pods = [pod("old", 0.0, 0, gpus=1), pod("young", 1.0, 0, gpus=1), pod("high", 2.0, 5, gpus=1)]
    assert evicted(run(pods)) == [("young", "high")]
    aged = [replace(each, node="n", arrival_s=0.0) for each in pods[:2]]
    aged[1] = replace(aged[1], age_s=100.0)
    assert evicted(run([*aged, pods[2]])) == [("old", "high")]


def test_what_a_running_pod_had_done_before_is_lost():
    running = pod("low", 0.0, 0, duration_s=3.0, node="n", age_s=7.0)
    result = run([running, pod("high", 1.0, 1, duration_s=5.0)])
    assert (result.start_s.tolist(), result.finish_s.tolist()) == ([6.0, 1.0], [16.0, 6.0])
    assert result.metrics.lost_gpu_s == 2 * (7.0 + 1.0)


def test_a_budget_is_violated_only_where_nothing_else_helps():
    selector = PodSelector((Requirement("app", "In", ("x",)),))
    budget = DisruptionBudget("b", selector, min_available="1")
    pods = [
        pod("kept", 0.0, 0, gpus=1, labels={"app": "x"}),
        pod("older", 0.0, 0, gpus=1, duration_s=20.0),
        pod("high", 2.0, 5, gpus=1),
    ]
    assert evicted(run(pods, budgets=[budget])) == [("older", "high")]
    both = [*pods[:2], pod("large", 2.0, 5, gpus=2)]
    assert {victim for victim, _ in evicted(run(both, budgets=[budget]))} == {"kept", "older"}


def test_the_node_with_the_cheapest_victims_is_chosen():
    nodes = [NODE, replace(NODE, name="m")]
    pods = [pod("dear", 0.0, 3), pod("cheap", 0.0, 1), pod("high", 2.0, 5)]
    assert evicted(run(pods, nodes)) == [("cheap", "high")]
    late = [pod("early", 0.0, 1), pod("late", 1.0, 1), pod("high", 2.0, 5)]
    assert evicted(run(late, nodes)) == [("late", "high")]


def test_who_is_evicted_may_evict_in_turn():
    nodes = [NODE, NodeSpec("m", 8000, 8000, 2, "B")]
    pods = [
        pod("low", 0.0, 0, gpu_spec="B"),
        pod("middle", 1.0, 1),
        pod("high", 2.0, 2, gpu_spec="A"),
    ]
    result = run(pods, nodes)
    assert evicted(result) == [("middle", "high"), ("low", "middle")]


def test_a_gang_evicts_nobody_and_its_members_leave_one_by_one():
    gang = [pod(f"g{i}", 0.0, 1, gpus=1, gang="g") for i in range(2)]
    assert evicted(run([pod("low", 0.0, 0, duration_s=3.0), *gang])) == []
    result = run([*gang, pod("high", 1.0, 2, gpus=1)])
    assert evicted(result) == [("g1", "high")]
    assert result.start_s.tolist() == [0.0, 10.0, 1.0]


def test_figures_count_evictions_and_what_was_lost():
    found = summarise(run([pod("low", 0.0, 0), pod("high", 4.0, 1)]))
    assert (found["evictions"], found["lost_gpu_s"]) == (1, 8.0)
    assert (found["wait_max_s"], found["waited"], found["makespan_s"]) == (10.0, 1, 24.0)
    assert found["gpu_allocation"] == pytest.approx(1.0)
    assert not {"evictions", "lost_gpu_s"} & set(
        summarise(run([pod("low", 0.0, 0)], protocol=Replay()))
    )


def test_the_digest_covers_what_was_cut_short():
    result = run([pod("low", 0.0, 0), pod("high", 4.0, 1)])
    other = replace(result.evictions, start_s=result.evictions.start_s + 1)
    assert replace(result, evictions=other, derived={}).digest != result.digest


def test_states_and_samples_know_the_stints():
    result = run([pod("low", 0.0, 0), pod("high", 4.0, 1)])
    free = [state_at(result, i)["gpu_milli_left"][0, :2].sum() for i in range(7)]
    assert free == [2000, 0, 2000, 0, 2000, 0, 2000]
    assert moment_at(result, 1).feasible(1).tolist() == [False]
    assert timeline(result, 25).waiting.tolist() == [0.0] * 4 + [1.0] * 10 + [0.0] * 11


def test_rounds_evict_running_pods():
    running = pod("low", 0.0, 0, node="n")
    result = run([running, pod("high", 0.0, 1)], protocol=Rounds(preemption=True))
    assert (evicted(result), result.status.tolist()) == ([("low", "high")], [0, 1])
    assert (result.metrics.placed, result.metrics.unplaced) == (1, 0)
    assert repr(result).endswith("rounds, 1 pods bound, 1 of 1 pods placed>")


def test_an_explanation_names_who_left():
    found = explain(result := run([pod("low", 0.0, 0), pod("high", 4.0, 1)]), "high")
    assert (found.node, found.evicted, found.times_evicted) == ("n", ("low",), 0)
    assert explain(result, "low").as_object()["times_evicted"] == 1
    assert "evicted" not in explain(result, "low").as_object()


def test_a_saved_result_comes_back_with_its_evictions(tmp_path):
    selector = PodSelector((Requirement("app", "Exists"),))
    budgets = [DisruptionBudget("b", selector, "ml", max_unavailable="50%")]
    pods = [
        pod("low", 0.0, 0, node="n", age_s=1.5),
        pod("meek", 3.0, 1, never_preempts=True),
        pod("high", 4.0, 1),
    ]
    result = run(pods, budgets=budgets)
    result.save(tmp_path / "run")
    again = Result.load(tmp_path / "run")
    assert (again.digest, evicted(again)) == (result.digest, [("low", "high")])
    assert again.finish_s.tolist() == result.finish_s.tolist()
    assert again.plan.protocol == PREEMPTING
    assert again.plan.arrivals.budgets == tuple(budgets)
    assert again.plan.arrivals.never_preempts == (False, True, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("node", 7), ("preemptor", 0), ("end_s", -1.0), ("at", 0), ("slots", 1), ("start_s", 9.0)],
)
def test_a_file_with_evictions_that_cannot_be_is_refused(tmp_path, name, value):
    result = run([pod("low", 0.0, 0), pod("high", 4.0, 1)])
    kind = getattr(result.evictions, name).dtype
    wrong = replace(result.evictions, **{name: np.array([value], kind)})
    replace(result, evictions=wrong, derived={}).save(tmp_path / "run")
    with pytest.raises(InputError):
        Result.load(tmp_path / "run")


def test_a_recount_finds_an_eviction_for_nobody_higher():
    result = run([pod("low", 0.0, 0), pod("high", 4.0, 1)])
    wrong = replace(result.evictions, preemptor=np.array([0]))
    told = recount(replace(result, evictions=wrong, derived={})).problems
    assert told[0] == 'pod "low" was evicted for a pod of no higher priority'


def test_lists_grow_with_evictions():
    # One long pod is evicted by each of many short ones.
    pods = [pod("low", 0.0, 0, duration_s=1.5)]
    pods += [pod(f"high-{i}", float(i) + 1, 1, duration_s=0.5) for i in range(60)]
    result = run(pods)
    assert (len(result.evicted), len(result.changes)) == (60, 2 * 61 + 2 * 60)


def test_a_run_with_preemption_cannot_be_stepped():
    workload = Workload.of([pod("p", 0.0, 0)])
    with pytest.raises(UsageError, match="cannot be stepped"):
        VectorEnvironment([stepped_plan(Cluster.of([NODE]), workload, PREEMPTING)])


def test_a_failing_policy_is_named(tmp_path):
    path = tmp_path / "picky.py"
    path.write_text(
        "def score(pod, node, gpu):\n"
        "    if pod.priority > 0 and gpu >= 0:\n"
        "        return float('nan')\n"
        "    return 1.0\n"
    )
    low = replace(pod("low", 0.0, 0), gpu_count=1)
    share = replace(pod("high", 1.0, 1), gpu_count=1, gpu_milli=500)
    with pytest.raises(PolicyError, match="NaN"):
        run([low, replace(low, name="other"), share], policy=str(path))


def test_the_lists_are_private_to_a_run():
    cluster, workload = Cluster.of([NODE]), Workload.of([pod("low", 0.0, 0), pod("high", 4.0, 1)])
    digests = {simulate(cluster, workload, "first-fit", PREEMPTING).digest for _ in range(2)}
    assert len(digests) == 1
    assert workload.duration_s.tolist() == [10.0, 10.0]


def test_victims_are_not_looked_for_where_nobody_lower_runs(monkeypatch):
    asked, compiled = [], preemption.preempter()

    def counted(run, space):
        asked.append(int(run["offered"][0]))
        return compiled(run, space)

    monkeypatch.setattr(preemption, "preempter", lambda: counted)
    pods = [pod(f"p{i}", float(i), i, gpus=1, duration_s=1000.0) for i in range(60)]
    result = run(pods)
    # Whoever comes evicts the lowest; those evicted before are refused without a question.
    assert len(result.evicted) == len(asked) == 58
    assert result.decisions > 1500


def test_victims_are_looked_for_again_where_somebody_lower_has_begun():
    nodes = [NODE, replace(NODE, name="m")]
    result = run(
        [pod("top", 0.0, 9, duration_s=99.0), pod("mid", 1.0, 5, duration_s=4.0),
         pod("next", 2.0, 5), pod("low", 3.0, 1, duration_s=50.0), pod("last", 20.0, 5)],
        nodes,
    )  # fmt: skip
    assert evicted(result) == [("low", "last")]
