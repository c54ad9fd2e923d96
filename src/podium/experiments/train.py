"""Runs trainings: begins or resumes one, keeps it in the store, and loads what it learned."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import podium
from podium.errors import (
    InputError,
    MissingError,
    PodiumError,
    UnknownName,
    UsageError,
    install_line,
)
from podium.experiments.listener import SILENT, Cancelled, Listener, announce_compilation
from podium.experiments.places import blaming
from podium.experiments.runs import TRAINING, open_runs
from podium.files.html import html_fields
from podium.policies.registry import RUN

if TYPE_CHECKING:
    from podium.policies import Policy
    from podium.rl.configuration import Device
    from podium.rl.learner import Trained
    from podium.rl.training import Limits, Training, TrainingEnd, TrainingProgress
    from podium.settings import Settings
    from podium.store import RunRecord, Store

PLAN, BEST = "plan.json", "best"
PLAN_VERSION = 1
DEVICES = ("cpu", "gpu")
NO_TEACHING = "no pod with GPUs of its own has two places to choose from, so imitation is left out"


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """Describes a training: the algorithm, its configuration, seed and device."""

    algorithm: str
    configuration: Any  # of the algorithm's own type
    seed: int = 1000
    device: Device = "cpu"

    def as_object(self) -> dict[str, Any]:
        """Describes the request as JSON types."""
        from podium.rl.configuration import as_object

        told = {"algorithm": self.algorithm, "seed": self.seed, "device": self.device}
        return {**told, "configuration": as_object(self.configuration)}

    @classmethod
    def from_object(cls, found: Mapping[str, Any]) -> TrainingRequest:
        """Reads what `as_object` wrote."""
        from podium.rl.configuration import algorithm_named, configuration_of

        kind = algorithm_named(str(found["algorithm"])).Configuration
        own = configuration_of(kind, found["configuration"])
        device = _known_device(str(found["algorithm"]), found["device"])
        return cls(str(found["algorithm"]), own, int(found["seed"]), device)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingOutcome:
    """The outcome of one session of a training."""

    run_id: str  # empty: the training was not kept
    folder: str
    ending: str  # why the session is over
    is_complete: bool  # False: it was stopped, and can be resumed
    summary: dict[str, Any]
    trained: Trained  # the best policy
    figures: list[dict[str, Any]] = field(default_factory=list)  # of all iterations

    @property
    def best(self) -> Policy:
        """Makes the policy with the best validation: a policy like any other."""
        from podium.policies.weights import NETWORKS, Weights

        name = f"{self.summary['algorithm']}-{self.run_id or 'trained'}"
        weights = Weights(name, self.trained.arrays, self.trained.facts)
        return NETWORKS[self.trained.network](weights)

    def as_object(self) -> dict[str, Any]:
        """Describes the outcome as JSON types."""
        told = {"run": self.run_id, "ending": self.ending, "folder": self.folder}
        return {**told, **self.summary}

    def save_policy(self, path: str | Path) -> Path:
        """Writes the best policy: weights to a file that ends in .npz, and their card beside it."""
        target = Path(path)
        if target.suffix != ".npz":
            raise UsageError(
                "weights go to a file that ends in .npz", where=str(path),
                hint=f"write {target.with_suffix('.npz')}",
            )  # fmt: skip
        write_policy(target, target.stem, self.trained, self.summary)
        return target

    def _repr_html_(self) -> str:
        """Shows the figures and the learning curve in a notebook."""
        from podium.reports.training_plot import curve_svg

        shown = {name: each for name, each in self.summary.items() if not isinstance(each, dict)}
        return html_fields(repr(self), shown) + curve_svg(self.figures)

    def __repr__(self) -> str:
        score, done = self.summary["best_score"], self.summary["episodes"]
        found = "not validated yet"
        if score is not None:
            found, done = f"best score {score:.3f}", self.summary["best_episode"]
        return f"<TrainingOutcome of {self.summary['algorithm']}: {found} after {done:,} episodes>"


@dataclass(frozen=True, slots=True)
class TrainingEntry:
    """How a training is entered in the store: settings, name and command."""

    settings: Settings
    name: str
    command: Sequence[str] = ()


Stopper = Callable[[], bool]


def begin(
    entry: TrainingEntry, request: TrainingRequest, listener: Listener = SILENT,
    is_stopped: Stopper = lambda: False,
) -> TrainingOutcome:  # fmt: skip
    """Enters a new training in the store and works on it until a limit is reached."""
    _check_device(request)
    with open_runs(entry.settings, is_made=True) as store, _entered(store, entry, request) as made:
        return work_on(store, made, request, listener, is_stopped)


def resume(
    settings: Settings, reference: str, changes: Mapping[str, Any], listener: Listener = SILENT,
    is_stopped: Stopper = lambda: False,
) -> TrainingOutcome:  # fmt: skip
    """Continues a training where it stopped; only its limits and its device may change."""
    from podium.store.run_folder import RunFolder

    with open_runs(settings) as store:
        record = find_training(store, reference)
        folder = RunFolder(Path(record.folder))
        folder.check_home(record.id, settings.search.folder, "podium train resume")
        request = changed(_read_plan(record), changes)
        _check_device(request)
        return work_on(store, record, request, listener, is_stopped)


def train_in_passing(request: TrainingRequest, listener: Listener = SILENT) -> TrainingOutcome:
    """Trains in a temporary folder; only the outcome stays."""
    _check_device(request)
    with tempfile.TemporaryDirectory(prefix="podium-train-") as name:
        desk = _Desk(Path(name), _digest_of(request.as_object()))
        end = _prepared(request, desk, listener, lambda: False, lambda _end: None).run()
        rows = _figures_in(desk)
    summary = summary_of(request, end.progress)
    return TrainingOutcome("", "", end.ending, end.is_complete, summary, end.best, rows)


def changed(request: TrainingRequest, changes: Mapping[str, Any]) -> TrainingRequest:
    """Changes the limits and the device of a training; None leaves them as they are."""
    from podium.rl.configuration import as_object, configuration_of

    given = {name: each for name, each in changes.items() if each is not None}
    device = request.device
    if "device" in given:
        device = _known_device(request.algorithm, given.pop("device"))
    sections = as_object(request.configuration)
    sections["training"] |= given
    own = configuration_of(type(request.configuration), sections)
    return replace(request, configuration=own, device=device)


def _known_device(algorithm: str, device: Any) -> Device:
    from podium.rl.configuration import algorithm_named

    if device not in DEVICES:
        raise UnknownName.among("device", str(device), DEVICES)
    for known in algorithm_named(algorithm).DEVICES:
        if device == known:
            return known
    raise UsageError(
        f"{algorithm} is trained on the CPU; a GPU would have nothing to do",
        where="flag --device", hint="leave --device out",
    )  # fmt: skip


def _check_device(request: TrainingRequest) -> None:
    """Refuses a GPU that is not there before a run is entered, or one of hours fails over it."""
    if request.device == "gpu" and find_spec("jax"):  # without it, learners name the extra
        from podium.rl.device import device_named

        with blaming("flag --device"):
            device_named("gpu")


def find_training(store: Store, reference: str) -> RunRecord:
    """Finds a training by its id, its name, or the beginning of its id."""
    record = store.runs.get(reference)
    if record.kind != TRAINING:
        raise UsageError(
            f"run {record.id} is a {record.kind}, not a training",
            hint=f"podium runs list --kind {TRAINING} lists trainings",
        )
    return record


def work_on(
    store: Store, record: RunRecord, request: TrainingRequest, listener: Listener,
    is_stopped: Stopper,
) -> TrainingOutcome:  # fmt: skip
    """Works on a training for one session, while no other process does."""
    from podium.store.run_folder import RunFolder
    from podium.store.run_status import session

    folder = RunFolder(Path(record.folder))
    keeper = _Keeper(store, record, request)
    folder.lock()
    try:
        listener.status(f"run {record.id} in {record.folder}")
        for suffix in (".npz", ".json"):  # before hours are spent on what is kept there
            _own_file(folder.path / f"{BEST}{suffix}")
        desk = _Desk(folder.path, _digest_of(folder.read(PLAN, PLAN_VERSION)))
        # A run that is refused here stays what it was.
        training = _prepared(request, desk, listener, is_stopped, keeper)
        with session(store.runs, record.id, (KeyboardInterrupt, Cancelled)):
            end = training.run()
            rows = _figures_in(desk)
            keeper.keep(end.progress, end.best)
            _require_complete(end)
    except (KeyboardInterrupt, Cancelled):
        listener.status(f"stopped; podium train resume {record.id} continues")
        raise
    finally:
        folder.unlock()
    summary = summary_of(request, end.progress)
    return TrainingOutcome(record.id, record.folder, end.ending, True, summary, end.best, rows)


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where a session works, and the plan by which it does."""

    folder: Path
    plan_digest: str


def _digest_of(plan: Mapping[str, Any]) -> str:
    """Names a plan as it was written; its limits and its device may change, and do not count."""
    own = {**plan["configuration"]}
    own.pop("training", None)
    told = {"algorithm": plan["algorithm"], "seed": plan["seed"], "configuration": own}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _figures_in(desk: _Desk) -> list[dict[str, Any]]:
    from podium.rl.records import FIGURES, read_figures

    return read_figures(desk.folder / FIGURES)


def _prepared(
    request: TrainingRequest, desk: _Desk, listener: Listener, is_stopped: Stopper,
    heard: Callable[[TrainingProgress], None],
) -> Training:  # fmt: skip
    """Makes the learner and takes up the last checkpoint."""
    from podium.rl.configuration import algorithm_named
    from podium.rl.records import has_tensorboard
    from podium.rl.training import Hooks, Training

    announce_compilation(listener)
    if not has_tensorboard():
        listener.note(f"no TensorBoard event files are written; {install_line('rl')} adds them")
    way, own = algorithm_named(request.algorithm), request.configuration
    learner = way.make_learner(own, request.seed, request.device)

    def hear(progress: TrainingProgress) -> None:
        if progress.iterations == 1 and progress.figures.get("decisions") == 0:
            listener.note(NO_TEACHING)
        heard(progress)
        listener.training_progress(progress)

    limits: Limits = own.training.limits()
    hooks = Hooks(hear, is_stopped, note=listener.note)
    judge = way.make_judge(own)
    training = Training(learner, judge, desk.folder, limits, hooks, desk.plan_digest)
    if isinstance(heard, _Keeper):
        heard.best = training.best
    return training


def _require_complete(end: TrainingEnd) -> None:
    """Ends a session that was stopped as ctrl-C ends other work."""
    if not end.is_complete:
        raise KeyboardInterrupt


class _Keeper:
    """Keeps the best policy and the summary of a run whenever a validation is done."""

    def __init__(self, store: Store, record: RunRecord, request: TrainingRequest) -> None:
        self._store, self._record, self._request = store, record, request
        self._kept: tuple[int | None, Mapping[str, float]] = (None, {})
        self.best: Callable[[], Trained] | None = None

    def __call__(self, progress: TrainingProgress) -> None:
        if progress.validation and progress.validation is not self._kept[1]:
            if self.best is not None:
                self.keep(progress, self.best())
            self._kept = (progress.best_episode, progress.validation)

    def keep(self, progress: TrainingProgress, best: Trained) -> None:
        """Writes both."""
        summary = summary_of(self._request, progress)
        path = _own_file(Path(self._record.folder) / f"{BEST}.npz")
        _own_file(path.with_suffix(".json"))
        name = f"{self._request.algorithm}-{self._record.id}"
        command = self._record.settings.get("command", "")
        write_policy(path, name, best, {**summary, "command": command})
        self._store.runs.update(self._record.id, summary=summary)


def _own_file(path: Path) -> Path:
    """Refuses a link in the place of a file of a run: others may have put it there."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InputError.at(path, "is not a regular file", hint="remove it; it is written anew")
    return path


def summary_of(request: TrainingRequest, progress: TrainingProgress) -> dict[str, Any]:
    """Describes how far a training is, as JSON types."""
    figures = {name: each for name, each in progress.figures.items() if name != "steps"}
    return {
        "algorithm": request.algorithm,
        "seed": request.seed,
        "device": request.device,
        "iterations": progress.iterations,
        "episodes": progress.episodes,
        "steps": progress.steps,
        "seconds": round(progress.seconds, 3),
        "steps_per_s": round(progress.steps_per_s, 1),
        "best_score": progress.best_score,
        "best_episode": progress.best_episode,
        "validation": dict(progress.best_validation),
        "figures": figures,
    }


def write_policy(path: Path, name: str, trained: Trained, summary: Mapping[str, Any]) -> None:
    """Writes weights and their card: what trained them, on what, how long, how well validated."""
    from podium.policies.weights import NETWORKS, Weights, write_weights

    policy = NETWORKS[trained.network](Weights(name, trained.arrays, trained.facts))
    card = {
        "name": name, "kind": policy.kind, "origin": "trained", "may_hold": policy.may_hold,
        "summary": policy.summary, "training": dict(summary), "version": podium.__version__,
    }  # fmt: skip
    write_weights(path, trained.network, trained.arrays, {**trained.facts, **card})


@contextmanager
def _entered(
    store: Store, entry: TrainingEntry, request: TrainingRequest
) -> Iterator[RunRecord]:  # fmt: skip
    """Enters a training for a block; one that fails before its first checkpoint is removed."""
    record = _created(store, entry, request)
    try:
        yield record
    except (KeyboardInterrupt, Cancelled):
        raise  # it can be resumed
    except BaseException:
        with suppress(PodiumError, OSError):  # what went wrong first is what is told
            if not any(Path(record.folder).glob("checkpoint-*.npz")):
                store.runs.delete(record.id)
                shutil.rmtree(record.folder)
        raise


def _created(store: Store, entry: TrainingEntry, request: TrainingRequest) -> RunRecord:
    from podium.settings import secrets_of
    from podium.store import RunRecord
    from podium.store.run_folder import RunFolder, create_run

    run_id, settings = secrets.token_hex(4), entry.settings
    secret = secrets_of(settings, os.environ, list(entry.command[1:]))
    folder = str((settings.search.folder / run_id).absolute())
    command = secret.hide_command(list(entry.command))
    asked = {**request.as_object(), "command": command, "version": podium.__version__}
    shown, name = secret.hide_all(asked), secret.hide(entry.name)
    record = RunRecord(run_id, TRAINING, name, time.time(), shown, folder=folder)
    plan = {**request.as_object(), "version": PLAN_VERSION}
    create_run(store, record, RunFolder(Path(folder)), {PLAN: plan})
    return record


def _read_plan(record: RunRecord) -> TrainingRequest:
    from podium.store.run_folder import RunFolder

    folder = RunFolder(Path(record.folder))
    found = folder.read(PLAN, PLAN_VERSION)
    try:
        with folder.reading(PLAN):
            return TrainingRequest.from_object(found)
    except UsageError as error:
        raise folder.corrupt(PLAN, error.message) from error


def trained_policy(reference: str) -> Policy | None:
    """Loads the best policy of a training by `run:RUN`; None where that is no training.

    Weights are data and need no gate, but their digest and their shapes are checked.
    """
    from podium.policies import load

    path = trained_weights(reference)
    return None if path is None else dataclasses.replace(load(str(path)), name=reference)


def trained_weights(reference: str) -> Path | None:
    """Finds the best weights of a training by `run:RUN`; None where that is no training."""
    folder = _folder_of(reference.removeprefix(RUN))
    if folder is None:
        return None
    path = folder / f"{BEST}.npz"
    if not path.is_file():
        raise MissingError(
            f"the training {folder.name} has validated no policy yet", where=str(folder),
            hint=f"podium train resume {folder.name} continues it",
        )  # fmt: skip
    for suffix in (".npz", ".json"):
        _own_file(path.with_suffix(suffix))
    return path


def _folder_of(run: str) -> Path | None:
    """Finds the folder of a training, in the folder of runs or by the store."""
    from podium.experiments.runs import is_new
    from podium.settings import load_settings

    settings = load_settings()
    runs = settings.search.folder
    if run and run == Path(run).name and (runs / run / f"{BEST}.npz").is_file():
        return runs / run
    with suppress(UnknownName, MissingError):  # a server that is away must not hide a folder
        if not is_new(settings):
            with open_runs(settings) as store:
                record = store.runs.get(run)
            return Path(record.folder) if record.kind == TRAINING else None
    found = [each.parent for each in runs.glob(f"*/{BEST}.npz")
             if run and each.parent.name.startswith(run)]  # fmt: skip
    return found[0] if len(found) == 1 else None
