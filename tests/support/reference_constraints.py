"""Decides constraints slowly and obviously: by looking at every pod that runs, on every node.

Written from the documentation of Kubernetes and the filters of kube-scheduler; nothing is counted
ahead, and no class is formed.
"""

from podium.model.constraints import PodSelector


def may_run(pod, node, nodes):
    """Tells whether a pod may run on a node beside what runs on all nodes now."""
    return (
        pod.constraints.selects_node(node.spec.name, node.spec.labels)
        and pod.constraints.tolerates(node.spec.taints)
        and all(
            _is_reached(rule, node.spec.name, node.spec.labels) for rule in pod.constraints.volumes
        )
        and not _is_in_use(pod, nodes)
        and _has_resources(pod, node, nodes)
        and _has_ports(pod, node)
        and _is_not_repelled(pod, node, nodes)
        and _is_attracted(pod, node, nodes)
        and _is_spread(pod, node, nodes)
    )


def is_awaited(pod, workload):
    """Tells whether some pod's affinity or spread looks at this pod."""
    return any(
        (other.constraints.affinity and _selects_all(other, pod))
        or any(_spread_counts(each, other, pod) for each in other.constraints.spread)
        for other in workload
    )


def _is_reached(rule, name, labels):
    if not rule.choices:
        return False
    open_here = [
        terms is None or any(term.is_met(name, labels) for term in terms) for terms in rule.choices
    ]
    for claim in rule.claims:
        mine = [choice for choice in claim if open_here[choice]]
        if not mine:
            return False
        open_here[mine[0]] = False
    return True


def _is_in_use(pod, nodes):
    used = {claim for node in nodes for other in node.running
            for claim in other.constraints.sole_claims}  # fmt: skip
    return not used.isdisjoint(pod.constraints.sole_claims)


def _has_resources(pod, node, nodes):
    listed = node.spec.extended
    if not any(each.spec.extended for each in nodes):
        return True  # nothing is known of such resources
    for name, amount in pod.constraints.extended:
        used = sum(dict(each.constraints.extended).get(name, 0) for each in node.running)
        if amount > 0 and used + amount > listed.get(name, 0):
            return False
    return "pods" not in listed or len(node.running) + 1 <= listed["pods"]


def _has_ports(pod, node):
    taken = [port for each in node.running for port in each.constraints.host_ports]
    return not any(_clash(one, other) for one in pod.constraints.host_ports for other in taken)


def _clash(one, other):
    if one.port != other.port or one.protocol != other.protocol:
        return False
    addresses = {one.address or "0.0.0.0", other.address or "0.0.0.0"}
    return len(addresses) == 1 or "0.0.0.0" in addresses


def _together(one, other, key):
    """Tells whether two nodes are in one domain of a topology key."""
    value = one.spec.labels.get(key)
    return value is not None and value == other.spec.labels.get(key)


def _selects(selector, owner, pod):
    """Tells whether a term of a pod selects another; without namespaces it means its own."""
    namespaces = selector.namespaces
    if namespaces == frozenset():
        namespaces = frozenset({owner.namespace})
    return PodSelector(selector.requirements, namespaces).selects(pod.namespace, pod.labels)


def _is_not_repelled(pod, node, nodes):
    for other in nodes:
        for running in other.running:
            for term in pod.constraints.anti_affinity:
                if _selects(term.selector, pod, running) and _together(
                    node, other, term.topology_key
                ):
                    return False
            for term in running.constraints.anti_affinity:
                if _selects(term.selector, running, pod) and _together(
                    node, other, term.topology_key
                ):
                    return False
    return True


def _selects_all(owner, pod):
    return all(_selects(term.selector, owner, pod) for term in owner.constraints.affinity)


def _is_attracted(pod, node, nodes):
    terms = pod.constraints.affinity
    if not terms:
        return True
    if any(term.topology_key not in node.spec.labels for term in terms):
        return False
    matching = [other for other in nodes for running in other.running if _selects_all(pod, running)]
    seen = [other for other in matching for term in terms if term.topology_key in other.spec.labels]
    if not seen and _selects_all(pod, pod):
        return True
    return all(
        any(_together(node, other, term.topology_key) for other in matching) for term in terms
    )


def _spread_selects(spread, owner, pod):
    return pod.namespace == owner.namespace and PodSelector(
        spread.selector.requirements, None
    ).selects(pod.namespace, pod.labels)


def _spread_counts(spread, owner, running):
    """Tells whether a pod that runs counts; an empty selector, or one that is deleted, does not."""
    if not spread.selector.requirements or running.is_terminating:
        return False
    return _spread_selects(spread, owner, running)


def _is_spread(pod, node, nodes):
    spreads = pod.constraints.spread
    for spread in spreads:
        key = spread.topology_key
        if key not in node.spec.labels:
            return False
        counts = {}
        for other in nodes:
            if not _is_eligible(pod, spread, other):
                continue
            found = sum(_spread_counts(spread, pod, running) for running in other.running)
            value = other.spec.labels[key]
            counts[value] = counts.get(value, 0) + found
        lowest = min(counts.values(), default=2**31 - 1)
        if len(counts) < spread.min_domains:
            lowest = 0
        here = counts.get(node.spec.labels[key], 0)
        if here + _spread_selects(spread, pod, pod) - lowest > spread.max_skew:
            return False
    return True


def _is_eligible(pod, spread, node):
    if any(each.topology_key not in node.spec.labels for each in pod.constraints.spread):
        return False
    if spread.honors_affinity and not pod.constraints.selects_node(
        node.spec.name, node.spec.labels
    ):
        return False
    return not spread.honors_taints or pod.constraints.tolerates(node.spec.taints)
