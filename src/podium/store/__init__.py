"""Keeps runs, candidates and observations: SQLite by default, PostgreSQL by address."""

from podium.store.candidates import Candidates
from podium.store.checkpoints import Checkpoints
from podium.store.engine import LostStore
from podium.store.follower import Follower, Learner, Progress
from podium.store.idempotency import ReusedName
from podium.store.observation_writer import ObservationWriter
from podium.store.observations import Observations
from podium.store.records import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    JUDGED,
    PROPOSED,
    RUNNING,
    STATES,
    STATUSES,
    SUCCEEDED,
    TIMED_OUT,
    CandidateRecord,
    CheckpointRecord,
    DamagedRow,
    ObservationRecord,
    Receipt,
    RunRecord,
)
from podium.store.runs import Runs
from podium.store.store import Store, open_store
from podium.store.upkeep import Rhythm, Upkeep

__all__ = [
    "FAILED", "FINISHED", "INTERRUPTED", "JUDGED", "PROPOSED", "RUNNING", "STATES", "STATUSES",
    "SUCCEEDED", "TIMED_OUT", "CandidateRecord", "Candidates", "CheckpointRecord", "Checkpoints",
    "DamagedRow", "Follower", "Learner", "LostStore", "ObservationRecord", "ObservationWriter",
    "Observations", "Progress", "Receipt", "ReusedName", "Rhythm", "RunRecord", "Runs", "Store",
    "Upkeep", "open_store",
]  # fmt: skip
