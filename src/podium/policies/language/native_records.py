"""Shows records to compiled policies through types that can only be read.

A record of Numba's own can be written to, and so can the arrays in it. The types here have
fields, and a list of whole numbers with a length: nothing writes to them, and nothing takes them
for anything else. Numba is imported at the top, as in `abi`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import RefType, iternext_impl
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_builtin,
    lower_getattr_generic,
    models,
    overload,
    register_model,
)

from podium.model.records import NODE_8, NODE_16, POD

_BYTES = ir.IntType(8).as_pointer()
_WORD = ir.IntType(64)


class ShownRecord(types.Type):  # type: ignore[misc]
    """A pod or a node whose fields can only be read."""

    def __init__(self, name: str, dtype: np.dtype[np.void]) -> None:
        super().__init__(name=f"Shown({name})")
        self.dtype = dtype

    def field(self, name: str) -> tuple[np.dtype[Any], int] | None:
        """Finds the type of a field, and where it begins."""
        fields: Any = self.dtype.fields
        return fields[name][:2] if name in fields else None


class ShownList(types.IterableType):  # type: ignore[misc]
    """The list of a node's GPUs: 32-bit numbers, as many as the record has slots."""

    def __init__(self, length: int) -> None:
        super().__init__(name=f"ShownList({length})")
        self.length = length

    @property
    def iterator_type(self) -> ShownIterator:
        """Returns the type of its iterator."""
        return ShownIterator(self)


class ShownIterator(types.SimpleIteratorType):  # type: ignore[misc]
    """Iterates over a list of GPUs."""

    def __init__(self, over: ShownList) -> None:
        super().__init__(name=f"iter({over.name})", yield_type=types.int64)
        self.over = over


class _Pointer(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, shown: Any) -> None:
        super().__init__(manager, shown, _BYTES)


class _Iterator(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, shown: ShownIterator) -> None:
        members = [("index", types.EphemeralPointer(types.int64)), ("over", shown.over)]
        super().__init__(manager, shown, members)


register_model(ShownRecord)(_Pointer)
register_model(ShownList)(_Pointer)
register_model(ShownIterator)(_Iterator)


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = ShownRecord

    def generic_resolve(self, shown: ShownRecord, name: str) -> Any:
        found = shown.field(name)
        if found is None:
            return None
        shape = found[0].shape
        return ShownList(shape[0]) if shape else types.int64


@lower_getattr_generic(ShownRecord)  # type: ignore[untyped-decorator]
def _read_field(_context: Any, builder: Any, shown: ShownRecord, value: Any, name: str) -> Any:
    found = shown.field(name)
    assert found is not None
    dtype, offset = found
    at = builder.gep(value, [_WORD(offset)])
    return at if dtype.shape else _load(builder, at, dtype.itemsize)


def _load(builder: Any, at: Any, size: int) -> Any:
    number = builder.load(builder.bitcast(at, ir.IntType(8 * size).as_pointer()))
    return number if size == 8 else builder.sext(number, _WORD)


def _load_slot(builder: Any, over: Any, index: Any) -> Any:
    return _load(builder, builder.gep(over, [builder.mul(index, _WORD(4))]), 4)


@intrinsic  # type: ignore[untyped-decorator]
def read_slot(_typing: Any, shown: Any, _index: Any) -> Any:
    """Reads a slot whose index is known to be good."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _load_slot(builder, *arguments)

    return types.int64(shown, types.int64), generate


@overload(len, strict=False)  # type: ignore[untyped-decorator]
def _length(shown: Any) -> Any:
    if isinstance(shown, ShownList):
        length = shown.length
        return lambda shown: length  # noqa: ARG005 - Numba wants the same names
    return None


@overload(operator.getitem, strict=False)  # type: ignore[untyped-decorator]
def _getitem(shown: Any, index: Any) -> Any:
    if isinstance(shown, ShownList) and isinstance(index, types.Integer):
        length = shown.length

        def read(shown: Any, index: Any) -> Any:
            if 0 <= index < length:
                return read_slot(shown, index)
            raise IndexError("an index is negative, or beyond the end")

        return read
    return None


@lower_builtin("getiter", ShownList)  # type: ignore[untyped-decorator]
def _begin(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    iterator = context.make_helper(builder, signature.return_type)
    iterator.index = cgutils.alloca_once_value(builder, _WORD(0))
    iterator.over = arguments[0]
    return iterator._getvalue()


@lower_builtin("iternext", ShownIterator)  # type: ignore[untyped-decorator]
@iternext_impl(RefType.UNTRACKED)  # type: ignore[untyped-decorator]
def _next(context: Any, builder: Any, signature: Any, arguments: Any, result: Any) -> None:
    (kind,) = signature.args
    iterator = context.make_helper(builder, kind, value=arguments[0])
    index = builder.load(iterator.index)
    is_valid = builder.icmp_signed("<", index, _WORD(kind.over.length))
    result.set_valid(is_valid)
    with builder.if_then(is_valid):
        result.yield_(_load_slot(builder, iterator.over, index))
        builder.store(builder.add(index, _WORD(1)), iterator.index)


def _shown_at(shown: ShownRecord) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def at(_typing: Any, _address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], _BYTES)

        return shown(types.int64), generate

    return at


shown_pod = _shown_at(ShownRecord("pod", POD))
"""Shows the pod at an address."""

shown_node = {
    8: _shown_at(ShownRecord("node of 8", NODE_8)),
    16: _shown_at(ShownRecord("node of 16", NODE_16)),
}
"""Shows the node at an address, by the number of its GPU slots."""
