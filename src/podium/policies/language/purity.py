"""Finds what a policy's source may not do: change state, or depend on more than its arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

IMPURE_MODULES = frozenset(
    ["asyncio", "builtins", "ctypes", "datetime", "http", "io", "multiprocessing", "numpy.random",
     "os", "pathlib", "random", "secrets", "shutil", "socket", "subprocess", "sys", "threading",
     "time", "urllib"]
)  # fmt: skip
IMPURE_CALLS = frozenset(
    ["__import__", "compile", "delattr", "eval", "exec", "globals", "hash", "id", "input",
     "locals", "open", "print", "setattr", "vars"]
)  # fmt: skip
MUTATORS = frozenset(
    ["sort", "fill", "put", "partition", "resize", "itemset", "setfield", "byteswap", "setflags"]
)
NUMPY_MUTATORS = frozenset(["copyto", "put", "place", "putmask", "fill_diagonal"])
CONTAINER_MUTATORS = frozenset(
    ["add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem",
     "popleft", "remove", "reverse", "setdefault", "update"]
)  # fmt: skip

CHANGES_STATE = "changes a record or an array; a policy only reads its arguments"
CHANGES_GLOBALS = "changes a global; a policy is a function of its arguments alone"
KEEPS_STATE = "keeps state in a default argument; a policy is a function of its arguments alone"
DRAWS = 'draws random numbers; TIES = "random" breaks ties by chance (a cluster policy may draw)'

NEVER = (CHANGES_GLOBALS, DRAWS)
"""What not even `prepare` may do: a run would not repeat."""

MOST_BITS = 10_000
"""Bits of a whole number that a text may write down, or raise to: Python takes for ever to compute
10 ** 10 ** 10, and refuses to write out what has more than 4,300 digits."""

PREPARE = "prepare"
"""Runs once, before the run, and builds an array; it may fill what it builds."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FIXED = (ast.Constant, ast.UnaryOp, ast.Name, ast.Tuple)


def problems(tree: ast.Module) -> list[tuple[int, str]]:
    """Lists (line, reason) for everything that breaks purity."""
    building = _nodes_of_prepare(tree)
    found = [
        (_line(node), reason)
        for node in ast.walk(tree)
        if (reason := _reason(node)) and (node not in building or reason in NEVER)
    ]
    for function in ast.walk(tree):
        if isinstance(function, _Function) and function.name != PREPARE:
            found += _state_changes(function)
    return sorted(set(found))


def _nodes_of_prepare(tree: ast.Module) -> set[ast.AST]:
    functions = [n for n in tree.body if isinstance(n, _Function) and n.name == PREPARE]
    return {node for function in functions for node in ast.walk(function)}


def _state_changes(function: _Function) -> Iterator[tuple[int, str]]:
    own = _own_names(function)
    for default in [*function.args.defaults, *filter(None, function.args.kw_defaults)]:
        if not isinstance(default, _FIXED):
            yield _line(default), KEEPS_STATE
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield _line(node), CHANGES_STATE
        if isinstance(node, ast.Call) and _changes_shared(node, own):
            yield _line(node), CHANGES_GLOBALS


def _own_names(function: _Function) -> set[str]:
    stored = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    return stored | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def _changes_shared(call: ast.Call, own: set[str]) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in CONTAINER_MUTATORS:
        return isinstance(call.func.value, ast.Name) and call.func.value.id not in own
    if isinstance(call.func, ast.Name) and call.func.id == "next" and call.args:
        return isinstance(call.args[0], ast.Name) and call.args[0].id not in own
    return False


def _reason(node: ast.AST) -> str:
    if isinstance(node, ast.Constant | ast.BinOp) and _written(node).bit_length() > MOST_BITS:
        return f"computes a whole number of more than {MOST_BITS:,} bits"
    if isinstance(node, ast.Global | ast.Nonlocal):
        return CHANGES_GLOBALS
    if isinstance(node, ast.Import):
        return _import_reason([alias.name for alias in node.names])
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        return _import_reason([module, *(f"{module}.{alias.name}" for alias in node.names)])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _method_reason(node.func)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _call_reason(node.func.id)
    return ""


def _written(node: ast.expr) -> int:
    """Computes a power of written whole numbers, as far as MOST_BITS; 0 for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else 0
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow | ast.LShift):
        return 0
    base, exponent = _written(node.left), _written(node.right)
    if exponent <= 0 or not base:
        return 0
    is_power = isinstance(node.op, ast.Pow)
    bits = base.bit_length() * exponent if is_power else base.bit_length() + exponent
    if bits > MOST_BITS:
        return 1 << MOST_BITS
    return int(base**exponent) if is_power else base << exponent


def _call_reason(name: str) -> str:
    if name not in IMPURE_CALLS:
        return ""
    return f"calls {name}(); a policy is a function of its arguments alone"


def _import_reason(modules: list[str]) -> str:
    for module in modules:
        if (
            module.split(".")[0] in IMPURE_MODULES
            or ".".join(module.split(".")[:2]) in IMPURE_MODULES
        ):
            return f"imports {module}; a pair policy is a pure function (a cluster policy may)"
    return ""


def _method_reason(function: ast.Attribute) -> str:
    name = ast.unparse(function)
    is_numpy = isinstance(function.value, ast.Name) and function.value.id in ("np", "numpy")
    if function.attr in (NUMPY_MUTATORS if is_numpy else MUTATORS):
        return CHANGES_STATE
    if name.startswith(("np.random.", "numpy.random.")):
        return DRAWS
    is_own = name.startswith(("np.", "numpy.", "math."))
    if isinstance(function.value, ast.Attribute | ast.Subscript) and not is_own:
        return f"calls {name}(); use a built-in function such as sum, min, max or len"
    return ""


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 1))
