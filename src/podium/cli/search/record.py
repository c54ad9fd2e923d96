"""Enters new runs with what was asked for, so that they can be resumed and explained."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

import podium
from podium.errors import PodiumError

if TYPE_CHECKING:
    from podium.search.run.plan import Budget, RunPlan
    from podium.settings import Settings
    from podium.store import RunRecord, Store


def create(kept: Store, settings: Settings, plan: RunPlan, budget: Budget, name: str) -> RunRecord:
    """Enters a run under a new id, with its plan, its budget and the command that began it."""
    from podium.search.run.folder import PLAN
    from podium.search.run.plan import RunPlan
    from podium.search.run.setup import KIND, create_run
    from podium.search.run.trust import seal
    from podium.settings import secrets_of
    from podium.store import RunRecord

    run_id = secrets.token_hex(4)
    secret = secrets_of(settings, os.environ, sys.argv[1:])
    folder = str((settings.search.folder / run_id).absolute())
    asked = {
        **plan.as_object(), "budget": asdict(budget),
        "allow_unconfined": settings.search.allow_unconfined,
        "command": secret.hide_command(["podium", *sys.argv[1:]]), "version": podium.__version__,
    }  # fmt: skip
    shown = secret.hide_all(asked)
    record = RunRecord(run_id, KIND, secret.hide(name), time.time(), shown, folder=folder)
    made = create_run(kept, plan, record, secret)
    seal(made, run_id, RunPlan.from_object(made.read(PLAN)))
    return record


@contextmanager
def entered(
    kept: Store, settings: Settings, plan: RunPlan, budget: Budget, name: str
) -> Iterator[RunRecord]:
    """Enters a run for a block; a run that fails before its first candidate leaves no trace."""
    from podium.store.records import FAILED

    record = create(kept, settings, plan, budget, name)
    try:
        yield record
    except KeyboardInterrupt:
        raise  # it can be resumed
    except BaseException:
        with suppress(PodiumError, OSError):  # what went wrong first is what is told
            if kept.candidates.count(record.id):
                kept.runs.update(record.id, status=FAILED)
            else:
                kept.runs.delete(record.id)
                shutil.rmtree(record.folder)
        raise
