"""Podium and the real kube-scheduler call the same nodes feasible, in 300 drawn clusters.

Where they differ on purpose, nothing is drawn, and docs/traces.md says so:

- A namespaceSelector of a pod that waits, made of `NotIn` and `DoesNotExist` alone: kube-scheduler
  takes it for every namespace (below).
- A node that does not list `pods`, or lists 1001 of them: Podium does not bound them.
- A node that is cordoned or not ready and not yet tainted for it: Podium adds the taint that the
  node lifecycle controller would.
- Memory that is no whole number of MiB: Podium rounds requests up and capacities down.
"""

import json

import pytest
import yaml

from podium.traces import load_trace
from support.manifests import bound, node, pod
from support.present import feasible_nodes
from support.random_worlds import REQUIRED, RUNTIME_CLASS, ZONE, draw_world

WORLDS = 300


@pytest.fixture(scope="module", autouse=True)
def runtime_class(plane):
    """Makes the RuntimeClass whose overhead some pods have."""
    plane.api.create(RUNTIME_CLASS)
    yield
    plane.api.delete(RUNTIME_CLASS)


@pytest.fixture
def podium(tmp_path):
    """Asks Podium which nodes are feasible for each of some pods, through a file."""

    def ask(pending, cluster):
        items = {"apiVersion": "v1", "kind": "List", "items": [*cluster, *pending]}
        file = tmp_path / "dump.json"
        file.write_text(json.dumps(items))
        trace = load_trace(str(file))
        return [feasible_nodes(trace, each["metadata"]["name"]) for each in pending]

    return ask


@pytest.mark.parametrize("seed", range(WORLDS))
def test_the_same_nodes_are_feasible(oracle, podium, seed):
    world = draw_world(seed)
    verdicts = oracle.verdicts(world.pending, world.cluster)
    answers = podium(world.pending, world.cluster)
    for asked, verdict, answer in zip(world.pending, verdicts, answers, strict=True):
        assert answer == verdict.nodes, difference(world, asked, verdict, answer)


def difference(world, asked, verdict, answer):
    """Writes a world down so that it can be looked at, with both answers."""
    return "\n".join(
        (
            yaml.safe_dump_all([*world.cluster, asked], sort_keys=False),
            f"# pod            {asked['metadata']['name']}",
            f"# kube-scheduler {sorted(verdict.nodes)} {verdict.message}",
            f"# Podium         {sorted(answer)}",
        )
    )


def test_every_kind_of_constraint_is_drawn():
    worlds = [draw_world(seed) for seed in range(WORLDS)]
    specs = [each["spec"] for world in worlds for each in world.pending]
    assert len(specs) > 1_000
    for field in ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints",
                  "overhead", "resources", "hostNetwork"):  # fmt: skip
        assert sum(field in spec for spec in specs) > 10, field


def test_namespaces_are_selected_by_what_they_lack(oracle, podium):
    """kube-scheduler v1.36 compares the selector with no labels at all, not with a namespace's.

    Interpodaffinity merges the selected namespaces into a copy of the term, whose selector stays.
    Once this fails, Kubernetes has mended it: draw such selectors for pods that wait, too.
    """
    term = {
        "topologyKey": ZONE,
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
    }
    asked = pod("p", affinity={"podAffinity": {REQUIRED: [term]}})
    team = {"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "ml", "labels": {"team": "ml"}}}  # fmt: skip
    near = bound(pod("old", {"app": "web"}, namespace="ml"), "a")
    cluster = [team, node("a", {ZONE: "a"}), node("b", {ZONE: "b"}), near]
    assert oracle.feasible_nodes(asked, cluster) == {"a"}
    assert podium([asked], cluster) == [set()]
