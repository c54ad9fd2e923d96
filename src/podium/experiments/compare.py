"""Compares policies over seeds: every policy on every seed, ranked with a paired test."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from podium.errors import UnknownName, UsageError
from podium.experiments.listener import SILENT, Listener, Notes, announce_compilation
from podium.experiments.simulate import POLL_S, WORK, advising, cancelling
from podium.files.html import html_table

if TYPE_CHECKING:
    from podium.evaluation.comparison import Comparison
    from podium.experiments.case import Case, Inputs
    from podium.policies import Policy
    from podium.settings import Settings

DEFAULT_POLICIES = (
    "keep-room", "fgd", "best-fit", "first-fit", "worst-fit", "kube-packing", "kube-default",
    "random",
)  # fmt: skip
DEFAULT_SEEDS = "1000-1009"
MOST_SEEDS = 10_000
_SEEDS = re.compile(r"\s*(\d{1,18})(?:-(\d{1,18}))?\s*")

_Run = tuple[dict[str, Any], Mapping[str, int]]
"""The summary of a run, and where it placed no pod, how many were refused for what."""

Summaries = Mapping[str, Sequence[dict[str, Any]]]
"""The summary of every policy on each seed, by the policy's name."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonRequest:
    """Describes what is compared: every policy on every seed."""

    policies: Sequence[Policy]
    seeds: Sequence[int]
    metric: str | None = None  # None: waiting in replay, allocated GPUs otherwise
    jobs: int = 0  # threads; 0: one per core


@dataclass(frozen=True, slots=True, eq=False)
class PolicyComparison:
    """A finished comparison: the ranking, and the figures of every run."""

    ranking: Comparison
    runs: Summaries
    trace_digest: str = ""
    alike: str = ""  # why nothing can be ranked: the reason, and the way out in a second line
    untried: str = ""  # what of a dump waits for something else than a node

    @property
    def is_replay(self) -> bool:
        """Returns whether pods were replayed in time, so that waiting counts."""
        return str(next(iter(self.runs.values()))[0]["protocol"]) == "replay"

    @property
    def best(self) -> str:
        """Names the policy that ranks first."""
        return self.ranking.rows[0].policy

    def mean(self, policy: str, metric: str) -> float:
        """Returns a policy's mean of a metric over the seeds."""
        runs = self.runs[policy]
        return float(sum(run[metric] for run in runs) / len(runs))

    def as_object(self) -> dict[str, Any]:
        """Describes the comparison with all its runs."""
        return {
            **({"alike": self.alike.splitlines()} if self.alike else {}),
            **({"untried": self.untried} if self.untried else {}),
            "comparison": self.ranking,
            "runs": [run for runs in self.runs.values() for run in runs],
        }

    def _repr_html_(self) -> str:
        """Shows the ranking in a notebook."""
        metric, yardstick = self.ranking.metric, self.ranking.yardstick
        titles = ["#", "policy", metric, "95 % interval", f"vs {yardstick}", "p"]
        rows = [
            (
                row.rank, row.policy, f"{row.mean:.4g}",
                "" if row.low is None else f"{row.low:.4g} .. {row.high:.4g}",
                f"{row.difference:+.4g}", "" if row.p_value is None else f"{row.p_value:.4f}",
            )
            for row in self.ranking.rows
        ]  # fmt: skip
        return html_table(f"{len(self.ranking.seeds)} seeds, by {metric}", titles, rows)

    def __repr__(self) -> str:
        if self.alike:
            return f"<PolicyComparison by {self.ranking.metric}: {self.alike.splitlines()[0]}>"
        ranked = ", ".join(f"{row.rank} {row.policy}" for row in self.ranking.rows)
        return f"<PolicyComparison by {self.ranking.metric}: {ranked}>"


def compare(
    settings: Settings, inputs: Inputs, request: ComparisonRequest, listener: Listener = SILENT
) -> PolicyComparison:
    """Runs every policy on every seed and ranks them."""
    from podium.evaluation.comparison import compare as rank
    from podium.reports.idle import alike_note

    check_metric(request.metric)
    policies = request.policies
    Notes(listener).add(f"{policy.name}: {note}" for policy in policies for note in policy.notes)
    done = _run_all(settings, inputs, request, listener)
    runs = done.runs
    is_replay = next(iter(runs.values()))[0]["protocol"] == "replay"
    metric = request.metric or ("wait_mean_s" if is_replay else "gpu_allocation")
    alike = alike_note(runs, metric, done.refused, done.idle, done.untried)
    if done.idle and not alike:
        listener.advise(done.idle)
    ranking = rank(runs, metric, _holding(policies, runs, listener))
    if alike:
        ranking = replace(ranking, rows=tuple(replace(row, rank=1) for row in ranking.rows))
    return PolicyComparison(ranking, runs, done.digest, alike, done.untried)


def check_metric(metric: str | None) -> None:
    """Refuses a metric that nothing can be ranked by."""
    from podium.evaluation.comparison import METRICS

    if metric is not None and metric not in METRICS:
        raise UnknownName.among("metric", metric, METRICS, where="flag --metric")


def load_policies(references: Sequence[str], *, is_ignoring_unknown: bool = False) -> list[Policy]:
    """Loads policies to compare; those that share a name are named by their references."""
    from podium.experiments.case import named_policy

    if len(set(references)) < len(references):
        raise UsageError(
            "a policy is named twice", where="argument POLICY", hint="name every policy once"
        )
    loaded = [
        named_policy(each, "argument POLICY", is_ignoring_unknown=is_ignoring_unknown)
        for each in references
    ]
    return told_apart(loaded, references)


def told_apart(policies: Sequence[Policy], titles: Sequence[str]) -> list[Policy]:
    """Renames policies that share a name to their titles."""
    names = [policy.name for policy in policies]
    return [
        replace(policy, name=title) if names.count(policy.name) > 1 else policy
        for policy, title in zip(policies, titles, strict=True)
    ]


def run_all(
    settings: Settings, inputs: Inputs, request: ComparisonRequest, listener: Listener = SILENT
) -> dict[str, list[dict[str, Any]]]:
    """Runs every policy on every seed, in threads; returns the summaries in order of seeds."""
    return _run_all(settings, inputs, request, listener).runs


def _run_all(
    settings: Settings, inputs: Inputs, request: ComparisonRequest, listener: Listener
) -> _Runs:
    from podium.experiments.case import TraceDigest, load_case
    from podium.experiments.simulate import plan_of
    from podium.reports.idle import idle_note

    policies, seeds, jobs = request.policies, request.seeds, request.jobs
    found: dict[str, list[dict[str, Any]]] = {policy.name: [] for policy in policies}
    refused = Counter[str]()
    noted, counter = Notes(listener), _Counter(listener, len(policies) * len(seeds))
    traces = TraceDigest()
    with cancelling(ThreadPoolExecutor(jobs or os.cpu_count() or 1, WORK)) as pool:
        counter.add(0)
        for seed in seeds:
            case = load_case(settings, inputs, seed, listener)
            if seed == seeds[0]:
                announce_compilation(listener, plan_of(case, policies[0]).variant)
            noted.add(case.notes)
            traces.add(case)
            waiting = [pool.submit(_run, case, policy) for policy in policies]
            for policy, future in zip(policies, waiting, strict=True):
                summary, words = counter.wait_for(future)
                found[policy.name].append(summary)
                refused.update(words)
    summaries = [run for runs in found.values() for run in runs]
    idle = idle_note(case.cluster, case.workload, summaries)
    return _Runs(found, traces.digest, idle, refused, case.untried)


@dataclass(frozen=True, slots=True)
class _Runs:
    runs: dict[str, list[dict[str, Any]]]  # by policy, in order of seeds
    digest: str  # of what was simulated
    idle: str  # notes that nothing could differ, if so
    refused: Counter[str]  # pods by why they were not placed, of runs that placed none
    untried: str  # what waits for something else than a node


@dataclass(slots=True)
class _Counter:
    """Counts the runs that are done, and reports them to the listener while it waits."""

    listener: Listener
    total: int
    done: int = 0

    def add(self, runs: int) -> None:
        self.done += runs
        self.listener.progress("simulating", self.done, self.total)

    def wait_for(self, future: Future[_Run]) -> _Run:
        while not wait([future], POLL_S).done:
            self.add(0)
        found = future.result()
        self.add(1)
        return found


def _run(case: Case, policy: Policy) -> _Run:
    from podium.reports.idle import refused_words
    from podium.reports.summary import summarise
    from podium.sim import simulate

    with advising(policy):
        result = simulate(case.cluster, case.workload, policy, case.protocol, case.setup)
    return summarise(result), refused_words(result)


def _holding(policies: Sequence[Policy], found: Summaries, listener: Listener) -> frozenset[str]:
    """Lists the policies that may hold pods or did; notes those that did without saying so."""
    from podium.reports.summary import hold_note

    notes = {policy.name: hold_note(policy, found[policy.name]) for policy in policies}
    Notes(listener).add(f"{name}: {note}" for name, note in notes.items() if note)
    return frozenset(each.name for each in policies if each.may_hold or notes[each.name])


def read_seeds(text: str) -> list[int]:
    """Reads seeds such as 1000-1004 or 1,5,9."""
    ranges = [_SEEDS.fullmatch(part) for part in text.split(",")]
    bounds = [(int(each[1]), int(each[2] or each[1])) for each in ranges if each]
    if len(bounds) < len(ranges):
        raise _seeds_error(f'"{text}" is not a list of seeds')
    if any(first > last for first, last in bounds):
        raise _seeds_error(f'"{text}" contains a range that ends before it begins')
    if sum(last - first + 1 for first, last in bounds) > MOST_SEEDS:
        raise _seeds_error(f"more than {MOST_SEEDS:,} seeds")
    seeds = [seed for first, last in bounds for seed in range(first, last + 1)]
    if len(set(seeds)) < len(seeds):
        raise _seeds_error(f'"{text}" names a seed twice')
    return seeds


def _seeds_error(message: str) -> UsageError:
    return UsageError(message, where="flag --seeds", hint="write 1000-1009 or 1,5,9")
