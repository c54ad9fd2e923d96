"""Runs the service: in this process without a socket, or as a process of its own."""

import asyncio
import contextlib
import http.client
import io
import json
import signal
import ssl
import subprocess
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from podium.service.http.app import create_app
from podium.service.http.logs import Log
from podium.service.http.replies import ErrorReply
from podium.service.start import compose
from podium.settings import load_settings
from podium.store import open_store
from support.binary import PODIUM, clean_environment

SCORE = {
    "job_type": "train-bert",
    "features": {"gpu_mem_gb": 40, "batch_size": 16},
    "candidate_gpu_types": ["A100-80GB", "L4-24GB"],
    "colocated_job_types": [],
}
OBSERVE = {
    "job_type": "train-bert",
    "gpu_type": "A100-80GB",
    "measured_runtime_s": 73.4,
    "colocated_job_types": [],
}
ASSIGN = {"costs": [[1.0, 2.0], [3.0, 1.0]], "capacities": [1, 1]}
JSON = {"content-type": "application/json"}
ANSWER_S = 120.0
"""A machine that is busy with other things may take long to answer, or to end."""


@dataclass(frozen=True)
class Reply:
    """Holds an answer."""

    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """Gives the error, which must have the one shape."""
        assert self.headers["content-type"] == "application/json"
        return ErrorReply.model_validate_json(self.body).error


class Service:
    """Answers requests in this process."""

    def __init__(self, folder, flags=None, token=None, is_started=True):
        own = {"store.url": str(folder / "podium.db"), "serve.store_limit_s": ANSWER_S}
        self.settings = load_settings({**own, **(flags or {})}, environ={}, folder=folder)
        self.runner = asyncio.Runner()
        self.store = open_store(self.settings.store.url)
        self.lines = io.StringIO()
        self.log = Log(self.lines, self.settings.serve.log_level)
        self.composed = compose(self.settings, self.store, self.log.logger, token)
        self.components = self.composed.components
        (self.learning,) = (life.component for life in self.components)
        self.app = create_app(self.composed)
        if is_started:
            self.runner.run(self.components.start())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.runner.run(self.components.stop())
        self.runner.close()
        self.store.close()
        self.log.close()

    def state(self):
        """Gives all that may not change by mistake."""
        return json.dumps([self.learning.learner.state(), self.store.observations.count()])

    def logged(self):
        """Lists what was logged so far."""
        self.log.close()
        return [json.loads(line) for line in self.lines.getvalue().splitlines()]

    def post(self, path, body, headers=JSON):
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", path, sent, headers)

    def get(self, path, headers=None):
        return self.ask("GET", path, b"", headers or {})

    def ask(self, method, path, body=b"", headers=None):
        """Sends one request and waits for the answer."""
        return self.runner.run(self.answer(method, path, body, headers or {}))

    async def answer(self, method, path, body=b"", headers=None):
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        return await self.exchange(method, path, headers or {}, messages)

    async def exchange(self, method, path, headers, messages, client="127.0.0.1"):
        """Runs the application over messages that arrive."""
        waiting, sent = list(messages), []

        async def receive():
            if not waiting:
                await asyncio.sleep(3600)
            return waiting.pop(0)

        async def send(message):
            sent.append(message)

        scope = scope_of(method, path, headers) | {"client": (client, 4711)}
        await self.app(scope, receive, send)
        if not sent:
            return None
        given = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return Reply(sent[0]["status"], given, body)


def scope_of(method, path, headers):
    """Describes a request as a server would."""
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "client": ("127.0.0.1", 4711), "server": ("127.0.0.1", 80),
        "headers": [(name.encode(), str(value).encode()) for name, value in headers.items()],
    }  # fmt: skip


class Client:
    """Asks the service at one address."""

    url = ""

    def connect(self, context=None):
        parts = urlsplit(self.url)
        if parts.scheme == "https":
            context = context or ssl.create_default_context()
            return http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=ANSWER_S, context=context
            )
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=ANSWER_S)

    def ask(self, method, path, body=None, headers=None, connection=None):
        """Sends one request."""
        used = connection or self.connect()
        sent = json.dumps(body) if isinstance(body, dict) else body
        used.request(method, path, sent, {**(JSON if body is not None else {}), **(headers or {})})
        found = used.getresponse()
        given = {name.lower(): value for name, value in found.getheaders()}
        reply = Reply(found.status, given, found.read())
        if connection is None:
            used.close()
        return reply

    def post(self, path, body, **more):
        return self.ask("POST", path, body, **more)

    def get(self, path, **more):
        return self.ask("GET", path, **more)


class Process(Client):
    """Is a service in a process of its own."""

    def __init__(self, folder, *flags, prefix=(), ulimit="", **environ):
        store = () if "--store" in flags else ("--store", str(folder / "podium.db"))
        limited = ["bash", "-c", f'ulimit {ulimit}; exec "$@"', "-"] if ulimit else []
        self.process = subprocess.Popen(
            [*prefix, *limited, *PODIUM, "serve", "--port", "0", *store, *flags],
            cwd=folder,
            env=clean_environment(folder, **environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.logs, self.others = [], []  # lines of JSON, and lines that are something else
        self.url = self.wait_for("listening")["url"]
        self.wait_for("ready")

    def wait_for(self, message):
        """Reads logs until one says this."""
        for line in self.process.stderr:
            if line.startswith("{"):
                self.logs.append(json.loads(line))
                if self.logs[-1]["message"] == message:
                    return self.logs[-1]
            else:
                self.others.append(line)
        raise AssertionError(f"the service ended without {message}: {self.logs}")

    def end(self, number=signal.SIGTERM):
        """Sends a signal and waits; gives the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        rest = self.process.communicate(timeout=ANSWER_S)[1]
        for line in rest.splitlines():
            if line.startswith("{"):
                self.logs.append(json.loads(line))
            else:
                self.others.append(line)
        return self.process.returncode


@contextlib.contextmanager
def served(folder, *flags, ulimit="", **environ):
    """Runs a service as long as the block."""
    process = Process(folder, *flags, ulimit=ulimit, **environ)
    try:
        yield process
    finally:
        process.end()


def eventually(is_true, limit_s=ANSWER_S):
    """Waits until something is true."""
    deadline = time.monotonic() + limit_s
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
