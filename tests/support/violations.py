"""Finds what bound pods violate, slowly and obviously, from the manifests alone.

It knows no more of Kubernetes than the pods of tests/cluster/test_extender_constraints.py need, and
shares no code with Podium.
"""

from collections import Counter

from podium.model.quantity import parse_quantity

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HARD = ("NoSchedule", "NoExecute")


def violations(pods, nodes, volume_zones):
    """Lists what is wrong with the pods that are bound, in words.

    Args:
        pods: as the API server lists them.
        nodes: as they were made.
        volume_zones: the zone of the volume behind each claim, by the claim's name.
    """
    at = {node["metadata"]["name"]: node for node in nodes}
    running = [pod for pod in pods if pod["spec"].get("nodeName")]
    found = [fault for node in nodes for fault in _overfull(node, running)]
    for pod in running:
        node = at[pod["spec"]["nodeName"]]
        others = [other for other in running if other is not pod]
        faults = {
            "is gated": bool(pod["spec"].get("schedulingGates")),
            "is not selected": not _selects_node(pod, node),
            "is not tolerated": not all(_tolerates(pod, taint) for taint in _taints(node)),
            "lacks its affinity": not _has_company(pod, node, others, at),
            "meets whom it avoids": _meets_avoided(pod, node, others, at),
            "is skewed": _is_skewed(pod, running, nodes, at),
            "is not where its volume is": not _has_volumes(pod, node, volume_zones),
        }
        where = f"{pod['metadata']['name']} on {node['metadata']['name']}"
        found += [f"{where} {fault}" for fault, is_so in faults.items() if is_so]
    return found


def _overfull(node, running):
    """Adds up what the pods of a node ask for, and the ports that they open."""
    here = [pod for pod in running if pod["spec"]["nodeName"] == node["metadata"]["name"]]
    used, ports = Counter(), Counter()
    for pod in here:
        used["pods"] += 1
        for container in pod["spec"]["containers"]:
            for name, amount in container.get("resources", {}).get("requests", {}).items():
                used[name] += parse_quantity(amount)
            ports.update(port["hostPort"] for port in container.get("ports", ()))
    has = {name: parse_quantity(text) for name, text in node["status"]["allocatable"].items()}
    name = node["metadata"]["name"]
    full = [f"{name} has too little {key}" for key, sum_ in used.items() if sum_ > has.get(key, 0)]
    return full + [f"{name} has port {port} twice" for port, count in ports.items() if count > 1]


def _selects_node(pod, node):
    labels, spec = node["metadata"]["labels"], pod["spec"]
    if not spec.get("nodeSelector", {}).items() <= labels.items():
        return False
    affinity = spec.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED)
    terms = affinity["nodeSelectorTerms"] if affinity else [{}]
    return any(
        all(_expresses(rule, labels) for rule in term.get("matchExpressions", ())) for term in terms
    )


def _expresses(rule, labels):
    value = labels.get(rule["key"])
    return {
        "In": value in rule.get("values", ()),
        "NotIn": value not in rule.get("values", ()),
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[rule["operator"]]


def _taints(node):
    return [each for each in node["spec"].get("taints", ()) if each["effect"] in HARD]


def _tolerates(pod, taint):
    return any(
        each.get("key") in (None, taint["key"])
        and each.get("effect") in (None, taint["effect"])
        and (each.get("operator") == "Exists" or each.get("value") == taint.get("value"))
        for each in pod["spec"].get("tolerations", ())
    )


def _terms(pod, kind):
    return pod["spec"].get("affinity", {}).get(kind, {}).get(REQUIRED, ())


def _matches(selector, pod):
    return selector["matchLabels"].items() <= pod["metadata"].get("labels", {}).items()


def _domain(node, key):
    return node["metadata"]["labels"].get(key)


def _has_company(pod, node, others, at):
    """Tells whether each term finds a pod in the domain; a pod that is its own first needs none."""
    for term in _terms(pod, "podAffinity"):
        key = term["topologyKey"]
        wanted = [other for other in others if _matches(term["labelSelector"], other)]
        domains = {_domain(at[other["spec"]["nodeName"]], key) for other in wanted}
        is_first = not wanted and _matches(term["labelSelector"], pod)
        if not is_first and _domain(node, key) not in domains:
            return False
    return True


def _meets_avoided(pod, node, others, at):
    return any(
        _matches(term["labelSelector"], other)
        and _domain(node, term["topologyKey"])
        == _domain(at[other["spec"]["nodeName"]], term["topologyKey"])
        for term in _terms(pod, "podAntiAffinity")
        for other in others
    )


def _is_skewed(pod, running, nodes, at):
    """Compares the domains as they are in the end; so no matching pod may have gone meanwhile."""
    for spread in pod["spec"].get("topologySpreadConstraints", ()):
        key = spread["topologyKey"]
        eligible = [node for node in nodes if _selects_node(pod, node) and _domain(node, key)]
        counts = Counter({_domain(node, key): 0 for node in eligible})
        counts.update(
            _domain(at[each["spec"]["nodeName"]], key)
            for each in running
            if _matches(spread["labelSelector"], each)
        )
        if max(counts.values()) - min(counts.values()) > spread["maxSkew"]:
            return True
    return False


def _has_volumes(pod, node, volume_zones):
    claims = [
        each["persistentVolumeClaim"]["claimName"]
        for each in pod["spec"].get("volumes", ())
        if "persistentVolumeClaim" in each
    ]
    zone = _domain(node, "topology.kubernetes.io/zone")
    return all(volume_zones[claim] == zone for claim in claims)
