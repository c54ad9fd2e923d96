"""Defines what a policy is: a pair policy scores a pod on a node, a cluster policy chooses."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError, UsageError, meant_by
from podium.files.html import html_code
from podium.model.records import Pod
from podium.model.workload import Shapes
from podium.policies.jit import COMPILING, fingerprints, stamp_of
from podium.policies.language.kind import MOST_ROWS, NotPortable
from podium.policies.language.translation import Translation, text_of, translate
from podium.policies.session import Chooser, ClusterSession, Nodes, PairSession
from podium.policies.source import REFUSALS, Source, callable_form, number_of, pair_form, words_of
from podium.policies.validation import UNKNOWN, Validation

_NO_TABLE = np.zeros(0)
_STARTED = "class Policy is created with the seed of a run: def __init__(self, seed)"
_AS_FUNCTION = "write def score(pod, node) for compiled code; or run it in the python tier"
_PLAINLY = "use numbers, if, for and math only; or run it in the python tier"

Ties = Literal["rank", "random"]
GpuChoice = Literal["best", "worst", "random"]
Origin = Literal["written", "tuned", "found", "trained", "file"]
"""Whose a policy is: written by people; their formula with numbers that a search tuned; found, with
terms that a search added and that beat the tuned formula; trained; or a file that does not say."""


@dataclass(frozen=True, slots=True)
class FixedTable:
    """Is a `prepare` that gives the same numbers whatever pods come."""

    values: Any

    def __call__(self, _shapes: Shapes) -> Any:
        """Gives the numbers."""
        return self.values


@dataclass(frozen=True, slots=True, eq=False)
class PairPolicy:
    """Scores a pod on a node as a pure function of the two records."""

    name: str
    function: Callable[..., float]
    form: tuple[str, ...]  # the argument names of `function`
    summary: str = ""
    origin: Origin = "file"
    source: Source | None = None
    text: str = field(default="", repr=False)  # of a function, which has no source of its own
    prepare: Callable[[Shapes], Any] | None = None
    may_hold: bool = False
    ties: Ties = "rank"
    gpu_choice: GpuChoice = "best"
    notes: tuple[str, ...] = ()  # what of its origin the policy does not honour
    terms: tuple[str, ...] = ()  # names of what its score is the sum of, where its origin has any
    is_kept: bool = False  # its machine code stays on disk
    translation: Translation | None = field(default=None, repr=False)  # the form that is compiled
    not_compiled: str = ""  # why there is none
    compiling_hint: str = ""  # what may be meant instead
    compiled: dict[tuple[int, int], Any] = field(default_factory=dict, repr=False)
    refused: dict[tuple[int, int], PolicyError] = field(default_factory=dict, repr=False)
    validation: Validation = UNKNOWN
    kind: ClassVar[Literal["pair"]] = "pair"

    @classmethod
    def of(cls, source: Source, name: str, origin: Origin = "file") -> PairPolicy:
        """Builds the policy that a source defines."""
        names = source.namespace()
        form = pair_form(names["score"], source.path)
        translation, reason, hint = _translated(names["score"])
        return cls(
            name=name,
            function=translation.plain() if translation else names["score"],
            form=form,
            summary=source.summary,
            origin=origin,
            source=source,
            prepare=names.get("prepare"),
            may_hold=source.mentions_hold,
            ties=_setting(names, "TIES", ("rank", "random"), source.path),
            gpu_choice=_setting(names, "GPU_CHOICE", ("best", "worst", "random"), source.path),
            is_kept=origin != "file",
            translation=translation,
            not_compiled=reason,
            compiling_hint=hint,
        )

    def _repr_html_(self) -> str:
        """Shows the policy in a notebook."""
        return _shown(self)

    @property
    def takes_gpu(self) -> bool:
        """Returns whether a share pod is scored once per GPU slot."""
        return "gpu" in self.form

    @property
    def takes_table(self) -> bool:
        """Returns whether the policy reads what `prepare` returned."""
        return "table" in self.form

    @property
    def reads_demand(self) -> bool:
        """Returns whether scores depend on the pods that come."""
        return self.takes_table and not isinstance(self.prepare, FixedTable)

    def table(self, shapes: Shapes) -> npt.NDArray[np.float64]:
        """Runs `prepare` and freezes what it returns."""
        if not self.takes_table:
            return _NO_TABLE
        if self.prepare is None:
            raise PolicyError(
                "score takes a table but the policy has no prepare(shapes)", where=self.name
            )
        table = self._prepared(shapes)
        if table.ndim not in (1, 2):
            raise PolicyError(
                f"prepare returned {table.ndim} dimensions, not 1 or 2", where=self.name
            )
        if len(table) > MOST_ROWS:
            raise PolicyError(f"prepare returned more than {MOST_ROWS:,} rows", where=self.name)
        table.flags.writeable = False
        return table

    def _prepared(self, shapes: Shapes) -> npt.NDArray[np.float64]:
        """Runs `prepare`, which is the user's own code, and converts its result to numbers."""
        assert self.prepare is not None
        try:
            given = self.prepare(shapes)
        except (Exception, SystemExit) as error:
            line = self.source.line_of(error) if self.source else 0
            place = f"{self.name}, line {line}" if line else self.name
            raise PolicyError(
                f"prepare failed: {type(error).__name__}: {error}",
                where=place,
                hint="podium policies check runs prepare on its own",
            ) from error
        try:
            found = np.asarray(given)
            is_numbers = found.dtype.kind in "biuf"
            told = "" if is_numbers else reprlib.repr(given)
        except (TypeError, ValueError, OverflowError) as error:
            is_numbers, told = False, str(error)
        if not is_numbers:
            raise PolicyError(
                f"prepare did not return a table of numbers: {told}", where=self.name,
                hint="return numbers in one row, or in rows of the same length",
            )  # fmt: skip
        return np.ascontiguousarray(found, np.float64)

    def score_pair(self, pod: Any, node: Any, gpu: int, table: npt.NDArray[np.float64]) -> float:
        """Calls the plain Python function with the arguments it takes."""
        arguments = {"pod": pod, "node": node, "gpu": gpu, "table": table}
        return number_of(self.function(*(arguments[name] for name in self.form)))

    def session(
        self,
        shapes: Shapes | None = None,
        *,
        seed: int = 0,  # noqa: ARG002 - both kinds are opened alike
    ) -> PairSession:
        """Opens a session; `prepare` builds its table from the shapes."""
        return PairSession(self, _NO_TABLE if shapes is None else self.table(shapes))

    def scores(
        self, pod: np.void | Pod, nodes: Nodes, table: npt.NDArray[np.float64] | None = None
    ) -> npt.NDArray[np.float64]:
        """Scores the pod on every node; minus infinity where it does not fit or is refused."""
        return PairSession(self, _NO_TABLE if table is None else table).scores(pod, nodes).scores

    def native(self, table_ndim: int, gpu_slots: int) -> Any:
        """Compiles the policy for the core, once per table rank and GPU slots."""
        key = (table_ndim, gpu_slots)
        if key not in self.compiled:  # without the lock: others may be compiling something else
            with COMPILING:
                self._try_to_compile(key)
        return self.compiled[key]

    def _try_to_compile(self, key: tuple[int, int]) -> None:
        if key in self.refused:
            raise self.refused[key].with_traceback(None)
        if key not in self.compiled:
            try:
                self.compiled[key] = self._compile(*key)
            except PolicyError as error:
                self.refused[key] = error
                raise

    def _compile(self, table_ndim: int, gpu_slots: int) -> Any:
        from podium.policies.abi import compile_score
        from podium.policies.language.native_arithmetic import NATIVE

        if self.not_compiled:
            raise PolicyError(
                f"the policy cannot be compiled: {self.not_compiled}",
                where=self.name,
                hint=self.compiling_hint or _PLAINLY,
            )
        names = self.translation.namespace(NATIVE) if self.translation else {"score": self.function}
        stamp = self._stamp(names) if self.is_kept else ""
        return compile_score(names, self.form, table_ndim, gpu_slots, stamp)

    def _stamp(self, names: dict[str, Any]) -> str:
        functions = [value for value in names.values() if isinstance(value, FunctionType)]
        return stamp_of([*fingerprints(functions), *own_sources()])


@dataclass(frozen=True, slots=True, eq=False)
class ClusterPolicy:
    """Chooses a node from the whole state; a fresh chooser is started for every run."""

    name: str
    start: Callable[[int], Chooser]  # takes the run's seed
    summary: str = ""
    origin: Origin = "file"
    source: Source | None = None
    may_hold: bool = False
    gpu_choice: GpuChoice = "best"
    notes: tuple[str, ...] = ()  # what of its origin the policy does not honour
    terms: tuple[str, ...] = ()  # names of what its score is the sum of, where its origin has any
    text: str = field(default="", repr=False)  # what was learned in words, where there is no source
    validation: Validation = UNKNOWN
    kind: ClassVar[Literal["cluster"]] = "cluster"

    @classmethod
    def of(cls, source: Source, name: str, origin: Origin = "file") -> ClusterPolicy:
        """Builds the policy that a source defines."""
        names = source.namespace()
        return cls(
            name=name,
            start=names["Policy"],
            summary=source.summary,
            origin=origin,
            source=source,
            may_hold=source.mentions_hold,
            gpu_choice=_setting(names, "GPU_CHOICE", ("best", "worst", "random"), source.path),
        )

    @property
    def reads_demand(self) -> bool:
        """Returns whether its choosers want to hear of the pods that come."""
        return hasattr(self.start, "refresh")

    def session(
        self,
        shapes: Shapes | None = None,
        *,
        seed: int = 0,
    ) -> ClusterSession:
        """Opens a session with one chooser, which remembers from call to call."""
        session = ClusterSession(self, self.chooser(seed))
        if shapes is not None and len(shapes):
            session.refresh(shapes)
        return session

    def chooser(self, seed: int) -> Chooser:
        """Creates the chooser of one run; a class that cannot be created is the policy's error."""
        try:
            made = self.start(seed)
        except PolicyError:
            raise  # it says what to do by itself
        except (Exception, SystemExit) as error:
            line = self.source.line_of(error) if self.source is not None else 0
            raise PolicyError(
                f"the policy could not be created: {words_of(error)}",
                where=(f"line {line} of " if line else "") + self.name,
                hint=_STARTED if isinstance(error, TypeError) else meant_by(error),
            ) from error
        if not callable(getattr(made, "choose", None)):
            hint = "define choose(self, pod, nodes, feasible) in it"
            raise PolicyError("class Policy cannot choose", where=self.name, hint=hint)
        return made

    def _repr_html_(self) -> str:
        """Shows the policy in a notebook."""
        return _shown(self)

    def scores(
        self,
        pod: np.void | Pod,
        nodes: Nodes,
        table: npt.NDArray[np.float64] | None = None,  # noqa: ARG002 - both kinds are called alike
    ) -> npt.NDArray[np.float64]:
        """Scores one pod as the first of a session; open a session to score more of them."""
        return self.session().scores(pod, nodes).scores


Policy = PairPolicy | ClusterPolicy


def _shown(policy: Policy) -> str:
    """Writes a policy's name, summary and text as HTML."""
    title = f"{policy.name} ({policy.kind}, {policy.origin}): {policy.summary}"
    return html_code(title, policy.source.text if policy.source is not None else policy.text)


def policy_of(source: Source, name: str, origin: Origin = "file") -> Policy:
    """Builds the pair or cluster policy that a source defines."""
    maker: Any = PairPolicy if source.is_pair else ClusterPolicy
    policy: Policy = maker.of(source, name, origin)
    return policy


def taken_as_policy(given: object) -> Policy:
    """Takes a policy as it is, and makes one of a function or of what is called like one.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(given, PairPolicy | ClusterPolicy):
        return given
    if callable(given) and not isinstance(given, type):
        return from_function(given)
    raise UsageError(
        f"{type(given).__name__} is not a policy", where="argument policy",
        hint="give a name, a file, a function score(pod, node), or a loaded policy",
    )  # fmt: skip


def from_function(function: Callable[..., float], name: str = "") -> PairPolicy:
    """Builds a pair policy from a Python function, for programs and tests.

    It is compiled if its source is at hand: in a file or a notebook, for instance. What is called
    like a function, such as `functools.partial(...)` or a method, runs in plain Python.
    """
    if not isinstance(function, FunctionType):
        return _from_callable(function, name)
    form = pair_form(function, name or function.__name__)
    translation, reason, hint = _translated(function)
    return replace(
        from_trusted_function(function, name), form=form, translation=translation,
        text=text_of(function),
        function=translation.plain() if translation else function,
        not_compiled=reason, compiling_hint=hint,
    )  # fmt: skip


def _from_callable(called: Callable[..., float], name: str) -> PairPolicy:
    own = getattr(called, "func", called)  # of a partial
    title = name or getattr(own, "__name__", type(own).__name__)
    doc = (getattr(own, "__doc__", None) or "").strip().splitlines()
    code = getattr(own, "__code__", None) or getattr(type(own).__call__, "__code__", None)
    return PairPolicy(
        title, called, callable_form(called, title), doc[0] if doc else "",
        may_hold=any(word in getattr(code, "co_names", ()) for word in REFUSALS),
        not_compiled=f"{type(called).__name__} is not a plain function",
        compiling_hint=_AS_FUNCTION,
    )  # fmt: skip


def from_trusted_function(function: Callable[..., float], name: str = "") -> PairPolicy:
    """Builds a pair policy from a function of Podium's own, which is compiled as it is written."""
    title = name or function.__name__
    doc = (function.__doc__ or "").strip().splitlines()
    form, summary = pair_form(function, title), doc[0] if doc else ""
    names_hold = any(word in function.__code__.co_names for word in REFUSALS)
    return PairPolicy(title, function, form, summary, may_hold=names_hold)


def _translated(function: FunctionType) -> tuple[Translation | None, str, str]:
    """Translates a function, or explains why that is impossible, with a suggestion."""
    try:
        return translate(function), "", ""
    except NotPortable as error:
        line = f"line {error.line}: " if error.line else ""
        return None, f"{line}{error.reason}", error.hint
    except (RecursionError, MemoryError):
        return None, "it is nested too deeply", ""


def _setting(names: dict[str, Any], key: str, known: tuple[str, ...], where: str) -> Any:
    value = names.get(key, known[0])
    if value not in known:
        raise PolicyError(f"{key} is {value!r}", where=where, hint=f"use one of {', '.join(known)}")
    return value


@functools.cache
def own_sources() -> tuple[str, ...]:
    """Reads the texts of Podium that the machine code of policies depends on."""
    from pathlib import Path

    here = Path(__file__).parent
    names = ("native_arithmetic", "native_records", "arithmetic")
    files = ("abi.py", *(f"language/{name}.py" for name in names), "../model/records.py")
    return tuple((here / name).read_text(encoding="utf-8") for name in files)
