"""Turns a Python score function into a C function that the simulator's core can call.

The core knows one kind of policy: the address of
`double evaluate(pod, node, gpu, table, rows, columns)`, where `pod` and `node` are the
addresses of records and `gpu` is a slot or -1. The core is compiled once and never again for
a new policy. A result of NaN means that the policy failed.

Numba is imported here at the top: import this module only where something is compiled.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from podium.errors import PolicyError
from podium.model.records import NODE_8, NODE_16, POD
from podium.policies.jit import by_type, compiled, keep_on_disk, marked, stamp_of
from podium.policies.language.native_records import shown_node, shown_pod

if llvmlite.binding.llvm_version_info[0] <= 22:  # what does not know an option ends the process
    # It takes exponential time over sums of sums, such as `a, b = b, a + b` thirty times.
    llvmlite.binding.set_option("podium", "-enable-constraint-elimination=false")

SIGNATURE = types.float64(*[types.int64] * 6)
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_int64] * 6)


@dataclass(frozen=True, slots=True)
class Native:
    """A callable address, and whatever must stay alive as long as it is used."""

    address: int
    owner: object


def _record_at(dtype: np.dtype[np.void]) -> Any:
    record = numba.from_dtype(dtype)

    @intrinsic  # type: ignore[untyped-decorator]
    def at(_typing: Any, _address: Any) -> Any:
        # In Numba a record value is a pointer to its bytes.
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(record))

        return record(types.int64), generate

    return at


def _table_pointer() -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def pointer(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(types.float64)(types.int64), generate

    return pointer


def _read_only() -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def read_only(_typing: Any, array: Any) -> Any:
        def generate(_context: Any, _builder: Any, _signature: Any, arguments: Any) -> Any:
            return arguments[0]

        return array.copy(readonly=True)(array), generate

    return read_only


pod_at = _record_at(POD)
node_at = {8: _record_at(NODE_8), 16: _record_at(NODE_16)}
table_pointer = _table_pointer()
read_only = _read_only()


@intrinsic  # type: ignore[untyped-decorator]
def call_native(
    _typing: Any, _address: Any, _pod: Any, _node: Any, _gpu: Any, _table: Any, _rows: Any,
    _columns: Any,
) -> Any:  # fmt: skip
    """Calls the policy at an address, from compiled code."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = ir.FunctionType(ir.DoubleType(), [ir.IntType(64)] * 6).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], pointer), arguments[1:])

    return types.float64(*[types.int64] * 7), generate


def compile_score(
    namespace: dict[str, Any], form: tuple[str, ...], table_ndim: int, gpu_slots: int, stamp: str
) -> Native:
    """Compiles the `score` among translated functions; a stamp other than "" keeps it on disk."""
    own_stamp = stamp_of([stamp, str(table_ndim), str(gpu_slots)]) if stamp else ""
    mark = own_stamp[:24] or "fresh"
    functions = translated_functions(namespace, mark)
    wrapper = _WRAPPERS[form](functions["score"], shown_node[gpu_slots], _table_reader(table_ndim))
    try:
        callback = _compiled(marked(wrapper, mark), own_stamp)
    except Exception as error:
        # Numba raises its own errors, and any other where it meets what it never expected.
        raise PolicyError(
            f"the policy cannot be compiled: {_first_words(error)}",
            hint="use numbers, if, for and math only; or run it in the python tier",
        ) from error
    return Native(callback.address, (callback, wrapper, functions))


def translated_functions(namespace: dict[str, Any], mark: str) -> dict[str, Any]:
    """Puts functions that Numba compiles in place of plain ones."""
    for name, value in list(namespace.items()):
        if isinstance(value, FunctionType):
            is_own = value.__globals__ is namespace
            namespace[name] = by_type(marked(value, mark)) if is_own else compiled(value, mark)
    return namespace


def python_callback(function: Callable[[int, int, int], float]) -> Native:
    """Wraps a Python function of (pod address, node address, gpu) as the core's callable."""

    def call(pod: int, node: int, gpu: int, _table: int, _rows: int, _columns: int) -> float:
        return function(pod, node, gpu)

    callback = CALLBACK(call)
    return Native(ctypes.cast(callback, ctypes.c_void_p).value or 0, callback)


def _compiled(wrapper: Callable[..., Any], stamp: str) -> Any:
    from numba.core.ccallback import CFunc

    callback = CFunc(wrapper, (SIGNATURE.args, SIGNATURE.return_type), {}, {})
    if stamp:
        keep_on_disk(callback, wrapper, stamp)
    callback.compile()
    return callback


def _table_reader(table_ndim: int) -> Any:
    def read_row(address: int, rows: int, _columns: int) -> Any:
        return read_only(numba.carray(table_pointer(address), (rows,)))

    def read_rows(address: int, rows: int, columns: int) -> Any:
        return read_only(numba.carray(table_pointer(address), (rows, columns)))

    return numba.njit(read_row if table_ndim == 1 else read_rows)


def _pair(score: Any, node_of: Any, _table_of: Any) -> Callable[..., float]:
    def evaluate(pod: int, node: int, gpu: int, table: int, rows: int, columns: int) -> float:  # noqa: ARG001
        try:
            return float(score(shown_pod(pod), node_of(node)))
        except Exception:  # noqa: BLE001 - the only form Numba compiles
            return math.nan

    return evaluate


def _pair_gpu(score: Any, node_of: Any, _table_of: Any) -> Callable[..., float]:
    def evaluate(pod: int, node: int, gpu: int, table: int, rows: int, columns: int) -> float:  # noqa: ARG001
        try:
            return float(score(shown_pod(pod), node_of(node), gpu))
        except Exception:  # noqa: BLE001 - the only form Numba compiles
            return math.nan

    return evaluate


def _pair_table(score: Any, node_of: Any, table_of: Any) -> Callable[..., float]:
    def evaluate(pod: int, node: int, gpu: int, table: int, rows: int, columns: int) -> float:  # noqa: ARG001
        try:
            return float(score(shown_pod(pod), node_of(node), table_of(table, rows, columns)))
        except Exception:  # noqa: BLE001 - the only form Numba compiles
            return math.nan

    return evaluate


def _pair_gpu_table(score: Any, node_of: Any, table_of: Any) -> Callable[..., float]:
    def evaluate(pod: int, node: int, gpu: int, table: int, rows: int, columns: int) -> float:
        try:
            return float(score(shown_pod(pod), node_of(node), gpu, table_of(table, rows, columns)))
        except Exception:  # noqa: BLE001 - the only form Numba compiles
            return math.nan

    return evaluate


_WRAPPERS: dict[tuple[str, ...], Callable[..., Callable[..., float]]] = {
    ("pod", "node"): _pair,
    ("pod", "node", "gpu"): _pair_gpu,
    ("pod", "node", "table"): _pair_table,
    ("pod", "node", "gpu", "table"): _pair_gpu_table,
}


def _first_words(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    useful = [line for line in lines if not line.startswith(("Failed in", "During:", "File", "-"))]
    return (useful or lines or ["no reason given"])[0]
