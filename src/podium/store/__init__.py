"""Keeps runs and their candidates: SQLite by default, PostgreSQL by address."""

from podium.store.candidates import Candidates
from podium.store.records import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    JUDGED,
    PROPOSED,
    RUNNING,
    STATES,
    STATUSES,
    CandidateRecord,
    RunRecord,
)
from podium.store.runs import Runs
from podium.store.store import Store, open_store

__all__ = [
    "FAILED", "FINISHED", "INTERRUPTED", "JUDGED", "PROPOSED", "RUNNING", "STATES", "STATUSES",
    "CandidateRecord", "Candidates", "RunRecord", "Runs", "Store", "open_store",
]  # fmt: skip
