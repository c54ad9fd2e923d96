BEGIN TRANSACTION;
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
    fitness,
    complexity BIGINT NOT NULL,
    may_hold BOOLEAN NOT NULL,
    scores TEXT NOT NULL,
    cases TEXT NOT NULL,
    diagnostics TEXT NOT NULL,
    seconds NOT NULL,
    cost TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
);
INSERT INTO "candidates" VALUES('run-a',0,3,2,'repair','llm:some/model','["swap", "constant"]','[4, 17]','Write a policy.','Füllt Knoten auf 🙂','"""Fills nodes."""


def score(pod, node):
    return 1.0
','f00','pod, node','[0.1, -0.0, 1e+300]','judged',1,'training','',1.5,12,1,'{"fitness": 1.5, "fgd": {"fitness": 0.30000000000000004}}','[{"score": 0.3333333333333333}, {"score": 5e-324}]','3 pods waited',0.123456789,'{"calls": 1, "usd": null}');
INSERT INTO "candidates" VALUES('run-a',1,0,0,'bred','','[]','[]','','','def score(pod, node):
    return 1
','','','[]','proposed',0,'','',NULL,0,0,'{}','[]','',0.0,'{}');
CREATE TABLE checkpoints (
    name TEXT NOT NULL PRIMARY KEY,
    last_id BIGINT NOT NULL,
    state TEXT NOT NULL,
    recorded_s NOT NULL
);
INSERT INTO "checkpoints" VALUES('online',1,'{"cells": [0.30000000000000004, -0.0]}',1763200001.5);
CREATE TABLE observations (
    id INTEGER NOT NULL PRIMARY KEY,
    recorded_s NOT NULL,
    job_type TEXT NOT NULL,
    gpu_type TEXT NOT NULL,
    runtime_s NOT NULL,
    colocated_job_types TEXT NOT NULL,
    features TEXT NOT NULL,
    source TEXT NOT NULL,
    key TEXT UNIQUE
, job_id TEXT, forgets TEXT NOT NULL DEFAULT '', outcome TEXT NOT NULL DEFAULT '', unlearned TEXT NOT NULL DEFAULT '');
INSERT INTO "observations" VALUES(1,1763200000.123,'résumé-🙂','A100-80GB',3.00000000000000044408e-01,'["bert", "bert", "resnet"]','{"batch_size": 32.0, "gpu_mem_gb": 5e-324}','replica-a','7c1f','job-7','','','');
CREATE TABLE podium_schema (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied_s DOUBLE PRECISION NOT NULL);
INSERT INTO "podium_schema" VALUES(1,'runs and candidates',1.79482749399157905578e+09);
INSERT INTO "podium_schema" VALUES(2,'observations and checkpoints',1.79482749399203181262e+09);
INSERT INTO "podium_schema" VALUES(3,'names of jobs apart from keys of requests, and names to forget',1.79482749399249672892e+09);
INSERT INTO "podium_schema" VALUES(4,'how observed jobs ended, and what else was said of them',1.79482749399286937714e+09);
CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    created_s NOT NULL,
    settings TEXT NOT NULL,
    status TEXT NOT NULL,
    summary TEXT NOT NULL,
    folder TEXT NOT NULL
);
INSERT INTO "runs" VALUES('run-a','search','a first look',1763200000.123,'{"seed": 7, "islands": [1, 2.5], "model": null, "deep": {"is_on": true}}','running','{"best": 91.7242}','runs/run-a');
CREATE INDEX candidates_by_fitness ON candidates (run_id, accepted, fitness DESC, number);
CREATE INDEX observations_by_pair ON observations (job_type, gpu_type, id);
CREATE UNIQUE INDEX observations_by_job ON observations (job_id);
COMMIT;
