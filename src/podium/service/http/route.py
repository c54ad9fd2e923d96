"""Runs the routes that take a body, without what FastAPI does between the socket and a function.

FastAPI documents such a route from the types of its function, as any other. It is answered here:
the body is read within limits, checked by the compiled model, and what the function gives is sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.types import ASGIApp, Receive, Scope, Send

from podium.errors import UnknownName
from podium.service.http.body import BodyReader, Gone
from podium.service.http.outline import outlined
from podium.service.http.problem import Field, Problem
from podium.service.learning.requests import BY_COSTS, BY_JOBS

Answer = Callable[[Any, Scope], Awaitable[Mapping[str, Any]]]

MOST_FIELDS = 20
"""No more mistakes than this are listed."""


def body_app(model: Any, answer: Answer, reader: BodyReader, max_batch: int) -> ASGIApp:
    """Makes the application of a route from its model and its function."""
    adapter: TypeAdapter[Any] = TypeAdapter(model)
    validate, known = adapter.validator.validate_json, field_names(adapter)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            raw = await reader.read(scope, receive)
        except Gone:
            return
        try:
            body = validate(outlined(raw, max_batch))
        except ValidationError as error:
            raise refusal(error, known) from None
        sent = to_json(await answer(body, scope))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(sent)),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": sent})

    return app


def field_names(adapter: TypeAdapter[Any]) -> tuple[str, ...]:
    """Lists the fields of a body and of what it holds, for suggestions."""
    schema = adapter.json_schema()
    models = (schema, *schema.get("$defs", {}).values())
    return tuple(dict.fromkeys(name for each in models for name in each.get("properties", {})))


def refusal(error: ValidationError, known: Sequence[str]) -> Problem:
    """Says what is wrong with a body: it is no JSON, or not what is asked for."""
    details = error.errors(include_url=False, include_input=False)
    first = details[0]
    if first["type"] == "json_invalid":
        return Problem(
            400,
            f"the body is not JSON: {first['ctx']['error']}",
            hint="send JSON in UTF-8, without NaN or Infinity, and not deeply nested",
        )
    messages: dict[str, list[str]] = {}
    for each in details:
        messages.setdefault(_name(each["loc"]), []).append(each["msg"])
    fields = [Field(name, "; or: ".join(dict.fromkeys(told))) for name, told in messages.items()]
    count = len(fields)
    problem = "the body has a field that cannot be used"
    if count > 1:
        problem = f"the body has {count:,} fields that cannot be used"
    return Problem(422, problem, hint=_advice(details, known), fields=fields[:MOST_FIELDS])


_ALTERNATIVES = (BY_COSTS, BY_JOBS, "constrained-float", "constrained-str", "bool")
"""Steps of a location that name no field but one of the types that a value may have."""


def _name(location: tuple[int | str, ...]) -> str:
    name = ""
    for step in location:
        if step in _ALTERNATIVES:
            continue
        name += f"[{step}]" if isinstance(step, int) else f".{step}"
    return name.lstrip(".")


def _advice(details: list[Any], known: Sequence[str]) -> str:
    strangers = [each for each in details if each["type"] == "extra_forbidden"]
    if not strangers:
        return "GET /docs shows what every request takes"
    return UnknownName.among("field", str(strangers[0]["loc"][-1])[:60], known).hint
