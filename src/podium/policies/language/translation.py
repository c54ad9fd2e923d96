"""Translates a score function, and all that it calls, into a form that means one thing.

Plain Python and compiled code run the same translation. Every name in it has one kind, every
whole number is exact, every index is checked where it is not proven, and nothing is read before
it is set. What has no such form is not compiled: it runs in plain Python, as it is written.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
from collections import ChainMap, Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType, ModuleType
from typing import Any

from podium.policies.language.arithmetic import PLAIN
from podium.policies.language.kind import (
    ARGUMENTS,
    FLOAT,
    MOST_WHOLE,
    WHOLE,
    Kind,
    NotPortable,
    clipped,
    join,
    kind_of,
    whole,
)

PREFIX = "podium_"
"""Begins the names that a translation adds; a policy does not use it."""

TEXT = "__podium_text__"
"""Names the text of a file among what it defines, where the file itself is not kept."""

Place = tuple[int, int]
"""The line and the column of a statement."""

DEEPEST = 20_000
"""Calls of Python within one another that a translation may take: chains of elif are nested."""

MOST_NODES = 6000
"""Parts of a program that is compiled, which takes seconds; beyond, it would take minutes."""

DEEPEST_LOOPS = 12
"""Loops within one another that are compiled, those of called functions included."""

ROUNDS = 24
PATIENCE = 5
"""Rounds after which a bound that still grows is taken to grow for ever."""


@dataclass(slots=True, eq=False)
class Function:
    """One function of a policy, and what is known of its names so far."""

    name: str  # in the translation
    tree: ast.FunctionDef
    path: str
    outer: Mapping[str, Any]  # its globals, and the values of a closure
    stores: Counter[str]  # how often each name is set
    bases: dict[str, Kind | None] = field(default_factory=dict)
    sums: dict[str, dict[Place, tuple[int, int]]] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)  # names that may be read before they are set
    result: Kind | None = None
    has_result: bool = False
    loops: int = 0  # within one another, those of what it calls included
    calls: set[str] = field(default_factory=set)

    @property
    def arguments(self) -> list[str]:
        """Lists its arguments."""
        return [argument.arg for argument in self.tree.args.args]

    def kind(self, name: str) -> Kind | None:
        """Returns the kind of a name: what is assigned to it, and what is added up in loops."""
        base = self.bases.get(name)
        if base is None or base.tag != "int" or name not in self.sums:
            return base
        steps = self.sums[name].values()
        low = base.low + sum(min(0, low) for low, _ in steps)
        return whole(low, base.high + sum(max(0, high) for _, high in steps))


@dataclass(frozen=True, slots=True)
class Translation:
    """The code of a policy's functions, to be run with one list of operations or another."""

    codes: tuple[CodeType, ...]

    def namespace(self, operations: Mapping[str, Any]) -> dict[str, Any]:
        """Defines the functions; `score` is one of them."""
        # A real module's name: machine code read back from disk looks it up.
        names = {"__name__": __name__, **{PREFIX + key: each for key, each in operations.items()}}
        for code in self.codes:
            exec(code, names)  # noqa: S102 - defines functions and does nothing else
        return names

    def plain(self) -> FunctionType:
        """Returns the score function for plain Python."""
        found: FunctionType = self.namespace(PLAIN)["score"]
        return found


def translate(function: FunctionType) -> Translation:
    """Translates a score function; raises NotPortable with the line and the reason."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, DEEPEST))
    try:
        program = Program(function)
        program.settle()
        trees = program.trees()
    finally:
        sys.setrecursionlimit(limit)
    return Translation(tuple(compile(tree, path, "exec") for path, tree in trees))


class Program:
    """Finds all functions that a score function calls, and the kinds of their names."""

    def __init__(self, function: FunctionType) -> None:
        self._functions: dict[FunctionType, Function] = {}
        self._translated: dict[str, ast.FunctionDef] = {}
        self._round, self._nodes = 0, 0
        self.has_changed = True
        self._unknown: ast.expr | None = None
        score = self.function(function)
        score.name, score.result = "score", FLOAT
        for name in score.arguments:
            score.bases[name] = ARGUMENTS[name]

    def function(self, function: FunctionType) -> Function:
        """Reads a function that is called, once."""
        if function not in self._functions:
            tree = definition_of(function)
            _check_signature(tree)
            self._nodes += sum(1 for _ in ast.walk(tree))
            if self._nodes > MOST_NODES:
                raise NotPortable(f"has more than {MOST_NODES:,} parts", tree.lineno)
            name = f"{PREFIX}{len(self._functions)}_{function.__name__}"
            path = function.__code__.co_filename
            stores = Counter(
                each.id for each in ast.walk(tree)
                if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
            )  # fmt: skip
            self._functions[function] = Function(name, tree, path, _outer(function), stores)
            self.has_changed = True
        return self._functions[function]

    def settle(self) -> None:
        """Translates again and again, until nothing new is known of any name."""
        from podium.policies.language.statements import Body

        while self.has_changed:
            self._round += 1
            if self._round > ROUNDS:
                raise NotPortable("has names whose kinds do not settle")
            self.has_changed, self._unknown = False, None
            for each in list(self._functions.values()):
                self._translated[each.name] = Body(self, each).translated()
            self._refuse_recursion()
        if self._unknown is not None:
            raise NotPortable("computes with what is never set", self._unknown.lineno)

    def note_unknown(self, node: ast.expr) -> None:
        """Remembers an expression of which nothing is known yet."""
        self._unknown = node

    def learn(self, known: Kind | None, new: Kind | None, line: int) -> Kind | None:
        """Joins what is known of a name with what is assigned to it."""
        try:
            found = join(known, new)
        except NotPortable as error:
            raise NotPortable(error.reason, line) from None
        if found == known:
            return known
        self.has_changed = True
        return _widened(found, has_grown=self._round > PATIENCE) if found is not None else None

    def note_sum(self, function: Function, name: str, place: Place, step: tuple[int, int]) -> None:
        """Bounds what one statement adds to a name in all the rounds of its loops."""
        steps = function.sums.setdefault(name, {})
        if self._round > PATIENCE and place in steps and steps[place] != step:
            step = (-2 * MOST_WHOLE, 2 * MOST_WHOLE)
        if steps.get(place) != step:
            steps[place] = step
            self.has_changed = True

    def trees(self) -> list[tuple[str, ast.Module]]:
        """Returns the translated functions, each with the path of its file."""
        found = []
        for each in self._functions.values():
            if not each.has_result:
                raise NotPortable(f"{each.tree.name} returns nothing", each.tree.lineno)
            module = ast.Module([self._translated[each.name]], [])
            found.append((each.path, ast.fix_missing_locations(module)))
        return found

    def _refuse_recursion(self) -> None:
        found = circular({each.name: each.calls for each in self._functions.values()})
        for each in self._functions.values():
            if each.name in found:
                raise NotPortable(f"{each.tree.name}() calls itself", each.tree.lineno)


def circular(calls: Mapping[str, AbstractSet[str]]) -> list[str]:
    """Lists the functions that call themselves, directly or through others; no mere callers."""
    left = dict(calls)
    # Whatever calls nothing that is left cannot be part of a circle.
    while free := {name for name, called in left.items() if not called & left.keys()}:
        left = {name: called for name, called in left.items() if name not in free}
    return [name for name in left if name in _reached(left, left[name])]


def _reached(calls: Mapping[str, AbstractSet[str]], first: AbstractSet[str]) -> set[str]:
    found: set[str] = set()
    ahead = [*first]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead.extend(calls.get(name, ()))
    return found


def _widened(kind: Kind, *, has_grown: bool) -> Kind:
    if kind.is_number and kind.may_be_whole:
        return replace(WHOLE, tag=kind.tag) if has_grown else clipped(kind)
    return replace(kind, parts=tuple(_widened(p, has_grown=has_grown) for p in kind.parts))


def definition_of(function: FunctionType) -> ast.FunctionDef:
    """Finds the text of a function in its file; a lambda is read as a function that returns."""
    try:
        text = function.__globals__.get(TEXT) or "".join(inspect.findsource(function)[0])
        found = _definitions(text)
    except (OSError, TypeError, SyntaxError, ValueError) as error:
        raise NotPortable(f"calls {function.__name__}(), whose source is not at hand") from error
    places = found.get(function.__code__.co_firstlineno, ())
    same = {node for node, code in places if _content(code) == _content(function.__code__)}
    if len(same) == 1:
        (node,) = same
        return node if isinstance(node, ast.FunctionDef) else _as_definition(node)
    raise NotPortable(f"calls {function.__name__}(), whose source is not at hand")


def text_of(function: FunctionType) -> str:
    """Writes the definition of a function out of its file; nothing where that is not at hand."""
    try:
        return ast.unparse(definition_of(function))
    except (NotPortable, RecursionError, MemoryError):
        return ""


@functools.lru_cache(maxsize=16)
def _definitions(text: str) -> dict[int, list[tuple[ast.FunctionDef | ast.Lambda, CodeType]]]:
    """Pairs the functions of a file with what Python makes of them, by line.

    A function counts only if its code is that of its text: the file may have changed since.
    """
    tree = ast.parse(text)
    codes = _codes(compile(tree, "", "exec", dont_inherit=True))
    found: dict[int, list[tuple[ast.FunctionDef | ast.Lambda, CodeType]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            name = getattr(node, "name", "<lambda>")
            same = [c for c in codes if (c.co_name, c.co_firstlineno) == (name, node.lineno)]
            found.setdefault(node.lineno, []).extend((node, code) for code in same)
    return found


def _as_definition(node: ast.Lambda) -> ast.FunctionDef:
    body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
    return ast.copy_location(ast.FunctionDef("score", node.args, body, []), node)


def _content(code: CodeType) -> tuple[object, ...]:
    constants = [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]
    names = (code.co_names, code.co_varnames, code.co_freevars)
    return code.co_code, names, constants, list(code.co_positions())


def _codes(code: CodeType) -> list[CodeType]:
    found = [each for each in code.co_consts if isinstance(each, CodeType)]
    return found + [inner for each in found for inner in _codes(each)]


def _check_signature(tree: ast.FunctionDef) -> None:
    args = tree.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or tree.decorator_list:
        raise NotPortable(f"{tree.name} takes more than plain arguments", tree.lineno)


def _outer(function: FunctionType) -> Mapping[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    inner = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    return ChainMap(inner, function.__globals__, vars(builtins))


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def constant(value: object, line: int) -> tuple[ast.expr, Kind]:
    """Writes a constant of the policy into its translation."""
    try:
        kind = kind_of(value)
    except NotPortable as error:
        raise NotPortable(error.reason, line) from None
    return _literal(value), kind


def _literal(value: Any) -> ast.expr:
    if type(value) is tuple:
        return ast.Tuple([_literal(each) for each in value], ast.Load())
    if isinstance(value, bool):
        return ast.Constant(value)
    # NumPy's floats are floats too, and the members of an enumeration are whole numbers.
    is_float = isinstance(value, float)
    return ast.Constant(float.__float__(value) if is_float else int.__int__(value))


def call(operation: str, *arguments: ast.expr) -> ast.Call:
    """Calls one of the operations that both tiers have."""
    return ast.Call(ast.Name(PREFIX + operation, ast.Load()), list(arguments), [])


def resolved(node: ast.expr, function: Function, local: Callable[[str], bool]) -> Any:
    """Finds the object that a name or a dotted name stands for; None for anything else."""
    if isinstance(node, ast.Name):
        return None if local(node.id) else function.outer.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolved(node.value, function, local)
        if isinstance(owner, ModuleType):
            return getattr(owner, node.attr, None)
    return None


def as_kind(expression: ast.expr, kind: Kind | None, wanted: Kind | None) -> ast.expr:
    """Turns an expression into one of a wider kind."""
    if kind is None or wanted is None or kind.tag == wanted.tag != "tuple":
        return expression
    if wanted.tag == "float" and kind.is_number:
        if isinstance(expression, ast.Constant):
            return ast.Constant(float(expression.value))  # type: ignore[arg-type]
        return call("real", call("whole", expression) if kind.tag == "bool" else expression)
    if wanted.tag == "int" and kind.tag == "bool":
        return call("whole", expression)
    if kind.tag == wanted.tag and isinstance(expression, ast.Tuple):
        trios = zip(expression.elts, kind.parts, wanted.parts, strict=True)
        return ast.Tuple([as_kind(*trio) for trio in trios], ast.Load())
    if kind.tag == wanted.tag and [k.tag for k in kind.parts] == [k.tag for k in wanted.parts]:
        return expression
    raise NotPortable("mixes tuples of different numbers", getattr(expression, "lineno", 0))
