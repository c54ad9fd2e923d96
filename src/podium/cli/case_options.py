"""Declares the options of a simulated case: on what, by which rules, and with which seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podium.cli.completion import policies, words
from podium.cli.options import DumpOptions, Duration, State, Topology, TracesFolder, Waiting

if TYPE_CHECKING:
    from podium.experiments.case import Inputs

Policy = Annotated[
    str | None,
    typer.Option(
        "--policy", help="Policy by name or file.", show_default=False, autocompletion=policies
    ),
]
TraceName = Annotated[
    str | None, typer.Option("--trace", help="Trace by name or file.", show_default=False)
]
ClusterName = Annotated[
    str | None, typer.Option("--cluster", help="Cluster by name or file.", show_default=False)
]
ProtocolName = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        help="replay, inflation or rounds.",
        show_default=False,
        autocompletion=words("replay", "inflation", "rounds"),
    ),
]
Load = Annotated[
    float | None,
    typer.Option(
        "--load", help="Divide the time between arrivals by this (replay).", show_default=False
    ),
]
Ratio = Annotated[
    float | None,
    typer.Option("--ratio", help="GPU demand over capacity (inflation).", show_default=False),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of the run.", show_default=False)]
Orders = Annotated[
    Path | None,
    typer.Option("--orders", help="Arrival orders and node ranks (.jsonl, .jsonl.gz)."),
]
Nodes = Annotated[int | None, typer.Option("--nodes", help="Nodes of a generated cluster.", min=1)]
Pods = Annotated[int | None, typer.Option("--pods", help="Pods of a generated trace.", min=1)]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out bad rows and list them.")]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="gpu_allocation, wait_mean_s, placed, ...; by default what counts in a setting.",
        show_default=False,
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", help="Number of threads; 0: one per core.", min=0)]
NodeOrder = Annotated[
    Literal["shuffled", "listed"],
    typer.Option("--node-order", help="The order of nodes: a seeded shuffle, or as listed."),
]
TierName = Annotated[
    str | None,
    typer.Option("--tier", help="auto, python, cached or scan; never changes a result."),
]
HoldLimit = Annotated[
    int | None, typer.Option("--hold-limit", help="Decisions until a held pod is offered again.")
]
MaxHolds = Annotated[int | None, typer.Option("--max-holds", help="Holds allowed per pod.")]
MaxRounds = Annotated[
    int | None, typer.Option("--max-rounds", help="Number of times the queue is offered (rounds).")
]
Preemption = Annotated[
    bool | None,
    typer.Option(
        "--preemption",
        help="Let pods that fit nowhere evict pods of lower priority (replay, rounds).",
        show_default=False,
    ),
]
DemandName = Annotated[
    str | None,
    typer.Option(
        "--demand",
        help="Pods that a table is prepared from: trace, seen or warm.",
        show_default=False,
        autocompletion=words("trace", "seen", "warm"),
    ),
]
TieRule = Annotated[
    str | None,
    typer.Option(
        "--ties",
        help="Who wins among equal scores: order or profile.",
        show_default=False,
        autocompletion=words("order", "profile"),
    ),
]
IgnoreUnknown = Annotated[
    bool,
    typer.Option(
        "--ignore-unknown-plugins", help="Leave out unknown scheduler plugins and list them."
    ),
]


@dataclass(frozen=True, slots=True)
class CaseOptions:
    """The options of every verb that simulates a case."""

    trace: TraceName = None
    cluster: ClusterName = None
    protocol: ProtocolName = None
    ratio: Ratio = None
    load: Load = None
    preemption: Preemption = None
    demand: DemandName = None
    ties: TieRule = None
    orders: Orders = None
    nodes: Nodes = None
    pods: Pods = None
    node_order: NodeOrder = "shuffled"
    state: State = None
    duration: Duration = None
    topology: Topology = None
    waiting: Waiting = None
    is_skipping_bad: SkipBad = False
    is_ignoring_unknown: IgnoreUnknown = False
    traces: TracesFolder = None

    def settings(self) -> dict[str, Any]:
        """Returns the options that are settings, by path."""
        return {
            "simulate.trace": self.trace,
            "simulate.cluster": self.cluster,
            "simulate.protocol": self.protocol,
            "simulate.ratio": self.ratio,
            "simulate.load": self.load,
            "simulate.preemption": self.preemption,
            "simulate.demand": self.demand,
            "simulate.ties": self.ties,
            "traces.folder": self.traces,
            **DumpOptions(self.state, self.duration, self.topology).settings(),
        }

    def inputs(self) -> Inputs:
        """Returns the options that are not settings, as inputs of a case."""
        from podium.experiments.case import Inputs
        from podium.traces.kubernetes.waiting import parse_waiting

        return Inputs(
            self.orders, self.nodes, self.pods, self.is_skipping_bad, self.node_order,
            waiting=parse_waiting(self.waiting),
        )  # fmt: skip
