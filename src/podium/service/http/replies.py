"""Declares what the service answers about itself, for its documentation."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class Reply(BaseModel):
    """Is complete: a test would find a field that is not declared."""

    model_config = ConfigDict(extra="forbid")


class StatusReply(Reply):
    """Says that all is well."""

    status: str


class InfoReply(Reply):
    """Says what this service is and how it is set."""

    service: str
    version: str
    config: Annotated[dict[str, Any], Field(description="Parameters of the agent.")]
    settings: Annotated[
        dict[str, Any], Field(description="Every setting that matters here, by its path.")
    ]


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
