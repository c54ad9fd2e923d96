"""Lays out a run as one record of numbers and addresses, which compiled functions share.

Numba counts references to every array that it passes along, which costs more than a whole
decision. So arrays are owned by Python and known here by address, as typed pointers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from podium.sim.kernel import Variant
from podium.sim.kernel.compiler import InnerCompiler

_NUMBERS = (
    # the cluster and the workload
    *("num_nodes", "num_shapes", "num_lines", "num_pods", "node_bytes", "gpu_slots"),
    # how the policy is called
    *("policy", "table", "rows", "columns", "takes_gpu", "is_cluster"),
    # what settles ties: a second policy, if any, and then a draw
    *("tie_policy", "has_random_ties"),
    *("gpu_choice", "has_memo", "is_cached"),
    # recent pods, of which the table is prepared: those new to it, and how many make it due
    *("has_window", "new_pods", "due_pods", "is_prepared"),
    # the protocol and its bounds
    *("protocol", "hold_limit", "max_holds", "max_rounds", "is_dropping", "has_departures"),
    # sizes of the memo and the index
    *("bucket_mask", "key_mask", "max_states", "num_levels", "num_tops"),
    # what changes during a run
    *(
        "log_size",
        "used_states",
        "used_keys",
        "version",
        "decisions",
        "decisions_at_pass",
        *("changes", "moves"),
    ),
    *("arrived", "departures", "active_lines", "waiting_pods", "held_pods", "forced_pod"),
    # where the run stands between two offers
    *("offered", "is_passing", "pass_size", "pass_outcomes"),
    *("is_released", "drained_at", "round"),
    *("error_code", "error_pod", "error_node"),
)

_OPTIONAL_NUMBERS = (
    # constraints, and GPUs of which one request is another share
    *("has_constraints", "pod_class", "num_resources", "has_shares", "has_spreads", "num_kinds"),
    # gangs
    *("has_gangs", "first_gang_line", "num_domains", "trial_gang", "trial_level", "trial_home"),
    *("trial_domain", "trial_pod", "trial_left", "trial_size", "is_trial_held", "late_members"),
    # preemption: no pod of a lower priority than this runs, after so many of the changes
    *("has_preemption", "lowest_running", "noted_changes"),
)

_ARRAYS = {
    "nodes": "node records in rank order",
    "shapes": "pod records",
    "shape_of": "int64 (num_pods)",
    "line_of": "int64 (num_pods): where the pod waits on its own",
    "class_counts": "int32 (num_nodes, 17): running GPU pods by class",
    "feasible": "uint8 (num_nodes), shown to cluster policies",
    "random_state": "uint64 (1)",
    "arrival": "float64 (num_pods), not falling",
    "duration": "float64 (num_pods)",
    "priority": "int64 (num_lines)",
    # scores by exact state
    "states": "int64 (max_states, node_bytes / 8)",
    "buckets": "int32 (power of two): state + 1, 0 = empty",
    "state_of": "int32 (num_nodes), -1 after a change",
    "keys": "int64 (power of two): shape and state + 1, 0 = empty",
    "key_scores": "float64 (power of two)",
    "key_slots": "int32 (power of two): the best slot of a share pod",
    # ranking
    "scores": "float64 (num_shapes, num_nodes)",
    "tops": "float64 (num_shapes, num_tops): maxima of 64 scores, of 64 maxima, and so on",
    "level_starts": "int64 (num_levels + 1): where each level begins in a row of tops",
    "seen": "int64 (num_shapes): version the row of scores is at, -1 = never filled",
    "log": "int32 (changes): nodes in order of change",
    "last_change": "int64 (num_nodes): version of a node's newest change, -1 = none",
    "kind_of": "int32 (num_nodes): nodes of one kind began as equal records",
    "kind_score": "float64 (num_kinds)",
    "kind_shape": "int64 (num_kinds): which shape kind_score is of",
    "row": "float64 (num_nodes): scratch of a scan",
    # departures: a heap
    "heap_time": "float64 (num_pods)",
    "heap_pod": "int64 (num_pods)",
    # the queue: lines, a FIFO per shape and one per gang
    "next_pod": "int64 (num_pods): the pod behind, in the same FIFO",
    "head": "int64 (num_lines)",
    "tail": "int64 (num_lines)",
    "active": "int64 (num_lines): lines in which somebody waits, unordered",
    "pass_key": "int64 (num_lines): heap of the pass under way",
    "pass_line": "int64 (num_lines): heap of the pass under way",
    "cursor": "int64 (num_lines): pod to offer next in the pass",
    "before": "int64 (num_lines): the pod in front of the cursor",
    "refused_at": "int64 (num_lines): moves after which the line was held in this pass",
    "is_held": "uint8 (num_pods)",
    # recent pods
    "is_recent": "uint8 (num_pods): in the window, or new to it",
    "new_pod": "int64 (num_pods): pods that are new to the window, in order",
    # what a run writes, per pod and in order
    "node": "int32 (num_pods): rank of the node, -1 = none",
    "slots": "int32 (num_pods): bit mask of GPU slots",
    "start": "float64 (num_pods)",
    "holds": "int32 (num_pods): how often the pod was held",
    "status": "int32 (num_pods)",
    "change": "int32 (2 * num_pods): pod + 1 placed, -(pod + 1) released, in order",
    "changes_after": "int32 (num_pods): how many changes there were after each arrival (inflation)",
}

_OPTIONAL_ARRAYS = {
    # one request on several kinds of GPU
    "shares": "int32 (num_shapes, num_kinds): which record of shapes stands for it, -1 = none",
    "spreads": "int32 (num_records): which is the same over other GPUs, -1 = no way, -2 = no more",
    # constraints
    "class_of": "int32 (num_pods): constraint class",
    "filter_of": "int32 (num_classes): row of admits",
    "admits": "uint8 (num_filters, num_nodes)",
    "needs": "int64 (num_classes, num_resources)",
    "resources": "int64 (num_nodes, num_resources): what is left",
    "rules": "int32 (num_rules, 5): kind, group, own, max skew, least domains",
    "rule_start": "int32 (num_classes + 1)",
    "span_start": "int32 (num_classes): the first rule that other nodes decide as well",
    "floor": "int64 (num_rules): what the counter of a rule is compared with, at this decision",
    "members": "int32: groups in which a pod counts",
    "member_start": "int32 (num_classes + 1)",
    "is_enabling": "uint8 (num_classes): placing such a pod may make room for others",
    "domain_of": "int32 (num_groups, num_nodes), -1 = none",
    "is_counted": "uint8 (num_groups, num_nodes)",
    "counts": "int32: pods by group and domain",
    "count_start": "int32 (num_groups + 1)",
    "num_eligible": "int32 (num_groups): domains that decide the lowest count",
    "totals": "int64 (num_groups): pods in all domains",
    # gangs, by number; 0 is none
    "gang_of": "int32 (num_pods)",
    "gang_minimum": "int32 (num_gangs + 1)",
    "gang_level": "int32 (num_gangs + 1): 0 anywhere, 1 in one rack, 2 in one block, 3 in one zone",
    "gang_home": "int32 (num_gangs + 1): domain of members that run already, -1 = none",
    "gang_started": "int32 (num_gangs + 1): members placed so far",
    "gang_arrived": "int32 (num_gangs + 1): members that wait for their gang",
    "gang_head": "int64 (num_gangs + 1)",
    "gang_tail": "int64 (num_gangs + 1)",
    "next_member": "int64 (num_pods): the member behind, in the same gang",
    "gang_domains": "int32 (3, num_nodes): rack, block and zone, -1 = none",
    "is_barred": "uint8 (num_domains): domains in which the gang did not fit",
    "trial_members": "int64 (num_pods): members that found a node",
    "late": "int64 (num_pods): members left over, which join the queue after the pass",
}

ARRAYS = _ARRAYS | _OPTIONAL_ARRAYS
"""The arrays of a run; the record holds their addresses."""

# What is optional comes first: to Numba, a record that begins like another one is also of its type.
RUN = np.dtype(
    [(name, np.int64) for name in (*_OPTIONAL_NUMBERS, *_OPTIONAL_ARRAYS)]
    + [("clock", np.float64)]
    + [(name, np.int64) for name in (*_NUMBERS, *_ARRAYS)]
)
RECORDS: dict[Variant, np.dtype[Any]] = {
    "plain": RUN[["clock", *_NUMBERS, *_ARRAYS]],
    "full": RUN,
}
"""How each variant of the core sees the record: the plain one without what is optional."""

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": InnerCompiler,
}


def inner(function: Callable[..., Any]) -> Any:
    """Compiles a function that only compiled code calls, without wrappers for Python."""
    return numba.njit(**_OPTIONS)(function)


def hot(function: Callable[..., Any]) -> Any:
    """Compiles a function into each of its callers, whatever the optimiser thinks of its size."""
    return numba.njit(**_OPTIONS, forceinline=True)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Pastes a function into its callers, before they are compiled."""
    return numba.njit(nogil=True, inline="always")(function)


def _pointer(element: Any) -> Any:
    @intrinsic
    def at(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.int64), generate

    return at


f4 = _pointer(types.float32)
f8 = _pointer(types.float64)
i8 = _pointer(types.int64)
i4 = _pointer(types.int32)
u1 = _pointer(types.uint8)
u8 = _pointer(types.uint64)
