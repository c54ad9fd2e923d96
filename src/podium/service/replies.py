"""Declares what the service answers, for its documentation.

Answers are sent as the agent gives them; a test holds them against these declarations.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Reply(BaseModel):
    """Is complete: a test would find a field that is not declared."""

    model_config = ConfigDict(extra="forbid")


class Terms(Reply):
    """Holds the terms of a cost, in seconds."""

    mu: float
    sigma: float
    ig: float
    penalty: float
    cost: float


class CandidateReply(Terms):
    """Holds what is known of one GPU type."""

    gpu_type: str
    observations: int
    ig_nats: float


class ScoreReply(Reply):
    """Says where a job should run and why."""

    priority_score: float
    gpu_selector: dict[str, Any]
    avoid_co_locate_with: list[str]
    terms: Terms
    chosen_gpu_type: str
    exploration: bool
    decision_type: Literal["exploration", "exploitation", "forced"]
    slowdown: float
    candidates: list[CandidateReply]
    ignored_features: list[str]


class ObserveReply(Reply):
    """Says that an observation is kept, and what is left to learn about its pair."""

    status: Literal["ok"]
    updated: bool
    new_uncertainty: float
    observations: int


class AssignReply(Reply):
    """Says where each job goes: numbers of columns, or names of GPU types."""

    assignment: list[int | str]
    cost: float
    plan: list[list[float]]


class StatusReply(Reply):
    """Says that all is well."""

    status: str


class InfoReply(Reply):
    """Says what this service is and how it is set."""

    service: str
    version: str
    config: dict[str, Any]
    settings: dict[str, Any]


class FieldError(Reply):
    """Says what is wrong with one field."""

    name: str
    message: str


class ErrorDetail(Reply):
    """Says what is wrong and what to do next."""

    code: str
    message: str
    hint: str
    fields: list[FieldError]


class ErrorReply(Reply):
    """Is the one shape of errors."""

    error: ErrorDetail
