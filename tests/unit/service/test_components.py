"""A second component beside online learning: the same address, token, limits and probes."""

import asyncio
import io
import subprocess
import sys

import pytest
from fastapi import APIRouter
from prometheus_client import Counter
from pydantic import BaseModel, ConfigDict

from podium.errors import MissingError, UnknownName, UsageError
from podium.service.components import Component, Components, JsonRoute, Readiness, Service
from podium.service.http.app import create_app
from podium.service.http.logs import Log
from podium.service.http.middleware import OPEN
from podium.service.http.server import listen, run
from podium.service.start import component_names, compose
from podium.settings import load_settings
from support.service import JSON, OBSERVE, SCORE
from support.service import Service as Running

TOKEN = "0123456789abcdef0123456789abcdef"
RIGHT = {**JSON, "authorization": f"Bearer {TOKEN}"}


class EchoRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    word: str


class EchoReply(BaseModel):
    echo: str


class Echo(Component):
    """Answers with the word that it is sent."""

    name = "echo"
    description = "Echoes words."
    sections = ("display",)

    def __init__(self, stopped=(), trouble=None, most=None):
        self.is_let_in = asyncio.Event()
        self.is_let_in.set()
        self.reason = ""
        self.stopped = stopped
        self.trouble = trouble
        self._most = most
        self._echoed = Counter("echo_words", "Words that were echoed.", registry=None)

    def routes(self):
        router = APIRouter()

        @router.get("/echo/count")
        async def count() -> dict[str, float]:
            """Counts words."""
            return {"count": self._echoed._value.get()}

        echo = JsonRoute(
            "/echo", EchoRequest, EchoReply, self.echo, {"a word": {"word": "hi"}},
            max_in_flight=self._most,
        )  # fmt: skip
        return [echo, router]

    async def echo(self, body, _scope):
        """Echoes a word."""
        if body.word == "silence":
            raise MissingError("no voice in the secret room", hint="drink tea")
        self._echoed.inc()
        return {"echo": body.word}

    def collectors(self):
        return [self._echoed]

    def config(self):
        return {"is_loud": True}

    async def start(self):
        await self.is_let_in.wait()
        if self.trouble is not None:
            raise self.trouble
        return {"echoing": True}

    async def stop(self):
        self.stopped.append(self.name)
        return {}

    def readiness(self):
        return Readiness(self.reason, hint="speak up")


class Composed(Running):
    """Runs online learning with more components beside it."""

    def __init__(self, folder, *more, is_started=True, **options):
        super().__init__(folder, is_started=False, **options)
        components = Components([self.learning, *more], self.log.logger)
        self.components = components
        self.app = create_app(
            Service(self.settings, components, self.log.logger, self.composed.token)
        )
        if is_started:
            self.runner.run(components.start())


@pytest.fixture
def stopped():
    return []


@pytest.fixture
def echo(stopped):
    return Echo(stopped)


@pytest.fixture
def service(tmp_path, echo):
    with Composed(tmp_path, echo, token=TOKEN) as made:
        yield made


def test_its_routes_answer_beside_the_others(service):
    assert service.post("/echo", {"word": "hi"}, RIGHT).json == {"echo": "hi"}
    assert service.get("/echo/count", RIGHT).json == {"count": 1.0}
    assert service.post("/v1/score", SCORE, RIGHT).status == 200


def test_its_routes_need_the_token(service):
    for reply in (service.post("/echo", {"word": "hi"}), service.get("/echo/count")):
        assert (reply.status, reply.error.code) == (401, "unauthorized")
    assert {"/healthz", "/readyz"} == OPEN


def test_its_bodies_are_bounded_and_checked(tmp_path, echo):
    with Composed(tmp_path, echo, flags={"serve.max_body_bytes": 1024}) as service:
        large = service.post("/echo", {"word": "x" * 2000})
        assert (large.status, large.error.code) == (413, "too_large")
        wrong = service.post("/echo", {"wrod": "hi"})
        assert (wrong.status, wrong.error.hint) == (422, "did you mean word")
        assert service.post("/echo", b"{").status == 400
        assert service.post("/echo", b"{}", {"content-type": "text/plain"}).status == 415


def test_what_it_misses_is_logged_and_not_told(service):
    reply = service.post("/echo", {"word": "silence"}, RIGHT)
    assert (reply.status, reply.error.message) == (503, "temporarily unavailable")
    assert b"secret" not in reply.body
    (line,) = [line for line in service.logged() if line["message"] == reply.error.message]
    assert (line["problem"], line["hint"]) == ("no voice in the secret room", "drink tea")


def test_it_may_have_a_limit_of_its_own(tmp_path, stopped):
    with Composed(tmp_path, Echo(stopped, most=0)) as service:
        reply = service.post("/echo", {"word": "hi"})
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert service.post("/v1/score", SCORE).status == 200


def test_the_service_is_not_ready_while_it_is_not_and_says_so(service, echo):
    assert service.get("/readyz").json == {"status": "ready", "store": "ok"}
    echo.reason = "nobody listens"
    reply = service.get("/readyz")
    assert (reply.status, reply.error.message) == (503, "echo is not ready: nobody listens")
    assert reply.error.hint == "speak up"
    assert [(each.name, each.message) for each in reply.error.fields] == [
        ("echo", "nobody listens")
    ]
    assert service.get("/healthz").status == 200
    assert service.post("/v1/observe", OBSERVE, RIGHT).status == 200


def test_its_figures_are_among_the_metrics(service):
    service.post("/echo", {"word": "hi"}, RIGHT)
    text = service.get("/metrics", RIGHT).body.decode()
    assert "echo_words_total 1.0" in text
    assert 'podium_request_duration_seconds_count{route="/echo",status="200"} 1.0' in text
    assert "podium_online_uncertainty_seconds" in text


def test_what_it_knows_of_nodes_is_in_the_selectors_of_others(tmp_path, echo):
    echo.label_values = lambda label: [f"NVIDIA-A100-SXM4-80GB under {label}"]
    with Composed(tmp_path, echo) as service:
        service.learning.selector.label_values = service.components.label_values
        told = service.post("/v1/score", {**SCORE, "candidate_gpu_types": ["A100-80GB"]}).json
        label = "nvidia.com/gpu.product"
        assert told["gpu_selector"]["nodeSelector"] == {
            label: f"NVIDIA-A100-SXM4-80GB under {label}"
        }
        assert told["selector_on_nodes"] is True


def test_it_is_described_under_its_own_tag(service):
    document = service.get("/openapi.json", RIGHT).json
    assert {"name": "echo", "description": "Echoes words."} in document["tags"]
    post = document["paths"]["/echo"]["post"]
    assert (post["tags"], post["description"]) == (["echo"], "Echoes a word.")
    assert document["paths"]["/echo/count"]["get"]["tags"] == ["echo"]
    assert document["paths"]["/v1/score"]["post"]["tags"] == ["learning"]
    assert "POST /echo" in service.get("/docs", RIGHT).body.decode()


def test_it_adds_to_what_the_service_tells_of_itself(service):
    told = service.get("/", RIGHT).json
    assert told["config"]["is_loud"] is True
    assert told["settings"]["display.quiet"] is False
    assert told["config"]["enable_sinkhorn"] is True


def test_components_start_side_by_side_and_each_answers_when_it_is_up(tmp_path, echo):
    async def started_late(service):
        echo.is_let_in.clear()
        starting = asyncio.create_task(service.components.start())
        while not next(iter(service.components)).is_started:  # online learning waits for nobody
            await asyncio.sleep(0.01)
        early = await service.answer("POST", "/echo", b'{"word": "hi"}', JSON)
        count = await service.answer("GET", "/echo/count")
        ready = await service.answer("GET", "/readyz")
        other = await service.answer("POST", "/v1/score", b"{", JSON)
        echo.is_let_in.set()
        await starting
        late = await service.answer("POST", "/echo", b'{"word": "hi"}', JSON)
        return early, count, ready, other, late

    with Composed(tmp_path, echo, is_started=False) as service:
        early, count, ready, other, late = service.runner.run(started_late(service))
        for reply in (early, count, ready):
            assert (reply.status, reply.error.message) == (
                503, "echo is not ready: it is still starting",
            )  # fmt: skip
        assert (other.status, late.status) == (400, 200)
        (line,) = [line for line in service.logged() if line["message"] == "ready"]
        assert (line["echoing"], line["replayed"]) == (True, 0)


def test_a_start_that_fails_names_the_component_and_what_to_do(tmp_path, stopped):
    trouble = MissingError("no voice", where="throat", hint="drink tea")
    with Composed(tmp_path, Echo(stopped, trouble)) as service:
        failure = service.components.failure
        assert isinstance(failure, MissingError)
        assert str(failure) == "throat: component echo could not start: no voice"
        assert (failure.hint, failure.exit_code) == ("drink tea", 3)
        assert service.get("/readyz").error.message == "echo is not ready: it could not start"
        assert service.post("/echo", {"word": "hi"}).status == 503
        assert not [line for line in service.logged() if line["message"] == "ready"]
    assert stopped == ["echo"]


def test_the_server_ends_with_the_failure_of_a_start(tmp_path, stopped):
    trouble = MissingError("no voice", hint="drink tea")
    settings = load_settings({"serve.port": 0}, environ={}, folder=tmp_path)
    log = Log(io.StringIO())
    made = Components([Quiet("first", stopped), Echo(stopped, trouble)], log.logger)
    refused = pytest.raises(MissingError, match="component echo could not start: no voice")
    with listen(settings.serve) as listener, refused:
        run(Service(settings, made, log.logger), listener)
    log.close()
    assert stopped == ["echo", "first"]


def test_a_bug_in_a_start_ends_the_service_too(tmp_path, stopped):
    with Composed(tmp_path, Echo(stopped, ZeroDivisionError("oh"))) as service:
        failure = service.components.failure
        assert isinstance(failure, ZeroDivisionError)
        assert failure.__notes__ == ["while the component echo started"]


class Quiet(Component):
    """Does nothing but end."""

    description = "Ends."

    def __init__(self, name, stopped, trouble=None):
        self.name = name
        self._stopped = stopped
        self._trouble = trouble

    async def stop(self):
        self._stopped.append(self.name)
        if self._trouble is not None:
            raise self._trouble
        return {"ended": self.name}


def test_components_stop_in_reverse_and_one_that_fails_keeps_no_other(tmp_path, stopped):
    made = [Quiet("first", stopped), Quiet("second", stopped, OSError("stuck")), Echo(stopped)]
    with Composed(tmp_path, *made) as service:
        pass
    assert stopped == ["echo", "second", "first"]
    lines = service.logged()
    (failed,) = [line for line in lines if line["message"] == "a component failed to stop"]
    assert (failed["component"], "stuck" in failed["exception"]) == ("second", True)
    assert (lines[-1]["message"], lines[-1]["ended"]) == ("stopped", "first")
    assert lines[-1]["last_id"] == 0


def test_routers_may_not_take_bodies(tmp_path, stopped):
    class Careless(Quiet):
        def routes(self):
            router = APIRouter()
            router.add_api_route("/free", lambda: None, methods=["POST"])
            return [router]

    with pytest.raises(ValueError, match="POST /free takes a body: make it a JsonRoute"):
        Composed(tmp_path, Careless("careless", stopped))


def test_a_component_is_listed_once(tmp_path, stopped):
    with pytest.raises(UsageError, match="component echo is listed twice"):
        Composed(tmp_path, Echo(stopped), Echo(stopped))


def test_settings_switch_components_on(tmp_path):
    def names(text):
        settings = load_settings({"serve.components": text}, environ={}, folder=tmp_path)
        return component_names(settings)

    assert names("learning") == names(" learning , ") == ["learning"]
    with pytest.raises(UnknownName, match='unknown component "lerning"') as caught:
        names("lerning")
    assert caught.value.hint == "did you mean learning"
    with pytest.raises(UsageError, match="no component is switched on"):
        names(" ,")


def test_what_is_switched_on_is_what_is_composed(tmp_path):
    with Running(tmp_path) as service:
        made = compose(service.settings, service.store, service.log.logger)
        assert [life.component.name for life in made.components] == ["learning"]
        asyncio.run(made.components.stop())


def test_who_does_not_learn_starts_without_a_database():
    program = "import sys, podium.service.start; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
