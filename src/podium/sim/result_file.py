"""Writes a result to one file and reads it back, digest and all; nothing in a file is executed.

The file is gzip data: one line of JSON, the arrays as little-endian bytes in a fixed order, and
the SHA-256 of all that. A file from elsewhere is read within bounds, and checked before it counts
as a result.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, cast, get_args

import numpy as np
import numpy.typing as npt

from podium.errors import InputError, UsageError
from podium.files.bounded import EXPANSION, FREE_BYTES, MIB, open_file
from podium.files.draft import drafted
from podium.files.excerpt import escaped, excerpt
from podium.files.json_text import JsonError, parse_value
from podium.model import Cluster, Workload
from podium.model.records import POD, node_dtype
from podium.model.workload import TypicalPods
from podium.policies import Policy
from podium.policies.demand import Demand
from podium.sim.bound import Bound, bind_first, is_bound
from podium.sim.gangs import gangs_of, no_gangs
from podium.sim.history import Evictions
from podium.sim.orders import Order
from podium.sim.plan import Plan, Ties
from podium.sim.protocols import Holding, Inflation, Protocol, Replay, Rounds
from podium.sim.recount import recount
from podium.sim.result import Result
from podium.sim.saved_constraints import (
    CLUSTER_KEYS,
    PREEMPTION_KEYS,
    WORKLOAD_KEYS,
    check_work,
    cluster_extras,
    preemption_extras,
    read_cluster_extras,
    read_workload_extras,
    workload_extras,
)
from podium.sim.saved_policy import describe_policy, restore_policy
from podium.sim.soundness import GPU_MEMORY, TIMES, WORKLOADS, is_sound
from podium.sim.tiers import Tier

FORMAT, VERSION = "podium-result", 1
MOST_BYTES = 2048 * MIB
LONGEST_HEADER = 256 * MIB
HEADER_EXPANSION = 40
"""Times the size of a file that its header may grow to; that of 10,821 pods grows 1.6 times."""

FREE_VALUES, MOST_VALUES, VALUES_PER_BYTE = 250_000, 16_000_000, 2
"""JSON values of a header: so many always, at most, and by byte of the file; 10,821 pods have one
for every seven bytes. An empty list takes 3 bytes of text and 64 of memory."""

_CHUNK = 4 * MIB
_DIGEST_BYTES = 32

_HINT = "give a file that Result.save wrote"

_ARRAYS = {
    "node": np.int32, "slots": np.int32, "arrival_s": np.float64, "start_s": np.float64,
    "status": np.int8, "holds": np.int32, "changes": np.int32, "changes_after": np.int32,
}  # fmt: skip
"""Of a result, by field, in the order of the file."""

_EVICTIONS = {
    "at": np.int64, "node": np.int32, "slots": np.int32, "start_s": np.float64,
    "end_s": np.float64, "preemptor": np.int64,
}  # fmt: skip
"""Of a result with preemption, behind the others."""


def save_result(result: Result, path: Path) -> None:
    """Writes the file whole, or not at all."""
    arrays = list(_arrays_of(result))
    header = {
        **_header_of(result),
        "arrays": [[name, len(array)] for name, array in arrays],
    }
    with drafted(path) as draft, gzip.GzipFile(draft, "wb", 6, mtime=0) as file:
        hasher = hashlib.sha256()
        for part in (json.dumps(header).encode() + b"\n", *(_bytes(array) for _, array in arrays)):
            hasher.update(part)
            file.write(part)
        file.write(hasher.digest())


def load_result(path: Path, policy: Policy | None = None) -> Result:
    """Reads a file that `save_result` wrote.

    Raises:
        InputError: it is something else, was changed or cut off, or passes a bound.
        UsageError: the policy that is given is not the one that decided.
    """
    try:
        with open_file(path) as raw:
            return _read(_Reader(path, raw), policy)
    except OSError as error:
        if isinstance(error, gzip.BadGzipFile):
            raise _refused(path, "is no saved result") from error
        raise InputError.at(path, f"cannot be read: {error.strerror}", hint=_HINT) from error
    except (EOFError, zlib.error) as error:
        raise _refused(path, "is damaged or cut off") from error
    except (MemoryError, RecursionError) as error:
        raise _refused(path, "does not fit into memory") from error
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _refused(path, f"does not hold a result: {type(error).__name__}") from error


@dataclass(slots=True)
class _Reader:
    """Reads gzip data as far as the bounds allow, and digests what it reads."""

    path: Path
    raw: IO[bytes]
    hasher: Any = field(default_factory=hashlib.sha256)
    given: int = 0
    _source: IO[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self._source = cast("IO[bytes]", gzip.GzipFile(fileobj=self.raw, mode="rb"))

    def line(self) -> bytes:
        """Reads the header."""
        size, values = os.fstat(self.raw.fileno()).st_size, 0
        parts: list[bytes] = []
        while not parts or not parts[-1].endswith(b"\n"):
            part = self._source.readline(_CHUNK)
            if not part:
                raise _refused(self.path, "is no saved result")
            parts.append(self._counted(part))
            # Before they are built: a value takes many times the memory of its text.
            values += sum(part.count(mark) for mark in (b",", b"[", b"{"))
            if self.given > min(LONGEST_HEADER, FREE_BYTES + HEADER_EXPANSION * size):
                raise _refused(self.path, "has a longer header than a result has")
            if values > min(MOST_VALUES, FREE_VALUES + VALUES_PER_BYTE * size):
                raise _refused(self.path, "has more values in its header than a result has")
        return b"".join(parts)

    def array(self, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """Reads an array; memory grows with what is there, not with what the file claims."""
        kind = np.dtype(dtype).newbyteorder("<")
        if not 0 <= count * kind.itemsize <= MOST_BYTES:
            raise _refused(self.path, f"claims an array of {count:,} items")
        parts, left = [], count * kind.itemsize
        while left:
            part = self._source.read(min(left, _CHUNK))
            if not part:
                raise EOFError
            parts.append(self._counted(part))
            left -= len(part)
        return np.frombuffer(b"".join(parts), kind).astype(np.dtype(dtype))

    def close(self) -> None:
        """Compares the digest of everything with the one at the end, which nothing follows."""
        if self._source.read(_DIGEST_BYTES) != self.hasher.digest():
            raise _refused(self.path, "was changed after it was saved")
        if self._source.read(1):
            raise _refused(self.path, "has something behind its end")

    def _counted(self, part: bytes) -> bytes:
        self.given += len(part)
        self.hasher.update(part)
        if self.given > min(MOST_BYTES, FREE_BYTES + EXPANSION * self.raw.tell()):
            raise _refused(self.path, "expands to more than a result does")
        return part


def _read(reader: _Reader, policy: Policy | None) -> Result:
    header = _header(reader)
    counts = [(str(name), _count(count)) for name, count in header["arrays"]]
    kinds = _kinds(header)
    if [name for name, _ in counts] != list(kinds):
        raise _refused(reader.path, "does not hold the arrays of a result")
    arrays = {name: reader.array(kinds[name], count) for name, count in counts}
    reader.close()
    if not is_sound(header, arrays, _ARRAYS):
        raise _refused(reader.path, "holds a result that contradicts itself")
    decided: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
    if "evicted at" in arrays:
        decided["evictions"] = Evictions(*(arrays[f"evicted {name}"] for name in _EVICTIONS))
    result = Result(
        plan=_plan(header, arrays, policy),
        **decided,
        decisions=_count(header["decisions"]),
        wall_s=_number(header["wall_s"]),
    )
    if result.digest != header["digest"]:
        raise _refused(reader.path, "does not have the digest that it names")
    if not _is_begun(result):
        raise _refused(reader.path, "holds a result that contradicts itself")
    found = recount(result)
    if not found.is_possible:
        raise _refused(reader.path, f"holds a result that is {escaped(found.refusal)}")
    return result


def _header(reader: _Reader) -> dict[str, Any]:
    try:
        found = parse_value(reader.line().decode("utf-8"))
    except (JsonError, UnicodeDecodeError) as error:
        raise _refused(reader.path, "is no saved result") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _refused(reader.path, "is no saved result")
    if found.get("version") != VERSION:
        raise InputError.at(
            reader.path, f"is a result of format {excerpt(found.get('version'))}, and this Podium "
            f"reads format {VERSION}", hint="read it with the Podium that wrote it",
        )  # fmt: skip
    _check_keys(found)
    return found


def _check_keys(header: Mapping[str, Any]) -> None:
    """Refuses keys that no result has: nothing is carried along that nobody reads."""
    objects = {"": header} | {key: header[key] for key in _KEYS if key and header[key] is not None}
    for key, found in objects.items():
        if not set(found) <= set(_KEYS[key].split()):
            raise KeyError


_OF_WORKLOAD = (
    f"name names gpu_specs gpu_models gangs job_types typical times has_gpu_memory {WORKLOAD_KEYS} "
    f"{PREEMPTION_KEYS}"
)
_KEYS = {
    "": "format version digest decisions wall_s seed tier protocol policy cluster trace arrivals "
    "arrays has_gang_order demand ties",
    "protocol": "name amount holding has_order preemption",
    "policy": "name kind origin summary may_hold notes text_digest reads_demand",
    "cluster": f"name names gpu_models racks labels gpu_slots {CLUSTER_KEYS}",
    "trace": _OF_WORKLOAD,
    "arrivals": _OF_WORKLOAD,
}
"""Of a header and the objects in it; not all have those that `saved_constraints` writes."""


def _header_of(result: Result) -> dict[str, Any]:
    plan = result.plan
    return {
        "format": FORMAT, "version": VERSION, "digest": result.digest,
        "decisions": result.decisions, "wall_s": result.wall_s,
        "seed": plan.seed, "tier": plan.tier,
        "protocol": _protocol_of(plan.protocol), "policy": describe_policy(plan.policy),
        "cluster": _cluster_of(plan.cluster), "trace": _workload_of(plan.trace, plan.protocol),
        "arrivals": None if plan.arrivals is plan.trace
        else _workload_of(plan.arrivals, plan.protocol),
        **({"has_gang_order": True} if plan.gangs.is_any else {}),
        **({"demand": plan.demand} if plan.follows_pods else {}),
        **({"ties": plan.ties} if plan.ties != "order" else {}),
    }  # fmt: skip


def _protocol_of(protocol: Protocol) -> dict[str, Any]:
    amount = {"replay": "load", "inflation": "ratio", "rounds": "max_rounds"}[protocol.name]
    return {
        "name": protocol.name,
        "amount": getattr(protocol, amount),
        "holding": asdict(protocol.holding),
        "has_order": _order_of(protocol) is not None,
        **({"preemption": True} if protocol.preemption else {}),
    }


def _order_of(protocol: Protocol) -> Order | None:
    return protocol.order if isinstance(protocol, Inflation) else None


def _cluster_of(cluster: Cluster) -> dict[str, Any]:
    return {
        "name": cluster.name, "names": cluster.names, "gpu_models": cluster.gpu_models,
        "racks": cluster.racks, "labels": [dict(each) for each in cluster.labels],
        "gpu_slots": cluster.nodes.dtype["gpu_milli_left"].shape[0],
        **cluster_extras(cluster),
    }  # fmt: skip


def _workload_of(workload: Workload, protocol: Protocol) -> dict[str, Any]:
    lists = ("name", "names", "gpu_specs", "gpu_models", "gangs", "job_types")
    return {
        **{name: getattr(workload, name) for name in lists},
        "typical": asdict(workload.typical),
        "times": [name for name in TIMES if getattr(workload, name) is not None],
        **({} if workload.gpu_memory_mib is None else {"has_gpu_memory": True}),
        **workload_extras(workload),
        **(preemption_extras(workload) if protocol.preemption else {}),
    }


def _arrays_of(result: Result) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Lists the arrays of a result in the order of the file."""
    plan = result.plan
    yield "nodes", plan.cluster.nodes
    yield "rank_order", plan.rank_order
    for title in WORKLOADS if plan.arrivals is not plan.trace else WORKLOADS[:1]:
        workload = getattr(plan, title)
        yield f"{title} pods", workload.pods_as_written()
        for name in (*TIMES, GPU_MEMORY):
            if getattr(workload, name) is not None:
                yield f"{title} {name}", getattr(workload, name)
    order = _order_of(plan.protocol)
    if order is not None:
        yield "order", order.arrivals
        yield "ranks", np.zeros(0, np.int64) if order.node_rank is None else order.node_rank
    if plan.gangs.is_any:
        yield "gang order", plan.gangs.order
    for name in _ARRAYS:
        yield name, getattr(result, name)
    if result.evictions is not None:
        for name in _EVICTIONS:
            yield f"evicted {name}", getattr(result.evictions, name)


def _kinds(header: Mapping[str, Any]) -> dict[str, npt.DTypeLike]:
    """Says what the arrays of a file are, in its order."""
    slots = header["cluster"]["gpu_slots"]
    if slots not in (8, 16):
        raise ValueError
    kinds: dict[str, npt.DTypeLike] = {"nodes": node_dtype(slots), "rank_order": np.int64}
    for title in WORKLOADS:
        if header[title] is not None:
            kinds[f"{title} pods"] = POD
            times = [name for name in TIMES if name in header[title]["times"]]
            kinds |= {f"{title} {name}": np.float64 for name in times}
            if header[title].get("has_gpu_memory"):
                kinds[f"{title} {GPU_MEMORY}"] = np.int32
    if header["protocol"]["has_order"]:
        kinds |= {"order": np.int64, "ranks": np.int64}
    if header.get("has_gang_order"):
        kinds["gang order"] = np.int64
    kinds |= _ARRAYS
    if header["protocol"].get("preemption"):
        kinds |= {f"evicted {name}": kind for name, kind in _EVICTIONS.items()}
    return kinds


def _plan(
    header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], policy: Policy | None
) -> Plan:
    cluster = _cluster(header["cluster"], arrays["nodes"])
    trace = _workload("trace", header, arrays, cluster)
    arrivals = (
        trace if header["arrivals"] is None else _workload("arrivals", header, arrays, cluster)
    )
    bound = _bound(cluster, trace, arrivals)
    return Plan(
        cluster=cluster,
        rank_order=arrays["rank_order"],
        arrivals=arrivals,
        trace=trace,
        policy=restore_policy(header["policy"], policy),
        protocol=_protocol(header["protocol"], arrays),
        seed=_count(header["seed"]),
        tier=_one_of(header["tier"], get_args(Tier)),
        demand=_one_of(header.get("demand", "trace"), get_args(Demand)),
        ties=_one_of(header.get("ties", "order"), get_args(Ties)),
        bound=bound,
        gangs=gangs_of(cluster, arrivals, arrays["gang order"], bound)
        if "gang order" in arrays
        else no_gangs(cluster),
    )


def _bound(cluster: Cluster, trace: Workload, arrivals: Workload) -> Bound:
    count = int(is_bound(trace).sum())
    if not is_bound(arrivals)[:count].all() or count > len(arrivals):
        raise ValueError
    try:
        return bind_first(cluster, arrivals, count)
    except InputError as error:  # nobody asked for it: a file says so
        raise ValueError from error


def _is_begun(result: Result) -> bool:
    """Tells whether pods that ran before the run began are where they were then."""
    bound, history = result.plan.bound, result.history
    first = np.arange(len(bound))
    # Who was evicted began with the first of its stints, which is the earliest among the changes.
    begun = history.stint_of[history.changes > 0]
    pods, earliest = np.unique(history.pod[begun], return_index=True)
    if not np.array_equal(pods[: len(first)], first):
        return False
    stints = begun[earliest[: len(first)]]
    return (
        np.array_equal(history.node[stints], bound.node)
        and np.array_equal(history.slots[stints], bound.slots)
        and np.array_equal(history.start_s[stints], result.arrival_s[first])
    )


def _cluster(given: Mapping[str, Any], nodes: npt.NDArray[Any]) -> Cluster:
    labels = tuple({key: _text(value) for key, value in each.items()} for each in given["labels"])
    names, models, racks = (_texts(given[key]) for key in ("names", "gpu_models", "racks"))
    extras = read_cluster_extras(given)
    return Cluster(nodes, names, models, racks, labels, _text(given["name"]), **extras)


def _workload(
    title: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], cluster: Cluster
) -> Workload:
    given = header[title]
    lists = ("names", "gpu_specs", "gpu_models", "gangs", "job_types")
    values: dict[str, Any] = {name: _texts(given[name]) for name in lists}
    values |= {name: arrays.get(f"{title} {name}") for name in (*TIMES, GPU_MEMORY)}
    workload = Workload(
        pods=arrays[f"{title} pods"],
        **values,
        **read_workload_extras(given),
        typical=_typical(given["typical"]),
        name=_text(given["name"]),
    )
    check_work(cluster, workload)
    return workload.on(cluster)


def _typical(given: Mapping[str, Any]) -> TypicalPods:
    found = TypicalPods(**given)
    _one_of(found.is_involved_cpu_pods, (True, False))
    if _count(found.pod_popularity_threshold) > 100 or _number(found.gpu_res_weight) < 0:
        raise ValueError
    _count(found.pod_increase_step)
    return found


def _protocol(given: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Protocol:
    try:
        return _asked(given, arrays)
    except UsageError as error:  # nobody asked for it: a file says so
        raise ValueError from error


def _asked(given: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Protocol:
    holding = Holding(**{key: _count(value) for key, value in given["holding"].items()})
    amount = _number(given["amount"])
    preemption = _one_of(given.get("preemption", False), (True, False))
    if given["name"] == "replay":
        return Replay(amount, holding, preemption)
    if given["name"] == "rounds":
        return Rounds(_count(given["amount"]), holding, preemption)
    if given["name"] != "inflation" or preemption:
        raise ValueError
    order = None
    if given["has_order"]:
        order = Order(arrays["order"], arrays["ranks"] if len(arrays["ranks"]) else None)
    return Inflation(amount, order, holding)


def _bytes(array: npt.NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise TypeError
    return tuple(values)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _one_of(value: Any, known: tuple[Any, ...]) -> Any:
    if not isinstance(value, type(known[0])) or value not in known:
        raise ValueError
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _refused(path: Path, problem: str) -> InputError:
    return InputError.at(path, problem, hint=_HINT)
