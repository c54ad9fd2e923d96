"""Evaluates policies against the usual ones: inflation, replay and rounds, on unseen seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from podium.errors import UsageError
from podium.experiments.compare import ComparisonRequest, PolicyComparison, compare, load_policies
from podium.experiments.listener import SILENT, Listener

if TYPE_CHECKING:
    from podium.evaluation.comparison import Lead
    from podium.experiments.case import Inputs
    from podium.policies import Policy
    from podium.settings import Settings

BASELINES = (
    "round-robin", "binpack", "spread", "first-fit", "best-fit", "fgd", "fed-gpu",
)  # fmt: skip
"""What policies are evaluated against: `binpack` is `compact`, `spread` is `worst-fit`."""

PROTOCOLS = ("inflation", "replay", "rounds")
NO_REPLAY = "replay is left out: not all pods have run times; --duration 2h gives them some"
UNSEEN_SEEDS = "3000-3009"
NODES = 64
"""Nodes of the cluster that is drawn where neither trace nor cluster is named."""


@dataclass(frozen=True, slots=True, eq=False)
class TrialRequest:
    """Describes an evaluation: which policies, against whom, on which seeds, how offered."""

    policies: Sequence[Policy]
    baselines: Sequence[Policy]
    seeds: Sequence[int]
    protocols: Sequence[str] = PROTOCOLS
    metric: str | None = None  # None: waiting in replay, allocated GPUs otherwise
    jobs: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class SettingTrial:
    """The evaluation in one setting."""

    protocol: str
    comparison: PolicyComparison
    leads: Mapping[str, tuple[Lead, ...]]  # of every evaluated policy over all others

    def as_object(self) -> dict[str, Any]:
        """Describes it as JSON types."""
        ranking = self.comparison.ranking
        means = {name: self.comparison.mean(name, ranking.metric) for name in self.comparison.runs}
        first = next(iter(self.comparison.runs.values()))[0]
        keys = ("trace", "cluster", "load", "ratio")
        case = {key: first[key] for key in keys if key in first}
        alike = self.comparison.alike
        told = {"protocol": self.protocol, "metric": ranking.metric, "seeds": ranking.seeds}
        holding = [row.policy for row in ranking.rows if row.may_hold]
        told |= {"alike": alike.splitlines()} if alike else {}
        told |= {"repeated": ranking.repeated} if ranking.repeated else {}
        return {**told, **case, "means": means, "may_hold": holding, "leads": dict(self.leads)}


def load_both(
    references: Sequence[str], against: Sequence[str]
) -> tuple[list[Policy], list[Policy]]:
    """Loads the policies to evaluate and those they are set against, which are others.

    Raises:
        UsageError: one policy would be left alone.
    """
    others = [each for each in against if each not in references]
    if len(references) == 1 and not others:
        raise UsageError(
            f"there is nothing to compare {references[0]} with", where="flag --against",
            hint="name another policy, or leave --against out to meet the usual ones",
        )  # fmt: skip
    loaded = load_policies([*references, *others])
    return loaded[: len(references)], loaded[len(references) :]


def evaluate(
    settings: Settings, inputs: Inputs, request: TrialRequest, listener: Listener = SILENT
) -> tuple[SettingTrial, ...]:
    """Runs all policies on every seed of every setting, and sets them side by side.

    Of several settings, replay is left out where pods have no run times.
    """
    from podium.evaluation.comparison import leads_of
    from podium.evaluation.splits import seen

    if known := seen(request.seeds):
        listener.note(
            f"policies are trained or chosen on {_seeds_of(known)}: one that knows them by heart "
            f"looks better than it is; {UNSEEN_SEEDS} are unseen"
        )
    found = []
    for protocol in request.protocols:
        is_asked = len(request.protocols) == 1
        if protocol == "replay" and not is_asked and not _has_times(settings, inputs, request):
            listener.note(NO_REPLAY)
            continue
        own, drawn = _setting(settings, inputs, protocol, request.seeds[0])
        asked = ComparisonRequest(
            [*request.policies, *request.baselines], request.seeds, request.metric, request.jobs
        )
        listener.status(f"{protocol}: {len(asked.policies)} policies on {len(asked.seeds)} seeds")
        compared = compare(own, drawn, asked, listener)
        metric = compared.ranking.metric
        judged = [] if compared.alike else request.policies
        leads = {each.name: leads_of(each.name, compared.runs, metric) for each in judged}
        found.append(SettingTrial(protocol, compared, leads))
    return tuple(found)


def _has_times(settings: Settings, inputs: Inputs, request: TrialRequest) -> bool:
    from podium.experiments.case import load_case

    seed = request.seeds[0]
    own, drawn = _setting(settings, inputs, "rounds", seed)
    return load_case(own, drawn, seed).workload.has_times


def _seeds_of(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" + (f" and {len(seeds) - 1} others of these" if seeds[1:] else "")


def _setting(
    settings: Settings, inputs: Inputs, protocol: str, seed: int
) -> tuple[Settings, Inputs]:
    """Chooses a case in which there is something to decide, where nobody has chosen one."""
    from podium.evaluation.default_cases import pods_for
    from podium.experiments.case import load_case
    from podium.reports.idle import busier_load
    from podium.traces.catalogue import EMBEDDED

    # Of a dump, what runs and ran is placed anew: what is pending alone is the same for all.
    state = settings.simulate.state or (None if inputs.orders else "history")
    own = replace(settings, simulate=replace(settings.simulate, protocol=protocol, state=state))
    is_free = settings.simulate.trace == EMBEDDED and settings.simulate.cluster is None
    if is_free and inputs.nodes is None and inputs.trace is None:
        inputs = replace(inputs, nodes=NODES)
    if is_free and inputs.pods is None and inputs.nodes is not None:
        inputs = replace(inputs, pods=pods_for(EMBEDDED, inputs.nodes))
    if protocol == "replay" and settings.origins["simulate.load"] == "default":
        case = load_case(own, inputs, seed)
        load = busier_load(case.cluster, case.workload, 1.0)
        if load is not None:
            own = replace(own, simulate=replace(own.simulate, load=load))
    return own, inputs
