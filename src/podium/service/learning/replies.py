"""Declares what online learning answers, for its documentation.

Answers are sent as the agent returns them; a test checks them against these declarations.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from podium.service.http.replies import Reply


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
    cost: Annotated[
        float, Field(description="mu + lambda sigma - beta ig + gamma penalty; the lowest wins.")
    ]


class CandidateReply(Terms):
    """What is known of one GPU type."""

    gpu_type: str
    observations: Annotated[int, Field(description="Observed runs of this pair.")]
    ig_nats: Annotated[float, Field(description="Information gain of one run.")]


class ScoreReply(Reply):
    """Where a job should run, and why."""

    priority_score: Annotated[
        float,
        Field(description="The choice on a scale from the worst candidate, 0, to the best, 100."),
    ]
    gpu_selector: Annotated[
        dict[str, Any], Field(description="Pod fields that send the job there.")
    ]
    avoid_co_locate_with: Annotated[
        list[str], Field(description="Job types that the job should not run beside.")
    ]
    terms: Annotated[Terms, Field(description="Terms of the cost of the chosen GPU type.")]
    chosen_gpu_type: str
    exploration: Annotated[bool, Field(description="Whether the choice is exploratory.")]
    decision_type: Literal["exploration", "exploitation", "forced"]
    slowdown: Annotated[
        float, Field(description="What neighbours add, as a share of the run time.")
    ]
    candidates: list[CandidateReply]
    ignored_features: Annotated[list[str], Field(description="Features that are not learned from.")]


class ObserveReply(Reply):
    """The observation is stored; how uncertain its pair is now."""

    status: Literal["ok"]
    updated: Annotated[
        bool,
        Field(
            description="Whether the observation is learned from; failed runs and repeats are not."
        ),
    ]
    repeated: Annotated[bool, Field(description="Whether the observation was stored before.")]
    new_uncertainty: Annotated[float, Field(description="Sigma of the pair, in seconds.")]
    observations: Annotated[int, Field(description="Observed runs of this pair.")]


class AssignReply(Reply):
    """Where each job goes: numbers of columns, or names of GPU types."""

    assignment: Annotated[
        list[int | str], Field(description="The column, or the name of the GPU type, of each job.")
    ]
    cost: float
    plan: Annotated[
        list[list[float]],
        Field(description="Share of each job on each column, before rounding."),
    ]


class Forgotten(Reply):
    """Names that were known and are no longer."""

    job_types: list[str]
    gpu_types: list[str]


class ForgetReply(Reply):
    """Which names are forgotten."""

    status: Literal["ok"]
    forgotten: Forgotten
