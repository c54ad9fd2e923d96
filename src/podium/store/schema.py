"""Declares the tables of the newest schema, and the steps that lead to it.

Texts, numbers and flags have a column each. What is a list or a mapping is JSON in a column of
text: both databases give it back as it was written, to the last bit of a float.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, MetaData, Table, Text

from podium.store.migrations import Migration

METADATA = MetaData()

RUNS = Table(
    "runs",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_s", Double, nullable=False),
    Column("settings", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("folder", Text, nullable=False),
)

CANDIDATES = Table(
    "candidates",
    METADATA,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, nullable=False),
    Column("island", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("operators", Text, nullable=False),
    Column("parents", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("thought", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("behaviour", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("accepted", Boolean, nullable=False),
    Column("gate", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("fitness", Double),
    Column("complexity", BigInteger, nullable=False),
    Column("may_hold", Boolean, nullable=False),
    Column("scores", Text, nullable=False),
    Column("cases", Text, nullable=False),
    Column("diagnostics", Text, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("cost", Text, nullable=False),
)

OBSERVATIONS = Table(
    "observations",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("recorded_s", Double, nullable=False),
    Column("job_type", Text, nullable=False),
    Column("gpu_type", Text, nullable=False),
    Column("runtime_s", Double, nullable=False),
    Column("colocated_job_types", Text, nullable=False),
    Column("features", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("key", Text, unique=True),
    Column("job_id", Text, unique=True),
    Column("forgets", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("unlearned", Text, nullable=False),
)

CHECKPOINTS = Table(
    "checkpoints",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("last_id", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("recorded_s", Double, nullable=False),
)

MIGRATIONS = (
    Migration(
        1,
        "runs and candidates",
        (
            """\
CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    created_s DOUBLE PRECISION NOT NULL,
    settings TEXT NOT NULL,
    status TEXT NOT NULL,
    summary TEXT NOT NULL,
    folder TEXT NOT NULL
)""",
            """\
CREATE TABLE candidates (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    batch BIGINT NOT NULL,
    island BIGINT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    operators TEXT NOT NULL,
    parents TEXT NOT NULL,
    prompt TEXT NOT NULL,
    thought TEXT NOT NULL,
    text TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    signature TEXT NOT NULL,
    behaviour TEXT NOT NULL,
    state TEXT NOT NULL,
    accepted BOOLEAN NOT NULL,
    gate TEXT NOT NULL,
    reason TEXT NOT NULL,
    fitness DOUBLE PRECISION,
    complexity BIGINT NOT NULL,
    may_hold BOOLEAN NOT NULL,
    scores TEXT NOT NULL,
    cases TEXT NOT NULL,
    diagnostics TEXT NOT NULL,
    seconds DOUBLE PRECISION NOT NULL,
    cost TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
)""",
            "CREATE INDEX candidates_by_fitness"
            " ON candidates (run_id, accepted, fitness DESC, number)",
        ),
    ),
    Migration(
        2,
        "observations and checkpoints",
        (
            """\
CREATE TABLE observations (
    id BIGINT NOT NULL PRIMARY KEY,
    recorded_s DOUBLE PRECISION NOT NULL,
    job_type TEXT NOT NULL,
    gpu_type TEXT NOT NULL,
    runtime_s DOUBLE PRECISION NOT NULL,
    colocated_job_types TEXT NOT NULL,
    features TEXT NOT NULL,
    source TEXT NOT NULL,
    key TEXT UNIQUE
)""",
            "CREATE INDEX observations_by_pair ON observations (job_type, gpu_type, id)",
            """\
CREATE TABLE checkpoints (
    name TEXT NOT NULL PRIMARY KEY,
    last_id BIGINT NOT NULL,
    state TEXT NOT NULL,
    recorded_s DOUBLE PRECISION NOT NULL
)""",
        ),
    ),
    Migration(
        3,
        "names of jobs apart from keys of requests, and names to forget",
        (
            "ALTER TABLE observations ADD COLUMN job_id TEXT",
            # Until now either was the key; nobody can tell any more which it was.
            "UPDATE observations SET job_id = key",
            "CREATE UNIQUE INDEX observations_by_job ON observations (job_id)",
            "ALTER TABLE observations ADD COLUMN forgets TEXT NOT NULL DEFAULT ''",
        ),
    ),
    Migration(
        4,
        "how observed jobs ended, and what else was said of them",
        (
            # Until now only runs that succeeded were kept.
            "ALTER TABLE observations ADD COLUMN outcome TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE observations ADD COLUMN unlearned TEXT NOT NULL DEFAULT ''",
        ),
    ),
)
"""Every step from an empty database on; new ones are added at the end."""
