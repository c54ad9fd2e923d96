"""Lists the words that a candidate may use."""

from __future__ import annotations

import ast

from podium.model.records import Node, Pod

RECORDS = {"pod": frozenset(Pod._fields), "node": frozenset(Node._fields)}
"""The records of a score function by argument, with their fields."""

GPU_LIST = "gpu_milli_left"
"""The one field that is a list."""

BUILTINS = frozenset(["abs", "bool", "float", "int", "len", "max", "min", "pow", "round", "sum"])
LIST_READERS = frozenset(["len", "max", "min", "sum"])
"""Built-in functions that may be given the list of a node's GPUs."""

MATH_FUNCTIONS = frozenset(
    ["atan", "atan2", "ceil", "copysign", "cos", "cosh", "erf", "exp", "expm1", "fabs", "floor",
     "hypot", "isfinite", "isnan", "log", "log10", "log1p", "log2", "pow", "sin", "sinh",
     "sqrt", "tan", "tanh"]
)  # fmt: skip
MATH_NUMBERS = frozenset(["e", "inf", "pi", "tau"])

IMPORTS = {"podium.policies": frozenset(["HOLD", "tunable"])}

OPERATORS: tuple[type[ast.AST], ...] = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr,
    ast.BitXor, ast.RShift, ast.USub, ast.UAdd, ast.Not, ast.Invert, ast.And, ast.Or, ast.Lt,
    ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip
STATEMENTS: tuple[type[ast.AST], ...] = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.If, ast.For, ast.While, ast.Break,
    ast.Continue, ast.Pass, ast.Expr,
)  # fmt: skip
EXPRESSIONS: tuple[type[ast.AST], ...] = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Name, ast.Constant,
    ast.Attribute, ast.Subscript, ast.Call, ast.Tuple,
)  # fmt: skip

RESERVED = BUILTINS | {"HOLD", "math", "range", "tunable", *RECORDS}
"""Names that a candidate may not give to something else."""

LARGEST_INTEGER = 2**53
LARGEST_EXPONENT = 64
LONGEST_RANGE = 4096
LONGEST_BYTES = 20_000
DEEPEST = 40
LONGEST_CHOICE = 64
MOST_NODES = 6000
DEEPEST_LOOPS = 3

_SAID: dict[type[ast.AST], str] = {
    ast.Expr: "a bare expression",
    ast.AugAssign: "an assignment in place",
    ast.AnnAssign: "an annotated assignment",
    ast.If: "if",
    ast.For: "for",
    ast.While: "while",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.ClassDef: "a class",
    ast.AsyncFunctionDef: "an async function",
    ast.FunctionDef: "a function inside a function",
    ast.Lambda: "a lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.List: "a list",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
    ast.JoinedStr: "an f-string",
    ast.NamedExpr: "the operator :=",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Delete: "del",
    ast.With: "with",
    ast.Try: "try",
    ast.TryStar: "try",
    ast.Raise: "raise",
    ast.Assert: "assert",
    ast.Match: "match",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Await: "await",
    ast.Starred: "*arguments",
    ast.Slice: "a slice",
    ast.LShift: "the operator <<",
    ast.MatMult: "the operator @",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


def said(node: ast.AST) -> str:
    """Names a construct as a person would."""
    return _SAID.get(type(node), type(node).__name__)
