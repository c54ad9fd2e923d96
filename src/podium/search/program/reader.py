"""Reads a policy file back into a program: built-in ones, found ones, and those of people.

Names that are given twice become two names, `if` without a return becomes a choice, and whatever
follows a return becomes the rest of it. Functions of numbers are functions of the program; others,
which read a pod or a node or have a loop, are written into the places that call them.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field
from typing import TypeGuard

from podium.errors import PolicyError
from podium.search.candidate.constants import value_of
from podium.search.candidate.text import parse_text
from podium.search.program import expression as made
from podium.search.program.bounds import Known, bounds_of
from podium.search.program.choices import assigned, choice
from podium.search.program.expression import Expression, apply, number, walk
from podium.search.program.program import (
    SUMMARY,
    Block,
    Constant,
    Function,
    Guard,
    Program,
    Statement,
    Term,
    complexity,
    fresh,
    roots,
    terms,
)
from podium.search.program.simplify import folded
from podium.search.program.slot_loop import Update, read_updates, span_of
from podium.search.program.translation import (
    BEYOND,
    LARGEST,
    Environment,
    Sort,
    condition,
    counted,
    refuse,
    translated,
)
from podium.search.program.units import HERE

RESERVED = frozenset(["pod", "node", "gpu", "slot", "left", "table", "math", "HOLD", "tunable"])
_FIXED = frozenset(["pod", "node", "math", "HOLD", "tunable"])
"""Names that mean one thing in every function."""

DEEPEST = 100
"""Levels of an expression; all that works on programs goes down them by calls."""

MOST_READ = 60_000
"""Parts of a text that are read: what follows an `if` and what is called is read several times."""

MOST_EXPANDED = 6000
"""Parts of a program with the functions written into the places that call them."""

_FORMS = (["pod", "node"], ["pod", "node", "gpu"])
_RECORDS = ("pod", "node")


def parse(text: str, path: str = "policy.py") -> Program:
    """Reads a policy; raises PolicyError with the line that is beyond it."""
    return _read(text, path, keeps_functions=True)


def parse_inlined(text: str, path: str = "policy.py") -> Program:
    """Reads a policy into a program without functions; raises PolicyError as `parse` does."""
    return _read(text, path, keeps_functions=False)


def parse_exactly(text: str, path: str = "policy.py") -> Program:
    """Reads a policy whose program fails only where the text does; raises PolicyError as `parse`.

    A text may compute what it never uses.
    """
    passing: list[Expression] = []
    program = _read(text, path, keeps_functions=True, passing=passing)
    known = Known.of(program)
    each_root = [*roots(program.block), *(each.expression for each in program.functions)]
    kept = {part for root in each_root for _, part in walk(root)}
    for term in terms(program.block):
        known.define(term.name, term.expression)
    for each in passing:
        if HERE in each.fields or not (each in kept or bounds_of(each, known).is_sound):
            raise PolicyError(f"{BEYOND}it computes what it does not use", where=path)
    return program


def _read(
    text: str, path: str, *, keeps_functions: bool, passing: list[Expression] | None = None
) -> Program:
    try:
        tree = parse_text(text, path)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise PolicyError(f"not Python: {error}", where=path) from error
    try:
        found = [] if passing is None else passing
        program = _Reader(_functions(tree), keeps_functions, found).program(tree)
        _check_size(program)
    except PolicyError as error:
        raise PolicyError(error.message, where=f"{path}{error.where}", hint=error.hint) from None
    except RecursionError:
        raise PolicyError(f"{BEYOND}it is nested too deeply", where=path) from None
    return program


def _check_size(program: Program) -> None:
    """Refuses what could not be worked on in bounded time, or without going too deep."""
    if complexity(program) > LARGEST:
        raise PolicyError(f"it has more than {LARGEST} parts")
    expanded: dict[str, int] = {}
    for function in program.functions:
        expanded[function.name] = _expanded(function.expression, expanded)
    if sum(_expanded(root, expanded) for root in roots(program.block)) > MOST_EXPANDED:
        raise PolicyError(f"it has more than {MOST_EXPANDED} parts where its functions are called")


def _expanded(expression: Expression, sizes: dict[str, int]) -> int:
    parts = list(walk(expression))
    if max(len(path) for path, _ in parts) > DEEPEST:
        raise refuse(None, f"an expression of more than {DEEPEST} levels")
    return len(parts) + sum(sizes[part.value] for _, part in parts if part.head == "call")


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    by_name = {each.name: each for each in found}
    if "score" not in by_name or len(by_name) < len(found):
        raise refuse(found[-1] if found else tree, "no function score, or one that is given twice")
    return by_name


@dataclass(slots=True)
class _Reader:
    functions: dict[str, ast.FunctionDef]
    keeps_functions: bool
    passing: list[Expression]
    kept: dict[str, Function] = field(default_factory=dict)
    taken: set[str] = field(default_factory=lambda: set(RESERVED))
    constants: dict[str, Constant] = field(default_factory=dict)
    settings: list[tuple[str, str]] = field(default_factory=list)
    calling: list[str] = field(default_factory=list)  # functions that are being written into place
    sorts: dict[str, Sort] = field(default_factory=dict)
    left: int = MOST_READ

    def program(self, tree: ast.Module) -> Program:
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                self._constant(node)
            elif not isinstance(node, _AT_TOP):
                raise refuse(node, f"this at the top: {ast.unparse(node).splitlines()[0]}")
        if self.keeps_functions:
            self._keep_functions()
        score = self.functions["score"]
        arguments = [each.arg for each in score.args.args]
        if arguments not in _FORMS:
            raise refuse(score, f"score({', '.join(arguments)})")
        environment = self._environment(score.body)
        if "gpu" in arguments:
            environment.names["gpu"] = made.field("gpu")
        block = self.block(_without_docstring(score.body), environment)
        return Program(
            block=block,
            constants=tuple(self.constants.values()),
            takes_gpu="gpu" in arguments,
            settings=tuple(self.settings),
            summary=(ast.get_docstring(tree) or SUMMARY).strip(),
            functions=tuple(self.kept.values()),
        )

    def _environment(self, body: list[ast.stmt]) -> Environment:
        """Knows the constants, but for those whose names the function gives to its own."""
        stored = _stored(body)
        if taken := stored & {*_FIXED, *self.functions} - {"score"}:
            raise refuse(body[0], f'the name "{min(taken)}" for something else')
        names = {each: made.name(each) for each in self.constants if each not in stored}
        helpers = {name: self._called for name in self.functions if name != "score"}
        return Environment(names, functions=helpers, sorts=self.sorts, passing=self.passing)

    def _count(self, node: ast.stmt) -> None:
        self.left -= sum(1 for _ in ast.walk(node))
        if self.left < 0:
            raise refuse(node, "so many ways through it that reading them all takes too long")

    def _keep_functions(self) -> None:
        """Keeps the functions that compute numbers from numbers, those they call first."""
        waiting = {name: each for name, each in self.functions.items() if name != "score"}
        while waiting:
            ready = [name for name, each in waiting.items() if not _calls(each) & waiting.keys()]
            if not ready:  # they call each other: reading a call refuses it
                return
            for name in ready:
                found = self._function(waiting.pop(name))
                if found is not None:
                    self.kept[name] = found
                    self.taken.add(name)

    def _function(self, node: ast.FunctionDef) -> Function | None:
        """Reads a function as one expression, if it is a function of numbers alone."""
        given = [each.arg for each in node.args.args]
        if node.args.defaults or not given or not _is_numeric(node):
            return None
        own = {each: fresh(each, set(self.constants)) for each in given}
        try:
            environment = self._environment(node.body)
            environment.names |= {each: made.name(title) for each, title in own.items()}
            expression = self._value(_without_docstring(node.body), environment)
        except PolicyError:
            return None
        summary = (ast.get_docstring(node) or "").partition("\n")[0].strip()
        return Function(node.name, tuple(own.values()), expression, summary)

    def _constant(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        target, *others = targets
        if not isinstance(target, ast.Name) or others or node.value is None:
            raise refuse(node, "a module statement other than NAME = number")
        if target.id in {*_FIXED, *self.functions}:
            raise refuse(node, f'the name "{target.id}" for something else')
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            self.settings.append((target.id, node.value.value))
            return
        self.taken.add(target.id)
        constant = self._constant_of(target.id, node.value)
        self.constants[target.id] = constant
        self.sorts.pop(target.id, None)
        if constant.bounds is None and isinstance(constant.value, int):
            self.sorts[target.id] = "whole"

    def _constant_of(self, title: str, value: ast.expr) -> Constant:
        if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("tunable"):
            given = [*value.args, *(keyword.value for keyword in value.keywords)]
            if len(given) != 3:
                raise refuse(value, f'"{ast.unparse(value)}"')
            start, low, high = (self._number(each) for each in given)
            return Constant(title, start, (low, high))
        return Constant(title, self._number(value))

    def _number(self, value: ast.expr) -> float:
        names = {each: constant.value for each, constant in self.constants.items()}
        if any(isinstance(each, ast.Pow) for each in ast.walk(value)):
            raised = value_of(value, names)  # once, by Python itself, whose powers are its own
            if isinstance(raised, tuple):
                raise refuse(value, "a constant that is no number")
            return raised
        known = {each: number(other) for each, other in names.items()}
        found = folded(translated(value, Environment(known)))
        if found.head != "number":
            raise refuse(value, "a constant that is no number")
        return float(found.value) if isinstance(found.value, float) else int(found.value)

    def block(self, body: list[ast.stmt], environment: Environment) -> Block:
        statements: list[Statement] = []
        environment.statements = statements
        for index, node in enumerate(body):
            self._count(node)
            rest = body[index + 1 :]
            if isinstance(node, ast.Return):
                if node.value is None:
                    raise refuse(node, "a return without a score")
                result = translated(node.value, environment)
                return Block(tuple(statements), result)
            if isinstance(node, ast.If) and (_returns([node]) or self._has_calls(node)):
                test = condition(node.test, environment)
                inner = self.block([*node.body, *rest], environment.copy())
                after = self.block([*node.orelse, *rest], environment.copy())
                return Block((*statements, Guard(test, inner), *after.statements), after.result)
            self._step(node, environment)
        raise refuse(body[-1] if body else None, "an end without a return")

    def _has_calls(self, node: ast.If) -> bool:
        """Returns whether an arm calls a function, whose loops need statements of their own."""
        if len(self.functions) == 1:
            return False
        parts = (part for each in (*node.body, *node.orelse) for part in ast.walk(each))
        return any(isinstance(each, ast.Name) and each.id in self.functions for each in parts)

    def _step(self, node: ast.stmt, environment: Environment) -> None:
        if isinstance(node, ast.For):
            self._loop(node, environment)
        elif isinstance(node, ast.If):
            for title, (value, is_set) in choice(node, environment).items():
                self._give(title, value, environment)
                if not is_set:
                    environment.names.pop(title)
        elif not isinstance(node, ast.Pass):
            for title, value in assigned(node, environment):
                self._give(title, value, environment)

    def _give(self, title: str, value: Expression, environment: Environment) -> None:
        if environment.statements is None:  # it may not be reached, and then must not fail
            environment.names[title] = value
            environment.passing.append(value)
            return
        own = fresh(f"{title}_term" if title in RESERVED else title, self.taken)
        self.taken.add(own)
        environment.statements.append(Term(own, value))
        environment.note(own, value)
        environment.names[title] = made.name(own)

    def _called(self, call: ast.Call, environment: Environment) -> Expression:
        """Calls a function of the program, or writes another into the place of the call."""
        function = self.functions[ast.unparse(call.func)]
        parameters = [each.arg for each in function.args.args]
        is_plain = not call.keywords and not function.args.defaults
        if not is_plain or len(parameters) != len(call.args) or function.name in self.calling:
            raise refuse(call, f'"{ast.unparse(call)}"')
        if function.name in self.kept:
            given = (counted(translated(each, environment)) for each in call.args)
            return made.call(function.name, *given)
        pairs = list(zip(parameters, call.args, strict=True))
        records = {one: other.id for one, other in pairs if _is_record(other)}
        body = _renamed(_without_docstring(function.body), records)
        inner, stored = self._environment(body), _stored(body)
        inner.statements = environment.statements
        for title, argument in pairs:
            if title in records:
                continue
            if title in _RECORDS:
                raise refuse(call, f'"{ast.unparse(call)}"')
            value = translated(argument, environment)
            # What the function sets anew is its own, whatever was given.
            if value.is_leaf and title not in stored:
                inner.names[title] = value
            else:
                self._give(title, value, inner)
        self.calling.append(function.name)
        found = self._value(body, inner)
        self.calling.pop()
        return found

    def _value(self, body: list[ast.stmt], environment: Environment) -> Expression:
        """Reads what the body of a function returns as one expression."""
        for index, node in enumerate(body):
            self._count(node)
            if isinstance(node, ast.Return) and node.value is not None:
                return translated(node.value, environment)
            if isinstance(node, ast.If) and _returns([node]):
                rest = body[index + 1 :]
                test = condition(node.test, environment)
                then = self._value([*node.body, *rest], environment.unsure().copy())
                otherwise = self._value([*node.orelse, *rest], environment.unsure().copy())
                found = apply("if", test, then, otherwise)
                if found.size > LARGEST:
                    raise refuse(node, f"more than {LARGEST} parts")
                return found
            self._step(node, environment)
        raise refuse(body[-1] if body else None, "an end without a return")

    def _loop(self, node: ast.For, environment: Environment) -> None:
        if environment.statements is None:
            raise refuse(node, "a loop that may not be reached, in the middle of an expression")
        span = span_of(node)
        for update in read_updates(node, environment):
            self._reduce(update, span, environment, environment.statements)
        # Behind the loop it is the last slot, if there was one.
        environment.names.pop(ast.unparse(node.target), None)

    def _reduce(
        self, update: Update, span: str, environment: Environment, statements: list[Statement]
    ) -> None:
        before = environment.names.get(update.name)
        if before is None:
            raise PolicyError(f'"{update.name}" has no value before the loop')
        start = _take_start(before, statements, self.constants)
        if start is not None:
            environment.names.pop(update.name)
            self.taken.discard(str(before.value))
            self.sorts.pop(str(before.value), None)
            loop = Expression(update.head, (update.value, update.condition, start), span)
            self._give(str(before.value), loop, environment)
            environment.names[update.name] = made.name(str(before.value))
            return
        is_exact = environment.is_whole(before) and environment.is_whole(update.value)
        if update.head != "sum" or not is_exact:
            raise PolicyError(f'"{update.name}" begins with more than a number')
        loop = Expression(update.head, (update.value, update.condition, number(0)), span)
        self._give(f"{update.name}_more", loop, environment)
        more = environment.names.pop(f"{update.name}_more")
        self._give(update.name, apply("+", before, more), environment)


def _take_start(
    before: Expression, statements: list[Statement], constants: dict[str, Constant]
) -> Expression | None:
    """Removes the term that set an accumulator's first number, if nothing has read it."""
    for index in range(len(statements) - 1, -1, -1):
        statement = statements[index]
        if isinstance(statement, Guard):
            return None
        if before == made.name(statement.name):
            start = _fixed(statement.expression, constants)
            if start is not None:
                del statements[index]
            return start
        if before.value in statement.expression.names:
            return None
    return None


def _fixed(expression: Expression, constants: dict[str, Constant]) -> Expression | None:
    if expression.head == "number":
        return expression
    constant = constants.get(str(expression.value)) if expression.head == "name" else None
    return number(constant.value) if constant and constant.bounds is None else None


_AT_TOP = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Expr, ast.Pass)


def _stored(body: list[ast.stmt]) -> set[str]:
    parts = (part for each in body for part in ast.walk(each))
    return {
        each.id for each in parts
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }  # fmt: skip


def _is_record(node: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id in _RECORDS


def _calls(node: ast.FunctionDef) -> set[str]:
    called = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return {each.id for each in called if isinstance(each, ast.Name)}


def _is_numeric(node: ast.FunctionDef) -> bool:
    """Returns whether a function reads no record, has no loop and refuses nothing."""
    parts = list(ast.walk(node))
    names = {each.id for each in parts if isinstance(each, ast.Name)}
    return not names & {*_RECORDS, "gpu", "HOLD"} and not any(
        isinstance(each, ast.For | ast.While | ast.Attribute) and not _is_math(each)
        for each in parts
    )


def _is_math(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "math"


def _returns(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Return) for each in body for node in ast.walk(each))


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return body[1:]
    return body


def _renamed(body: list[ast.stmt], records: dict[str, str]) -> list[ast.stmt]:
    """Renames a function's arguments to `pod` and `node`, whatever it calls them."""
    if all(name == record for name, record in records.items()):
        return body
    renamed = copy.deepcopy(body)
    for node in (node for each in renamed for node in ast.walk(each)):
        if isinstance(node, ast.Name) and node.id in records:
            node.id = records[node.id]
    return renamed
