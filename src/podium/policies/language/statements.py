"""Translates the statements of one function of a policy."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from podium.policies.language.arithmetic import NO_RESULT
from podium.policies.language.calls import Calls
from podium.policies.language.expressions import Typed
from podium.policies.language.kind import (
    FLOAT,
    GPUS,
    MOST_SLOTS,
    SLOT_MILLI,
    TABLE,
    Kind,
    NotPortable,
    join,
    whole,
)
from podium.policies.language.translation import (
    DEEPEST_LOOPS,
    PREFIX,
    Function,
    as_kind,
    call,
    constant,
)

if TYPE_CHECKING:
    from podium.policies.language.translation import Program

Set = frozenset[str]
Lines = tuple[list[ast.stmt], Set | None]
"""Translated statements, and the names that are set for sure behind them; None: no way leads on."""

_ZEROS = {"bool": False, "int": 0, "float": 0.0}


class Body(Calls):
    """Translates a function; remembers which names are set, and how often loops run."""

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__(program, function)
        self._trips: list[int | None] = []
        self._by_statement: dict[type[ast.stmt], Callable[[Any], Lines]] = {
            ast.Assign: self._assign,
            ast.AnnAssign: self._assign_annotated,
            ast.AugAssign: self._assign_in_place,
            ast.Return: self._return,
            ast.Raise: self._raise,
            ast.If: self._if,
            ast.For: self._for,
            ast.While: self._while,
            ast.Break: self._jump,
            ast.Continue: self._jump,
            ast.Pass: self._nothing,
            ast.Expr: self._nothing,
        }
        self.names = {*function.arguments, *function.stores}
        if any(name.startswith(PREFIX) or hasattr(builtins, name) for name in self.names):
            raise NotPortable("uses a name that its translation needs", function.tree.lineno)

    def translated(self) -> ast.FunctionDef:
        """Returns the translated function."""
        function = self.function
        body, end = self._block(function.tree.body, frozenset(function.arguments))
        if end is not None:
            body.append(_raise_no_result())
        unset = [line for name in sorted(function.unset) for line in self._unset_lines(name)]
        arguments = ast.arguments(
            [], [ast.arg(n) for n in function.arguments], None, [], [], None, []
        )
        found = ast.FunctionDef(function.name, arguments, [*unset, *body], [])
        return ast.copy_location(found, function.tree)

    def _unset_lines(self, name: str) -> list[ast.stmt]:
        kind = self.function.kind(name)
        if kind is None:
            return []
        return [_assign(name, _zero(kind)), _assign(_flag(name), ast.Constant(False))]

    def _block(self, statements: Sequence[ast.stmt], known: Set | None) -> Lines:
        found: list[ast.stmt] = []
        for statement in statements:
            if known is None:
                break  # nothing leads here
            self.known = known
            lines, known = self._statement(statement)
            found += [ast.copy_location(line, statement) for line in lines]
        return found or [ast.Pass()], known

    def _statement(self, node: ast.stmt) -> Lines:
        translate = self._by_statement.get(type(node))
        if translate is None or (getattr(node, "orelse", None) and not isinstance(node, ast.If)):
            raise NotPortable(f"uses {type(node).__name__.lower()}", node.lineno)
        return translate(node)

    def _assign(self, node: ast.Assign) -> Lines:
        return self._assignment(node.targets, node.value, node)

    def _assign_annotated(self, node: ast.AnnAssign) -> Lines:
        if node.value is None:
            raise NotPortable("annotates a name and sets nothing", node.lineno)
        return self._assignment([node.target], node.value, node)

    def _assign_in_place(self, node: ast.AugAssign) -> Lines:
        if not isinstance(node.target, ast.Name):
            raise NotPortable("assigns to more than a name", node.lineno)
        left = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        value = ast.copy_location(ast.BinOp(left, node.op, node.value), node)
        return self._assignment([node.target], value, node)

    def _nothing(self, node: ast.Pass | ast.Expr) -> Lines:
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            raise NotPortable("computes something and drops it", node.lineno)
        return [], self.known

    def _jump(self, node: ast.Break | ast.Continue) -> Lines:
        return [node], None

    def _assignment(
        self, targets: list[ast.expr], value: ast.expr, node: ast.stmt
    ) -> tuple[list[ast.stmt], Set]:
        name = targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""
        step = self._step(name, value)
        if step is not None:
            return self._summing(name, step, value, node)
        expression, kind = self.expression(value)
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple):
            return self._unpacking(targets[0], expression, kind, node)
        found: list[ast.stmt] = []
        if len(targets) > 1:  # computed once: what is set first may be read in it
            held = f"{PREFIX}value_{node.lineno}_{node.col_offset}"
            found.append(_assign(held, expression))
            expression = ast.Name(held, ast.Load())
        for target in targets:
            if not isinstance(target, ast.Name):
                raise NotPortable("assigns to more than a name", node.lineno)
            found += self._store(target.id, expression, kind, node.lineno)
        return found, self.known | {each.id for each in targets if isinstance(each, ast.Name)}

    def _store(
        self, name: str, expression: ast.expr, kind: Kind | None, line: int
    ) -> list[ast.stmt]:
        bases = self.function.bases
        bases[name] = self.program.learn(bases.get(name), kind, line)
        return [_assign(name, as_kind(expression, kind, bases[name])), *self._mark(name)]

    def _mark(self, name: str) -> list[ast.stmt]:
        return [_assign(_flag(name), ast.Constant(True))] if name in self.function.unset else []

    def _unpacking(
        self, target: ast.Tuple, value: ast.expr, kind: Kind | None, node: ast.stmt
    ) -> tuple[list[ast.stmt], Set]:
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        if len(names) < len(target.elts) or len(set(names)) < len(names):
            raise NotPortable("assigns to more than names", node.lineno)
        known = self.known | set(names)
        if kind is None:
            return [node], known
        if kind.tag != "tuple" or len(kind.parts) != len(names):
            raise NotPortable(f"does not unpack into {len(names)} names", node.lineno)
        found: list[ast.stmt] = []
        parts = _parts(value, names)
        if not parts:
            held = f"{PREFIX}tuple_{node.lineno}_{node.col_offset}"
            found.append(_assign(held, value))
            parts = [_read(held, index) for index in range(len(names))]
        for name, part, part_kind in zip(names, parts, kind.parts, strict=True):
            found += self._store(name, part, part_kind, node.lineno)
        return found, known

    def _step(self, name: str, value: ast.expr) -> ast.BinOp | None:
        """Finds `name + something` or `name - something` within loops whose rounds are counted."""
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add | ast.Sub):
            return None
        is_own = isinstance(value.left, ast.Name) and value.left.id == name
        return value if name and is_own and None not in self._trips and self._trips else None

    def _summing(
        self, name: str, step: ast.BinOp, value: ast.expr, node: ast.stmt
    ) -> tuple[list[ast.stmt], Set]:
        function, (right, kind) = self.function, self.expression(step.right)
        known = self.function.bases.get(name)
        if not (_is_counted(kind) and _is_counted(known)):
            expression, found = self.expression(value)
            return self._store(name, expression, found, node.lineno), self.known | {name}
        assert kind is not None
        function.bases[name] = self.program.learn(known, whole(0, 0), node.lineno)
        times = 1
        for trips in self._trips:
            times *= trips or 0
        ends = (kind.low, kind.high) if isinstance(step.op, ast.Add) else (-kind.high, -kind.low)
        self.program.note_sum(function, name, _place(node), (times * ends[0], times * ends[1]))
        left, _ = self.expression(step.left)
        right = as_kind(right, kind, whole(0, 0))
        total = function.kind(name)
        if total is not None and total.is_exact:
            result: ast.expr = ast.BinOp(left, step.op, right)
        else:
            result = call("add" if isinstance(step.op, ast.Add) else "subtract", left, right)
        return [_assign(name, result), *self._mark(name)], self.known | {name}

    def _return(self, node: ast.Return) -> Lines:
        if node.value is None:
            raise NotPortable("returns nothing", node.lineno)
        expression, kind = self.expression(node.value)
        if kind is not None and not kind.is_number and self.function.name == "score":
            raise NotPortable("returns no number", node.lineno)
        self.function.has_result = True
        self.function.result = self.program.learn(self.function.result, kind, node.lineno)
        return [ast.Return(as_kind(expression, kind, self.function.result))], None

    def _raise(self, node: ast.Raise) -> Lines:
        arguments = node.exc.args if isinstance(node.exc, ast.Call) else []
        name = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        raised: Any = self.resolved(name) if name is not None else None
        is_plain = all(isinstance(each, ast.Constant) for each in arguments) and node.cause is None
        title = getattr(raised, "__name__", "")
        if not is_plain or not isinstance(raised, type) or not issubclass(raised, Exception):
            raise NotPortable("raises more than an exception with a text", node.lineno)
        if getattr(builtins, title, None) is not raised:
            raise NotPortable(f"raises {title}", node.lineno)
        return [ast.Raise(ast.Call(ast.Name(title, ast.Load()), arguments, []), None)], None

    def _if(self, node: ast.If) -> Lines:
        test = self.truth(node.test)
        known = self.known
        body, after_body = self._block(node.body, known)
        other, after_other = self._block(node.orelse, known)
        ends = [each for each in (after_body, after_other) if each is not None]
        after = ends[0].intersection(*ends) if ends else None
        return [ast.If(test, body, other if node.orelse else [])], after

    def _for(self, node: ast.For) -> tuple[list[ast.stmt], Set]:
        over, kind, trips = self._iteration(node.iter)
        known = self.known
        if not isinstance(node.target, ast.Name):
            raise NotPortable("loops with more than one name", node.lineno)
        name = node.target.id
        bases = self.function.bases
        bases[name] = self.program.learn(bases.get(name), kind, node.lineno)
        key = self._rows_of(node.iter, name)
        self._trips.append(trips)
        self._deepen(0, node)
        body, _ = self._block(node.body, known | {name})
        self._trips.pop()
        self.rows.discard(key)
        if kind is None or (kind.tag == getattr(bases[name], "tag", "") and not self._mark(name)):
            return [ast.For(ast.Name(name, ast.Store()), over, body, [])], known
        held = f"{PREFIX}each_{node.lineno}_{node.col_offset}"
        taken = _assign(name, as_kind(ast.Name(held, ast.Load()), kind, bases[name]))
        lines = [ast.copy_location(each, node) for each in (taken, *self._mark(name))]
        return [ast.For(ast.Name(held, ast.Store()), over, [*lines, *body], [])], known

    def _rows_of(self, over: ast.expr, name: str) -> tuple[str, str]:
        """Notes that a name runs over the rows of a table, if it is set nowhere else."""
        table = self._table_counted(over)
        is_alone = self.function.stores[name] == 1
        if table and is_alone and name not in self.function.arguments:
            self.rows.add((table, name))
            return table, name
        return "", ""

    def _table_counted(self, over: ast.expr) -> str:
        """Reads `range(len(table))` and `range(len(table) if ... else 0)`."""
        if not isinstance(over, ast.Call) or len(over.args) != 1:
            return ""
        if self.resolved(over.func) is not range:
            return ""
        end = over.args[0]
        if isinstance(end, ast.IfExp) and getattr(end.orelse, "value", None) == 0:
            end = end.body
        if not isinstance(end, ast.Call) or self.resolved(end.func) is not len:
            return ""
        name = getattr(end.args[0], "id", "") if end.args else ""
        is_table = self.function.kind(name) == TABLE and name in self.function.arguments
        return name if is_table and name not in self.function.stores else ""

    def _iteration(self, node: ast.expr) -> tuple[ast.expr, Kind | None, int | None]:
        """Translates what a loop runs over; returns the kind of its items, and their number."""
        if isinstance(node, ast.Call) and self.resolved(node.func) is range:
            return self._range(node)
        expression, kind = self.expression(node)
        if kind is None:
            return expression, None, None
        if kind == GPUS:
            return expression, SLOT_MILLI, MOST_SLOTS
        if kind == TABLE:
            return call("entries", expression), FLOAT, None
        tags = {part.tag for part in kind.parts}
        if kind.tag == "tuple" and len(tags) == 1 and kind.parts[0].is_number:
            joined = kind.parts[0]
            for part in kind.parts[1:]:
                joined = join(joined, part) or part
            return expression, joined, len(kind.parts)
        raise NotPortable("loops over more than range(...), numbers or a node's GPUs", node.lineno)

    def _range(self, node: ast.Call) -> tuple[ast.expr, Kind | None, int | None]:
        if node.keywords or not 1 <= len(node.args) <= 3:
            raise NotPortable("calls range() with more than three numbers", node.lineno)
        ends = [self.index(each) for each in node.args]
        over = ast.Call(ast.Name("range", ast.Load()), [each for each, _ in ends], [])
        kinds = [kind for _, kind in ends if kind is not None]
        if len(kinds) < len(ends):
            return over, None, None
        first, last = (whole(0, 0), kinds[0]) if len(kinds) == 1 else kinds[:2]
        low, high = min(first.low, last.low), max(first.high, last.high)
        return over, whole(low, high), max(0, high - low)

    def _own_call(self, node: ast.Call, called: FunctionType) -> Typed:
        found = super()._own_call(node, called)
        self._deepen(self.program.function(called).loops, node)
        return found

    def _deepen(self, inner: int, node: ast.stmt | ast.expr) -> None:
        """Counts loops within one another, over which compilers take exponential time."""
        loops = len(self._trips) + inner
        if loops > DEEPEST_LOOPS:
            raise NotPortable(f"nests more than {DEEPEST_LOOPS} loops", node.lineno)
        self.function.loops = max(self.function.loops, loops)

    def _while(self, node: ast.While) -> tuple[list[ast.stmt], Set]:
        test, known = self.truth(node.test), self.known
        self._trips.append(None)
        self._deepen(0, node)
        body, _ = self._block(node.body, known)
        self._trips.pop()
        return [ast.While(test, body, [])], known


def _parts(value: ast.expr, names: list[str]) -> list[ast.expr]:
    """Returns the items of a tuple as written, unless they read what is being assigned."""
    read = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
    return value.elts if isinstance(value, ast.Tuple) and not read & set(names) else []


def _read(name: str, index: int) -> ast.Subscript:
    return ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(index), ast.Load())


def _is_counted(kind: Kind | None) -> bool:
    return kind is not None and kind.tag in ("bool", "int")


def _place(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _flag(name: str) -> str:
    return f"{PREFIX}has_{name}"


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _zero(kind: Kind) -> ast.expr:
    if kind.tag == "tuple":
        return ast.Tuple([_zero(part) for part in kind.parts], ast.Load())
    if not kind.is_number:
        raise NotPortable("reads a name before a record is put into it")
    return constant(_ZEROS[kind.tag], 0)[0]


def _raise_no_result() -> ast.Raise:
    error = ast.Call(ast.Name("TypeError", ast.Load()), [ast.Constant(NO_RESULT)], [])
    return ast.Raise(error, None)
