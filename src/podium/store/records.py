"""The rows of a store, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.errors import InputError

MOST_ID = 2**62
"""Ids of observations stay far below; beyond, counting on would leave what databases hold."""

RUNNING, INTERRUPTED, FINISHED, FAILED = "running", "interrupted", "finished", "failed"
STATUSES = (RUNNING, INTERRUPTED, FINISHED, FAILED)

SUCCEEDED, TIMED_OUT = "", "timed_out"
OUTCOMES = (SUCCEEDED, FAILED, TIMED_OUT)
"""How observed jobs ended."""

PROPOSED, JUDGED = "proposed", "judged"
STATES = (PROPOSED, JUDGED)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Describes a run: what was asked for, how far it came, where its files are."""

    id: str
    kind: str  # "search", "simulation", "comparison" or "training"
    name: str
    created_s: float  # since 1970
    settings: Mapping[str, Any] = field(default_factory=dict)
    status: str = RUNNING
    summary: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """Describes a candidate of a run: where it came from, its text, and the judgement."""

    run_id: str
    number: int  # in its run, from 0
    batch: int = 0
    island: int = 0
    kind: str = "bred"  # "seed", "bred", "tuned", "repair", ...
    source: str = ""  # the generator, and which of its parts
    operators: tuple[str, ...] = ()
    parents: tuple[int, ...] = ()  # their numbers
    prompt: str = ""
    thought: str = ""
    text: str = ""
    fingerprint: str = ""
    signature: str = ""
    behaviour: tuple[float, ...] = ()
    state: str = PROPOSED
    accepted: bool = False
    gate: str = ""  # the last gate that was entered
    reason: str = ""
    fitness: float | None = None  # None: not measured
    complexity: int = 0
    may_hold: bool = False
    scores: Mapping[str, Any] = field(default_factory=dict)
    cases: tuple[Mapping[str, float], ...] = ()
    diagnostics: str = ""
    seconds: float = 0.0
    cost: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservationRecord:
    """Describes a job that ended: how long its type ran on a GPU type, and what ran beside it."""

    job_type: str
    gpu_type: str
    runtime_s: float
    recorded_s: float  # since 1970
    colocated_job_types: tuple[str, ...] = ()
    features: Mapping[str, float] = field(default_factory=dict)
    source: str = ""  # the replica that received it
    key: str | None = None  # of the request; one that is sent again counts once
    job_id: str | None = None  # of the job; one that is reported again counts once
    forgets: str = ""  # "job_type" or "gpu_type": no run, but a name to be forgotten
    outcome: str = SUCCEEDED
    unlearned: str = ""  # digest of what else its request said; empty: nobody noted it
    id: int = 0  # the store gives it, from 1 on; 0: not stored yet


class DamagedRow(InputError):  # noqa: N818 - reads as the sentence it makes
    """A row does not hold what was written: somebody else wrote there, or its disk failed."""

    table: str
    id: Any

    @classmethod
    def of(cls, table: str, id: Any, problem: str) -> DamagedRow:
        """Builds the error that names a row and what is wrong with it."""
        shown = id if isinstance(id, int | float) else f'"{str(id)[:64]}"'
        advice = f"repair or delete the row in table {table}"
        made = cls(problem, where=f"table {table}, row {shown}", hint=advice)
        made.table, made.id = table, id
        return made


@dataclass(frozen=True, slots=True)
class Receipt:
    """Confirms that an observation is stored."""

    id: int
    is_repeat: bool = False  # it was stored before: this is the id of the first


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """What was learned from all observations up to one."""

    name: str
    last_id: int  # of the last observation in it
    state: Mapping[str, Any]
    recorded_s: float  # since 1970
