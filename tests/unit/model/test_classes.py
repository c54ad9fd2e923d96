"""Tables of constraints: who counts where."""

import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.classes import SKEW
from podium.model.constraints import Constraints, PodSelector, PodTerm, Requirement, Spread

WEB = PodSelector((Requirement("app", "In", ("web",)),), frozenset({""}))
EVERY = PodSelector((), frozenset({""}))


def spread(selector):
    return Constraints(spread=(Spread(selector, "zone"),))


def near(selector):
    return Constraints(affinity=(PodTerm(selector, "zone"),))


def tables_of(constraints, **running):
    """Writes the tables for one pod that runs and one that waits; gives both classes."""
    cluster = Cluster.of([NodeSpec("a", 1000, 1024, labels={"zone": "z"})])
    labels = {"app": "web"}
    pods = [
        PodSpec("old", 100, 64, labels=labels, node="a", **running),
        PodSpec("new", 100, 64, labels=labels, constraints=constraints),
    ]
    workload = Workload.of(pods).on(cluster)
    return [workload.tables.classes[number] for number in workload.class_of]


@pytest.mark.parametrize(
    ("constraints", "is_terminating", "counts"),
    [
        (spread(WEB), False, True),
        (spread(WEB), True, False),
        (near(WEB), True, True),
        (near(EVERY), False, True),
        (spread(EVERY), False, False),
    ],
)
def test_who_runs_counts_as_kube_scheduler_counts(constraints, is_terminating, counts):
    """A pod that is deleted, or an empty selector, counts for affinity but not for spread."""
    old, new = tables_of(constraints, is_terminating=is_terminating)
    (rule,) = new.rules
    assert (rule.group in old.members) == counts


def test_an_empty_selector_of_a_spread_selects_the_pod_itself():
    _, new = tables_of(spread(EVERY))
    assert [(rule.kind, rule.own) for rule in new.rules] == [(SKEW, 1)]


def test_pods_that_are_deleted_stay_so():
    pods = [PodSpec("old", 1, 1, node="a", is_terminating=True), PodSpec("new", 1, 1)]
    assert Workload.of(pods).specs() == pods
    assert Workload.of(pods[1:]).is_terminating == ()
