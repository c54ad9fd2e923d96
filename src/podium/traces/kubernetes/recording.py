"""Reads what `podium kube record` wrote: the lives of pods, as pods that arrive and run.

A recording is a file of JSON lines to which lines are only ever added. Times are those that the
objects themselves tell; the time at which a line was written counts only for what no object tells.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from podium.errors import InputError
from podium.files.bounded import MOST_BYTES
from podium.files.json_text import parse_value
from podium.files.text_file import reading
from podium.traces.fields import time_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.documents import Document
from podium.traces.kubernetes.run_times import Observed, owner_stem
from podium.traces.kubernetes.standing import Standing, read_standing
from podium.traces.notes import KNOWN_EXITS

FORMAT = 1

Exit = Literal["completed", "failed", "deleted", "evicted", "running", "lost", "waiting"]
"""How a pod's run ended, as far as anybody saw."""

_EVICTED = frozenset({"Evicted", "Preempting", "NodeShutdown", "NodeAffinity", "Terminated"})
_ODD = (ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""What happens where a line does not hold what it should."""

_LATEST_S = 253_402_300_800.0  # the year 10000
_MOST_SKEW_S = 60.0
"""By how much the clocks of recorder and cluster may differ: the API server tells whole seconds,
and a kubelet may take a while to report."""

_LINE = '{"at":'
_MOST_NAMED = 5
_HINT = "give a file that `podium kube record` wrote"


def read_recording(path: Path) -> Iterator[Document]:
    """Yields the nodes, the objects around them, and the pods in order of arrival."""
    recording = load_recording(path)
    notes = tuple(_notes(recording))
    for value in recording.objects.values():
        yield Document(value, 1, notes)
        notes = ()
    try:
        pods = [*_arrivals(recording)]
    except _ODD as error:
        text = f"a pod of the recording cannot be read: {error}"
        raise InputError.at(path, text, hint=_HINT) from error
    for pod in pods:
        yield Document(pod, 1, notes)
        notes = ()


def _notes(recording: Recording) -> Iterator[str]:
    if recording.torn:
        lines = ", ".join(map(str, recording.torn[:_MOST_NAMED]))
        more = ", ..." if len(recording.torn) > _MOST_NAMED else ""
        yield f"lines that were cut off while they were written are passed over: {lines}{more}"
    if recording.ahead_s:
        how = "ahead of" if recording.ahead_s > 0 else "behind"
        yield (
            f"the recorder's clock was {abs(recording.ahead_s):,.0f} s {how} the cluster's: "
            "its times are read as the cluster's"
        )


@dataclass(slots=True)
class RecordedPod:
    """Is what was seen of one pod."""

    value: dict[str, Any]
    was_bound: bool = False  # when it was first seen
    ungated_s: float | None = None  # when its last gate was seen to be gone
    gone_s: float | None = None
    is_lost: bool = False  # it went while nobody looked


@dataclass(slots=True)
class Recording:
    """Holds the last form of every object, and what became of every pod."""

    begun_s: float = 0.0
    ended_s: float = 0.0
    salt: str = ""  # which one the names are hashed with; empty: none
    torn: list[int] = field(default_factory=list)  # lines that are not there as a whole
    ahead_s: float = 0.0  # by how much the recorder's clock is ahead of the cluster's, if far
    lags_s: list[float] = field(default_factory=list)  # from what objects tell to their lines
    pods: dict[str, RecordedPod] = field(default_factory=dict)  # by UID
    objects: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    here: set[tuple[str, str, str]] = field(default_factory=set)  # objects that were not seen to go

    def take(self, line: Mapping[str, Any]) -> None:
        """Takes one line."""
        at_s = _moment(line["at"])
        self.begun_s = self.begun_s or at_s
        self.ended_s = max(self.ended_s, at_s)
        value = line.get("object") or {}
        match line["event"]:
            case "began":
                self.salt = str(line.get("salt", ""))
            case "put" if value["kind"] == "Pod":
                self._put_pod(value, at_s)
            case "put":
                self.objects[object_key(value)] = value
                self.here.add(object_key(value))
            case "life":
                self._live(line["uid"], value, at_s)
            case "gone" if line["kind"] == "Pod":
                pod = self.pods.get(line["uid"])
                if pod is not None:
                    pod.gone_s, pod.is_lost = at_s, bool(line.get("lost"))
            case "gone":
                self.here.discard((line["kind"], line["namespace"], line["name"]))

    def _put_pod(self, value: dict[str, Any], at_s: float) -> None:
        uid = value["metadata"]["uid"]
        known = self.pods.get(uid)
        if known is None:
            self.pods[uid] = RecordedPod(value, was_bound=bool(value["spec"].get("nodeName")))
            return
        self._see_gates(known, value, at_s)
        known.value, known.gone_s, known.is_lost = value, None, False

    def _live(self, uid: str, life: Mapping[str, Any], at_s: float) -> None:
        pod = self.pods[uid]
        value = {
            **pod.value,
            "metadata": {**pod.value["metadata"], **life.get("metadata", {})},
            "spec": {**pod.value["spec"], "schedulingGates": [], **life.get("spec", {})},
            "status": life.get("status", {}),
        }
        self._see_gates(pod, value, at_s)
        before, latest = _latest_s(pod.value), _latest_s(value)
        if latest > before:
            self.lags_s.append(at_s - latest)
        pod.value = value

    def _see_gates(self, pod: RecordedPod, value: Mapping[str, Any], at_s: float) -> None:
        if pod.value["spec"].get("schedulingGates") and not value["spec"].get("schedulingGates"):
            pod.ungated_s = at_s

    def follow_cluster(self) -> None:
        """Puts times of the recorder's clock on the cluster's, where the two are far apart.

        What an object newly tells has just happened, so that the shortest lag of all is hardly
        longer than the clocks are apart.
        """
        lag_s = min(self.lags_s, default=0.0)
        if abs(lag_s) <= _MOST_SKEW_S:
            return
        self.ahead_s = lag_s
        self.begun_s, self.ended_s = self.begun_s - lag_s, self.ended_s - lag_s
        for pod in self.pods.values():
            pod.ungated_s = None if pod.ungated_s is None else pod.ungated_s - lag_s
            pod.gone_s = None if pod.gone_s is None else pod.gone_s - lag_s


def _latest_s(value: Mapping[str, Any]) -> float:
    """Gives the latest moment that a pod tells of, 0 where it tells none that can be read."""
    try:
        return read_standing(value, {}).latest_s or 0.0
    except _ODD:
        return 0.0


def _moment(value: Any) -> float:
    """Reads when a line was written, in seconds since 1970."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a number is expected")
    if not 0 < value < _LATEST_S:  # NaN is not, either
        raise ValueError("this is no time")
    return float(value)


def object_key(value: Mapping[str, Any]) -> tuple[str, str, str]:
    """Gives what tells an object that is no pod apart from others: kind with group, and names."""
    group = str(value.get("apiVersion", "")).rpartition("/")[0]
    kind = f"{value.get('kind')}.{group}" if group else str(value.get("kind"))
    metadata = value.get("metadata") or {}
    return kind, str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def load_recording(path: Path) -> Recording:
    """Reads all lines of a recording.

    Lines that were cut off are passed over where a recorder began anew after them, or where the
    file ends; so is the first half of a line in which another begins.
    """
    recording, torn = Recording(), list[int]()
    with reading(path, longest_line=MOST_BYTES) as stream:
        for number, text in enumerate(stream, start=1):
            if not text.strip():
                continue
            line = _line(text)
            if line is None:
                torn.append(number)
                line = _line(text[text.rfind(_LINE) :]) if text.rfind(_LINE) > 0 else None
                if line is None:
                    continue
            elif torn and line["event"] != "began":
                raise _bad_line(path, torn[0])
            recording.torn += torn
            torn = []
            _take(recording, line, path, number)
    if not recording.begun_s:
        raise InputError.at(path, "it is no recording of a cluster", hint=_HINT)
    recording.torn += torn
    recording.follow_cluster()
    return recording


def _line(text: str) -> dict[str, Any] | None:
    """Reads a line; None: it is not there as a whole."""
    try:
        line: dict[str, Any] = parse_value(text)
        return line if isinstance(line["event"], str) else None
    except _ODD:
        return None


def _take(recording: Recording, line: Mapping[str, Any], path: Path, number: int) -> None:
    if line["event"] == "began" and line.get("format") != FORMAT:
        raise InputError.at(path, "another version of Podium wrote it", line=number)
    try:
        recording.take(line)
    except _ODD as error:
        raise _bad_line(path, number) from error


def _bad_line(path: Path, number: int) -> InputError:
    return InputError.at(path, "this is no line of a recording", line=number, hint=_HINT)


@dataclass(slots=True)
class _Run:
    """Is a pod's run, in seconds since the recording began."""

    pod: RecordedPod
    standing: Standing
    arrival_s: float
    start_s: float | None  # None: it never started
    end_s: float | None  # None: nobody saw the end
    exit: Exit
    name: str = ""


def _arrivals(recording: Recording) -> Iterator[dict[str, Any]]:
    runs = [_run(pod, recording) for pod in recording.pods.values()]
    kept = [run for run in runs if _takes_part(run)]
    kept.sort(key=lambda run: (run.arrival_s, run.pod.value["metadata"].get("name", "")))
    known: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for run in runs:
        if run.exit in KNOWN_EXITS and run.start_s is not None and run.end_s is not None:
            for pool in _pools(run):
                known[pool].append(run.end_s - run.start_s)
    times = {pool: Observed(tuple(sorted(found))) for pool, found in known.items()}
    names: dict[tuple[str, str], int] = defaultdict(int)
    for run in kept:
        metadata = run.pod.value["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        names[key] += 1
        # A StatefulSet gives one name to pod after pod.
        run.name = metadata["name"] if names[key] == 1 else f"{metadata['name']}-{names[key]}"
        yield _written(run, times, recording)


def _takes_part(run: _Run) -> bool:
    if run.end_s is not None and run.end_s <= 0:
        return False  # it was over before the recording began
    # Who was deleted while waiting never ran.
    return run.start_s is not None or run.exit == "waiting"


def _run(pod: RecordedPod, recording: Recording) -> _Run:
    life, begun_s = _life(pod.value), recording.begun_s
    created_s = begun_s if life.created_s is None else life.created_s
    exit_ = _exit(pod, life)
    end_s = None
    if exit_ not in ("running", "waiting"):
        ended_s = life.finished_s or life.standing.deleted_s or pod.gone_s
        gone_s = pod.gone_s or recording.ended_s
        end_s = min(gone_s if ended_s is None else ended_s, gone_s)
    if life.start_s is not None and end_s is not None:
        end_s = max(end_s, life.start_s)
    return _Run(
        pod=pod,
        standing=life.standing,
        arrival_s=_arrived_s(pod, life, created_s) - begun_s,
        start_s=None if life.start_s is None else life.start_s - begun_s,
        end_s=None if end_s is None else end_s - begun_s,
        exit=exit_,
    )


def _arrived_s(pod: RecordedPod, life: _Life, created_s: float) -> float:
    """Gives when a pod could be placed: a gate that fell unseen was open once it was bound."""
    seen_s = created_s if pod.ungated_s is None else max(created_s, pod.ungated_s)
    known = [time_s for time_s in (life.bound_s, life.start_s) if time_s is not None]
    return min([seen_s, *known])


@dataclass(frozen=True, slots=True)
class _Life:
    """Holds the times that a pod tells, in seconds since 1970."""

    standing: Standing
    created_s: float | None
    bound_s: float | None
    start_s: float | None
    finished_s: float | None
    is_evicted: bool


def _life(value: Mapping[str, Any]) -> _Life:
    metadata, status = value["metadata"], value.get("status") or {}
    states = [
        each.get("state") or {}
        for part in ("initContainerStatuses", "containerStatuses")
        for each in status.get(part) or ()
    ]
    ends = [_time(state["terminated"], "finishedAt") for state in states if "terminated" in state]
    has_started = bool(status.get("startTime") or ends or any("running" in s for s in states))
    standing = read_standing(value, metadata.get("annotations") or {})
    is_over = len(ends) == len(states)
    return _Life(
        standing=standing,
        created_s=_time(metadata, "creationTimestamp"),
        bound_s=_bound_s(status),
        start_s=standing.started_s if has_started and standing.node else None,
        finished_s=max((e for e in ends if e), default=None) if is_over else None,
        is_evicted=status.get("reason") in _EVICTED
        or any(_is_disruption(each) for each in status.get("conditions") or ()),
    )


def _bound_s(status: Mapping[str, Any]) -> float | None:
    for each in status.get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "True":
            return _time(each, "lastTransitionTime")
    return None


def _is_disruption(condition: Mapping[str, Any]) -> bool:
    # https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
    return condition.get("type") == "DisruptionTarget" and condition.get("status") == "True"


def _time(parent: Mapping[str, Any], name: str) -> float | None:
    value = parent.get(name)
    return time_of(value, name) if value else None


def _exit(pod: RecordedPod, life: _Life) -> Exit:
    if life.is_evicted and (life.standing.is_finished or pod.gone_s is not None):
        return "evicted"
    if life.standing.phase == "Succeeded":
        return "completed"
    if life.standing.phase == "Failed":
        return "failed"
    if pod.gone_s is not None:
        return "lost" if pod.is_lost else "deleted"
    return "waiting" if life.start_s is None else "running"


def _pools(run: _Run) -> list[tuple[str, ...]]:
    """Names the pods that are most like one: of its controller, of its size, all."""
    value = run.pod.value
    owner = owner_stem(run.standing.owner)
    namespace = value["metadata"].get("namespace", "")
    sizes = [each.get("resources") for each in value["spec"].get("containers") or ()]
    owned = [("owner", namespace, owner)] if owner else []
    return [*owned, ("size", json.dumps(sizes, sort_keys=True)), ()]


def _written(
    run: _Run, times: Mapping[tuple[str, ...], Observed], recording: Recording
) -> dict[str, Any]:
    """Writes a pod as it arrives, or as it runs when the recording begins."""
    value = run.pod.value
    age_s = _age_s(run)
    is_there = age_s > 0
    stays = run.standing.stays
    metadata = {**value["metadata"], "name": run.name}
    metadata.pop("deletionTimestamp", None)
    annotations = {**(metadata.get("annotations") or {}), keys.EXIT: run.exit}
    spec = {name: part for name, part in value["spec"].items() if name != "schedulingGates"}
    if not is_there and not stays:
        spec.pop("nodeName", None)
        annotations.pop(keys.GPU_INDEX, None)  # its GPUs were those of that node
    if not stays:
        annotations[keys.ARRIVAL_S] = repr(0.0 if is_there else max(run.arrival_s, 0.0))
        duration_s = _duration_s(run, times, recording)
        if duration_s is not None:
            annotations[keys.DURATION_S] = repr(duration_s)
    if is_there and not stays:
        # Its times are told from the beginning on, whenever the last object was written.
        metadata.pop("creationTimestamp", None)
        annotations[keys.AGE_S] = repr(age_s)
    status = {"phase": "Running"} if is_there or stays else {}
    metadata["annotations"] = annotations
    return {**value, "metadata": metadata, "spec": spec, "status": status}


def _age_s(run: _Run) -> float:
    """Gives how long a pod had run when the recording began; 0: it came after that.

    Pods tell whole seconds: one that was first seen without a node came later than it says.
    """
    return -run.start_s if run.pod.was_bound and run.start_s and run.start_s < 0 else 0.0


def _duration_s(
    run: _Run, times: Mapping[tuple[str, ...], Observed], recording: Recording
) -> float | None:
    """Gives the time that a pod runs from its arrival on, or from the recording's beginning."""
    start_s = run.start_s
    ended_s = recording.ended_s - recording.begun_s
    before_s = _age_s(run)
    if run.exit in KNOWN_EXITS and start_s is not None and run.end_s is not None:
        return run.end_s - start_s - before_s
    last_s = run.end_s if run.end_s is not None else ended_s
    age_s = 0.0 if start_s is None else max(0.0, last_s - start_s)
    for pool in _pools(run):
        total_s = times[pool].total_s(0.5, age_s) if pool in times else None
        if total_s is not None:
            return total_s - before_s
    return 2 * age_s - before_s if age_s else None


def exits(recording: Recording) -> dict[str, int]:
    """Counts the pods by how their runs ended."""
    counts: dict[str, int] = defaultdict(int)
    for pod in recording.pods.values():
        try:
            counts[_run(pod, recording).exit] += 1
        except _ODD:
            counts["unreadable"] += 1
    return dict(counts)
