"""Recounts a run from its trace: what no run can do is found, whatever the core believed.

Nothing of the core's state is used. The pods, the nodes and the protocol say what was asked for
and what there was; the outcome says who got what and when. Each step relies on those before it,
so the first that finds something is the last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError
from podium.model import Cluster, Workload
from podium.model.records import ANY_MODEL
from podium.model.state import occupied
from podium.sim.bound import placed_records
from podium.sim.history import Evictions, History
from podium.sim.plan import Plan
from podium.sim.protocols import Inflation, Replay, Rounds
from podium.sim.result import HELD, PLACED, UNPLACED, Result, slots_of
from podium.sim.shapes import core_shapes

IMPOSSIBLE = "impossible"
"""Begins every refusal of a run that cannot be."""

MOST_TOLD = 3
_ASKED = ("cpu_milli", "memory_mib", "gpu_milli")

Flags = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]
Found = Iterator[str]


@dataclass(frozen=True, slots=True)
class Recount:
    """Holds what contradicts itself in a run; nothing in one that can be."""

    problems: tuple[str, ...]

    @property
    def is_possible(self) -> bool:
        """Tells whether a run can have come to this."""
        return not self.problems

    @property
    def refusal(self) -> str:
        """Says what is impossible, in one line; nothing of a possible run."""
        told, rest = self.problems[:MOST_TOLD], len(self.problems) - MOST_TOLD
        more = f"; and {rest:,} more" if rest > 0 else ""
        return f"{IMPOSSIBLE}: {'; '.join(told)}{more}" if told else ""


def recount(result: Result) -> Recount:
    """Counts a run's placements again, from the trace alone."""
    ledger = _Ledger.of(result)
    for step in (_outcomes, _evictions, _places, _moments, _order, _uses, _left_over):
        found = tuple(step(ledger))
        if found:
            return Recount(found)
    return Recount(())


def require_possible(found: Recount, policy: str) -> None:
    """Refuses the figures of a run that cannot be, by the name of its policy."""
    if not found.is_possible:
        raise PolicyError(
            found.refusal,
            where=policy,
            hint="a policy only reads the pod and the node it is given",
        )


def seal(plan: Plan) -> str:
    """Digests all that a recount reads of a plan, to be compared after its policy has run."""
    arrivals = plan.arrivals
    hasher = hashlib.blake2b(digest_size=16)
    tables = arrivals.tables
    for array in (
        plan.cluster.nodes, arrivals.pods, arrivals.arrival_s, arrivals.duration_s,
        plan.bound.node, plan.bound.slots, arrivals.gpu_shares, arrivals.class_of,
        None if tables is None else tables.admits,
    ):  # fmt: skip
        if array is not None:
            hasher.update(np.ascontiguousarray(array).view(np.uint8).data)
    return hasher.hexdigest()


@dataclass(frozen=True, eq=False)
class _Ledger:
    """Holds a run beside what there was: CPU, memory and GPU slots of all nodes, cell by cell."""

    result: Result
    nodes: npt.NDArray[Any]
    pods: npt.NDArray[Any]
    there: Whole  # (2 + slots) x nodes: CPU of each node, then memory, then GPU milli by slot
    slots: int
    is_placed: Flags
    has_holds: bool
    has_departures: bool
    has_company: bool  # placing a pod may let another one start, or evict it
    is_shared: Flags  # nodes whose GPUs count together: devices lie on them however they will

    @classmethod
    def of(cls, result: Result) -> _Ledger:
        plan = result.plan
        nodes = plan.cluster.nodes
        by_slot = nodes["gpu_milli_left"]
        left = (nodes["cpu_milli_left"], nodes["memory_mib_left"], by_slot.ravel())
        there = _stretched(result, np.concatenate(left).astype(np.int64))
        is_shared = _is_shared(plan.cluster)
        there[2 * len(nodes) :] = _together(there[2 * len(nodes) :], is_shared, by_slot.shape[1])
        return cls(
            result, nodes, result.pods, there,
            by_slot.shape[1], result.status == PLACED, bool(result.holds.any()),
            isinstance(plan.protocol, Replay),
            plan.protocol.preemption or _starts_others(plan), is_shared,
        )  # fmt: skip

    @cached_property
    def history(self) -> History:
        """Lists the stints, from the columns of the result as they are."""
        return self.result.listed_anew()

    @cached_property
    def free(self) -> Whole:
        """Gives what is left of each cell when all is over."""
        if self.has_departures:
            return self.there
        placed = np.flatnonzero(self.is_placed)  # the last stint of a pod has its number
        cells, amounts, _ = _taken(self, placed, np.ones(len(placed), np.int64))
        # Floats are exact here: no sum of so many 32-bit numbers comes near 2**53.
        return self.there - np.bincount(cells, amounts, len(self.there)).astype(np.int64)

    def pod(self, index: int) -> str:
        return f'pod "{self.result.plan.arrivals.names[index]}"'

    def node(self, index: int) -> str:
        return f'node "{self.result.plan.cluster.names[index]}"'

    def resource(self, cell: int, used: int) -> str:
        count, there = len(self.nodes), int(self.there[cell])
        if cell < 2 * count:
            unit = "milli CPU" if cell < count else "MiB of memory"
            return f"{self.node(cell % count)} gave {used:,} {unit} of its {there:,}"
        node, slot = divmod(cell - 2 * count, self.slots)
        return f"GPU {slot} of {self.node(node)} held {used:,} milli of its {there:,}"

    def wrong(self, flags: Flags, told: str) -> Found:
        """Names the pods of which something is told that cannot be."""
        return self.wrong_at(np.arange(len(flags)), flags, told) if flags.any() else iter(())

    def wrong_at(self, pods: Whole, flags: Flags, told: str) -> Found:
        """Names the pods of changes that cannot be."""
        for index in pods[flags].tolist():
            yield f"{self.pod(index)} {told}"


def _stretched(result: Result, there: Whole) -> Whole:
    """Lets a node have what it gives already, should that be more than it has."""
    count = len(result.plan.bound)
    if not count:
        return there
    nodes, bound = result.plan.cluster.nodes, result.plan.bound
    pods = result.pods[:count]
    if len(result.evicted):  # some of them have moved since
        first = result.plan.arrivals.taken(np.arange(count))
        pods = placed_records(first, bound.node, bound.slots, result.plan.cluster)
    began = occupied(nodes, pods, bound.node, bound.slots)
    left = (began["cpu_milli_left"], began["memory_mib_left"], began["gpu_milli_left"].ravel())
    return there - np.minimum(np.concatenate(left).astype(np.int64), 0)


def _is_shared(cluster: Cluster) -> Flags:
    """Tells of which nodes a GPU may be several devices."""
    kinds = [kind.is_shared for kind in cluster.gpu_kinds]
    found: Flags = np.array([*kinds, False], bool)[cluster.nodes["gpu_model"]]
    return found


def _together(milli: Whole, is_shared: Flags, slots: int) -> Whole:
    """Adds up what shared GPUs of a node have, in the place of the first."""
    by_node = milli.reshape(-1, slots).copy()
    total = by_node.sum(axis=1)
    by_node[is_shared] = 0
    by_node[is_shared, 0] = total[is_shared]
    return by_node.ravel()


def _outcomes(ledger: _Ledger) -> Found:
    """Every pod has one outcome, and who was not placed has nothing."""
    result, count = ledger.result, len(ledger.pods)
    columns = (result.node, result.slots, result.arrival_s, result.start_s, result.status,
               result.holds, result.changes_after)  # fmt: skip
    if any(len(column) != count for column in columns):
        yield f"{count:,} pods arrived, and not all of them have an outcome"
        return
    yield from ledger.wrong((result.status < UNPLACED) | (result.status > HELD), "has no outcome")
    is_empty = (result.node == -1) & (result.slots == 0) & np.isnan(result.start_s)
    yield from ledger.wrong(~ledger.is_placed & ~is_empty, "was not placed and holds resources")
    if not isinstance(result.plan.protocol, Inflation):
        # Steps are counted where pods arrive one by one; else only as far as pods ran before.
        steps = np.arange(1, count + 1) * (np.arange(count) < len(result.plan.bound))
        yield from ledger.wrong(result.changes_after != steps, "has a step that was not counted")
    yield from _holds(ledger)


def _holds(ledger: _Ledger) -> Found:
    result = ledger.result
    most = result.plan.protocol.holding.max_holds
    yield from ledger.wrong((result.holds < 0) | (result.holds > most), "was held too often")
    is_decided = ledger.is_placed & ~result.is_bound
    decided = int(is_decided.sum()) + int(result.holds.sum(dtype=np.int64))
    decided += int((result.evicted >= len(result.plan.bound)).sum())
    if result.decisions < decided:
        yield f"{decided:,} decisions placed or held a pod, and {result.decisions:,} were made"
    is_held = result.status == HELD
    if is_held.any():
        yield from ledger.wrong(is_held & ~_of_held_shape(ledger), "is held, and none like it was")
    if ledger.has_departures:
        yield from ledger.wrong(is_held, "is held when all is over")


def _of_held_shape(ledger: _Ledger) -> Flags:
    """Tells of every pod whether it, or one with the same wishes, was held by a decision."""
    shapes = ledger.result.plan.arrivals.shape_of()
    held = np.bincount(shapes, ledger.result.holds > 0)
    found: Flags = held[shapes] > 0
    return found


def _evictions(ledger: _Ledger) -> Found:
    """Who is evicted makes room, there and then, for a pod of higher priority."""
    result, found = ledger.result, ledger.result.evictions
    if found is None or not len(found):
        return
    history, evicted = ledger.history, result.evicted
    priority = result.plan.arrivals.pods["priority"]
    is_higher = priority[found.preemptor] > priority[evicted]
    yield from ledger.wrong_at(evicted, ~is_higher, "was evicted for a pod of no higher priority")
    begun = history.changes > 0
    stints = history.stint_of[begun]
    starts = set(zip(
        history.pod[stints].tolist(), history.node[stints].tolist(),
        history.start_s[stints].tolist(), strict=True,
    ))  # fmt: skip
    taken = zip(found.preemptor.tolist(), found.node.tolist(), found.end_s.tolist(), strict=True)
    is_idle = np.array([each not in starts for each in taken], bool)
    yield from ledger.wrong_at(evicted, is_idle, "was evicted for a pod that did not start there")


def _places(ledger: _Ledger) -> Found:
    """Every placed pod has the GPUs that it asked for, on a node that has them."""
    result, history = ledger.result, ledger.history
    is_run = np.append(ledger.is_placed, np.ones(len(result.evicted), bool))
    is_node = (history.node >= 0) & (history.node < len(ledger.nodes))
    wrong = is_run & ~is_node
    yield from ledger.wrong_at(history.pod, wrong, "is on a node that does not exist")
    if wrong.any():
        return
    placed = np.flatnonzero(is_run)
    pods, where, slots = history.pod[placed], history.node[placed], history.slots[placed]
    gpus, models = (history.records[field][placed] for field in ("gpu_count", "gpu_models"))
    is_allowed = (gpus == 0) | _is_allowed(models, ledger.nodes["gpu_model"][where])
    is_allowed |= result.is_bound[pods]  # somebody else put it there
    for is_right, told in (
        (_has_its_gpus(ledger, pods, where, slots, gpus), "has other GPUs than it asked for"),
        (slots >> ledger.nodes["gpu_count"][where] == 0, "has a GPU that its node does not"),
        (is_allowed, "is on a GPU model that it does not allow"),
        (_is_admitted(ledger, pods, where), "is on a node that its constraints do not admit"),
    ):
        for stint in placed[~is_right].tolist():
            listed = ", ".join(map(str, slots_of(max(0, int(history.slots[stint]))))) or "none"
            where_told = f"{ledger.node(int(history.node[stint]))}, GPU {listed}"
            yield f"{ledger.pod(int(history.pod[stint]))} {told}: {where_told}"


def _has_its_gpus(
    ledger: _Ledger, pods: Whole, where: npt.NDArray[np.int32], slots: npt.NDArray[np.int32],
    gpus: npt.NDArray[Any],
) -> Flags:  # fmt: skip
    """Tells of placed pods whether they hold what they asked for, or what they held before."""
    is_right: Flags = np.bitwise_count(slots) == gpus
    # A node may have lost GPUs that its pods still ask for.
    bound = ledger.result.plan.bound
    short = np.flatnonzero(~is_right & (pods < len(bound)))
    before = pods[short]
    is_right[short] = (bound.node[before] == where[short]) & (bound.slots[before] == slots[short])
    return is_right


def _is_admitted(ledger: _Ledger, pods: Whole, where: npt.NDArray[np.int32]) -> Flags:
    """Tells of placed pods whether node selection and tolerations let them be there."""
    result, arrivals = ledger.result, ledger.result.plan.arrivals
    if arrivals.tables is None or arrivals.class_of is None:
        return np.ones(len(pods), bool)
    filters = np.array([each.node_filter for each in arrivals.tables.classes], np.int64)
    admitted: Flags = arrivals.tables.admits[filters[arrivals.class_of[pods]], where]
    # Who runs already was put there by somebody else.
    return admitted | result.is_bound[pods]


def _is_allowed(models: npt.NDArray[Any], own: npt.NDArray[Any]) -> Flags:
    is_named = (own >= 0) & (models >> np.maximum(own, 0) & 1 == 1)
    allowed: Flags = (models == ANY_MODEL) | is_named
    return allowed


def _moments(ledger: _Ledger) -> Found:
    """Pods arrive when the trace says, and start neither before nor at a moment of their own."""
    result = ledger.result
    yield from ledger.wrong(result.arrival_s != _arrivals(result.plan), "arrived at another time")
    start, is_placed = result.start_s, ledger.is_placed
    is_late = is_placed & (start > result.arrival_s)
    is_possible = (start >= result.arrival_s) & (start < np.inf)
    yield from ledger.wrong(is_placed & ~is_possible, "started before it arrived, or never")
    if result.evictions is not None:
        yield from _moments_cut_short(ledger, result.evictions)
    if ledger.has_departures:
        # Who ends as it starts ends at no moment of its own.
        ends = result.finish_s[result.finish_s > start]
        known = np.concatenate([result.arrival_s, ends]) if ledger.has_holds else ends
        late = np.flatnonzero(is_late)
        is_sudden = ~np.isin(start[late], known) & (not ledger.has_company)
        yield from ledger.wrong_at(late, is_sudden, "started when nothing happened")
    elif is_late.any():  # what is never released is missed for good by who was not held
        is_unheld = ~_of_held_shape(ledger) & (not ledger.has_company)
        yield from ledger.wrong(is_late & is_unheld, "started late and was not held")
        protocol, count = result.plan.protocol, len(start)
        last = protocol.max_rounds if isinstance(protocol, Rounds) else count
        is_step = (start < last) & (start == np.floor(start))
        yield from ledger.wrong(is_late & ~is_step, "started when nothing happened")


def _moments_cut_short(ledger: _Ledger, found: Evictions) -> Found:
    evicted, arrival_s = ledger.result.evicted, ledger.result.arrival_s
    is_possible = (found.start_s >= arrival_s[evicted]) & (found.end_s >= found.start_s)
    told = "started before it arrived, or was evicted before it started"
    yield from ledger.wrong_at(evicted, ~is_possible, told)


def _arrivals(plan: Plan) -> npt.NDArray[np.float64]:
    arrival_s = plan.arrivals.arrival_s
    if isinstance(plan.protocol, Replay) and arrival_s is not None:
        first: float = arrival_s[0]
        return first + (arrival_s - first) / plan.protocol.load
    count = len(plan.arrivals)
    return np.zeros(count) if isinstance(plan.protocol, Rounds) else np.arange(count, dtype=float)


def _order(ledger: _Ledger) -> Found:
    """Every placement and release is made once, in an order that time allows."""
    result, count = ledger.result, len(ledger.pods)
    pods, is_placing = np.abs(result.changes.astype(np.int64)) - 1, result.changes > 0
    if ((pods < 0) | (pods >= count)).any():
        yield "a pod was placed or released that never arrived"
        return
    evicted = np.bincount(result.evicted, minlength=count)
    leaving = (ledger.is_placed & ledger.has_departures) + evicted
    is_as_often = True
    for which, expected, word in (
        (pods[is_placing], ledger.is_placed + evicted, "placed"),
        (pods[~is_placing], leaving, "released"),
    ):
        is_wrong = np.bincount(which, minlength=count) != expected
        is_as_often &= not is_wrong.any()
        yield from ledger.wrong(is_wrong, f"was not {word} as often as it should be")
    if not is_as_often:
        return
    yield from _stints(ledger)
    if ledger.has_departures:
        yield from _order_in_time(ledger, ledger.history)
    else:
        yield from _order_of_steps(ledger, ledger.history)
    on_time = pods[is_placing & (result.start_s[pods] == result.arrival_s[pods])]
    is_plain = not ledger.has_holds and not ledger.has_company
    if is_plain and not isinstance(result.plan.protocol, Rounds):
        is_overtaken = np.diff(on_time, prepend=-1) <= 0
        for pod in on_time[is_overtaken].tolist():
            yield f"{ledger.pod(pod)} was placed after one that arrived later"


def _stints(ledger: _Ledger) -> Found:
    """Every stint that was cut short begins once and ends once."""
    history, count = ledger.history, len(ledger.pods)
    if len(history.pod) == count:
        return
    for sign in (1, -1):
        made = history.stint_of[np.sign(history.changes) == sign]
        is_wrong = np.bincount(made, minlength=len(history.pod))[count:] != 1
        yield from ledger.wrong_at(history.pod[count:], is_wrong, "was evicted and did not run")


def _order_in_time(ledger: _Ledger, history: History) -> Found:
    result, stints = ledger.result, history.stint_of
    is_placing, moments, pods = history.changes > 0, history.moment_s, history.pod[stints]
    yield from ledger.wrong_at(pods, np.diff(moments, prepend=-np.inf) < 0, "ran back in time")
    position = np.empty(len(history.pod), np.int64)
    position[stints[is_placing]] = np.flatnonzero(is_placing)
    is_early = ~is_placing & (position[stints] >= np.arange(len(stints)))
    yield from ledger.wrong_at(pods, is_early, "was released before it was placed")
    # At equal times departures come first: only who starts and ends at once departs later, and
    # who is evicted leaves when the other comes.
    begun = np.maximum.accumulate(np.where(is_placing, moments, -np.inf))
    is_departure = ~is_placing & (stints < len(ledger.pods))
    is_behind = is_departure & (begun == moments) & (history.start_s[stints] < moments)
    yield from ledger.wrong_at(pods, is_behind, "was released after others began")
    if (
        not ledger.has_holds and not ledger.has_company
    ):  # who waits for room starts when some is released
        freed = np.maximum.accumulate(np.where(is_placing, -np.inf, moments))
        is_late = is_placing & (result.start_s[pods] > result.arrival_s[pods])
        yield from ledger.wrong_at(pods, is_late & (freed != moments), "started on no release")


def _order_of_steps(ledger: _Ledger, history: History) -> Found:
    result, pods, start = ledger.result, history.pod[history.stint_of], history.moment_s
    yield from ledger.wrong_at(pods, np.diff(start, prepend=0) < 0, "ran back in time")
    if not isinstance(result.plan.protocol, Inflation):
        return
    after, total = result.changes_after, len(result.changes)
    steps = np.concatenate([[0], after, [total]])
    if (np.diff(steps) < 0).any() or (len(after) and after[-1] != total):
        yield "arrivals and placements are not in one order"
        return
    step = np.searchsorted(after, np.arange(total), side="right")
    yield from ledger.wrong_at(pods, step != start, "started at the arrival of another pod")


def _uses(ledger: _Ledger) -> Found:
    """No CPU, memory or GPU is ever used beyond what there is."""
    result, history = ledger.result, ledger.history
    # What only grows is largest in the end.
    if not ledger.has_departures and not len(result.evicted):
        for cell in np.flatnonzero(ledger.free < 0).tolist():
            used = int(ledger.there[cell] - ledger.free[cell])
            yield f"{ledger.resource(cell, used)} at the end"
        return
    stints = history.stint_of
    cells, amounts, rows = _taken(ledger, stints, np.sign(history.changes))
    for entry, used in _overfull(cells, amounts, ledger.there):
        moment = history.start_s[stints[rows[entry]]]
        yield f"{ledger.resource(int(cells[entry]), used)} at {moment:,.0f} s"


def _taken(ledger: _Ledger, stints: Whole, signs: Whole) -> tuple[Whole, Whole, Whole]:
    """Lists what stints take: the cell, how much, and the row of the stint, its cells apart."""
    history, count, slots = ledger.history, len(ledger.nodes), ledger.slots
    where = history.node[stints].astype(np.int64)
    row, slot = np.nonzero(history.slots[stints][:, np.newaxis] >> np.arange(slots) & 1)
    slot = np.where(ledger.is_shared[where[row]], 0, slot)
    cells = (where, where + count, where[row] * slots + (slot + 2 * count))
    cpu, memory, gpu = (signs * history.records[field][stints] for field in _ASKED)
    rows = np.arange(len(stints))
    return (
        np.concatenate(cells),
        np.concatenate([cpu, memory, gpu[row]]),
        np.append([rows, rows], row),
    )


def _overfull(cells: Whole, amounts: Whole, there: Whole) -> Iterator[tuple[int, int]]:
    """Finds entry and use where a cell is first used beyond what is there; entries are in order."""
    # NumPy sorts short numbers by their digits, several times as fast.
    order = np.argsort(cells.astype(np.uint16) if len(there) <= 1 << 16 else cells, kind="stable")
    cells, running = cells[order], np.cumsum(amounts[order])
    first = np.flatnonzero(np.diff(cells, prepend=-1))
    before = np.concatenate([[0], running])[first]
    used = running - np.repeat(before, np.diff(first, append=len(cells)))
    wrong = np.flatnonzero(used > there[cells])
    if len(wrong):
        for row in wrong[np.unique(cells[wrong], return_index=True)[1]].tolist():
            yield int(order[row]), int(used[row])


def _left_over(ledger: _Ledger) -> Found:
    """Nobody stays behind who fits a node when all is over: such a pod was held, or forgotten."""
    result = ledger.result
    behind = np.flatnonzero(result.status == UNPLACED)
    is_cut_off = len(result.evicted) > 0 and not ledger.has_departures
    if not len(behind) or is_cut_off:  # the last round may have made room
        return
    shapes = core_shapes(result.plan.arrivals).line_of
    behind = behind[~_is_intricate(result.plan.arrivals)[behind]]
    one_of = np.full(int(shapes.max()) + 1, -1)
    one_of[shapes[behind]] = behind  # pods of one shape fit alike
    few = one_of[one_of >= 0]
    fit = _fitting(ledger, few)
    for row in np.flatnonzero(fit.any(axis=1)).tolist():
        pod, node = ledger.pod(int(few[row])), ledger.node(int(fit[row].argmax()))
        yield f"{pod} was neither placed nor held, and still fits {node}"


def _fitting(ledger: _Ledger, which: Whole) -> Flags:
    """Tells of some pods and every node whether they fit when all is over."""
    count = len(ledger.nodes)
    cpu, memory, milli, gpus, models = (
        ledger.pods[field][which][:, np.newaxis] for field in (*_ASKED, "gpu_count", "gpu_models")
    )
    free = ledger.free
    by_slot = free[2 * count :].reshape(count, -1)
    # As many GPUs have so much free as it takes, if the last of them in order of room has.
    ordered = -np.sort(-by_slot, axis=1)
    enough = ordered.T[np.clip(gpus.ravel() - 1, 0, ledger.slots - 1)] >= milli
    enough &= (gpus <= ledger.slots) & _is_allowed(models, ledger.nodes["gpu_model"])
    fit: Flags = (cpu <= free[:count]) & (memory <= free[count : 2 * count])
    fit &= (gpus == 0) | enough
    arrivals = ledger.result.plan.arrivals
    if arrivals.tables is not None and arrivals.class_of is not None:
        filters = np.array([each.node_filter for each in arrivals.tables.classes], np.int64)
        fit &= arrivals.tables.admits[filters[arrivals.class_of[which]]]
    return fit


def _is_intricate(arrivals: Workload) -> Flags:
    """Tells of which pods it depends on more than free resources whether they fit a node."""
    is_intricate = arrivals.pods["gang"] > 0
    if arrivals.gpu_shares is not None:
        is_intricate |= arrivals.pods["gpu_count"] > 0
    if arrivals.tables is not None and arrivals.class_of is not None:
        bounded = [bool(each.rules) or any(each.needs) for each in arrivals.tables.classes]
        is_intricate |= np.array(bounded, bool)[arrivals.class_of]
    return is_intricate


def _starts_others(plan: Plan) -> bool:
    """Tells whether placing a pod may let another one start: by affinity, or as a gang."""
    tables = plan.arrivals.tables
    return plan.gangs.is_any or (tables is not None and bool(tables.is_enabling.any()))
