"""Plays the FunSearch simulator's events with any policy of Podium. Importing it imports Numba.

Nodes are offered in the order of the file, the first of the best wins, and GPUs are taken from the
fullest that suffice, whatever a policy says of ties and GPUs: those are the original's rules. A
policy that scores GPUs is asked about the one that a share would get.
"""

from __future__ import annotations

import functools
import heapq
import math
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from podium.model.records import GPU_MILLI
from podium.policies import abi
from podium.policies.abi import call_native
from podium.policies.jit import COMPILING, compiled, keep_on_disk, stamp_of

CREATED, FAILED, HELD, DELETED = 0, 1, 2, 3
"""What an event was; a pod that is held had room on some node and was given none."""

TOO_MANY, REFUSED = -1, -2
"""Why a run ended early: too many events, or the policy failed on node REFUSED - n."""

_NO_ROOM, _HELD = -1, -2  # instead of a node; below them, the policy failed

Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


class Call(NamedTuple):
    """What decides: the address of a policy, what kind it is, and its table."""

    address: int
    is_chooser: bool  # it sees all nodes and names one
    takes_gpu: bool
    table: int
    rows: int
    columns: int
    feasible: npt.NDArray[np.bool_]  # (num_nodes,) where the pod fits, for a chooser


class PodColumns(NamedTuple):
    """What pods ask for, when they come and how long they stay."""

    address: int  # of the records, and the size of one
    size: int
    cpu_milli: Integers
    memory_mib: Integers
    gpu_count: Integers
    gpu_milli: Integers
    arrival_s: Numbers
    duration_s: Numbers
    rank: Integers  # of the name: at equal times it decides


class NodeColumns(NamedTuple):
    """What nodes have left; views of the records that a policy reads."""

    address: int
    size: int
    cpu_milli: npt.NDArray[np.int32]
    memory_mib: npt.NDArray[np.int32]
    gpu_count: npt.NDArray[np.int32]
    gpu_classes: npt.NDArray[np.int32]
    gpu_milli: npt.NDArray[np.int32]  # (num_nodes, slots)
    gpus: Integers  # the original's count, from which a part of a GPU takes a whole one
    running: Integers  # (num_nodes, classes) pods


class Places(NamedTuple):
    """Where pods run, and who waits."""

    node: Integers  # (num_pods,)
    slots: npt.NDArray[np.bool_]  # (num_pods, slots)
    is_waiting: npt.NDArray[np.bool_]
    waiting: Integers  # GPU pods that wait, by what they ask of each GPU


class Log(NamedTuple):
    """What happened, a row for each event."""

    time_s: Numbers
    pod: Integers
    kind: Integers
    node: Integers
    lost_milli: Integers  # too small for any waiting pod, at a failed attempt


def play(call: Call, pods: PodColumns, nodes: NodeColumns, places: Places, log: Log) -> int:
    """Plays until no event is left; returns how many there were, or why it ended early."""
    count: int = _machine_code()(call, pods, nodes, places, log)
    return count


@functools.cache
def _machine_code() -> Any:
    sources = (Path(__file__), Path(abi.__file__))
    stamp = stamp_of(["funsearch", *(path.read_text(encoding="utf-8") for path in sources)])
    with COMPILING:
        made = compiled(cast("FunctionType", _play), stamp[:24])
        keep_on_disk(made, made.py_func, stamp)
    return made


def _play(call: Any, pods: Any, nodes: Any, places: Any, log: Any) -> int:
    events = [(pods.arrival_s[0], pods.rank[0], 0, False)]
    for pod in range(1, len(pods.rank)):
        heapq.heappush(events, (pods.arrival_s[pod], pods.rank[pod], pod, False))
    done = 0
    while len(events) > 0:
        if done == len(log.time_s):
            return TOO_MANY
        now_s, _, pod, is_deletion = heapq.heappop(events)
        log.time_s[done], log.pod[done], log.lost_milli[done] = now_s, pod, 0
        log.kind[done], log.node[done] = DELETED, places.node[pod]
        if is_deletion:
            _move(pods, nodes, places, pod, -1)
        else:
            chosen = _choose(call, pods, nodes, pod)
            if chosen < _HELD:
                log.pod[0] = pod
                return chosen + 1
            log.node[done] = chosen
            if chosen >= 0:
                log.kind[done] = CREATED
                _place(pods, nodes, places, pod, chosen)
                heapq.heappush(events, (now_s + pods.duration_s[pod], pods.rank[pod], pod, True))
            else:
                log.kind[done] = HELD if chosen == _HELD else FAILED
                log.lost_milli[done] = _fail(pods, nodes, places, pod)
                _retry(events, pods.rank[pod], pod)
        done += 1
    return done


def _choose(call: Any, pods: Any, nodes: Any, pod: int) -> int:
    """Returns the first of the best nodes; below them, why there is none."""
    chosen, best, has_room = -1, -math.inf, False
    for node in range(len(nodes.cpu_milli)):
        fits = _fits(pods, nodes, pod, node)
        call.feasible[node] = fits
        has_room = has_room or fits
        if fits and not call.is_chooser:
            score = _score(call, pods, nodes, pod, node)
            if not score < math.inf:
                return _HELD - 1 - node
            if score > best:
                chosen, best = node, score
    if has_room and call.is_chooser:
        return _ask(call, pod)
    return chosen if chosen >= 0 else (_HELD if has_room else _NO_ROOM)


def _ask(call: Any, pod: int) -> int:
    choice = call_native(call.address, pod, 0, 0, call.table, call.rows, call.columns)
    if choice == -math.inf:
        return _HELD
    is_node = 0 <= choice < len(call.feasible) and choice == math.floor(choice)
    return int(choice) if is_node and call.feasible[int(choice)] else _HELD - 1


def _score(call: Any, pods: Any, nodes: Any, pod: int, node: int) -> float:
    is_share = 0 < pods.gpu_milli[pod] < GPU_MILLI
    gpu = _tightest(pods, nodes, pod, node, -1) if call.takes_gpu and is_share else -1
    score: float = call_native(
        call.address, pods.address + pod * pods.size, nodes.address + node * nodes.size, gpu,
        call.table, call.rows, call.columns,
    )  # fmt: skip
    return score


def _fits(pods: Any, nodes: Any, pod: int, node: int) -> bool:
    """Tells whether the node can take the pod by the original's rules."""
    if pods.cpu_milli[pod] > nodes.cpu_milli[node] or pods.memory_mib[pod] > nodes.memory_mib[node]:
        return False
    if pods.gpu_count[pod] > nodes.gpus[node]:
        return False
    fitting = 0
    for slot in range(nodes.gpu_count[node]):
        fitting += nodes.gpu_milli[node, slot] >= pods.gpu_milli[pod]
    return bool(pods.gpu_count[pod] <= fitting)


def _tightest(pods: Any, nodes: Any, pod: int, node: int, after: int) -> int:
    """Finds the fullest GPU that suffices; of those taken before, the last is `after`."""
    found = -1
    for slot in range(nodes.gpu_count[node]):
        left = nodes.gpu_milli[node, slot]
        is_next = after < 0 or (left, slot) > (nodes.gpu_milli[node, after], after)
        is_fuller = found < 0 or left < nodes.gpu_milli[node, found]
        if left >= pods.gpu_milli[pod] and is_next and is_fuller:
            found = slot
    return found


def _place(pods: Any, nodes: Any, places: Any, pod: int, node: int) -> None:
    places.node[pod] = node
    slot = -1
    for _ in range(pods.gpu_count[pod]):
        slot = _tightest(pods, nodes, pod, node, slot)
        places.slots[pod, slot] = True
    if places.is_waiting[pod]:
        places.is_waiting[pod] = False
        places.waiting[pods.gpu_milli[pod]] -= 1
    _move(pods, nodes, places, pod, 1)


def _move(pods: Any, nodes: Any, places: Any, pod: int, sign: int) -> None:
    """Takes the pod's resources from its node, or returns them (sign -1)."""
    node = places.node[pod]
    nodes.cpu_milli[node] -= sign * pods.cpu_milli[pod]
    nodes.memory_mib[node] -= sign * pods.memory_mib[pod]
    nodes.gpus[node] -= sign * pods.gpu_count[pod]
    if pods.gpu_count[pod] == 0:
        return
    for slot in range(nodes.gpu_count[node]):
        if places.slots[pod, slot]:
            nodes.gpu_milli[node, slot] -= sign * pods.gpu_milli[pod]
    group = pods.gpu_count[pod] if pods.gpu_milli[pod] == GPU_MILLI else 0
    nodes.running[node, group] += sign
    bit = 1 << group
    others = nodes.gpu_classes[node] & ~bit
    nodes.gpu_classes[node] = others | bit if nodes.running[node, group] > 0 else others


def _fail(pods: Any, nodes: Any, places: Any, pod: int) -> int:
    """Lets a pod wait; returns the milli of GPUs that are too small for all who do."""
    if pods.gpu_count[pod] > 0 and not places.is_waiting[pod]:
        places.is_waiting[pod] = True
        places.waiting[pods.gpu_milli[pod]] += 1
    smallest = 0
    while smallest < len(places.waiting) and places.waiting[smallest] == 0:
        smallest += 1
    lost = 0
    for node in range(len(nodes.cpu_milli)):
        for slot in range(nodes.gpu_count[node] if smallest < len(places.waiting) else 0):
            left = nodes.gpu_milli[node, slot]
            lost += left if left < smallest else 0
    return lost


def _retry(events: Any, rank: int, pod: int) -> None:
    """Has a pod tried again after the deletion that stands first in the heap's array."""
    for other in events:
        if other[3]:
            heapq.heappush(events, (other[0] + 1, rank, pod, False))
            return
