"""Declares what online learning answers, for its documentation.

Answers are sent as the agent returns them; a test checks them against these declarations.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from podium.service.http.replies import Reply

ExpectedS = Annotated[
    float,
    Field(
        description="Expected seconds until the job is done: mu, what neighbours add, and what "
        "failures cost. Never negative."
    ),
]
SuccessChance = Annotated[float, Field(ge=0, le=1, description="Chance that a run succeeds.")]
MeanInterval = Annotated[
    list[float],
    Field(
        min_length=2,
        max_length=2,
        description="90 % interval of the expected run time, in seconds: what is not known.",
    ),
]
RunInterval = Annotated[
    list[float],
    Field(
        min_length=2, max_length=2,
        description="90 % interval of the next run, in seconds: what is not known, and luck.",
    ),
]  # fmt: skip


class Terms(Reply):
    """The terms of a cost, in seconds."""

    mu: Annotated[float, Field(description="Expected run time, alone.")]
    sigma: Annotated[
        float,
        Field(description="Uncertainty of the expected run time; falls with every observation."),
    ]
    ig: Annotated[
        float,
        Field(description="Value of the information gained by a run there, in seconds."),
    ]
    penalty: Annotated[float, Field(description="Seconds that neighbours are expected to add.")]
    failure: Annotated[
        float,
        Field(description="Seconds that failed runs are expected to cost until one succeeds."),
    ]
    cost: Annotated[
        float,
        Field(
            description="mu + lambda sigma - beta ig + gamma penalty + failure; the lowest wins. "
            "It is a rank and no time: where much can be learned it is below zero. "
            "See expected_s for the time."
        ),
    ]


class CandidateReply(Terms):
    """What is known of one GPU type."""

    gpu_type: str
    node: Annotated[str, Field(description="As it was named in `places`; empty: none was.")]
    expected_s: ExpectedS
    observations: Annotated[int, Field(description="Observed runs of this pair that succeeded.")]
    ig_nats: Annotated[float, Field(description="Information gain of one run.")]
    failures: Annotated[int, Field(description="Observed runs of this pair that failed.")]
    success_chance: SuccessChance
    in_flight: Annotated[
        int, Field(description="Jobs of this type that were sent there and not observed yet.")
    ]
    mean_interval_s: MeanInterval
    run_interval_s: RunInterval


IgnoredFeatures = Annotated[
    list[str], Field(description="Features that were sent and are not learned from.")
]


class ScoreReply(Reply):
    """Where a job should run, and why."""

    priority_score: Annotated[
        float,
        Field(
            ge=0,
            le=100,
            description="Orders jobs that wait, the highest first: r / (1 + r) of 100, where r is "
            "weight x (waited_s + 60) / expected_s. Short jobs go before long ones, and whoever "
            "waits moves up.",
        ),
    ]
    gpu_selector: Annotated[
        dict[str, Any], Field(description="Pod fields that send the job there.")
    ]
    selector_on_nodes: Annotated[
        bool | None,
        Field(
            description="Whether some node has what the selector asks for; null if the service "
            "does not follow a cluster."
        ),
    ]
    avoid_co_locate_with: Annotated[
        list[str],
        Field(
            description="Job types that the job should not run beside: with a probability of at "
            "least online.avoid_probability, one of the two is slowed down by more than "
            "online.avoid_slowdown."
        ),
    ]
    terms: Annotated[Terms, Field(description="Terms of the cost of the chosen GPU type.")]
    chosen_gpu_type: str
    chosen_node: Annotated[str, Field(description="As it was named in `places`; empty: none was.")]
    expected_s: ExpectedS
    exploration: Annotated[bool, Field(description="Whether the choice is exploratory.")]
    decision_type: Literal["exploration", "exploitation", "forced"]
    slowdown: Annotated[
        float, Field(description="What neighbours add, as a share of the run time.")
    ]
    candidates: list[CandidateReply]
    ignored_features: IgnoredFeatures
    missing_features: Annotated[
        list[str],
        Field(
            description="Features that are learned from and were not sent: what is typical is "
            "assumed of them."
        ),
    ]


class Belief(Reply):
    """What was believed of a pair before an observation."""

    mu: Annotated[float, Field(description="Expected run time, alone, in seconds.")]
    sigma: Annotated[float, Field(description="Uncertainty of the expected run time, in seconds.")]
    success_chance: SuccessChance
    mean_interval_s: MeanInterval


class ObserveReply(Reply):
    """The observation is stored; what it taught about its pair of job type and GPU type."""

    status: Literal["ok"]
    updated: Annotated[
        bool,
        Field(
            description="Whether this request changed what is known: the observation is new, and "
            "learned."
        ),
    ]
    repeated: Annotated[bool, Field(description="Whether the observation was stored before.")]
    learned: Annotated[
        bool,
        Field(
            description="Whether the observation is learned by now; if not it is learned later, "
            "and what follows leaves it out."
        ),
    ]
    new_uncertainty: Annotated[float, Field(description="Sigma of the pair, in seconds.")]
    observations: Annotated[int, Field(description="Observed runs of this pair that succeeded.")]
    failures: Annotated[int, Field(description="Observed runs of this pair that failed.")]
    success_chance: SuccessChance
    mean_interval_s: MeanInterval
    run_interval_s: RunInterval
    before: Annotated[Belief, Field(description="What was believed before, to compare with.")]
    mu: Annotated[float, Field(description="Expected run time now, alone, in seconds.")]
    ignored_features: IgnoredFeatures


class AssignReply(Reply):
    """Where each job goes: numbers of columns, or names of GPU types."""

    assignment: Annotated[
        list[int | str], Field(description="The column, or the name of the GPU type, of each job.")
    ]
    cost: Annotated[
        float,
        Field(
            description="Total cost of the assignment: of the costs that were sent, or of mu + "
            "lambda sigma + gamma penalty + failure, in seconds. Nothing is explored in a batch."
        ),
    ]
    plan: Annotated[
        list[list[float]] | None,
        Field(
            description="Share of each job on each column under a little entropy, if asked for: "
            "which jobs could as well go elsewhere.",
            json_schema_extra=lambda schema: schema.pop("default"),
        ),
    ] = None


class Forgotten(Reply):
    """Names that were known and go for good."""

    job_types: list[str]
    gpu_types: list[str]


class ForgetReply(Reply):
    """Which names are forgotten."""

    status: Literal["ok"]
    done: Annotated[
        bool,
        Field(description="Whether the names are gone by now; if not they are gone later."),
    ]
    forgotten: Forgotten
