"""Finds what a policy's source may not do: change state, or depend on more than its arguments."""

from __future__ import annotations

import ast

IMPURE_MODULES = frozenset(
    "asyncio builtins ctypes datetime http io multiprocessing os pathlib random secrets shutil socket"
    " subprocess sys threading time urllib".split()
)
MUTATORS = frozenset("sort fill put partition resize itemset setfield byteswap setflags".split())
NUMPY_MUTATORS = frozenset("copyto put place putmask fill_diagonal".split())

CHANGES_STATE = "changes a record or an array; a policy only reads its arguments"
CHANGES_GLOBALS = "changes a global; a policy is a function of its arguments alone"


def problems(tree: ast.Module) -> list[tuple[int, str]]:
    """Lists (line, reason) for everything that breaks purity."""
    found = [(node.lineno, reason) for node in ast.walk(tree) if (reason := _reason(node))]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        found += [(n.lineno, CHANGES_STATE) for n in ast.walk(function) if _is_store(n)]
    return sorted(set(found))


def _is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)


def _reason(node: ast.AST) -> str:
    if isinstance(node, ast.Global | ast.Nonlocal):
        return CHANGES_GLOBALS
    if isinstance(node, ast.Import):
        return _import_reason([alias.name for alias in node.names])
    if isinstance(node, ast.ImportFrom):
        return _import_reason([node.module or ""])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _call_reason(node.func)
    return ""


def _import_reason(modules: list[str]) -> str:
    for module in modules:
        if module.split(".")[0] in IMPURE_MODULES:
            return f"imports {module}; a pair policy is a pure function (a cluster policy may)"
    return ""


def _call_reason(function: ast.Attribute) -> str:
    is_numpy = isinstance(function.value, ast.Name) and function.value.id in ("np", "numpy")
    if function.attr in (NUMPY_MUTATORS if is_numpy else MUTATORS):
        return CHANGES_STATE
    if isinstance(function.value, ast.Attribute | ast.Subscript) and not is_numpy:
        name = ast.unparse(function)
        if not name.startswith(("np.", "numpy.", "math.")):
            return f"calls {name}(); use a built-in function such as sum, min, max or len"
    return ""
