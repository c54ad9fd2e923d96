"""Writes a result to one file and reads it back, digest and all; nothing in a file is executed.

The file is gzip data: one line of JSON, the arrays as little-endian bytes in a fixed order, and
the SHA-256 of all that. A file from elsewhere is read within bounds, and checked before it counts
as a result.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from podium.errors import InputError
from podium.files.bounded import EXPANSION, FREE_BYTES, MIB, open_file
from podium.files.draft import drafted
from podium.files.json_text import JsonError, parse_value
from podium.model import Cluster, Workload
from podium.model.records import POD, node_dtype
from podium.model.workload import TypicalPods
from podium.policies import Policy
from podium.sim.orders import Order
from podium.sim.plan import Plan
from podium.sim.protocols import Holding, Inflation, Protocol, Replay, Rounds
from podium.sim.result import PLACED, Result
from podium.sim.saved_policy import describe_policy, restore_policy

FORMAT, VERSION = "podium-result", 1
MOST_BYTES = 2048 * MIB
LONGEST_HEADER = 512 * MIB
_CHUNK = 4 * MIB
_DIGEST_BYTES = 32

_HINT = "give a file that Result.save wrote"

_ARRAYS = {
    "node": np.int32, "slots": np.int32, "arrival_s": np.float64, "start_s": np.float64,
    "status": np.int8, "holds": np.int32, "changes": np.int32, "changes_after": np.int32,
}  # fmt: skip
"""Of a result, by field, in the order of the file."""


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
        parts: list[bytes] = []
        while not parts or not parts[-1].endswith(b"\n"):
            part = self._source.readline(_CHUNK)
            if not part or self.given > LONGEST_HEADER:
                raise _refused(self.path, "is no saved result")
            parts.append(self._counted(part))
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
    _check(reader.path, header, arrays)
    decided: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
    result = Result(
        plan=_plan(header, arrays, policy),
        **decided,
        decisions=_count(header["decisions"]),
        wall_s=float(header["wall_s"]),
    )
    if result.digest != header["digest"]:
        raise _refused(reader.path, "does not have the digest that it names")
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
            reader.path, f"is a result of format {str(found.get('version'))[:20]}, and this Podium "
            f"reads format {VERSION}", hint="read it with the Podium that wrote it",
        )  # fmt: skip
    return found


def _header_of(result: Result) -> dict[str, Any]:
    plan = result.plan
    return {
        "format": FORMAT, "version": VERSION, "digest": result.digest,
        "decisions": result.decisions, "wall_s": result.wall_s,
        "seed": plan.seed, "tier": plan.tier,
        "protocol": _protocol_of(plan.protocol), "policy": describe_policy(plan.policy),
        "cluster": _cluster_of(plan.cluster), "trace": _workload_of(plan.trace),
        "arrivals": None if plan.arrivals is plan.trace else _workload_of(plan.arrivals),
    }  # fmt: skip


def _protocol_of(protocol: Protocol) -> dict[str, Any]:
    amount = {"replay": "load", "inflation": "ratio", "rounds": "max_rounds"}[protocol.name]
    return {
        "name": protocol.name,
        "amount": getattr(protocol, amount),
        "holding": asdict(protocol.holding),
        "has_order": _order_of(protocol) is not None,
    }


def _order_of(protocol: Protocol) -> Order | None:
    return protocol.order if isinstance(protocol, Inflation) else None


def _cluster_of(cluster: Cluster) -> dict[str, Any]:
    return {
        "name": cluster.name, "names": cluster.names, "gpu_models": cluster.gpu_models,
        "racks": cluster.racks, "labels": [dict(each) for each in cluster.labels],
        "gpu_slots": cluster.nodes.dtype["gpu_milli_left"].shape[0],
    }  # fmt: skip


def _workload_of(workload: Workload) -> dict[str, Any]:
    lists = ("name", "names", "gpu_specs", "gpu_models", "gangs", "job_types")
    return {
        **{name: getattr(workload, name) for name in lists},
        "typical": asdict(workload.typical),
        "times": [name for name in _TIMES if getattr(workload, name) is not None],
    }


_TIMES = ("arrival_s", "duration_s")
_WORKLOADS = ("trace", "arrivals")


def _arrays_of(result: Result) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Lists the arrays of a result in the order of the file."""
    plan = result.plan
    yield "nodes", plan.cluster.nodes
    yield "rank_order", plan.rank_order
    for title in _WORKLOADS if plan.arrivals is not plan.trace else _WORKLOADS[:1]:
        workload = getattr(plan, title)
        yield f"{title} pods", workload.pods
        for name in _TIMES:
            if getattr(workload, name) is not None:
                yield f"{title} {name}", getattr(workload, name)
    order = _order_of(plan.protocol)
    if order is not None:
        yield "order", order.arrivals
        yield "ranks", np.zeros(0, np.int64) if order.node_rank is None else order.node_rank
    for name in _ARRAYS:
        yield name, getattr(result, name)


def _kinds(header: Mapping[str, Any]) -> dict[str, npt.DTypeLike]:
    """Says what the arrays of a file are, in its order."""
    slots = header["cluster"]["gpu_slots"]
    if slots not in (8, 16):
        raise ValueError
    kinds: dict[str, npt.DTypeLike] = {"nodes": node_dtype(slots), "rank_order": np.int64}
    for title in _WORKLOADS:
        if header[title] is not None:
            kinds[f"{title} pods"] = POD
            times = [name for name in _TIMES if name in header[title]["times"]]
            kinds |= {f"{title} {name}": np.float64 for name in times}
    if header["protocol"]["has_order"]:
        kinds |= {"order": np.int64, "ranks": np.int64}
    return kinds | _ARRAYS


def _plan(
    header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], policy: Policy | None
) -> Plan:
    trace = _workload("trace", header, arrays)
    return Plan(
        cluster=_cluster(header["cluster"], arrays["nodes"]),
        rank_order=arrays["rank_order"],
        arrivals=trace if header["arrivals"] is None else _workload("arrivals", header, arrays),
        trace=trace,
        policy=restore_policy(header["policy"], policy),
        protocol=_protocol(header["protocol"], arrays),
        seed=_count(header["seed"]),
        tier=cast("Any", str(header["tier"])),
    )


def _cluster(given: Mapping[str, Any], nodes: npt.NDArray[Any]) -> Cluster:
    labels = tuple({str(k): str(v) for k, v in each.items()} for each in given["labels"])
    names, models, racks = (_texts(given[key]) for key in ("names", "gpu_models", "racks"))
    return Cluster(nodes, names, models, racks, labels, str(given["name"]))


def _workload(
    title: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> Workload:
    given = header[title]
    lists = ("names", "gpu_specs", "gpu_models", "gangs", "job_types")
    values: dict[str, Any] = {name: _texts(given[name]) for name in lists}
    values |= {name: arrays.get(f"{title} {name}") for name in _TIMES}
    typical = TypicalPods(**given["typical"])
    return Workload(
        pods=arrays[f"{title} pods"], **values, typical=typical, name=str(given["name"])
    )


def _protocol(given: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Protocol:
    holding, amount = Holding(**given["holding"]), given["amount"]
    if given["name"] == "replay":
        return Replay(float(amount), holding)
    if given["name"] == "rounds":
        return Rounds(_count(amount), holding)
    if given["name"] != "inflation":
        raise ValueError
    order = None
    if given["has_order"]:
        order = Order(arrays["order"], arrays["ranks"] if len(arrays["ranks"]) else None)
    return Inflation(float(amount), order, holding)


def _check(path: Path, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuses arrays that point to what is not there, so that no later figure is nonsense."""
    is_sound = (
        _is_cluster(header["cluster"], arrays)
        and all(_is_workload(title, header, arrays) for title in _WORKLOADS if header[title])
        and _are_decisions("arrivals" if header["arrivals"] else "trace", header, arrays)
        and _is_within(arrays.get("order", arrays["changes"][:0]), 0, len(arrays["trace pods"]) - 1)
        and len(arrays.get("ranks", ())) in (0, len(arrays["nodes"]))
    )
    if not is_sound:
        raise _refused(path, "holds a result that contradicts itself")


def _is_cluster(given: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
    nodes = arrays["nodes"]
    return (
        len(nodes) == len(given["names"])
        and len(given["labels"]) in (0, len(nodes))
        and sorted(arrays["rank_order"].tolist()) == list(range(len(nodes)))
        and _is_within(nodes["gpu_count"], 0, given["gpu_slots"])
        and _is_within(nodes["gpu_model"], -1, len(given["gpu_models"]) - 1)
        and _is_within(nodes["rack"], -1, len(given["racks"]) - 1)
    )


def _is_workload(
    title: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> bool:
    given, pods = header[title], arrays[f"{title} pods"]
    times = [arrays.get(f"{title} {name}", pods) for name in _TIMES]
    return (
        all(len(each) == len(pods) for each in (given["names"], given["gpu_specs"], *times))
        and len(given["job_types"]) in (0, len(pods))
        and _is_within(pods["gpu_count"], 0, 16)
        and _is_within(pods["gang"], 0, len(given["gangs"]))
    )


def _are_decisions(
    title: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> bool:
    nodes, pods = len(arrays["nodes"]), len(arrays[f"{title} pods"])
    changes = np.abs(arrays["changes"].astype(np.int64))
    return (
        all(len(arrays[name]) == pods for name in _ARRAYS if not name.startswith("changes"))
        and len(arrays["changes_after"]) in (0, pods)
        and _is_within(arrays["changes_after"], 0, len(changes))
        and _is_within(arrays["node"], -1, nodes - 1)
        and _is_within(arrays["status"], 0, 2)
        and _is_within(arrays["slots"], 0, 2 ** header["cluster"]["gpu_slots"] - 1)
        and _is_within(changes, 1, pods)
        and bool((arrays["node"][arrays["status"] == PLACED] >= 0).all())
    )


def _is_within(values: npt.NDArray[Any], low: int, high: int) -> bool:
    return not len(values) or (int(values.min()) >= low and int(values.max()) <= high)


def _bytes(array: npt.NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise TypeError
    return tuple(values)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _refused(path: Path, problem: str) -> InputError:
    return InputError.at(path, problem, hint=_HINT)
