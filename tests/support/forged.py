"""Forges the outcomes of runs: one change to an honest result, as a policy might write it."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from podium.sim.protocols import Inflation, Replay
from podium.sim.result import HELD, PLACED, UNPLACED

AN_ODD_MOMENT = 0.0371  # at which nothing of the instances happens


@dataclass(frozen=True)
class Forgery:
    """Names a forged result and says whether no run can have come to it."""

    name: str
    result: object
    is_impossible: bool


def with_column(result, name, index, value):
    """Changes one number of one column."""
    column = getattr(result, name).copy()
    column[index] = value
    return replace(result, **{name: column}, derived={})


def amounts(result, pod):
    """Gives what a placed pod takes: (node, kind of resource) to amount."""
    record, node = result.plan.arrivals.pods[pod], int(result.node[pod])
    taken = {(node, "cpu"): int(record["cpu_milli"]), (node, "memory"): int(record["memory_mib"])}
    for slot in range(32):
        if int(result.slots[pod]) >> slot & 1:
            taken[node, slot] = int(record["gpu_milli"])
    return taken


def is_within_bounds(result):
    """Plays the changes in plain Python: does every pod get what there is, on what it accepts?"""
    left = {}
    specs = result.plan.cluster.specs()
    for index, spec in enumerate(specs):
        left[index, "cpu"], left[index, "memory"] = spec.cpu_milli, spec.memory_mib
        left.update({(index, slot): 1000 for slot in range(spec.gpu_count)})
    for change in result.changes.tolist():
        pod, sign = abs(change) - 1, 1 if change > 0 else -1
        accepted = [m for m in result.plan.arrivals.gpu_specs[pod].split("|") if m]
        needs = int(result.plan.arrivals.pods[pod]["gpu_count"])
        if needs and accepted and specs[result.node[pod]].gpu_model not in accepted:
            return False
        for resource, amount in amounts(result, pod).items():
            if resource not in left:
                return False
            left[resource] -= sign * amount
            if left[resource] < 0:
                return False
    return True


def is_fit_left_behind(result):
    """Tells whether a pod that was neither placed nor held fits when all is over."""
    left = result.plan.cluster.nodes.copy()
    for change in result.changes.tolist():
        pod, sign = abs(change) - 1, 1 if change > 0 else -1
        for (node, kind), amount in amounts(result, pod).items():
            name = {"cpu": "cpu_milli_left", "memory": "memory_mib_left"}.get(kind)
            if name:
                left[name][node] -= sign * amount
            else:
                left["gpu_milli_left"][node, kind] -= sign * amount
    from podium.model.fit import fits

    behind = np.flatnonzero(result.status == UNPLACED)
    return any(fits(result.plan.arrivals.pods[pod], node) for pod in behind for node in left)


def _moved(draw, result, pod):
    node = draw(st.integers(0, len(result.plan.cluster) - 1))
    forged = with_column(result, "node", pod, node)
    bad = not is_within_bounds(forged) or is_fit_left_behind(forged)
    return Forgery("another node", forged, bad)


def _other_slots(draw, result, pod):
    slots = draw(st.integers(0, 2**16 - 1))
    forged = with_column(result, "slots", pod, slots)
    count = int(result.plan.arrivals.pods[pod]["gpu_count"])
    bad = slots.bit_count() != count or not is_within_bounds(forged) or is_fit_left_behind(forged)
    return Forgery("other slots", forged, bad)


def _no_node(draw, result, pod):
    node = draw(st.sampled_from((-1, len(result.plan.cluster), 2**31 - 1, -5)))
    return Forgery("no node", with_column(result, "node", pod, node), True)


def _one_slot_less(_draw, result, pod):
    mask = int(result.slots[pod])
    return Forgery("one slot less", with_column(result, "slots", pod, mask & (mask - 1)), mask != 0)


def _one_slot_more(draw, result, pod):
    mask = int(result.slots[pod]) | 1 << draw(st.integers(0, 30))
    is_changed = mask != int(result.slots[pod])
    return Forgery("one slot more", with_column(result, "slots", pod, mask), is_changed)


def _shifted(draw, result, pod):
    late = draw(st.sampled_from((AN_ODD_MOMENT, 40.0 + AN_ODD_MOMENT, np.inf, np.nan)))
    start = float(result.start_s[pod]) + late
    return Forgery("a later start", with_column(result, "start_s", pod, start), True)


def _too_soon(_draw, result, pod):
    start = float(result.arrival_s[pod]) - AN_ODD_MOMENT
    return Forgery("a start before arrival", with_column(result, "start_s", pod, start), True)


def _denied(draw, result, pod):
    status = draw(st.sampled_from((UNPLACED, HELD, 3, -1)))
    return Forgery("denied", with_column(result, "status", pod, status), True)


def _other_arrival(_draw, result, pod):
    moment = float(result.arrival_s[pod]) - AN_ODD_MOMENT
    return Forgery("another arrival", with_column(result, "arrival_s", pod, moment), True)


def _twice(draw, result, pod):
    at = draw(st.integers(0, len(result.changes)))
    changes = np.insert(result.changes, at, pod + 1)
    return Forgery("placed twice", replace(result, changes=changes, derived={}), True)


def _never(_draw, result, pod):
    changes = result.changes[result.changes != pod + 1]
    return Forgery("never placed", replace(result, changes=changes, derived={}), True)


def _never_released(_draw, result, pod):
    changes = result.changes[result.changes != -(pod + 1)]
    has_left = isinstance(result.plan.protocol, Replay)
    return Forgery("never released", replace(result, changes=changes, derived={}), has_left)


def _released_first(_draw, result, _pod):
    changes = -result.changes
    return Forgery("released first", replace(result, changes=changes, derived={}), True)


def _other_steps(draw, result, pod):
    step = int(result.changes_after[pod]) + draw(st.sampled_from((-1, 1)))
    forged = with_column(result, "changes_after", pod, step)
    return Forgery("other steps", forged, True)


def _held_below_nothing(_draw, result, pod):
    return Forgery("held below nothing", with_column(result, "holds", pod, -1), True)


def _fewer_decisions(_draw, result, _pod):
    decided = int(result.is_placed.sum() + result.holds.sum())
    return Forgery("fewer decisions", replace(result, decisions=decided - 1), True)


def _forgotten(_draw, result, pod):
    """Takes a placed pod out of the run: the room that it had is there, and it was not held."""
    forged = result
    for name, value in (("node", -1), ("slots", 0), ("status", UNPLACED), ("start_s", np.nan)):
        forged = with_column(forged, name, pod, value)
    at = np.flatnonzero(result.changes == pod + 1)[0]
    after = result.changes_after - (result.changes_after > at)
    changes = result.changes[np.abs(result.changes) != pod + 1]
    return Forgery("forgotten", replace(forged, changes=changes, changes_after=after), True)


OF_PLACED = (
    _forgotten,
    _moved, _other_slots, _no_node, _one_slot_less, _one_slot_more, _shifted, _too_soon, _denied,
    _other_arrival, _twice, _never, _never_released, _released_first, _other_steps,
    _held_below_nothing, _fewer_decisions,
)  # fmt: skip


def _squeezed_in(draw, result, pod):
    """Places a pod that found no room, wherever: all room for it was taken."""
    node = draw(st.integers(0, len(result.plan.cluster) - 1))
    count = int(result.plan.arrivals.pods[pod]["gpu_count"])
    forged = with_column(result, "node", pod, node)
    forged = with_column(forged, "slots", pod, (1 << count) - 1)
    forged = with_column(forged, "status", pod, PLACED)
    forged = with_column(forged, "start_s", pod, float(forged.arrival_s[pod]))
    after, at = forged.changes_after.copy(), len(forged.changes)
    if isinstance(result.plan.protocol, Inflation):
        at = int(after[pod])
        after[pod:] += 1
    changes = np.insert(forged.changes, at, pod + 1)
    changes = replace(forged, changes=changes, changes_after=after, derived={})
    return Forgery("squeezed in", replace(changes, decisions=result.decisions + 1), True)


def _admitted(_draw, result, pod):
    return Forgery("admitted", with_column(result, "status", pod, PLACED), True)


def _given_a_node(_draw, result, pod):
    return Forgery("given a node", with_column(result, "node", pod, 0), True)


def _given_a_slot(_draw, result, pod):
    return Forgery("given a slot", with_column(result, "slots", pod, 1), True)


def _given_a_start(_draw, result, pod):
    return Forgery("given a start", with_column(result, "start_s", pod, 1e9), True)


OF_UNPLACED = (_squeezed_in, _admitted, _given_a_node, _given_a_slot, _given_a_start)


@st.composite
def forgeries(draw, result):
    """Draws one change to a result."""
    placed = np.flatnonzero(result.status == PLACED).tolist()
    unplaced = np.flatnonzero(result.status == UNPLACED).tolist()
    ways = [*(OF_PLACED if placed else ()), *(OF_UNPLACED if unplaced else ())]
    way = draw(st.sampled_from(ways))
    pod = draw(st.sampled_from(placed if way in OF_PLACED else unplaced))
    return way(draw, result, pod)
