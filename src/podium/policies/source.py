"""Reads a policy from the text of a Python file."""

from __future__ import annotations

import ast
import inspect
import math
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, TypeGuard

from podium.errors import PodiumError, PolicyError
from podium.policies.language.purity import problems
from podium.policies.language.translation import TEXT

PAIR_FORMS = (
    ("pod", "node"),
    ("pod", "node", "gpu"),
    ("pod", "node", "table"),
    ("pod", "node", "gpu", "table"),
)
REFUSALS = ("HOLD", "inf")
"""Names of the score that refuses a node."""

_HINT = "define score(pod, node), or a class Policy with choose(self, pod, nodes, feasible)"


class NoNumber(TypeError):  # noqa: N818 - reads as the sentence it makes
    """A score function returned something other than a number."""


def number_of(score: Any) -> float:
    """Converts the result of a score function to a number; raises NoNumber."""
    try:
        return float(score)
    except (TypeError, ValueError):
        raise no_number(score) from None


def no_number(score: object) -> NoNumber:
    """Builds the error that shows what a score function returned instead of a number."""
    returned = "nothing" if score is None else f"{reprlib.repr(score)}, not a number"
    return NoNumber(f"score returned {returned}")


def words_of(error: BaseException) -> str:
    """Describes what a policy raised; errors of Podium's own are used as they are."""
    is_plain = isinstance(error, PodiumError | NoNumber)
    return str(error) if is_plain else f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A policy's text, checked and ready to run."""

    path: str
    text: str = field(repr=False)
    tree: ast.Module = field(repr=False)
    code: CodeType = field(repr=False)

    def namespace(self) -> dict[str, Any]:
        """Runs the text in a new namespace and returns it."""
        # A real module's name: machine code read back from disk looks it up.
        names: dict[str, Any] = {"__name__": __name__, "__file__": self.path, TEXT: self.text}
        try:
            exec(self.code, names)  # noqa: S102 - the user's own policy file
        except (Exception, SystemExit) as error:
            raise PolicyError(f"{type(error).__name__}: {error}", where=self.path) from error
        return names

    @property
    def summary(self) -> str:
        """Returns the first line of the module's docstring, or of score's."""
        text = ast.get_docstring(self.tree) or next(
            (ast.get_docstring(f) or "" for f in self.functions().values()), ""
        )
        return text.strip().splitlines()[0] if text.strip() else ""

    def functions(self) -> dict[str, ast.FunctionDef]:
        """Lists the functions defined at the top of the file."""
        return {n.name: n for n in self.tree.body if isinstance(n, ast.FunctionDef)}

    def line_of(self, error: BaseException) -> int:
        """Finds the line of this text at which something was raised; 0 if it was elsewhere."""
        found, frame = 0, error.__traceback__
        while frame is not None:
            found = frame.tb_lineno if frame.tb_frame.f_code.co_filename == self.path else found
            frame = frame.tb_next
        if isinstance(error, NoNumber) and self.is_pair:
            return self.functions()["score"].lineno
        return found

    @property
    def is_pair(self) -> bool:
        """Returns whether it is a pair policy, not a cluster policy."""
        return "score" in self.functions()

    @property
    def mentions_hold(self) -> bool:
        """Returns whether the policy names HOLD, the score that refuses a node.

        It may still refuse by a number that becomes infinite: what counts is what a run did.
        """
        return any(_is_infinite(node) for node in ast.walk(self.tree))


def read_source(text: str, path: str) -> Source:
    """Parses and checks a policy's text; raises PolicyError with the line and the reason."""
    try:
        tree = ast.parse(text, path)
        source = Source(path, text, tree, compile(tree, path, "exec", dont_inherit=True))
    except (RecursionError, MemoryError) as error:
        raise PolicyError("not Python: it is nested too deeply", where=path) from error
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", 0) or 0
        reason = getattr(error, "msg", "") or str(error)
        raise PolicyError(f"not Python: {reason}", where=_where(path, line)) from error
    if not source.is_pair and not _has_class(tree):
        raise _no_policy(path, tree)
    found = problems(tree) if source.is_pair else []
    if found:
        raise _impure(path, found)
    return source


def _no_policy(path: str, tree: ast.Module) -> PolicyError:
    line = next((node.lineno for node in ast.walk(tree) if _sets_score(node)), 0)
    if not line:
        return PolicyError("the file defines no policy", where=path, hint=_HINT)
    problem = "score is not a function defined at the top level of the file"
    hint = "write def score(pod, node): at the top level of the file"
    return PolicyError(problem, where=_where(path, line), hint=hint)


def _sets_score(node: ast.AST) -> TypeGuard[ast.stmt | ast.expr | ast.alias]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == "score"
    if isinstance(node, ast.alias):
        return (node.asname or node.name) == "score"
    return isinstance(node, ast.Name) and (node.id, type(node.ctx)) == ("score", ast.Store)


def _impure(path: str, found: list[tuple[int, str]]) -> PolicyError:
    hint = "read the pod and the node, compute with numbers, and return one"
    if len(found) == 1:
        line, reason = found[0]
        return PolicyError(reason, where=_where(path, line), hint=hint)
    places = "\n".join(f"{_where(path, line)}: {reason}" for line, reason in found)
    return PolicyError(f"{len(found)} places break the contract", where=places, hint=hint)


def pair_form(function: Callable[..., Any], path: str) -> tuple[str, ...]:
    """Reads which of the four argument lists a score function has."""
    if not isinstance(function, FunctionType):
        raise PolicyError("score is not a plain function", where=path, hint="remove the decorators")
    code = function.__code__
    return _known_form(code.co_varnames[: code.co_argcount], path)


def callable_form(called: Callable[..., Any], path: str) -> tuple[str, ...]:
    """Reads the same of a partial, a method or an object; what has a default is left to it."""
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError) as error:
        hint = "give a function score(pod, node)"
        raise PolicyError("its arguments are not known", where=path, hint=hint) from error
    return _known_form(tuple(each.name for each in parameters if each.default is each.empty), path)


def _known_form(form: tuple[str, ...], path: str) -> tuple[str, ...]:
    if form not in PAIR_FORMS:
        known = "; ".join(f"score({', '.join(names)})" for names in PAIR_FORMS)
        raise PolicyError(f"score takes ({', '.join(form)})", where=path, hint=f"use {known}")
    return form


def _has_class(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.ClassDef) and node.name == "Policy" for node in tree.body)


def _is_infinite(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in REFUSALS
    if isinstance(node, ast.Attribute):
        return node.attr in REFUSALS
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, str):
        return value.strip().lstrip("+-").lower() in ("inf", "infinity")
    return isinstance(value, float) and math.isinf(value)


def _where(path: str, line: int) -> str:
    return f"{path}, line {line}" if line else path
