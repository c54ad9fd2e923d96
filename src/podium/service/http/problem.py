"""The one shape of errors that the service answers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from fastapi.responses import Response
from pydantic_core import to_json

from podium.errors import PodiumError, UsageError
from podium.service.components import Readiness

CODES: Mapping[int, str] = {
    400: "malformed",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    414: "too_large",
    415: "unsupported_media_type",
    421: "misdirected",
    422: "invalid",
    431: "too_large",
    500: "internal",
    503: "unavailable",
}
"""Names of errors for machines, by status."""


@dataclass(frozen=True, slots=True)
class Field:
    """What is wrong with one field of a request."""

    name: str
    message: str


class Problem(Exception):  # noqa: N818 - it is an answer as much as an error
    """Ends a request with an error: what is wrong, with which fields, and what to do next."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str = "",
        fields: Sequence[Field] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint
        self.fields = tuple(fields)
        self.headers = dict(headers or {})

    @property
    def code(self) -> str:
        """Names the error for machines."""
        return CODES.get(self.status, "error")

    def response(self) -> Response:
        """Builds the response to send."""
        error = {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "fields": [asdict(field) for field in self.fields],
        }
        return Response(
            to_json({"error": error}), self.status, self.headers, media_type="application/json"
        )


def problem_of(error: Problem | PodiumError) -> Problem:
    """Turns an error into an answer: a mistake of the caller's, or something that is missing."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, UsageError):
        fields = [Field(error.where, error.message)] if error.where else []
        return Problem(422, error.message, hint=error.hint, fields=fields)
    return Problem(
        503,
        "temporarily unavailable",
        hint="try again shortly; the service's log has the details",
        headers={"retry-after": "1"},
    )


def unready(waiting: Mapping[str, Readiness]) -> Problem:
    """Names the components that are not ready, each with its reason."""
    name, first = next(iter(waiting.items()))
    fields = [Field(each, readiness.reason) for each, readiness in waiting.items()]
    message = f"{name} is not ready: {first.reason}"
    return Problem(503, message, hint=first.hint, fields=fields, headers={"retry-after": "1"})
