import pytest
import yaml

from podium.model.constraints import (
    HostPort,
    NodeTerm,
    PodSelector,
    PodTerm,
    Requirement,
    Spread,
    Taint,
    Toleration,
)
from podium.traces.fields import FieldError
from podium.traces.kubernetes.constraints import (
    Namespaces,
    Site,
    has_preferences,
    has_unknown_namespaces,
    pod_constraints,
    read_taints,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
OWN = frozenset({"ml"})


def read(text, labels=None, namespaces=None, namespace="ml"):
    site = Site(namespace, labels or {}, namespaces or Namespaces())
    return pod_constraints(yaml.safe_load(text) or {}, site)


def required(kind, *terms):
    return yaml.safe_dump({"affinity": {kind: {REQUIRED: list(terms)}}})


def selector(*requirements, namespaces=OWN):
    return PodSelector(requirements, namespaces)


def test_a_plain_pod_has_no_constraints():
    constraints = read("containers: [{name: main}]")
    assert constraints.selects_node("n", {})
    assert not any((constraints.tolerations, constraints.spread, constraints.host_ports))
    assert constraints.node_terms is None


def test_the_node_selector_and_every_operator_of_the_node_affinity_are_read():
    found = read(f"""
nodeSelector: {{zone: a, disk: ssd}}
affinity:
  nodeAffinity:
    {REQUIRED}:
      nodeSelectorTerms:
      - matchExpressions:
        - {{key: a, operator: In, values: [x, y]}}
        - {{key: b, operator: NotIn, values: [x]}}
        - {{key: c, operator: Exists}}
        - {{key: d, operator: DoesNotExist}}
        - {{key: e, operator: Gt, values: ["3"]}}
        - {{key: f, operator: Lt, values: ["9"]}}
      - matchFields:
        - {{key: metadata.name, operator: In, values: [node-1]}}
""")
    assert found.node_labels == (("disk", "ssd"), ("zone", "a"))
    first, second = found.node_terms
    assert [(r.key, r.operator, r.values) for r in first.labels] == [
        ("a", "In", ("x", "y")), ("b", "NotIn", ("x",)), ("c", "Exists", ()),
        ("d", "DoesNotExist", ()), ("e", "Gt", ("3",)), ("f", "Lt", ("9",)),
    ]  # fmt: skip
    assert second == NodeTerm(fields=(Requirement("metadata.name", "In", ("node-1",)),))
    assert found.selects_node("node-1", {"zone": "a", "disk": "ssd"})
    assert not found.selects_node("node-2", {"zone": "a", "disk": "ssd"})


def test_a_required_affinity_without_terms_admits_no_node():
    found = read(yaml.safe_dump({"affinity": {"nodeAffinity": {REQUIRED: {}}}}))
    assert not found.selects_node("n", {})


def test_tolerations_are_read_as_the_api_server_prints_them():
    found = read("""
tolerations:
- {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
- {key: team, value: ml, effect: NoExecute, tolerationSeconds: 300}
- {operator: Exists}
""")
    assert found.tolerations == (
        Toleration("nvidia.com/gpu", "Exists", "", "NoSchedule"),
        Toleration("team", "Equal", "ml", "NoExecute"),
        Toleration("", "Exists"),
    )


def test_taints_are_read():
    node = {"taints": [{"key": "a", "value": "b", "effect": "NoExecute"}]}
    assert read_taints(node, "spec.taints") == (Taint("a", "b", "NoExecute"),)
    with pytest.raises(FieldError) as caught:
        read_taints({"taints": [{"key": "a", "effect": "Never"}]}, "spec.taints")
    assert caught.value.field == "spec.taints[0].effect"


def test_pod_affinity_selects_by_labels_in_the_own_namespace():
    term = {
        "topologyKey": HOST,
        "labelSelector": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["db"]}],
        },
    }
    found = read(required("podAntiAffinity", term))
    rules = (Requirement("app", "In", ("web",)), Requirement("tier", "NotIn", ("db",)))
    assert found.anti_affinity == (PodTerm(PodSelector(rules, OWN), HOST),)
    assert found.affinity == ()


@pytest.mark.parametrize(
    ("written", "requirements"),
    [({}, None), ({"labelSelector": None}, None), ({"labelSelector": {}}, ())],
)
def test_no_selector_selects_nothing_and_an_empty_one_everything(written, requirements):
    found = read(required("podAffinity", {"topologyKey": HOST} | written))
    assert found.affinity[0].selector.requirements == requirements


def test_label_keys_are_merged_as_the_api_server_does():
    term = {
        "topologyKey": HOST,
        "labelSelector": {"matchExpressions": [{"key": "v", "operator": "In", "values": ["1"]}]},
        "matchLabelKeys": ["v", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    found = read(required("podAffinity", term), labels={"v": "1", "tenant": "a"})
    merged = (Requirement("v", "In", ("1",)), Requirement("tenant", "NotIn", ("a",)))
    assert found.affinity[0].selector.requirements == merged
    del term["labelSelector"]
    found = read(required("podAffinity", term), labels={"v": "1"})
    assert found.affinity[0].selector.requirements is None


ANY = {"topologyKey": HOST, "labelSelector": {}}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, {"ml"}),
        ({"namespaces": ["a", "b"]}, {"a", "b"}),
        ({"namespaces": ["default"]}, {"", "default"}),
        ({"namespaceSelector": {}}, None),
        ({"namespaces": ["a"], "namespaceSelector": {}}, None),
        ({"namespaceSelector": {"matchLabels": {"team": "ml"}}}, {"research"}),
        ({"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"team": "ml"}}},
         {"a", "research"}),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "prod"}}},
         {"prod"}),
    ],
)  # fmt: skip
def test_the_namespaces_of_a_term_are_resolved(written, expected):
    known = Namespaces({"research": {"team": "ml"}, "prod": {}}, {"ml"})
    found = read(required("podAffinity", ANY | written), namespaces=known)
    assert found.affinity[0].selector.namespaces == (expected and frozenset(expected))


def test_a_term_whose_namespaces_do_not_exist_selects_no_pod():
    """It is not taken for one without namespaces, which means the pod's own."""
    known = Namespaces({"research": {"team": "ml"}}, {"ml"})
    selector = {"namespaceSelector": {"matchLabels": {"team": "web"}}}
    found = read(required("podAffinity", ANY | selector), namespaces=known)
    assert found.affinity[0].selector.requirements is None


def test_labels_of_namespaces_are_unknown_without_their_objects():
    seen = Namespaces(seen={"ml", "prod"})
    by_label = {"namespaceSelector": {"matchLabels": {"team": "ml"}}}
    by_name = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "prod"}}}
    for more, is_unknown in (
        (by_label, True),
        (by_name, False),
        ({"namespaceSelector": {}}, False),
    ):
        spec = yaml.safe_load(required("podAffinity", ANY | more))
        assert has_unknown_namespaces(spec, seen) == is_unknown
    assert read(required("podAffinity", ANY | by_label), namespaces=seen).affinity == ()
    found = read(required("podAffinity", ANY | by_name), namespaces=seen)
    assert found.affinity[0].selector.namespaces == {"prod"}


def test_hard_spread_is_a_constraint_and_soft_spread_a_preference():
    text = f"""
topologySpreadConstraints:
- maxSkew: 2
  minDomains: 3
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: DoNotSchedule
  labelSelector: {{matchLabels: {{app: web}}}}
  matchLabelKeys: [pod-template-hash]
  nodeAffinityPolicy: Ignore
  nodeTaintsPolicy: Honor
- maxSkew: 1
  topologyKey: {HOST}
  whenUnsatisfiable: ScheduleAnyway
- maxSkew: 1
  topologyKey: {HOST}
  whenUnsatisfiable: DoNotSchedule
"""
    found = read(text, labels={"app": "web", "pod-template-hash": "7f"})
    rules = (Requirement("app", "In", ("web",)), Requirement("pod-template-hash", "In", ("7f",)))
    zone = "topology.kubernetes.io/zone"
    assert found.spread == (
        Spread(selector(*rules), zone, 2, 3, honors_affinity=False, honors_taints=True),
        Spread(PodSelector(None, OWN), HOST, 1, 1, honors_affinity=True, honors_taints=False),
    )
    assert has_preferences(yaml.safe_load(text))


def test_preferences_are_no_constraints():
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
    for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        spec = {"affinity": {kind: preferred}}
        assert has_preferences(spec)
        assert read(yaml.safe_dump(spec)) == read("{}")
    assert not has_preferences({})


def test_host_ports_of_containers_and_sidecars_are_read():
    found = read("""
containers:
- ports:
  - {containerPort: 80, hostPort: 8080}
  - {containerPort: 53, hostPort: 53, protocol: UDP, hostIP: 10.0.0.1}
  - {containerPort: 81, hostPort: 81, hostIP: 0.0.0.0}
  - {containerPort: 9}
initContainers:
- {restartPolicy: Always, ports: [{containerPort: 1, hostPort: 100}]}
- {ports: [{containerPort: 1, hostPort: 200}]}
""")
    assert found.host_ports == (
        HostPort(8080), HostPort(53, "UDP", "10.0.0.1"), HostPort(81), HostPort(100),
    )  # fmt: skip


def test_on_the_network_of_the_host_container_ports_are_host_ports():
    text = "{hostNetwork: true, containers: [{ports: [{containerPort: 9100}]}]}"
    assert read(text).host_ports == (HostPort(9100),)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"tolerations": [{"key": "a", "operator": "In"}]}, "spec.tolerations[0].operator"),
        ({"tolerations": [{"effect": "Never", "operator": "Exists"}]},
         "spec.tolerations[0].effect"),
        ({"tolerations": [{"value": "x"}]}, "spec.tolerations[0].operator"),
        ({"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 0}]},
         "spec.topologySpreadConstraints[0].maxSkew"),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "Never"}]},
         "spec.topologySpreadConstraints[0].whenUnsatisfiable"),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]},
         "spec.topologySpreadConstraints[0].topologyKey"),
        ({"containers": [{"ports": [{"hostPort": 70000}]}]},
         "spec.containers[0].ports[0].hostPort"),
        ({"affinity": {"podAffinity": {REQUIRED: [{}]}}},
         f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey"),
    ],
)  # fmt: skip
def test_a_wrong_value_names_its_field(spec, field):
    with pytest.raises(FieldError) as caught:
        read(yaml.safe_dump(spec))
    assert caught.value.field == field


@pytest.mark.parametrize(
    "rule",
    [
        {"key": "a", "operator": "in", "values": ["x"]},
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "values": ["x"]},
        {"key": "a", "operator": "Gt", "values": ["1", "2"]},
    ],
)
def test_a_rule_that_the_api_server_refuses_is_refused(rule):
    terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    with pytest.raises(FieldError, match="expected"):
        read(yaml.safe_dump({"affinity": {"nodeAffinity": {REQUIRED: terms}}}))
