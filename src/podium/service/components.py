"""The components that a service is composed of: each brings routes, a life and figures.

Online learning is one; others stand beside it and know nothing of it. Settings say which are
switched on (`serve.components`), `podium.service.start` makes them, and `podium.service.http` puts
them behind one address with one set of tokens, limits, probes and metrics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from fastapi import APIRouter
from prometheus_client.registry import Collector
from starlette.types import Scope
from structlog.typing import FilteringBoundLogger

from podium.errors import PodiumError, UsageError
from podium.settings import Settings

Facts = Mapping[str, Any]

TRY_AGAIN = "try again shortly"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What is sent, with the status 202, while the work of a request still goes on."""

    body: Mapping[str, Any]


Answer = Callable[[Any, Scope], Awaitable[Mapping[str, Any] | bytes | Unfinished]]
"""Returns what is sent, or the JSON of it."""


@dataclass(frozen=True, slots=True)
class JsonRoute:
    """Declares a POST route that takes JSON and answers with JSON.

    The body is read within the limits of the service and checked by its model before the answer is
    asked for. The docstring of the answer describes the route in OpenAPI.
    """

    path: str
    request: Any  # a pydantic model, or an annotated union of models
    reply: Any  # a pydantic model, for the documentation
    answer: Answer
    examples: Mapping[str, Any] = field(default_factory=dict)  # bodies by title
    parameters: Sequence[Mapping[str, Any]] = ()  # headers, as OpenAPI describes them
    union_tags: Sequence[str] = ()  # of the request's models; they name no field
    max_in_flight: int | None = None  # of this route alone; None: it shares with all others
    unfinished: str = ""  # what the status 202 says, for the documentation; empty: it never comes


@dataclass(frozen=True, slots=True)
class BytesRoute:
    """Declares a POST route whose component reads the body and writes the answer by itself.

    For callers that ask thousands of times a second and have a protocol of their own. The answer
    is asked for even before the component has started, and has the status 200 unless it raises a
    problem; reply and request only serve the documentation.
    """

    path: str
    request: Any  # a pydantic model
    reply: Any  # a pydantic model, or a list of models
    answer: Callable[[bytes], bytes | Awaitable[bytes]]
    max_body_bytes: int
    examples: Mapping[str, Any] = field(default_factory=dict)  # bodies by title
    is_loopback_only: bool = False  # callers from elsewhere get status 403
    is_slow: bool = False  # answered one after another, in a thread of the route


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a component accepts work, and the reason if it does not."""

    reason: str = ""  # why it is not ready; empty: it is
    hint: str = TRY_AGAIN
    details: Mapping[str, str] = field(default_factory=dict)  # for /readyz, where it is ready

    @property
    def is_ready(self) -> bool:
        """Returns whether there is no reason against it."""
        return not self.reason


class Component(Protocol):
    """One part of the service; a subclass overrides what it needs of these empty defaults.

    All methods are called on the event loop.
    """

    name: str
    """Its name in settings, logs and probes, and as the OpenAPI tag of its routes."""

    description: str
    """Describes its routes in OpenAPI."""

    sections: Sequence[str] = ()
    """Sections of the settings that `GET /` shows for it."""

    ready_fields: Mapping[str, Any] = MappingProxyType({})
    """Types of the details of its readiness, as `pydantic.create_model` takes them."""

    @property
    def failure(self) -> Exception | None:
        """Returns what broke it for good after its start, so that only a restart helps.

        Liveness fails with it, and the service ends with it when stopped. What may pass is a
        matter of readiness alone.
        """
        return None

    def routes(self) -> Sequence[JsonRoute | BytesRoute | APIRouter]:
        """Lists its routes; called once. Routers only read: what takes a body is another kind."""
        return ()

    def collectors(self) -> Sequence[Collector]:
        """Lists what it adds to `GET /metrics`; called once. Names must be new to the service."""
        return ()

    def config(self) -> Mapping[str, Any]:
        """Returns its effective parameters, for `config` in `GET /`."""
        return {}

    async def start(self) -> Facts:
        """Prepares it to answer; may take long, and other components start at the same time.

        It may be cancelled. Its routes answer 503 until it returns facts, which are logged. If it
        raises, the service ends with that error.
        """
        return {}

    async def stop(self) -> Facts:
        """Ends it; called once, in the reverse order of the list, even if it never started."""
        return {}

    def readiness(self) -> Readiness:
        """Reports whether it accepts work; called by every probe, so it must not wait."""
        return Readiness()

    def label_values(self, label: str) -> Collection[str]:
        """Lists the values that nodes have under a label; none if it follows no cluster."""
        del label
        return ()


class Life:
    """Follows one component from its start to its end."""

    __slots__ = ("component", "has_failed", "is_started")

    def __init__(self, component: Component) -> None:
        self.component = component
        self.is_started = False
        self.has_failed = False

    def readiness(self) -> Readiness:
        """Returns the readiness of the component, which has to start first."""
        if self.has_failed:
            return Readiness("it could not start", hint="see the service's log")
        readiness = self.component.readiness()
        if readiness.is_ready and not self.is_started:
            return Readiness("it is still starting")
        return readiness


class Components:
    """Starts the components of a service, knows which are ready, and stops them in reverse."""

    def __init__(self, components: Sequence[Component], log: FilteringBoundLogger) -> None:
        names = [each.name for each in components]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise UsageError(
                f"component {repeated[0]} is listed twice",
                where="serve.components",
                hint="list each component once",
            )
        self._log = log
        self._lives = tuple(Life(each) for each in components)
        self.is_draining = False
        self.failure: Exception | None = None  # why a component could not start

    def __iter__(self) -> Iterator[Life]:
        return iter(self._lives)

    async def start(self) -> None:
        """Starts all components at the same time; a failure is kept for whoever runs the service.

        None waits for another: one that needs a database that is away holds up nobody else.
        """
        facts = await asyncio.gather(*(self._start(life) for life in self._lives))
        if self.failure is None:
            self._log.info("ready", **_merged(facts))

    async def stop(self) -> None:
        """Stops all components, the last first; one that fails does not keep the others."""
        self.is_draining = True
        facts = [await self._stop(life) for life in reversed(self._lives)]
        self._log.info("stopped", **_merged(facts))

    def not_ready(self) -> dict[str, Readiness]:
        """Lists the components that welcome no work, with their reasons."""
        found = {life.component.name: life.readiness() for life in self._lives}
        return {name: each for name, each in found.items() if not each.is_ready}

    def breakdown(self) -> Exception | None:
        """Returns the first failure of a component that had started, if there is one."""
        failures = (life.component.failure for life in self._lives)
        return next((each for each in failures if each is not None), None)

    def label_values(self, label: str) -> set[str]:
        """Lists the values that nodes have under a label, as far as some component knows."""
        return {value for life in self._lives for value in life.component.label_values(label)}

    def details(self) -> dict[str, str]:
        """Returns what the components add to the answer that the service is ready."""
        return _merged([life.readiness().details for life in self._lives])

    async def _start(self, life: Life) -> Facts:
        try:
            facts = await life.component.start()
        except Exception as error:  # noqa: BLE001 - whoever runs the service raises it
            name = life.component.name
            life.has_failed = True
            if not isinstance(error, PodiumError):  # a second bug would not be raised
                self._log.error("a component failed to start", component=name, exc_info=error)
            self.failure = self.failure or _start_failure(name, error)
            return {}
        life.is_started = True
        return facts

    async def _stop(self, life: Life) -> Facts:
        try:
            return await life.component.stop()
        except Exception as error:  # noqa: BLE001 - the others must stop all the same
            name = life.component.name
            self._log.error("a component failed to stop", component=name, exc_info=error)
            return {}


@dataclass(slots=True)
class Service:
    """One service: its settings, its components, its log and the token of its callers."""

    settings: Settings
    components: Components
    log: FilteringBoundLogger
    token: str | None = None  # None: callers need none


def _start_failure(name: str, error: Exception) -> Exception:
    """Names the component in an error; a bug stays as it is, with its traceback."""
    if not isinstance(error, PodiumError):
        error.add_note(f"while the component {name} started")
        return error
    message = f"component {name} could not start: {error.message}"
    named = type(error)(message, where=error.where, hint=error.hint)
    named.__cause__ = error
    return named


def _merged(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for each in facts for name, value in each.items()}
