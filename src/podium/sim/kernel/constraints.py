"""Looks constraints up: what a node admits, what pods in other nodes decide, and who counts."""

from __future__ import annotations

import numpy as np

from podium.model.classes import PRESENT, SKEW
from podium.sim.kernel.gangs import is_in_domain
from podium.sim.kernel.layout import i4, i8, inner, u1

_FIELDS = 5  # of a rule: kind, group, own, max skew, least domains


@inner
def class_of(run, pod):
    """Gives the constraint class of a pod."""
    return np.int64(i4(run.class_of)[pod])


@inner
def admits(run, kind, node):
    """Tells whether a node admits a class of pods, as far as the node alone decides."""
    row = np.int64(i4(run.filter_of)[kind])
    if not u1(run.admits)[row * run.num_nodes + node]:
        return False
    needs, left = i8(run.needs), i8(run.resources)
    for resource in range(run.num_resources):
        need = needs[kind * run.num_resources + resource]
        if need > 0 and need > left[node * run.num_resources + resource]:
            return False
    for rule in range(i4(run.rule_start)[kind], i4(run.span_start)[kind]):
        if _count_at(run, _group(run, rule), node) > 0:
            return False
    return True


@inner
def count(run, pod, node, sign):
    """Counts a pod that starts on a node, or one that leaves it."""
    kind = class_of(run, pod)
    needs, left = i8(run.needs), i8(run.resources)
    for resource in range(run.num_resources):
        need = needs[kind * run.num_resources + resource]
        left[node * run.num_resources + resource] -= sign * need
    members, counts = i4(run.members), i4(run.counts)
    for i in range(i4(run.member_start)[kind], i4(run.member_start)[kind + 1]):
        group = np.int64(members[i])
        domain = i4(run.domain_of)[group * run.num_nodes + node]
        if domain >= 0 and u1(run.is_counted)[group * run.num_nodes + node]:
            counts[i4(run.count_start)[group] + domain] += sign
            i8(run.totals)[group] += sign


@inner
def is_enabling(run, pod):
    """Tells whether placing the pod may make room for others that wait."""
    return u1(run.is_enabling)[class_of(run, pod)]


@inner
def is_free(run):
    """Tells whether only the resources of a node decide where the offered pod may go."""
    return not run.has_constraints and run.trial_level == 0


@inner
def set_floors(run):
    """Works out, once a decision, what the counters of its rules are compared with."""
    if not run.has_constraints:
        return
    kind = run.pod_class
    nobody = _is_first(run, kind)
    for rule in range(i4(run.span_start)[kind], i4(run.rule_start)[kind + 1]):
        what = i4(run.rules)[rule * _FIELDS]
        if what == SKEW:
            i8(run.floor)[rule] = _highest_before(run, rule)
        elif what == PRESENT:
            i8(run.floor)[rule] = 0 if nobody else 1
        else:
            i8(run.floor)[rule] = 0


@inner
def allows(run, node):
    """Tells whether constraints let the offered pod run on a node; floors must be set."""
    if run.trial_level > 0 and not is_in_domain(run, node):
        return False
    if not run.has_constraints:
        return True
    return admits(run, run.pod_class, node) and _keeps_rules(run, run.pod_class, node)


@inner
def _is_first(run, kind):
    # A pod that its own affinity selects may be the first of its kind.
    found = np.int64(0)
    for rule in range(i4(run.span_start)[kind], i4(run.rule_start)[kind + 1]):
        if i4(run.rules)[rule * _FIELDS] == PRESENT:
            if not i4(run.rules)[rule * _FIELDS + 2]:
                return False
            found += i8(run.totals)[_group(run, rule)]
    return found == 0


@inner
def _highest_before(run, rule):
    """Gives the highest count of a domain at which one more pod keeps to the skew."""
    rules = i4(run.rules)
    group = _group(run, rule)
    counts, start = i4(run.counts), i4(run.count_start)[group]
    eligible = i4(run.num_eligible)[group]
    lowest = np.int64(1 << 31) - 1
    for domain in range(eligible):
        lowest = min(lowest, np.int64(counts[start + domain]))
    if eligible < rules[rule * _FIELDS + 4]:
        lowest = np.int64(0)
    return lowest + rules[rule * _FIELDS + 3] - rules[rule * _FIELDS + 2]


@inner
def _keeps_rules(run, kind, node):
    for rule in range(i4(run.span_start)[kind], i4(run.rule_start)[kind + 1]):
        what = i4(run.rules)[rule * _FIELDS]
        group = _group(run, rule)
        domain = i4(run.domain_of)[group * run.num_nodes + node]
        if what == PRESENT:
            if domain < 0 or _count_at(run, group, node) < i8(run.floor)[rule]:
                return False
        elif what == SKEW:
            if domain < 0 or _count_at(run, group, node) > i8(run.floor)[rule]:
                return False
        elif _count_at(run, group, node) > 0:
            return False
    return True


@inner
def _group(run, rule):
    return np.int64(i4(run.rules)[rule * _FIELDS + 1])


@inner
def _count_at(run, group, node):
    domain = i4(run.domain_of)[group * run.num_nodes + node]
    if domain < 0:
        return np.int64(0)
    return np.int64(i4(run.counts)[i4(run.count_start)[group] + domain])
