"""Runs the routes that take a body, without what FastAPI does between the socket and a function.

FastAPI documents such a route from the types of its function, as any other. It is answered here:
the body is read within limits, checked by the compiled model, and what the function returns is
sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.types import ASGIApp, Receive, Scope, Send

from podium.errors import UnknownName
from podium.service.components import BytesRoute, JsonRoute, Unfinished
from podium.service.http.batches import Batches
from podium.service.http.body import BodyReader, Gone, is_gone, outlined
from podium.service.http.own_names import is_loopback
from podium.service.http.problem import Field, Problem

MOST_FIELDS = 20
"""The most mistakes that are listed."""

_TYPE_STEPS = ("constrained-float", "constrained-str", "bool")
"""Steps of a location that name no field but one of the types that a value may have."""


def json_app(
    route: JsonRoute, reader: BodyReader, max_batch: int, check: Callable[[], None]
) -> ASGIApp:
    """Builds the application of a route; the check refuses requests before its component is up."""
    adapter: TypeAdapter[Any] = TypeAdapter(route.request)
    validate, known = adapter.validator.validate_json, field_names(adapter)
    answer, skipped = route.answer, frozenset((*_TYPE_STEPS, *route.union_tags))

    def read(raw: bytes) -> Any:
        try:
            return validate(outlined(raw, max_batch))
        except ValidationError as error:
            raise refusal(error, known, skipped) from None

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        share = reader.share()
        try:
            body = read(await reader.read(scope, receive, share))
            check()
            made, status = await answer(body, scope), 200
        except Gone:
            return
        finally:
            share.give_back()
        if isinstance(made, Unfinished):
            made, status = made.body, 202
        await _send_json(made if isinstance(made, bytes) else to_json(made), send, status)

    return app


def bytes_app(route: BytesRoute, reader: BodyReader) -> ASGIApp:
    """Builds the application of a route that reads the body by itself."""
    answer, batches = route.answer, Batches() if route.is_slow else None

    async def work(raw: bytes, scope: Scope) -> bytes:
        if batches is None:
            made = answer(raw)
        else:
            made = await batches.work(lambda _: answer(raw), partial(is_gone, scope))
        return await made if isinstance(made, Awaitable) else made

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if route.is_loopback_only:
            _check_loopback(scope)
        share = reader.share()
        try:
            raw = await reader.read(scope, receive, share)
            if is_gone(scope):
                return  # it waited too long: nobody reads the answer
            made = await work(raw, scope)
        except Gone:
            return
        finally:
            share.give_back()
        await _send_json(made, send)

    return app


def _check_loopback(scope: Scope) -> None:
    client = scope.get("client")
    if client is None or not is_loopback(client[0]):
        raise Problem(
            403,
            "only callers on a loopback address are answered here",
            hint="ask from the same pod, or set extender.loopback_only to false",
            headers={"connection": "close"},
        )


async def _send_json(body: bytes, send: Send, status: int = 200) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def field_names(adapter: TypeAdapter[Any]) -> tuple[str, ...]:
    """Lists the fields of a body and of everything in it, for suggestions."""
    schema = adapter.json_schema()
    models = (schema, *schema.get("$defs", {}).values())
    return tuple(dict.fromkeys(name for each in models for name in each.get("properties", {})))


def refusal(
    error: ValidationError, known: Sequence[str], skipped: frozenset[str] = frozenset()
) -> Problem:
    """Describes what is wrong with a body: it is not JSON, or its fields are wrong."""
    details = error.errors(include_url=False, include_input=False)
    first = details[0]
    if first["type"] == "json_invalid":
        return Problem(
            400,
            f"the body is not valid JSON: {first['ctx']['error']}",
            hint="send JSON in UTF-8, without NaN or Infinity, and not deeply nested",
        )
    messages: dict[str, list[str]] = {}
    for each in details:
        messages.setdefault(_name(each["loc"], skipped), []).append(each["msg"])
    fields = [Field(name, "; or: ".join(dict.fromkeys(texts))) for name, texts in messages.items()]
    count = len(fields)
    problem = "the body has an invalid field"
    if count > 1:
        problem = f"the body has {count:,} invalid fields"
    return Problem(422, problem, hint=_advice(details, known), fields=fields[:MOST_FIELDS])


def _name(location: tuple[int | str, ...], skipped: frozenset[str]) -> str:
    name = ""
    for step in location:
        if step in skipped:
            continue
        name += f"[{step}]" if isinstance(step, int) else f".{step}"
    return name.lstrip(".")


def _advice(details: list[Any], known: Sequence[str]) -> str:
    unknown = [each for each in details if each["type"] == "extra_forbidden"]
    if not unknown:
        return "GET /docs shows what every request takes"
    name = str(unknown[0]["loc"][-1])[:60]
    longer = next((each for each in known if each.endswith(f"_{name}")), "")
    return f"did you mean {longer}" if longer else UnknownName.among("field", name, known).hint
