"""Starts one worker process, speaks with it, and kills it when a candidate overruns."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.errors import PodiumError
from podium.policies.jit import cache_folder
from podium.search.fitness import Outcome
from podium.search.limits import Limits
from podium.search.losses import Losses, are_losses
from podium.search.measurement import is_measurement
from podium.search.message import Channel, ChannelClosed, ChannelGarbled, ChannelTimeout
from podium.search.probe import AXES, Decisions
from podium.search.verdict import COMPILE, CONTRACT, NOVELTY, RACE, TINY, TRAINING, Verdict
from podium.search.worker import SPOILED

_SHORT = (TINY, CONTRACT, NOVELTY)
_INSIDE = (TINY, CONTRACT, NOVELTY, COMPILE, RACE, TRAINING)
_BOOT = "import sys; sys.path.extend({path!r}); from podium.search.worker import main; main()"
_SIGNATURE = re.compile("[0-9a-f]{16}")
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TZ")


Wants = Callable[[Decisions], bool]
"""Says of a candidate's decisions whether it is still wanted."""


def anything(_decisions: Decisions) -> bool:
    """Wants every candidate."""
    return True


@dataclass(slots=True)
class Trial:
    """Holds how far a candidate came inside a worker."""

    gate: str = TINY
    reason: str = ""
    is_done: bool = False
    is_spoiled: bool = True
    cases: list[dict[str, float]] = field(default_factory=list)
    losses: list[Losses] = field(default_factory=list)  # case by case, once it is accepted
    seconds: float = 0.0
    simulated_s: float = 0.0  # processor time in the simulator, on the training cases
    processor_s: float = 0.0  # processor time of the worker, for all of it
    decisions: Decisions | None = None
    tuned: dict[str, float] = field(default_factory=dict)
    evaluations: int = 0  # that tuning took

    @property
    def verdict(self) -> Verdict:
        """Gives the verdict of the gates inside the worker."""
        return Verdict(self.is_done and not self.reason, self.gate, self.reason)


class Worker:
    """Runs one worker process; it boots while the parent does other things."""

    def __init__(self, setup: dict[str, Any], limits: Limits, kinds: tuple[str, ...]) -> None:
        self.baseline: list[dict[str, float]] = []
        self.losses: list[Losses] = []  # of fgd
        self.doors: tuple[str, ...] = ()
        self.tried = 0
        self._limits, self._kinds = limits, kinds
        self._deadline: float | None = time.monotonic() + limits.start_s
        self._folder = tempfile.mkdtemp(prefix="podium-candidate-")
        self._process = _spawn(self._folder)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._channel = Channel(self._process.stdout.fileno(), self._process.stdin.fileno())
        with contextlib.suppress(ChannelClosed):  # told when the process is first needed
            self._channel.send(setup)

    @property
    def pid(self) -> int:
        """Names the process."""
        return self._process.pid

    def get_ready(self) -> None:
        """Waits until the process has locked itself in."""
        if self._deadline is None:
            return
        try:
            message = self._channel.receive(self._deadline)
        except (ChannelClosed, ChannelTimeout, ChannelGarbled) as error:
            self.close()
            raise _not_started(type(error).__name__) from error
        if not message.get("ready"):
            self.close()
            raise _not_started(str(message.get("failure", "no reason given")))
        self.baseline, self.losses = message["baseline"], message["losses"]
        self.doors = tuple(message["doors"])
        self._deadline = None

    def run(self, text: str, race: tuple[Outcome, ...], wants: Wants) -> Trial:
        """Tries a candidate; whatever happens to the process, a trial comes back."""
        limits = self._limits
        told = [(each.kind, dict(each.values), dict(each.baseline)) for each in race]
        return self._ask({"text": text, "race": told}, limits.time_s, limits.trial_s, wants)

    def tune(self, text: str, tuning: dict[str, Any]) -> Trial:
        """Tunes a candidate's constants; the trial holds the values, not yet checked."""
        limit_s = self._limits.tuning_s
        trial = self._ask({"text": text, "tuning": tuning}, limit_s, limit_s, anything)
        if trial.evaluations > tuning["evaluations"]:
            trial.reason, trial.is_spoiled = "the process says that it did too much", True
            trial.evaluations = tuning["evaluations"]
        return trial

    def _ask(self, request: dict[str, Any], time_s: float, trial_s: float, wants: Wants) -> Trial:
        trial, began = Trial(), time.monotonic()
        deadline, short = began + time_s, began + min(time_s, trial_s)
        self.tried += 1
        try:
            self._channel.send({**request, "time_s": time_s, "memory_mib": self._limits.memory_mib})
            while not trial.is_done:
                until = short if trial.gate in _SHORT else deadline
                message = self._channel.receive(until)
                self._take(trial, message, wants, is_tuning="tuning" in request)
        except ChannelTimeout:
            limit_s = trial_s if trial.gate in _SHORT else time_s
            trial.reason = f"did not finish within {limit_s:g} s; is there an endless loop?"
        except ChannelGarbled as error:
            trial.reason = f"the process answered with {error}"
        except ChannelClosed:
            trial.reason = self._cause_of_death()
        trial.seconds = time.monotonic() - began
        return trial

    def _take(
        self, trial: Trial, message: dict[str, Any], wants: Wants, *, is_tuning: bool
    ) -> None:
        if message.get("gate") in _INSIDE:
            trial.gate = message["gate"]
        elif "case" in message:
            self._take_case(trial, message)
        elif "losses" in message:
            self._take_losses(trial, message)
        elif "signature" in message and trial.decisions is None:
            trial.decisions = _decisions(message)
            self._channel.send({"is_wanted": wants(trial.decisions)})
        elif message.get("done"):
            if not message.get("reason"):
                self._complete(trial, message, is_tuning=is_tuning)
            trial.reason = str(message.get("reason", ""))
            trial.processor_s = _seconds(message, "processor_s")
            trial.is_done, trial.is_spoiled = True, bool(message.get(SPOILED, True))
        else:
            raise ChannelGarbled("a message of no known kind")

    def _complete(self, trial: Trial, message: dict[str, Any], *, is_tuning: bool) -> None:
        """Refuses a good ending that lacks what was asked for."""
        if is_tuning:
            trial.tuned, trial.evaluations = _tuned(message)
        elif len(trial.cases) != len(self._kinds):
            raise ChannelGarbled("fewer cases than it was given")
        elif trial.decisions is None:
            raise ChannelGarbled("no decisions")
        elif len(trial.losses) != len(self._kinds):
            raise ChannelGarbled("fewer losses than cases")

    def _take_case(self, trial: Trial, message: dict[str, Any]) -> None:
        index: Any = message["case"]
        values: Any = message.get("values")
        is_next = type(index) is int and index == len(trial.cases) < len(self._kinds)
        if not is_next or not is_measurement(values, self._kinds[index]):
            raise ChannelGarbled("figures that no run can have")
        trial.cases.append(values)
        trial.simulated_s += _seconds(message, "simulated_s")

    def _take_losses(self, trial: Trial, message: dict[str, Any]) -> None:
        index: Any = message["losses"]
        values: Any = message.get("values")
        is_next = type(index) is int and index == len(trial.losses) < len(trial.cases)
        if not is_next or not are_losses(values):
            raise ChannelGarbled("losses that no run can have")
        trial.losses.append(values)

    def _cause_of_death(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.returncode
        if code == -getattr(signal, "SIGXCPU", 0):
            return "used up its processor time; is there an endless loop?"
        if code is not None and code < 0:
            return f"the process died of {signal.Signals(-code).name}; is memory used up?"
        return f"the process ended by itself (exit {code})"

    def close(self) -> None:
        """Kills the process and takes its folder away."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _decisions(message: dict[str, Any]) -> Decisions:
    signature: Any = message["signature"]
    behaviour: Any = message.get("behaviour")
    is_digest = isinstance(signature, str) and _SIGNATURE.fullmatch(signature) is not None
    is_row = isinstance(behaviour, list) and len(behaviour) == len(AXES)
    if not is_digest or not is_row or not all(_is_part(each) for each in behaviour):
        raise ChannelGarbled("decisions that nobody can make")
    return Decisions(signature, tuple(float(each) for each in behaviour))


def _tuned(message: dict[str, Any]) -> tuple[dict[str, float], int]:
    values: Any = message.get("tuned")
    evaluations: Any = message.get("evaluations")
    is_told = isinstance(values, dict) and type(evaluations) is int and evaluations >= 0
    if not is_told or not all(type(each) in (int, float) for each in values.values()):
        raise ChannelGarbled("constants that are no numbers")
    try:
        return {name: float(each) for name, each in values.items()}, evaluations
    except OverflowError as error:
        raise ChannelGarbled("constants that no machine holds") from error


def _seconds(message: dict[str, Any], key: str) -> float:
    """Reads a time that nothing depends on; nonsense is none."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        return float(message.get(key, 0.0))
    return 0.0


def _is_part(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1  # type: ignore[operator]


def _spawn(folder: str) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    cache = cache_folder()
    environment |= {
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        "PODIUM_COMPILE_CACHE": str(cache or Path(folder) / "compiled"),
    }
    boot = _BOOT.format(path=[part for part in sys.path if part])
    return subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", "-c", boot],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment, cwd=folder, bufsize=0, close_fds=True, start_new_session=True,
    )  # fmt: skip


def _not_started(reason: str) -> PodiumError:
    return PodiumError(
        f"the process for candidates does not start: {reason}",
        hint="podium doctor checks the installation",
    )
