"""Compiles the core: only what a run needs, and each function once.

The record of a plain run has no fields for constraints, gangs and shares by kind of GPU (see
`layout`). Where compiled code reads one of the flags that lead to them, it reads 0; so Numba
drops the branch behind the flag, and never compiles what is called there. Any other field that a
record lacks is an error of the compilation, so nothing is left over unnoticed.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.consts import ConstantInference
from numba.core.ir_utils import build_definitions, get_definition, guard
from numba.core.untyped_passes import InlineInlinables

FLAGS = (
    *("has_constraints", "has_shares", "has_spreads", "has_gangs"),
    *("trial_gang", "trial_level", "late_members", "has_preemption"),
)
"""Numbers that are 0 throughout a plain run: whatever they lead to does not happen there."""


class CoreCompiler(CompilerBase):  # type: ignore[misc]
    """Compiles what Python calls; flags that a record lacks are read as 0."""

    def define_pipelines(self) -> list[Any]:
        """Reads the flags once all is inlined, before dead branches are dropped."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(ReadFlags, InlineInlinables)
        passes.finalize()
        return [passes]


class InnerCompiler(CoreCompiler):
    """Compiles what only compiled code calls, and leaves machine code to the callers.

    Numba optimises a function with all that it calls, and again with each of its callers; in a
    core of many small functions, most of the time went there. Now it is done once, at the top.
    """

    def define_pipelines(self) -> list[Any]:
        """Compiles into a library that is linked into others, and never run."""
        codegen = self.state.targetctx.codegen()
        self.state.library = _InnerLibrary(codegen, self.state.func_id.func_qualname)
        return super().define_pipelines()


class _InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Skips what Numba does to make a function ready to be called from Python."""

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, _name: str, _environment: Any) -> None:
        pass

    def get_pointer_to_function(self, _name: str) -> int:
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)
class ReadFlags(FunctionPass):  # type: ignore[misc]
    """Puts 0 in the place of every flag that is read from a record without it."""

    _name = "read_flags"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Rewrites one function for the types of arguments that it is compiled for."""
        if not any(_is_plain(given) for given in state.args):
            return False
        # Machine code goes by name, and Numba names a record by a number that every process
        # counts anew: on disk, code for two kinds of record must not share a name.
        state.func_id.func_qualname += "_plain"
        program = state.func_ir
        program._definitions = build_definitions(program.blocks)
        for block in program.blocks.values():
            for assignment in block.find_insts(ir.Assign):
                if _is_flag_of_plain(state, assignment.value):
                    assignment.value = ir.Const(0, assignment.loc)
        program._definitions = build_definitions(program.blocks)
        program._consts = ConstantInference(program)
        return True


def _is_plain(given: Any) -> bool:
    """Tells whether an argument is the record of a plain run, or an array of them."""
    record = given.dtype if isinstance(given, types.Array) else given
    is_run = isinstance(record, types.Record) and "clock" in record.fields
    return is_run and not any(name in record.fields for name in FLAGS)


def _is_flag_of_plain(state: Any, value: Any) -> bool:
    if not isinstance(value, ir.Expr) or value.op != "getattr" or value.attr not in FLAGS:
        return False
    origin = guard(get_definition, state.func_ir, value.value)
    if isinstance(origin, ir.Expr) and origin.op in ("getitem", "static_getitem"):
        origin = guard(get_definition, state.func_ir, origin.value)
    return isinstance(origin, ir.Arg) and _is_plain(state.args[origin.index])
