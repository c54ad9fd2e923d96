"""Keeps all runs in one store, searches and trainings too: save, find, list, diff, delete."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import podium
from podium.errors import MissingError, PodiumError, UsageError
from podium.experiments.loading import DUMP_KEYS
from podium.experiments.places import blaming, place_of
from podium.experiments.plain import plain
from podium.settings import Settings

if TYPE_CHECKING:
    from podium.experiments.case import Inputs
    from podium.experiments.compare import ComparisonRequest, PolicyComparison
    from podium.experiments.simulate import Simulation
    from podium.store import CandidateRecord, RunRecord, Store

SEARCH, SIMULATION, COMPARISON, TRAINING = "search", "simulation", "comparison", "training"
KINDS = (SEARCH, SIMULATION, COMPARISON, TRAINING)

_NUMBERS_OF_CANDIDATES = ("best", "validated")
_TOLD_APART = ("command",)
"""Inputs that differ with every run, and do not affect its results."""

_NOT_READABLE = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
"""What reading a summary may raise that somebody else wrote."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """The name under which an outcome is stored, and the command that produced it."""

    name: str
    command: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Sets one input or figure of two runs side by side; None where a run has none."""

    name: str
    first: Any
    second: Any

    @property
    def change(self) -> float | None:
        """Returns how much larger the second value is, where both are numbers."""
        if not (_is_number(self.first) and _is_number(self.second)):
            return None
        try:
            return float(self.second) - float(self.first)
        except OverflowError:  # a whole number that somebody else wrote
            return None


@dataclass(frozen=True, slots=True)
class RunDiff:
    """Sets two runs of one kind side by side."""

    first: RunRecord
    second: RunRecord
    inputs: tuple[Difference, ...]  # those that differ
    figures: tuple[Difference, ...]  # all that either has

    def as_object(self) -> dict[str, Any]:
        """Describes the difference as JSON types."""
        runs = [
            {"id": each.id, "name": each.name, "created_s": each.created_s}
            for each in (self.first, self.second)
        ]
        return {
            "kind": self.first.kind,
            "runs": runs,
            "inputs": [_sides(each) for each in self.inputs],
            "metrics": [{**_sides(each), "difference": each.change} for each in self.figures],
        }


def open_runs(settings: Settings, *, is_made: bool = False) -> Store:
    """Opens the store that the settings name; a missing file is created only on demand."""
    from podium.store import open_store

    with blaming(place_of(settings, "store.url")):
        file = _file(settings)
        if not is_made and file is not None and not _has_content(file):
            raise MissingError(
                f"there is no store at {file}",
                hint="check the path in --store or PODIUM_STORE_URL; podium search run creates "
                "a store",
            )
        return open_store(settings.store.url)


def is_new(settings: Settings) -> bool:
    """Returns whether no store was named, and nothing was stored in the default one so far."""
    file = _file(settings)
    return file is not None and not file.exists() and settings.origins["store.url"] == "default"


def _file(settings: Settings) -> Path | None:
    from podium.store.address import file_of, read_address

    with blaming(place_of(settings, "store.url")):
        return file_of(read_address(settings.store.url))


def _has_content(file: Path) -> bool:
    # SQLite takes an empty file for a new database.
    return file.exists() and not (file.is_file() and file.stat().st_size == 0)


def find_search(store: Store, reference: str) -> RunRecord:
    """Finds a search by its id, its name, or the beginning of its id."""
    record = store.runs.get(reference)
    if record.kind in (SIMULATION, COMPARISON, TRAINING):
        raise UsageError(
            f"run {record.id} is a {record.kind}, not a search",
            hint=f"podium runs show {record.id} shows it; podium runs list --kind search lists "
            "searches",
        )
    return record


def best_candidates(store: Store, record: RunRecord, count: int) -> list[CandidateRecord]:
    """Lists the best of a search: the winner that was chosen first, then by training fitness."""
    found = store.candidates.best(record.id, count)
    number = record.summary.get("best")
    if count and type(number) is int and number not in [each.number for each in found[:1]]:
        with suppress(PodiumError):  # somebody else may have written the summary
            winner = store.candidates.get(record.id, number)
            others = [each for each in found if each.number != number]
            return [winner, *others][:count] if winner.accepted else found
    return found


def best_of_run(store: Store, record: RunRecord, count: int = 1) -> list[CandidateRecord]:
    """Lists the best candidates of a run, the winner that was chosen first.

    Raises:
        UsageError: none was accepted.
    """
    found = best_candidates(store, record, count)
    if not found:
        raise UsageError(
            f"run {record.id} has no accepted candidate",
            hint=f"podium search resume {record.id} continues the search",
        )
    return found


def keep_simulation(
    settings: Settings, inputs: Inputs, found: Simulation, keeping: Keeping
) -> RunRecord:
    """Keeps a simulation: what it was run on, and every figure."""
    from podium.experiments.case import TraceDigest
    from podium.sim.saved_policy import text_digest

    digest = TraceDigest()
    digest.add(found.case)
    policy = found.result.plan.policy
    asked = {
        "policy": policy.name,
        "policy_digest": text_digest(policy),
        **_case_inputs(settings, inputs, found.summary, digest.digest),
        "seed": found.summary["seed"],
    }
    return _keep(settings, SIMULATION, asked, found.as_object(), keeping)


def keep_comparison(
    settings: Settings, inputs: Inputs, request: ComparisonRequest, found: PolicyComparison,
    keeping: Keeping,
) -> RunRecord:  # fmt: skip
    """Keeps a comparison: what was compared on what, the ranking, and the figures of every run."""
    from podium.sim.saved_policy import text_digest

    first = next(iter(found.runs.values()))[0]
    asked = {
        "policies": [policy.name for policy in request.policies],
        "policy_digests": {policy.name: text_digest(policy) for policy in request.policies},
        **_case_inputs(settings, inputs, first, found.trace_digest),
        "seeds": list(found.ranking.seeds),
        "metric": found.ranking.metric,
    }
    return _keep(settings, COMPARISON, asked, found.as_object(), keeping)


def _case_inputs(
    settings: Settings, inputs: Inputs, summary: Mapping[str, Any], trace_digest: str
) -> dict[str, Any]:
    chosen = settings.simulate
    found = {name: summary[name] for name in ("trace", "cluster", "protocol", "load", "ratio")
             if name in summary}  # fmt: skip
    found |= {"trace_digest": trace_digest, "node_order": inputs.ranks}
    found |= {name: getattr(chosen, name) for name in ("hold_limit", "max_holds")}
    if chosen.preemption:
        found["preemption"] = True
    found |= {name: summary[name] for name in ("demand", "ties") if name in summary}
    if summary["protocol"] == "rounds":
        found["max_rounds"] = chosen.max_rounds
    found |= {name: getattr(chosen, name) for name in DUMP_KEYS if getattr(chosen, name)}
    if inputs.orders is not None:
        found["orders"] = str(inputs.orders)
    return found


def _keep(
    settings: Settings, kind: str, asked: Mapping[str, Any], figures: object, keeping: Keeping
) -> RunRecord:
    from podium.settings import secrets_of
    from podium.store import FINISHED, RunRecord

    check_name(keeping.name)
    secret = secrets_of(settings, os.environ, list(keeping.command[1:]))
    told = {
        **plain(asked),
        "command": secret.hide_command(list(keeping.command)),
        "version": podium.__version__,
    }
    record = RunRecord(
        secrets.token_hex(4), kind, secret.hide(keeping.name), time.time(),
        secret.hide_all(told), FINISHED, secret.hide_all(plain(figures)),
    )  # fmt: skip
    with open_runs(settings, is_made=True) as store:
        store.runs.create(record)
    return record


def check_keeping(settings: Settings, name: str) -> None:
    """Refuses what could not be stored, before the work begins: a bad name, or no store."""
    check_name(name)
    with open_runs(settings, is_made=True):
        pass


def check_name(name: str) -> None:
    """Refuses a name that nobody could type again."""
    if not name.strip() or not name.isprintable() or name != name.strip():
        raise UsageError(
            f"{name!a} cannot be the name of a run", where="flag --save",
            hint="give printable text that neither begins nor ends with a space",
        )  # fmt: skip


def standing(record: RunRecord) -> RunRecord:
    """Returns the present state of a run: one that was killed is no longer running."""
    from podium.store.run_status import status_of

    return replace(record, status=status_of(record))


def reached_outside(record: RunRecord) -> tuple[str, ...]:
    """Lists the programs and services that a resumed search would use, according to its folder."""
    from podium.search.run.folder import PLAN, RunFolder
    from podium.search.run.plan import RunPlan
    from podium.search.run.trust import outside_work

    if record.kind != SEARCH or not record.folder:
        return ()
    try:
        plan = RunPlan.from_object(RunFolder(Path(record.folder)).read(PLAN))
    except PodiumError:
        return ()
    return tuple(outside_work(plan))


def delete(store: Store, record: RunRecord) -> None:
    """Deletes a run that no process is working on; its folder stays."""
    from podium.store.run_folder import RunFolder

    folder = RunFolder(Path(record.folder))
    if record.folder:
        folder.lock_if_used()
    try:
        store.runs.delete(record.id)
    finally:
        folder.unlock()


def diff(first: RunRecord, second: RunRecord) -> RunDiff:
    """Sets two runs side by side.

    Raises:
        UsageError: they are of different kinds.
    """
    if first.kind != second.kind:
        raise UsageError(
            f"{first.id} is a {first.kind} and {second.id} is a {second.kind}: they have no "
            "figures in common",
            where="arguments A and B",
            hint=f"podium runs list --kind {first.kind} lists what {first.id} can be compared with",
        )
    asked = _pairs(_flat(first.settings), _flat(second.settings))
    changed = tuple(
        each for each in asked if each.first != each.second and each.name not in _TOLD_APART
    )
    return RunDiff(first, second, changed, tuple(_pairs(figures_of(first), figures_of(second))))


def figures_of(record: RunRecord) -> dict[str, Any]:
    """Lists the figures of a run by name; those of a comparison by policy and metric.

    Raises:
        DamagedRow: the summary of a comparison cannot be read.
    """
    if record.kind == COMPARISON:
        return _means(record)
    is_simulation = record.kind == SIMULATION  # its summary repeats inputs, such as the seed
    left_out = set(record.settings) if is_simulation else set(_NUMBERS_OF_CANDIDATES)
    return {
        name: value
        for name, value in record.summary.items()
        if name not in left_out and (_is_number(value) or name == "digest")
    }


def _means(record: RunRecord) -> dict[str, Any]:
    from podium.store import DamagedRow

    try:
        ranking = record.summary["comparison"]
        return {f"{row['policy']} {ranking['metric']}": row["mean"] for row in ranking["rows"]}
    except _NOT_READABLE as error:
        raise DamagedRow.of("runs", record.id, "the summary is not that of a comparison") from error


def headline(record: RunRecord) -> str:
    """Describes the result of a run in a few words; empty for a search."""
    try:
        return _headline(record)
    except _NOT_READABLE:  # one damaged summary must not hide the other runs of a list
        return "the summary is damaged"


def _headline(record: RunRecord) -> str:
    summary = record.summary
    if record.kind == SIMULATION:
        return f"{summary['policy']}: {100 * summary['gpu_allocation']:.2f} % GPU"
    if record.kind == COMPARISON:
        ranking = summary["comparison"]
        return (
            f"{ranking['rows'][0]['policy']}, best of {len(ranking['rows'])} by {ranking['metric']}"
        )
    if record.kind == TRAINING:
        return _training_headline(summary)
    return ""


def _training_headline(summary: Mapping[str, Any]) -> str:
    if not summary or summary["best_score"] is None:
        return "no validation yet"
    return (
        f"{summary['algorithm']}: score {summary['best_score']:.3f} after "
        f"{summary['best_episode']:,} episodes"
    )


def _pairs(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Difference]:
    names = dict.fromkeys([*first, *second])
    return [Difference(name, first.get(name), second.get(name)) for name in names]


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Writes nested mappings as one, by dotted names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _sides(each: Difference) -> dict[str, Any]:
    return {"name": each.name, "first": each.first, "second": each.second}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
