"""Declares what the service answers about itself, for its documentation."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class Reply(BaseModel):
    """A complete declaration: a test would find a field that is missing."""

    model_config = ConfigDict(extra="forbid")


class StatusReply(Reply):
    """All is well."""

    status: str


class InfoReply(Reply):
    """What this service is and how it is configured."""

    service: str
    version: str
    config: Annotated[dict[str, Any], Field(description="Parameters of the agent.")]
    settings: Annotated[
        dict[str, Any], Field(description="Every setting of the service, by its path.")
    ]


class FieldError(Reply):
    """What is wrong with one field."""

    name: str
    message: str


class ErrorDetail(Reply):
    """What is wrong and what to do next."""

    code: str
    message: str
    hint: str
    fields: list[FieldError]


class ErrorReply(Reply):
    """The one shape of errors."""

    error: ErrorDetail
