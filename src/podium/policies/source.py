"""Reads a policy from the text of a Python file."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from podium.errors import PolicyError
from podium.policies.purity import problems
from podium.policies.translation import TEXT

PAIR_FORMS = (
    ("pod", "node"),
    ("pod", "node", "gpu"),
    ("pod", "node", "table"),
    ("pod", "node", "gpu", "table"),
)
REFUSALS = ("HOLD", "inf")
"""Names of the score that refuses a node."""

_HINT = "define score(pod, node), or a class Policy with choose(self, pod, nodes, feasible)"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Holds a policy's text, checked and ready to run."""

    path: str
    text: str = field(repr=False)
    tree: ast.Module = field(repr=False)
    code: CodeType = field(repr=False)

    def namespace(self) -> dict[str, Any]:
        """Runs the text afresh and gives its names."""
        # A real module's name: machine code read back from disk looks it up.
        names: dict[str, Any] = {"__name__": __name__, "__file__": self.path, TEXT: self.text}
        try:
            exec(self.code, names)  # noqa: S102 - the user's own policy file
        except (Exception, SystemExit) as error:
            raise PolicyError(f"{type(error).__name__}: {error}", where=self.path) from error
        return names

    @property
    def summary(self) -> str:
        """Gives the first line of the module's docstring, or of score's."""
        text = ast.get_docstring(self.tree) or next(
            (ast.get_docstring(f) or "" for f in self.functions().values()), ""
        )
        return text.strip().splitlines()[0] if text.strip() else ""

    def functions(self) -> dict[str, ast.FunctionDef]:
        """Lists the functions defined at the top of the file."""
        return {n.name: n for n in self.tree.body if isinstance(n, ast.FunctionDef)}

    @property
    def is_pair(self) -> bool:
        """Tells a pair policy from a cluster policy."""
        return "score" in self.functions()

    @property
    def mentions_hold(self) -> bool:
        """Tells whether the policy names the score that refuses a node.

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
        raise PolicyError("the file defines no policy", where=path, hint=_HINT)
    found = problems(tree) if source.is_pair else []
    if found:
        raise _impure(path, found)
    return source


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
        raise PolicyError("score is not a plain function", where=path, hint="take decorators off")
    code = function.__code__
    form = code.co_varnames[: code.co_argcount]
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
