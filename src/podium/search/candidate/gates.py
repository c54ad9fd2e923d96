"""Judges a candidate's text before it is run, the cheapest gate first."""

from __future__ import annotations

import ast
import functools
import io
import tokenize
from collections.abc import Callable, Collection
from dataclasses import dataclass

from podium.errors import PolicyError
from podium.policies import Policy, policy_of
from podium.policies.source import PAIR_FORMS, REFUSALS, read_source
from podium.search.candidate.allowlist import functions, problems
from podium.search.candidate.text import complexity, fingerprint, parse_text, walked
from podium.search.candidate.verdict import ALLOWLIST, NOVELTY, SIGNATURE, SYNTAX, Verdict
from podium.search.candidate.vocabulary import LONGEST_BYTES

MOST_PROBLEMS = 5
MOST_READ = 512
"""How many texts are remembered with their syntax trees."""

_KNOWN = "it computes the same as a candidate that was judged before"

FORMS = tuple(form for form in PAIR_FORMS if "table" not in form)
"""Candidates have no `prepare`, so none takes a table."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A text that passed the gates which only read it."""

    text: str
    tree: ast.Module

    @property
    def fingerprint(self) -> str:
        """Digests what the candidate computes."""
        return fingerprint(self.tree)

    @property
    def complexity(self) -> int:
        """Counts the parts of its syntax tree."""
        return complexity(self.tree)

    @property
    def may_hold(self) -> bool:
        """Returns whether it names HOLD, the score that refuses a node."""
        if not any(word in self.text for word in REFUSALS):
            return False
        names = (getattr(n, "id", getattr(n, "attr", "")) for n in walked(self.tree))
        return any(name in REFUSALS for name in names)


class _Refused(Exception):  # noqa: N818 - reads as the sentence it makes
    pass


Gate = Callable[[Candidate], None]


def read_candidate(text: str, known: Collection[str] = ()) -> Candidate | Verdict:
    """Reads a text as a candidate, or says at which gate it fails.

    `known` holds the fingerprints of candidates that need not be judged again.
    """
    found = _read(text)
    if isinstance(found, Candidate) and known and found.fingerprint in known:
        return Verdict(False, NOVELTY, _KNOWN)
    return found


@functools.lru_cache(maxsize=MOST_READ)
def _read(text: str) -> Candidate | Verdict:
    """Sends a text through the gates that only read it; the last texts are remembered.

    A search asks for the same text when it is proposed and when it is judged.
    """
    try:
        candidate = Candidate(text, parse(text))
    except _Refused as refusal:
        return Verdict(False, SYNTAX, str(refusal))
    for name, gate in READING_GATES:
        try:
            gate(candidate)
        except _Refused as refusal:
            return Verdict(False, name, str(refusal))
    return candidate


def parse(text: str) -> ast.Module:
    """Parses a text that is short enough to be looked at."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > LONGEST_BYTES:
        raise _Refused(f"the text has {size:,} bytes; {LONGEST_BYTES:,} at most")
    if not text.strip():
        raise _Refused("the text is empty; define score(pod, node)")
    try:
        return parse_text(text)
    except SyntaxError as error:
        raise _Refused(f"not Python: line {error.lineno or 1}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _Refused(f"not Python: {error or 'it is nested too deeply'}") from error


def check_allowlist(candidate: Candidate) -> None:
    """Refuses constructs that a score function does not need."""
    found = problems(candidate.tree) or _foreign_names(candidate.text)
    if found:
        told = [f"line {line}: {reason}" for line, reason in found[:MOST_PROBLEMS]]
        rest = len(found) - len(told)
        raise _Refused("\n".join([*told, *([f"and {rest} more"] if rest else [])]))


def check_signature(candidate: Candidate) -> None:
    """Refuses a text that is no pair policy without a table."""
    forms = "; ".join(f"score({', '.join(form)})" for form in FORMS)
    tree = candidate.tree
    score = functions(tree).get("score")
    if score is None:
        raise _Refused(f"the text defines no function score; define {forms}")
    given = tuple(argument.arg for argument in score.args.args)
    if given not in FORMS:
        taken = f"score takes ({', '.join(given)})"
        raise _Refused(f"line {score.lineno}: {taken}; define {forms}")
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if len(set(names)) < len(names):
        raise _Refused("a function is defined twice")
    if not any(isinstance(node, ast.Return) and node.value for node in walked(score)):
        raise _Refused(f"line {score.lineno}: score returns nothing; return a number")
    try:  # a break outside of a loop is found by the compiler alone
        compile(tree, "candidate", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        line = getattr(error, "lineno", None) or score.lineno
        raise _Refused(f"line {line}: {getattr(error, 'msg', '') or error}") from error


READING_GATES: tuple[tuple[str, Gate], ...] = (
    (ALLOWLIST, check_allowlist),
    (SIGNATURE, check_signature),
)
"""What a text passes once it is parsed, in this order."""


def _foreign_names(text: str) -> list[tuple[int, str]]:
    # Python reads some letters as others, and some only look alike.
    if text.isascii():
        return []
    return [
        (token.start[0], f"the name {token.string} is not written in plain ASCII letters")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME and not token.string.isascii()
    ]


def checked_policy(text: str, name: str) -> Policy:
    """Builds an ordinary policy from a candidate's text, once it passes the reading gates again."""
    read = read_candidate(text)
    if isinstance(read, Verdict):
        raise PolicyError(read.reason, where=name, hint=f"it fails at the gate {read.gate}")
    return policy_of(read_source(text, f"{name}.py"), name)
