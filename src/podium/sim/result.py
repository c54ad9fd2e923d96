"""Holds the outcome of a run: placements, times, and figures derived from them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from podium.errors import MissingExtra, UsageError
from podium.files.excerpt import escaped
from podium.files.html import html_fields
from podium.model.fit import fitting_nodes
from podium.policies import Policy
from podium.sim.bound import placed_records
from podium.sim.history import Evictions, History, by_stint
from podium.sim.plan import Plan

if TYPE_CHECKING:
    from podium.sim.metrics import Metrics
    from podium.sim.refusal import Refusal

UNPLACED, PLACED, HELD = 0, 1, 2

FITS_NO_NODE = "fits no node, even an empty one"
NO_ROOM = "no node had room"
HELD_BACK = "held back by the policy"


@dataclass(frozen=True, slots=True)
class Placement:
    """Tells where one pod went and when, or why it did not."""

    pod: str
    namespace: str  # empty where the trace has none
    gpus: float  # asked for; 0.5 is half of one
    arrival_s: float
    start_s: float | None
    end_s: float | None  # None where it was not placed, or never ends
    node: str
    gpu_slots: tuple[int, ...]
    reason: str  # empty for a placed pod


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Holds what a run decided; everything else is derived from it."""

    plan: Plan
    node: npt.NDArray[np.int32]  # (num_pods,) index into the cluster, -1 = none
    slots: npt.NDArray[np.int32]  # (num_pods,) bit mask of GPU slots
    arrival_s: npt.NDArray[np.float64]  # (num_pods,)
    start_s: npt.NDArray[np.float64]  # (num_pods,) NaN where not placed
    status: npt.NDArray[np.int8]  # (num_pods,) UNPLACED, PLACED or HELD
    holds: npt.NDArray[np.int32]  # (num_pods,)
    changes: npt.NDArray[np.int32]  # pod + 1 placed, -(pod + 1) released, in order
    changes_after: npt.NDArray[np.int32]  # (num_pods,) changes after each arrival (inflation)
    decisions: int
    wall_s: float
    evictions: Evictions | None = None  # of a run with preemption
    derived: dict[str, Any] = field(default_factory=dict, repr=False)  # figures, once computed

    @property
    def digest(self) -> str:
        """Digests the decisions: the same inputs give the same digest."""
        hasher = hashlib.sha256()
        for array in (self.node, self.slots, self.start_s, self.status, self.holds):
            hasher.update(np.ascontiguousarray(array).tobytes())
        if self.evictions is not None:
            found = self.evictions
            for column in (found.at, found.node, found.slots, found.start_s, found.preemptor):
                hasher.update(np.ascontiguousarray(column).tobytes())
        return hasher.hexdigest()

    def __repr__(self) -> str:
        plan, bound = self.plan, len(self.plan.bound)
        told = f"{bound:,} pods bound, " if bound else ""
        placed = int((self.is_placed & ~self.is_bound).sum())
        return (
            f"<Result of {escaped(plan.policy.name)} on {escaped(plan.cluster.name)}: "
            f"{plan.protocol.name}, {told}"
            f"{placed:,} of {len(self.status) - bound:,} pods placed>"
        )

    def _repr_html_(self) -> str:
        """Shows the run in a notebook."""
        plan, found = self.plan, self.metrics
        bound = f"{len(plan.bound):,} bound before, " if len(plan.bound) else ""
        shares = {
            "GPU allocation": found.gpu_allocation,
            "CPU allocation": found.cpu_allocation,
            "memory allocation": found.memory_allocation,
            "fragmentation": found.fragmentation,
        }
        return html_fields(
            f"{plan.policy.name}: {plan.protocol.name}, seed {plan.seed}",
            {
                "trace": plan.trace.name,
                "cluster": f"{plan.cluster.name}: {len(plan.cluster):,} nodes, "
                f"{plan.cluster.gpu_total:,} GPUs",
                "pods": f"{len(self.status):,}: {bound}{found.placed:,} placed, "
                f"{found.unplaced:,} unplaced, {found.held:,} held",
                **{name: f"{share:.2%}" for name, share in shares.items()},
                "digest": self.digest,
            },
        )

    @property
    def metrics(self) -> Metrics:
        """Measures the run, once."""
        from podium.sim.metrics import measure

        if "metrics" not in self.derived:
            self.derived["metrics"] = measure(self)
        found: Metrics = self.derived["metrics"]
        return found

    def save(self, path: str | Path) -> None:
        """Writes the result to one compressed file, from which `load` reads it back."""
        from podium.sim.result_file import save_result

        save_result(self, Path(path))

    @classmethod
    def load(
        cls, path: str | Path, policy: Policy | str | Path | Callable[..., float] | None = None
    ) -> Result:
        """Reads a saved result, and checks its digest; nothing in the file is executed.

        Policies that ship with Podium are found by name. Another one is needed only to score
        again, as explanations do, and has to be given: by name or file, as a function, or loaded.

        Raises:
            InputError: the file is no saved result, or was changed.
            UsageError: the policy that is given is not the one that decided.
        """
        from podium.sim.result_file import load_result
        from podium.sim.saved_policy import policy_given

        if not isinstance(path, str | os.PathLike):
            raise UsageError(
                f"{type(path).__name__} is not a path", where="argument path",
                hint="give a file that Result.save wrote",
            )  # fmt: skip
        return load_result(Path(path), None if policy is None else policy_given(policy))

    def to_frame(self) -> Any:
        """Gives one row per pod, in order of arrival, as a Polars data frame."""
        try:
            import polars
        except ImportError as error:
            raise MissingExtra.named("plots", "a data frame") from error
        names = [each.name for each in fields(Placement)]
        numbers = {name for name in names if name.endswith("_s")} | {"gpus"}
        kinds = {name: polars.Float64 if name in numbers else polars.String for name in names}
        rows = [
            tuple(getattr(p, name) if name != "gpu_slots" else "-".join(map(str, p.gpu_slots))
                  for name in names)
            for p in self.placements()
        ]  # fmt: skip
        return polars.DataFrame(rows, schema=kinds, orient="row")

    @property
    def held_decisions(self) -> int:
        """Counts the decisions at which a pod fitted somewhere and the policy held it back."""
        return int(self.holds.sum(dtype=np.int64))

    @property
    def pods(self) -> npt.NDArray[Any]:
        """Gives the pods in order of arrival, as they are on the GPUs that they were given."""
        if self.plan.arrivals.gpu_shares is None:
            return self.plan.arrivals.pods
        if "pods" not in self.derived:
            self.derived["pods"] = placed_records(
                self.plan.arrivals, self.node, self.slots, self.plan.cluster
            )
        found: npt.NDArray[Any] = self.derived["pods"]
        return found

    @property
    def is_bound(self) -> npt.NDArray[np.bool_]:
        """Tells for each pod whether it ran before the run began."""
        return np.arange(len(self.status)) < len(self.plan.bound)

    @property
    def is_placed(self) -> npt.NDArray[np.bool_]:
        """Tells for each pod whether it was placed."""
        placed: npt.NDArray[np.bool_] = self.status == PLACED
        return placed

    @property
    def finish_s(self) -> npt.NDArray[np.float64]:
        """Gives when each placed pod left; NaN or infinity where it did not."""
        duration = self.plan.arrivals.duration_s
        if self.plan.protocol.name != "replay" or duration is None:
            return np.where(self.is_placed, np.inf, np.nan)
        if self.evictions is not None and self.plan.arrivals.age_s is not None:
            # Who is evicted begins anew, with what it had done before the run as well.
            duration = duration + np.where(self.times_evicted > 0, self.plan.arrivals.age_s, 0.0)
        return self.start_s + duration

    @property
    def evicted(self) -> npt.NDArray[np.int64]:
        """Names the pod of each eviction by its number in order of arrival; often nobody."""
        if self.evictions is None:
            return np.zeros(0, np.int64)
        return -self.changes[self.evictions.at].astype(np.int64) - 1

    @property
    def times_evicted(self) -> npt.NDArray[np.int64]:
        """Counts for each pod how often it was evicted."""
        if "times evicted" not in self.derived:
            counts = np.bincount(self.evicted, minlength=len(self.status))
            self.derived["times evicted"] = counts
        found: npt.NDArray[np.int64] = self.derived["times evicted"]
        return found

    def evicted_for(self, pod: int) -> npt.NDArray[np.int64]:
        """Names the pods that left when a pod started where it ran last, by their number."""
        found = self.evictions
        if found is None or self.status[pod] != PLACED:
            return np.zeros(0, np.int64)
        is_for = (found.preemptor == pod) & (found.end_s == self.start_s[pod])
        pods: npt.NDArray[np.int64] = self.evicted[is_for & (found.node == self.node[pod])]
        return pods

    @property
    def history(self) -> History:
        """Lists the stints of all pods on nodes, those that ended with an eviction as well."""
        if "history" not in self.derived:
            self.derived["history"] = self.listed_anew()
        found: History = self.derived["history"]
        return found

    def listed_anew(self) -> History:
        """Lists the stints once more, from the columns alone."""
        every, cut = np.arange(len(self.status)), self.evictions
        if cut is None or not len(cut):
            return History(
                every, self.node, self.slots, self.start_s, self.finish_s, self.pods, self.changes
            )
        evicted = self.evicted
        arrivals, cluster = self.plan.arrivals.taken(evicted), self.plan.cluster
        earlier = placed_records(arrivals, cut.node, cut.slots, cluster)
        return History(
            pod=np.append(every, evicted),
            node=np.append(self.node, cut.node),
            slots=np.append(self.slots, cut.slots),
            start_s=np.append(self.start_s, cut.start_s),
            finish_s=np.append(self.finish_s, cut.end_s),
            records=np.append(self.pods, earlier),
            changes=by_stint(self.changes, cut.at, len(every)),
        )

    def placements(self) -> Iterator[Placement]:
        """Yields one row per pod, in order of arrival."""
        names, arrivals = self.plan.cluster.names, self.plan.arrivals
        gpus, finish_s = arrivals.gpus_asked(), self.finish_s
        for i, pod in enumerate(arrivals.names):
            is_placed = self.status[i] == PLACED
            yield Placement(
                pod=pod,
                namespace=arrivals.namespaces[i] if arrivals.namespaces else "",
                gpus=float(gpus[i]),
                arrival_s=float(self.arrival_s[i]),
                start_s=float(self.start_s[i]) if is_placed else None,
                end_s=float(finish_s[i]) if is_placed and np.isfinite(finish_s[i]) else None,
                node=names[self.node[i]] if is_placed else "",
                gpu_slots=slots_of(int(self.slots[i])),
                reason=self.reason(i),
            )

    def reason(self, pod: int) -> str:
        """Says why a pod was not placed; nothing for one that was."""
        if self.status[pod] == PLACED:
            return ""
        if self.status[pod] == HELD:
            return HELD_BACK
        if not self.plan.is_plain:
            refusal = self.refusal(pod)
            return refusal.message if refusal else ""
        known: dict[bytes, bool] = self.derived.setdefault("can fit", {})
        record = self.plan.arrivals.pods[pod]
        shape = record.tobytes()
        if shape not in known:
            known[shape] = bool(fitting_nodes(record, self.plan.cluster.nodes).any())
        return NO_ROOM if known[shape] else FITS_NO_NODE

    def refusal(self, pod: int) -> Refusal | None:
        """Says why no node took a pod, and how many nodes said what; nothing of a placed pod."""
        from podium.sim.refusal import refusal_of

        return refusal_of(self, pod)


def unnamed_hold(held: int, decisions: int, *, is_named: bool) -> str:
    """Says of a policy that never names HOLD how often it held all the same, if it did.

    >>> unnamed_hold(3, 1200, is_named=False)
    'it holds pods without naming HOLD: at 3 of 1,200 decisions a pod fitted and was not placed'
    """
    if is_named or not held:
        return ""
    told = f"at {held:,} of {decisions:,} decisions a pod fitted and was not placed"
    return f"it holds pods without naming HOLD: {told}"


def slots_of(mask: int) -> tuple[int, ...]:
    """Lists the slots of a bit mask.

    >>> slots_of(0b1010)
    (1, 3)
    """
    return tuple(slot for slot in range(mask.bit_length()) if mask >> slot & 1)
