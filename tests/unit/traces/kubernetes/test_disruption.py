import pytest

from podium.errors import InputError
from podium.model.constraints import PodSelector, Requirement
from podium.model.disruption import DisruptionBudget
from podium.sim import Rounds, simulate
from podium.sim.result import Result
from podium.traces.kubernetes.disruption import budget_object, read_budget
from podium.traces.kubernetes.manifest import read_manifests
from podium.traces.rejects import Rejects
from podium.traces.save import save_trace

WEB = PodSelector((Requirement("app", "In", ("web",)),))
DUMP = """\
kind: PriorityClass
metadata: {name: batch}
value: 7
preemptionPolicy: Never
---
kind: PodDisruptionBudget
metadata: {name: web, namespace: ml}
spec: {%s, selector: {matchLabels: {app: web}}}
---
kind: Pod
metadata: {name: a, namespace: ml}
spec: {priorityClassName: batch, containers: [{name: main}]}
---
kind: Pod
metadata: {name: b, namespace: ml}
spec: {priority: 7, containers: [{name: main}]}
"""


def read(tmp_path, text):
    path = tmp_path / "dump.yaml"
    path.write_text(text)
    return read_manifests(path, Rejects(is_skipping=False))


def test_budgets_and_classes_are_read_beside_pods(tmp_path):
    trace = read(tmp_path, DUMP % "minAvailable: 40%")
    assert trace.workload.budgets == (DisruptionBudget("web", WEB, "ml", min_available="40%"),)
    assert trace.workload.never_preempts == (True, False)
    assert trace.workload.pods["priority"].tolist() == [7, 7]
    assert not any("PodDisruptionBudget" in note for note in trace.notes)


DEFAULTS = """\
kind: PriorityClass
metadata: {name: high}
value: 9
globalDefault: true
---
kind: PriorityClass
metadata: {name: usual}
value: 5
globalDefault: true
preemptionPolicy: Never
---
"""


def test_pods_that_name_no_priority_have_that_of_the_default_class(tmp_path):
    pods = DUMP % "minAvailable: 1" + (
        "---\nkind: Pod\nmetadata: {name: c}\nspec: {containers: [{}]}\n"
        "---\nkind: Pod\nmetadata: {name: d}\nspec: {priority: 0, containers: [{}]}\n"
    )
    found = read(tmp_path, DEFAULTS + pods).workload
    assert found.pods["priority"].tolist() == [7, 7, 5, 0]
    assert found.never_preempts == (True, False, True, False)
    assert read(tmp_path, pods).workload.pods["priority"].tolist() == [7, 7, 0, 0]


@pytest.mark.parametrize("written", ["minAvailable: most", "maxUnavailable: -1"])
def test_an_amount_is_a_number_or_a_percentage(tmp_path, written):
    with pytest.raises(InputError, match="whole number or a percentage") as caught:
        read(tmp_path, DUMP % written)
    assert caught.value.where.endswith(f"spec.{written.partition(':')[0]}")


def test_what_a_controller_worked_out_counts():
    budget = DisruptionBudget("web", WEB, "", "3", desired_healthy=1)
    assert read_budget(budget_object(budget)) == budget
    assert budget.least_healthy(9) == 1


def test_the_status_of_a_budget_is_kept():
    status = {"disruptions_allowed": 0, "disrupted": ("a", "b")}
    budget = DisruptionBudget("web", WEB, "ml", "3", desired_healthy=1, **status)
    assert read_budget(budget_object(budget)) == budget


NODES = "kind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: 1, memory: 1Gi}}\n---\n"
CLUSTER = f"""\
{NODES % "one"}{NODES % "two"}\
kind: PodDisruptionBudget
metadata: {{name: web}}
spec: {{minAvailable: 1, selector: {{matchLabels: {{app: web}}}}}}
status: {{%s}}
---
kind: Pod
metadata: {{name: web, labels: {{app: web}}}}
spec: {{nodeName: one, containers: [{{resources: {{requests: {{cpu: 1}}}}}}]}}
status: {{phase: Running, startTime: 2026-03-01T09:00:00Z}}
---
kind: Pod
metadata: {{name: other, labels: {{app: web}}}}
spec: {{nodeName: one, containers: [{{}}]}}
status: {{phase: Running, conditions: [{{type: Ready, status: "%s"}}]}}
---
kind: Pod
metadata: {{name: free}}
spec: {{nodeName: two, containers: [{{resources: {{requests: {{cpu: 1}}}}}}]}}
status: {{phase: Running, startTime: 2026-03-01T08:00:00Z}}
---
kind: Pod
metadata: {{name: urgent}}
spec: {{priority: 9, containers: [{{resources: {{requests: {{cpu: 1}}}}}}]}}
"""


@pytest.mark.parametrize(
    ("status", "ready", "victim"),
    [
        ("", "True", "web"),
        ("", "False", "free"),
        ("disruptionsAllowed: 0", "True", "free"),
        ("disruptionsAllowed: 1", "False", "web"),
        ("disruptionsAllowed: 0, disruptedPods: {web: 2026-03-01T09:00:00Z}", "True", "web"),
    ],
)
def test_evictions_are_those_that_the_status_allows(tmp_path, status, ready, victim):
    trace = read(tmp_path, CLUSTER % (status, ready))
    protocol = Rounds(1, preemption=True)
    result = simulate(trace.cluster, trace.workload, "first-fit", protocol)
    names = result.plan.arrivals.names
    assert [names[pod] for pod in result.evicted] == [victim]
    result.save(tmp_path / "run.podium")
    kept = Result.load(tmp_path / "run.podium").plan.trace
    assert (kept.budgets, kept.is_unready) == (trace.workload.budgets, trace.workload.is_unready)


def test_readiness_is_written_and_read_again(tmp_path):
    trace = read(tmp_path, CLUSTER % ("disruptionsAllowed: 0", "False"))
    save_trace(trace, tmp_path / "again.yaml")
    again = read_manifests(tmp_path / "again.yaml", Rejects(is_skipping=False)).workload
    assert again.is_unready == trace.workload.is_unready == (False, True, False, False)
    assert again.budgets == trace.workload.budgets


@pytest.mark.parametrize(
    ("amounts", "least"),
    [
        ({"min_available": "2"}, 2),
        ({"min_available": "50%"}, 4),
        ({"max_unavailable": "1"}, 6),
        ({"max_unavailable": "50%"}, 3),
        ({"max_unavailable": "9"}, 0),
        ({}, 7),
    ],
)
def test_percentages_are_of_all_pods_and_rounded_up(amounts, least):
    assert DisruptionBudget("web", WEB, **amounts).least_healthy(7) == least


def test_a_budget_selects_labelled_pods_of_its_namespace():
    budget = DisruptionBudget("web", WEB)
    assert budget.selects("default", {"app": "web"})
    assert not budget.selects("ml", {"app": "web"})
    assert not budget.selects("", {})
    for nobody in (PodSelector(None), PodSelector(())):
        assert not DisruptionBudget("web", nobody).selects("", {"app": "web"})
