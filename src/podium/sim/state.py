"""Builds the arrays of a run and the record that gives the compiled core their addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.model import Cluster, Workload
from podium.model.records import GPU_MILLI
from podium.model.state import occupied
from podium.policies import ClusterPolicy, Policy
from podium.sim.bound import placed_records
from podium.sim.kernel import Variant
from podium.sim.kernel.layout import ARRAYS, RECORDS, RUN
from podium.sim.kernel.offers import INFLATION, NOT_BEGUN, NOT_DRAINING, PLACED, REPLAY, ROUNDS
from podium.sim.kernel.ranking import FAN
from podium.sim.kernel.scores import NO_STATE
from podium.sim.kernel.waiting import NOBODY
from podium.sim.kernel.world import CLASSES
from podium.sim.plan import Plan
from podium.sim.protocols import Inflation, Protocol, Replay, Rounds
from podium.sim.shapes import CoreShapes, core_shapes, preempting_shapes

Arrays = dict[str, npt.NDArray[Any]]

_CHOICES = {"best": 0, "worst": 1, "random": 2}
_CONSTRAINT_ARRAYS: dict[str, Any] = {
    "class_of": np.int32, "filter_of": np.int32, "admits": np.bool_, "needs": np.int64,
    "resources": np.int64, "rules": np.int32, "rule_start": np.int32, "span_start": np.int32,
    "floor": np.int64, "members": np.int32, "member_start": np.int32, "is_enabling": np.bool_,
    "domain_of": np.int32, "is_counted": np.bool_, "counts": np.int32, "count_start": np.int32,
    "num_eligible": np.int32, "totals": np.int64,
}  # fmt: skip
_PROTOCOLS = {"replay": REPLAY, "inflation": INFLATION, "rounds": ROUNDS}
_MIXER = np.uint64(0x9E3779B97F4A7C15)
_MEMO_KEYS = 1 << 18
_MEMO_STATES = 1 << 16


CHANGED = (
    *("nodes", "class_counts", "random_state", "last_change", "head", "tail", "is_held"),
    *("node", "slots", "start", "holds", "status", "changes_after", "change"),
    *("heap_time", "heap_pod", "resources", "counts", "totals"),
    *("gang_started", "gang_arrived", "gang_head", "gang_tail", "is_barred"),
)
"""The arrays that must be as they were, where a run that keeps no scores is to begin again."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Owns the arrays of one run."""

    arrays: Arrays
    record: npt.NDArray[Any]  # (1,) of RUN

    def number(self, name: str) -> int:
        """Reads a number that the core keeps."""
        return int(self.record[name][0])

    def seen_by(self, variant: Variant) -> npt.NDArray[Any]:
        """Shows the record as a variant of the core sees it."""
        return self.record.view(RECORDS[variant])


def build_state(plan: Plan) -> State:
    """Lays out nodes in rank order, shapes, the queue and room for the outcome."""
    cluster, workload, protocol = plan.cluster, plan.arrivals, plan.protocol
    shapes = preempting_shapes(workload) if protocol.preemption else core_shapes(workload)
    arrays = _world(cluster, plan.rank_order, shapes)
    num_pods, num_shapes = len(workload), shapes.num_shapes
    num_lines = len(shapes.line_shape) + len(plan.gangs.minimum) - 1
    arrays |= _queue(num_pods, num_lines) | _outcome(num_pods) | _times(workload, protocol)
    numbers = {
        "num_nodes": len(cluster),
        "num_shapes": num_shapes,
        "num_lines": num_lines,
        "first_gang_line": len(shapes.line_shape),
        "num_pods": num_pods,
        "node_bytes": cluster.nodes.dtype.itemsize,
        "gpu_slots": gpu_slots(cluster),
        "protocol": _PROTOCOLS[protocol.name],
        "hold_limit": protocol.holding.hold_limit,
        "max_holds": protocol.holding.max_holds,
        "max_rounds": protocol.max_rounds if isinstance(protocol, Rounds) else 0,
        "is_dropping": isinstance(protocol, Inflation),
        "has_departures": isinstance(protocol, Replay),
        "forced_pod": NOBODY,
        "offered": NOT_BEGUN,
        "drained_at": NOT_DRAINING,
    }
    state = State(arrays, np.zeros(1, RUN))
    connect(state, arrays, numbers)
    connect_shares(state, shapes)
    connect_gangs(state, plan, shapes)
    connect_constraints(state, plan)
    if len(plan.bound):
        begin_bound(state, plan)
    return state


def connect_shares(state: State, shapes: CoreShapes) -> None:
    """Lays out what requests are on other kinds of GPU, and over more of them."""
    numbers = {
        "has_shares": len(shapes.records) > shapes.num_shapes,
        "has_spreads": bool((shapes.spreads > 0).any()),
        "num_kinds": shapes.shares.shape[1],
    }
    connect(state, {"shares": shapes.shares, "spreads": shapes.spreads}, numbers)


def gpu_slots(cluster: Cluster) -> int:
    """Counts the GPU slots of the cluster's kind of record."""
    return int(cluster.nodes["gpu_milli_left"].shape[1])


def connect(state: State, arrays: Arrays, numbers: dict[str, int]) -> None:
    """Adds arrays and numbers to a state and writes them into its record."""
    state.arrays.update(arrays)
    for name, array in arrays.items():
        if name not in ARRAYS or not array.flags.c_contiguous:
            raise RuntimeError(f"{name} is not an array of a run")
        state.record[name] = array.ctypes.data
    for name, number in numbers.items():
        state.record[name] = number


def copied(state: State) -> State:
    """Copies a world, so that other pods may run on the copy."""
    copy = State(dict(state.arrays), state.record.copy())
    changed = ("nodes", "class_counts", "resources", "counts", "totals", "floor", "feasible")
    connect(copy, {name: state.arrays[name].copy() for name in changed}, {})
    return copy


def connect_gangs(state: State, plan: Plan, shapes: CoreShapes) -> None:
    """Lays out gangs, domains in rank order, and the priorities of all lines."""
    gangs, num_pods = plan.gangs, len(plan.arrivals)
    priority = shapes.records["priority"][shapes.line_shape].astype(np.int64)
    size = num_pods if gangs.is_any else 1
    domains = gangs.domains[:, plan.rank_order]
    arrays: Arrays = {
        "priority": np.append(priority, gangs.priority),
        "gang_of": gangs.gang_of,
        "gang_minimum": gangs.minimum,
        "gang_level": gangs.level,
        "gang_home": gangs.home,
        "gang_started": gangs.started.copy(),
        "gang_arrived": np.zeros(len(gangs.minimum), np.int32),
        "gang_head": np.full(len(gangs.minimum), NOBODY, np.int64),
        "gang_tail": np.full(len(gangs.minimum), NOBODY, np.int64),
        "next_member": np.full(size, NOBODY, np.int64),
        "gang_domains": np.ascontiguousarray(domains),
        "is_barred": np.zeros(int(domains.max(initial=0)) + 1, np.bool_),
        "trial_members": np.zeros(size, np.int64),
        "late": np.zeros(size, np.int64),
    }
    numbers = {"has_gangs": gangs.is_any, "num_domains": len(arrays["is_barred"])}
    connect(state, arrays, numbers)


def connect_constraints(state: State, plan: Plan) -> None:
    """Lays out the constraint tables, nodes in rank order, or says that there are none."""
    tables, rank_order = plan.arrivals.tables, plan.rank_order
    if tables is None:
        empty = {name: np.zeros(1, kind) for name, kind in _CONSTRAINT_ARRAYS.items()}
        connect(state, empty, {"has_constraints": 0, "num_resources": 0})
        return
    classes = tables.classes
    rules = [rule for each in classes for rule in each.rules]
    starts = np.cumsum([0, *(len(each.rules) for each in classes)])
    found: dict[str, Any] = {
        "class_of": plan.arrivals.class_of,
        "filter_of": [each.node_filter for each in classes],
        "admits": tables.admits[:, rank_order],
        "needs": [each.needs for each in classes],
        "resources": tables.capacity[rank_order],
        "rules": rules,
        "rule_start": starts,
        "span_start": starts[:-1] + [each.num_local for each in classes],
        "floor": np.zeros(len(rules)),
        "members": [group for each in classes for group in each.members],
        "member_start": np.cumsum([0, *(len(each.members) for each in classes)]),
        "is_enabling": tables.is_enabling,
        "domain_of": tables.domain_of[:, rank_order],
        "is_counted": tables.is_counted[:, rank_order],
        "counts": np.zeros(int(tables.num_domains.sum())),
        "count_start": np.cumsum([0, *tables.num_domains.tolist()]),
        "num_eligible": tables.num_eligible,
        "totals": np.zeros(len(tables.num_domains)),
    }
    arrays = {
        name: np.ascontiguousarray(found[name], kind) for name, kind in _CONSTRAINT_ARRAYS.items()
    }
    connect(state, arrays, {"has_constraints": 1, "num_resources": len(tables.resources)})


def begin_bound(state: State, plan: Plan) -> None:
    """Lets the pods that run already run, before the first event."""
    count, arrays, bound = len(plan.bound), state.arrays, plan.bound
    occupy(state, plan, Running(np.arange(count), bound.node, bound.slots))
    arrays["node"][:count], arrays["slots"][:count] = _ranks(plan)[bound.node], bound.slots
    arrays["status"][:count] = PLACED
    arrays["start"][:count] = arrays["arrival"][:count]
    arrays["change"][:count] = np.arange(1, count + 1)
    arrays["changes_after"][:count] = np.arange(1, count + 1)
    numbers = {"arrived": count, "changes": count}
    if isinstance(plan.protocol, Replay):
        ends = arrays["start"][:count] + arrays["duration"][:count]
        # A sorted list is a heap.
        order = np.lexsort((np.arange(count), ends))
        arrays["heap_time"][:count], arrays["heap_pod"][:count] = ends[order], order
        numbers["departures"] = count
    connect(state, {}, numbers)


class Running(NamedTuple):
    """Says which pods of a plan run at a moment, and where."""

    pods: npt.NDArray[np.int64]  # (num_running,) in order of arrival
    node: npt.NDArray[np.int32]  # (num_running,) index into the cluster
    slots: npt.NDArray[np.int32]  # (num_running,) bit mask of GPU slots


def build_world(plan: Plan, running: Running) -> State:
    """Lays out nodes, shapes and constraints alone, as they are while some pods run."""
    shapes = core_shapes(plan.arrivals)
    numbers = {
        "num_nodes": len(plan.cluster),
        "num_shapes": shapes.num_shapes,
        "num_pods": len(plan.arrivals),
        "node_bytes": plan.cluster.nodes.dtype.itemsize,
        "gpu_slots": gpu_slots(plan.cluster),
    }
    state = State({}, np.zeros(1, RUN))
    connect(state, _world(plan.cluster, plan.rank_order, shapes), numbers)
    connect_shares(state, shapes)
    connect_gangs(state, plan, shapes)
    connect_constraints(state, plan)
    occupy(state, plan, running)
    return state


def occupy(state: State, plan: Plan, running: Running) -> None:
    """Lets pods run on nodes on which nothing ran: takes what they take, and counts them."""
    arrays, at = state.arrays, _ranks(plan)[running.node]
    where, slots = (np.full(len(plan.arrivals), -1), np.zeros(len(plan.arrivals), np.int32))
    where[running.pods], slots[running.pods] = running.node, running.slots
    pods = placed_records(plan.arrivals, where, slots, plan.cluster)[running.pods]
    arrays["nodes"][:] = occupied(arrays["nodes"], pods, at, running.slots)
    has_gpu = pods["gpu_count"] > 0
    kinds = np.where(pods["gpu_milli"] < GPU_MILLI, 0, pods["gpu_count"])
    np.add.at(arrays["class_counts"], (at[has_gpu], kinds[has_gpu]), 1)
    if state.number("has_constraints"):
        _count_running(arrays, arrays["class_of"][running.pods], at)


def _count_running(
    arrays: Arrays, classes: npt.NDArray[np.int32], at: npt.NDArray[np.int64]
) -> None:
    np.subtract.at(arrays["resources"], at, arrays["needs"][classes])
    for kind in np.unique(classes).tolist():
        nodes = at[classes == kind]
        begin, end = arrays["member_start"][kind : kind + 2]
        for group in arrays["members"][begin:end].tolist():
            domains = arrays["domain_of"][group, nodes]
            domains = domains[(domains >= 0) & arrays["is_counted"][group, nodes]]
            np.add.at(arrays["counts"], arrays["count_start"][group] + domains, 1)
            arrays["totals"][group] += len(domains)


def _ranks(plan: Plan) -> npt.NDArray[np.int64]:
    ranks = np.empty(len(plan.cluster), np.int64)
    ranks[plan.rank_order] = np.arange(len(ranks))
    return ranks


def connect_policy(
    state: State, policy: Policy, address: int, table: npt.NDArray[np.float64], seed: int,
    tie_address: int = 0,
) -> None:  # fmt: skip
    """Says how the policy is called, and the one that settles its ties, if any."""
    pair = None if isinstance(policy, ClusterPolicy) else policy
    connect_table(state, address, table)
    numbers = {
        "takes_gpu": pair is not None and pair.takes_gpu,
        "is_cluster": pair is None,
        "tie_policy": tie_address,
        "has_random_ties": pair is not None and pair.ties == "random",
        "gpu_choice": _CHOICES[policy.gpu_choice],
    }
    connect(state, {"random_state": np.array([seed], np.uint64)}, numbers)


def connect_table(state: State, address: int, table: npt.NDArray[np.float64]) -> None:
    """Says where the policy is, and its table, which the caller keeps."""
    columns = table.shape[1] if table.ndim == 2 else 1
    place = {"table": table.ctypes.data, "rows": len(table), "columns": columns}
    connect(state, {}, {"policy": address, **place})


def forget_scores(state: State) -> None:
    """Forgets what the policy said so far: rows of scores, and scores by exact state."""
    for name in ("seen", "kind_shape"):
        state.arrays[name][:] = -1
    state.arrays["keys"][:] = 0
    connect(state, {}, {"used_keys": 0})


def connect_memo(state: State, *, has_memo: bool) -> None:
    """Makes room for remembered scores, or none."""
    # Every placement and every departure makes one new state; half of the keys stay free.
    most_states = state.number("num_nodes") + 2 * state.number("num_pods")
    states = _power_of_two(most_states, _MEMO_STATES) if has_memo else 1
    most_keys = 2 * states * state.number("num_shapes") + 2
    keys = _power_of_two(most_keys, _MEMO_KEYS) if has_memo else 1
    arrays: Arrays = {
        "states": np.zeros((states, state.number("node_bytes") // 8), np.int64),
        "buckets": np.zeros(4 * states, np.int32),
        "state_of": np.full(state.number("num_nodes"), NO_STATE, np.int32),
        "keys": np.zeros(keys, np.int64),
        "key_scores": np.zeros(keys),
        "key_slots": np.zeros(keys, np.int32),
    }
    numbers = {"bucket_mask": 4 * states - 1, "key_mask": keys - 1, "max_states": states}
    connect(state, arrays, numbers | {"has_memo": has_memo})


def _power_of_two(least: int, most: int) -> int:
    return min(most, 1 << (least - 1).bit_length())


def connect_ranking(state: State, *, is_cached: bool) -> None:
    """Makes room for the score cache, or only for a scan."""
    num_nodes, num_shapes = state.number("num_nodes"), state.number("num_shapes")
    starts = _level_starts(num_nodes)
    kinds = _kinds(state.arrays["nodes"])
    num_kinds = int(kinds.max()) + 1
    rows = num_shapes if is_cached else 0
    log_size = 2 * state.number("num_pods") + 2
    arrays: Arrays = {
        "scores": np.empty((rows, num_nodes)),
        "tops": np.empty((rows, int(starts[-1]))),
        "level_starts": starts,
        "seen": np.full(num_shapes, -1, np.int64),
        "log": np.empty(log_size if is_cached else 1, np.int32),
        "last_change": np.full(num_nodes, -1, np.int64),
        "kind_of": kinds,
        "kind_score": np.zeros(num_kinds),
        "kind_shape": np.full(num_kinds, -1, np.int64),
        "row": np.empty(1 if is_cached else num_nodes),
    }
    numbers = {
        "is_cached": is_cached,
        "log_size": log_size,
        "num_levels": len(starts) - 1,
        "num_tops": int(starts[-1]),
    }
    connect(state, arrays, numbers)


def _world(cluster: Cluster, rank_order: npt.NDArray[np.int64], shapes: CoreShapes) -> Arrays:
    nodes = cluster.nodes[rank_order]
    # A class that a node has from the start never leaves it.
    classes = nodes["gpu_classes"][:, np.newaxis] >> np.arange(CLASSES) & 1
    return {
        "nodes": aligned(nodes),
        "shapes": aligned(shapes.records),
        "shape_of": shapes.shape_of,
        "line_of": shapes.line_of,
        "class_counts": np.ascontiguousarray(classes, np.int32),
        "feasible": np.zeros(len(cluster), np.bool_),
    }


def aligned(records: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copies records to where a cache line begins: a node of 8 GPUs is one of them."""
    raw = np.zeros(records.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copy: npt.NDArray[Any] = raw[start : start + records.nbytes].view(records.dtype)
    copy[:] = records.ravel()
    return copy.reshape(records.shape)


def _queue(num_pods: int, num_lines: int) -> Arrays:
    empty = {name: np.full(num_lines, NOBODY, np.int64) for name in ("head", "tail")}
    scratch = ("active", "pass_key", "pass_line", "cursor", "before", "refused_at")
    return {
        "next_pod": np.full(num_pods, NOBODY, np.int64),
        "is_held": np.zeros(num_pods, np.uint8),
        "heap_time": np.zeros(num_pods),
        "heap_pod": np.zeros(num_pods, np.int64),
        **empty,
        **{name: np.zeros(num_lines, np.int64) for name in scratch},
    }


def _outcome(num_pods: int) -> Arrays:
    return {
        "node": np.full(num_pods, -1, np.int32),
        "slots": np.zeros(num_pods, np.int32),
        "start": np.full(num_pods, np.nan),
        "holds": np.zeros(num_pods, np.int32),
        "status": np.zeros(num_pods, np.int32),
        "change": np.zeros(2 * num_pods, np.int32),
        "changes_after": np.zeros(num_pods, np.int32),
    }


def _times(workload: Workload, protocol: Protocol) -> Arrays:
    never = np.full(len(workload), np.inf)
    if isinstance(protocol, Replay):
        arrival, duration = workload.arrival_s, workload.duration_s
        if arrival is None or duration is None:
            raise RuntimeError("a replay needs times")
        compressed = arrival[0] + (arrival - arrival[0]) / protocol.load
        return {"arrival": compressed, "duration": np.ascontiguousarray(duration)}
    if isinstance(protocol, Rounds):
        return {"arrival": np.zeros(len(workload)), "duration": never}
    return {"arrival": np.arange(len(workload), dtype=np.float64), "duration": never}


def _level_starts(num_nodes: int) -> npt.NDArray[np.int64]:
    sizes: list[int] = []
    while not sizes or sizes[-1] > 1:
        sizes.append(-(-(sizes[-1] if sizes else num_nodes) // FAN))
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _kinds(nodes: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    words = nodes.view(np.uint64).reshape(len(nodes), -1)
    factors = _MIXER * np.arange(1, 2 * words.shape[1], 2, dtype=np.uint64) ** np.uint64(5)
    codes = (words * factors).sum(axis=1)
    first, kinds = np.unique(codes, return_index=True, return_inverse=True)[1:]
    if not np.array_equal(words, words[first][kinds]):
        # Two records share a code, which is not to be expected; all their bytes decide.
        kinds = np.unique(words, axis=0, return_inverse=True)[1]
    return kinds.astype(np.int32).ravel()
