"""The training loop: iterates a learner, validates what it learned, and resumes exactly.

It needs NumPy alone, so that it runs on a bare machine. A run that was killed continues from its
last checkpoint and ends with the same weights, to the bit; only a limit of time is not exact.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from podium.files.excerpt import excerpt
from podium.policies.weights import NETWORKS, Weights
from podium.rl.checkpoints import Checkpoint, Checkpoints
from podium.rl.learner import Arrays, Learner, Trained
from podium.rl.records import FigureRecords

SCORE = "score"
"""The figure of a validation by which policies are compared: higher is better."""

Judge = Callable[[Trained], Mapping[str, float]]
"""Measures a policy on cases that nothing trains on; one of its figures is "score"."""

STATE, BEST = "state/", "best/"
RATE_SHARE = 0.2
"""Weight of the last iteration in the speed that is shown."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a training saves, and when it ends; the first limit that is reached counts."""

    episodes: int | None = None
    seconds: float | None = None  # at work, earlier sessions included
    save_interval: int = 100  # episodes between two checkpoints, each with a validation
    patience: int | None = None  # validations without a better one


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far a training is."""

    iterations: int
    episodes: int
    steps: int
    seconds: float
    steps_per_s: float
    share: float  # of the limit that comes first, from 0 to 1
    eta_s: float | None  # None: unknown
    figures: Mapping[str, float]  # of the last iteration
    validation: Mapping[str, float]  # the last one; empty before the first
    best_validation: Mapping[str, float]  # of the policy that is kept
    best_score: float | None
    best_episode: int | None


@dataclass(frozen=True, slots=True, eq=False)
class TrainingEnd:
    """How a session of a training ended, and the best policy so far."""

    ending: str
    is_complete: bool  # False: it was stopped and can be resumed
    progress: TrainingProgress
    best: Trained


@dataclass(slots=True)
class _Tally:
    """Counts over all sessions, as a checkpoint keeps them."""

    iterations: int = 0
    episodes: int = 0
    steps: int = 0
    seconds: float = 0.0
    validated_at: int = 0  # episodes at the last validation
    stale: int = 0  # validations since the best
    best_score: float | None = None
    best_episode: int | None = None
    best_network: str = ""
    best_facts: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)
    best_validation: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, facts: Mapping[str, Any], iteration: int) -> _Tally:
        """Reads what a checkpoint of an iteration kept; ValueError where nothing can be so."""
        found = cls(**facts)
        counts = ("iterations", "episodes", "steps", "validated_at", "stale")
        is_whole = {name: type(getattr(found, name)) is int for name in counts}
        is_whole["best_episode"] = type(found.best_episode) in (int, type(None))
        is_right = {name: is_whole[name] and (getattr(found, name) or 0) >= 0 for name in is_whole}
        is_right["iterations"] &= found.iterations == iteration
        is_right["seconds"] = _is_number(found.seconds) and found.seconds >= 0
        is_right["best_score"] = found.best_score is None or _is_number(found.best_score)
        is_right["best_network"] = isinstance(found.best_network, str)
        is_right["best_facts"] = isinstance(found.best_facts, dict)
        for name in ("validation", "best_validation"):
            figures = getattr(found, name)
            is_right[name] = isinstance(figures, dict) and all(map(_is_number, figures.values()))
        for name in (name for name, is_fine in is_right.items() if not is_fine):
            raise ValueError(f"{name} is {excerpt(getattr(found, name))}")
        return found


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < math.inf  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who hears of progress, who may ask for a stop after the iteration, and what time it is."""

    listener: Callable[[TrainingProgress], None] = lambda _progress: None
    is_stopped: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic
    note: Callable[[str], None] = lambda _text: None  # of checkpoints that were passed over


class Training:
    """Works on one training in its folder; `run` begins it or goes on where it was."""

    def __init__(
        self,
        learner: Learner,
        judge: Judge,
        folder: Path,
        limits: Limits,
        hooks: Hooks | None = None,
        plan_digest: str = "",  # only checkpoints of the same plan are taken up
    ) -> None:
        self._learner, self._judge, self._limits = learner, judge, limits
        self._hooks = hooks or Hooks()
        self._checkpoints = Checkpoints(folder, plan_digest)
        self._tally = _Tally()
        self._best: Arrays = {}
        self._rate = 0.0
        self._figures: Mapping[str, float] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._checkpoints.newest(self._take_up, self._hooks.note)
        for draft in folder.glob(".*.partial"):  # of a process that was killed while it wrote
            draft.unlink(missing_ok=True)
        self._records = FigureRecords(folder, self._tally.iterations, self._tally.episodes)

    def run(self) -> TrainingEnd:
        """Iterates until a limit is reached, or somebody asks it to stop."""
        with self._records:
            ending = self._iterate()
            is_complete = bool(ending)
            if is_complete and (self._tally.validated_at < self._tally.episodes or not self._best):
                self._validate()
            self._save()
        return TrainingEnd(ending or "stopped", is_complete, self.progress(), self.best())

    def best(self) -> Trained:
        """Returns the best policy so far; before the first validation the policy as it is."""
        if not self._best:
            return self._learner.trained()
        return Trained(self._tally.best_network, self._best, self._tally.best_facts)

    def progress(self) -> TrainingProgress:
        """Tells how far the training is."""
        tally, spans = self._tally, self._spans()
        return TrainingProgress(
            tally.iterations, tally.episodes, tally.steps, tally.seconds, self._rate,
            max((done for done, _ in spans), default=0.0),
            min((left for _, left in spans), default=None),
            self._figures, tally.validation, tally.best_validation, tally.best_score,
            tally.best_episode,
        )  # fmt: skip

    def _spans(self) -> list[tuple[float, float]]:
        """Lists the share of each limit that is used, and the seconds that are left to it."""
        limits, tally, found = self._limits, self._tally, []
        if limits.episodes is not None:
            done = min(1.0, tally.episodes / max(1, limits.episodes))
            found.append((done, tally.seconds * (1 - done) / done if done else math.inf))
        if limits.seconds is not None:
            done = min(1.0, tally.seconds / limits.seconds)
            found.append((done, max(0.0, limits.seconds - tally.seconds)))
        return found

    def _iterate(self) -> str:
        while not (ending := self._ending()):
            if self._hooks.is_stopped():
                return ""
            began_s = self._hooks.clock()
            self._figures = {name: float(each) for name, each in self._learner.iterate().items()}
            self._count(max(1e-9, self._hooks.clock() - began_s))
            if self._tally.episodes - self._tally.validated_at >= self._limits.save_interval:
                self._validate()
                self._save()
            self._hooks.listener(self.progress())
        return ending

    def _count(self, seconds: float) -> None:
        tally, steps = self._tally, int(self._figures.get("steps", 0))
        tally.iterations += 1
        tally.episodes += int(self._figures.get("episodes", 1))
        tally.steps += steps
        tally.seconds += seconds
        rate = steps / seconds
        self._rate = rate if not self._rate else self._rate + RATE_SHARE * (rate - self._rate)
        shown = {**self._figures, "steps_per_s": rate}
        self._records.add(tally.iterations, tally.episodes, "training", shown)

    def _ending(self) -> str:
        limits, tally = self._limits, self._tally
        if limits.episodes is not None and tally.episodes >= limits.episodes:
            return f"{tally.episodes:,} episodes are done"
        if limits.seconds is not None and tally.seconds >= limits.seconds:
            return "the time is up"
        if limits.patience is not None and tally.stale >= limits.patience:
            return f"no better validation {tally.stale} times in a row"
        return ""

    def _save(self) -> None:
        arrays = {STATE + name: each for name, each in self._learner.state().items()}
        arrays |= {BEST + name: each for name, each in self._best.items()}
        self._records.flush()
        self._checkpoints.save(Checkpoint(self._tally.iterations, arrays, asdict(self._tally)))

    def _validate(self) -> None:
        tally, trained, began_s = self._tally, self._learner.trained(), self._hooks.clock()
        tally.validation = {name: float(each) for name, each in self._judge(trained).items()}
        tally.validated_at = tally.episodes
        self._records.add(tally.iterations, tally.episodes, "validation", tally.validation)
        score = tally.validation[SCORE]
        tally.stale += 1
        if tally.best_score is None or score > tally.best_score:
            tally.stale, tally.best_score, tally.best_episode = 0, score, tally.episodes
            self._best = {name: each.copy() for name, each in trained.arrays.items()}
            tally.best_validation = tally.validation
            tally.best_network, tally.best_facts = trained.network, dict(trained.facts)
        tally.seconds += self._hooks.clock() - began_s

    def _take_up(self, checkpoint: Checkpoint) -> None:
        tally = _Tally.read(checkpoint.facts, checkpoint.iteration)
        best = _below(BEST, checkpoint.arrays)
        self._learner.restore(_below(STATE, checkpoint.arrays))
        if best or tally.best_score is not None:
            self._check_best(Trained(tally.best_network, best, tally.best_facts))
        self._tally, self._best = tally, best

    def _check_best(self, best: Trained) -> None:
        """Refuses a best policy that this learner cannot have trained."""
        if best.network != self._learner.trained().network:
            raise ValueError(f"best_network is {excerpt(best.network)}")
        if best.network in NETWORKS:  # which checks shapes and numbers
            NETWORKS[best.network](Weights("the best policy", best.arrays, best.facts))


def _below(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): each for name, each in arrays.items()
            if name.startswith(prefix)}  # fmt: skip
