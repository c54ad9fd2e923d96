"""As the chart installs it, Podium keeps every preference as often as the cluster without it.

The nodes are in use unevenly, so that every policy has favourites; preferences point elsewhere:
what a pod prefers must outvote what the policy prefers, whichever policy it is.
"""

import copy
import json

import pytest

from podium.policies import catalogue
from support.extended import as_installed, figure, podium, wait_until_decided
from support.kubelike import gpu_node, gpu_pod

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = ("a", "b", "c")
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
COUNT = 9
NEUTRAL = 'podium_extender_neutral_total{reason="policy",verb="prioritize"}'


def nodes():
    """Writes 18 nodes in three zones; the first third of them is merely disliked."""
    made = []
    for i in range(18):
        made.append(gpu_node(f"node-{i:02}", 8, labels={ZONE: ZONES[i % 3], HOST: f"node-{i:02}"}))
        if i < 6:
            made[-1]["spec"] = {"taints": [{"key": "spot", "effect": "PreferNoSchedule"}]}
    return made


def running():
    """Writes pods that run: more on some nodes, and one that others would like to be near."""
    made = []
    for i in range(18):
        each = gpu_pod(f"old-{i:02}", (0, 1, 3, 5, 6, 2)[i % 6])
        each["metadata"]["labels"] = {"app": "anchor"} if i == 7 else {}
        each["spec"]["nodeName"] = f"node-{i:02}"
        made.append(each)
    return made


def group(name, gpus=0, **spec):
    """Writes pods of one preference."""
    made = [gpu_pod(f"{name}-{i:02}", gpus, **copy.deepcopy(spec)) for i in range(COUNT)]
    for each in made:
        each["metadata"]["labels"] = {"app": name}
    return made


def prefer_zone(name, weight):
    rule = {"key": ZONE, "operator": "In", "values": [name]}
    term = {"weight": weight, "preference": {"matchExpressions": [rule]}}
    return {"affinity": {"nodeAffinity": {PREFERRED: [term]}}}


def near(kind, app, key):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {kind: {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}}}


def spread(app):
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    return {"topologySpreadConstraints": [rule | {"labelSelector": {"matchLabels": {"app": app}}}]}


def pods():
    """Writes groups with one preference each, and one that only dislikes soft taints."""
    return [
        *group("zone", 1, **prefer_zone("b", 100)),
        *group("lightly", **prefer_zone("c", 1)),
        *group("apart", **near("podAntiAffinity", "apart", HOST)),
        *group("beside", **near("podAffinity", "anchor", ZONE)),
        *group("spread", **spread("spread")),
        *group("plain", 1),
    ]


def kept(found):
    """Counts how far each preference was kept."""
    at = {
        name: [where for pod, where in found.items() if pod.startswith(f"{name}-")]
        for name in ("zone", "lightly", "apart", "beside", "spread", "plain")
    }
    zones = {name: [ZONES[int(node[-2:]) % 3] for node in where] for name, where in at.items()}
    return {
        "preferred zone": zones["zone"].count("b"),
        "preferred zone of weight 1": zones["lightly"].count("c"),
        "hosts of pods that stay apart": len({*at["apart"]}),
        "near whom they like": zones["beside"].count("b"),
        "smallest share of a zone": min(map(zones["spread"].count, ZONES)),
        "off soft taints": sum(int(node[-2:]) >= 6 for node in at["plain"]),
    }


def scheduled(plane, api, url):
    """Lets kube-scheduler place all pods, one after the other; gives what became of preferences."""
    api.create_all([*nodes(), *running()])
    choosy = pods()
    with plane.scheduler(as_installed(url)):
        api.create_all(choosy)
        found = wait_until_decided(api, choosy)
    return kept(found)


@pytest.fixture(scope="module")
def without(plane):
    """Says how far preferences are kept by the chart's kube-scheduler alone."""
    found = scheduled(plane, plane.api, "")
    plane.api.clear()
    return found


def test_without_podium_every_preference_is_kept(without):
    assert without == {
        "preferred zone": COUNT,
        "preferred zone of weight 1": COUNT,
        "hosts of pods that stay apart": COUNT,
        "near whom they like": COUNT,
        "smallest share of a zone": COUNT // 3,
        "off soft taints": COUNT,
    }


@pytest.mark.parametrize("policy", [each.name for each in catalogue()])
def test_every_policy_keeps_every_preference_as_often(plane, api, without, tmp_path, policy):
    with podium(plane, tmp_path, policy=policy, decisive_points=1) as process:
        found = scheduled(plane, api, process.url)
        neutral = figure(
            process, 'podium_extender_neutral_total{reason="policy",verb="prioritize"}'
        )
    assert not neutral
    fewer = {name: (found[name], without[name]) for name in without if found[name] < without[name]}
    assert not fewer, json.dumps(fewer)
