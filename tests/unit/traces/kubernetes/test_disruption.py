import pytest

from podium.errors import InputError
from podium.model.constraints import PodSelector, Requirement
from podium.model.disruption import DisruptionBudget
from podium.traces.kubernetes.disruption import budget_object, read_budget
from podium.traces.kubernetes.manifest import read_manifests
from podium.traces.rejects import Rejects

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


@pytest.mark.parametrize("written", ["minAvailable: most", "maxUnavailable: -1"])
def test_an_amount_is_a_number_or_a_percentage(tmp_path, written):
    with pytest.raises(InputError, match="whole number or a percentage") as caught:
        read(tmp_path, DUMP % written)
    assert caught.value.where.endswith(f"spec.{written.partition(':')[0]}")


def test_what_a_controller_worked_out_counts():
    budget = DisruptionBudget("web", WEB, "", "3", desired_healthy=1)
    assert read_budget(budget_object(budget)) == budget
    assert budget.least_healthy(9) == 1


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
