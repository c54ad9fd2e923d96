"""Runs the extender behind the one address of the service, on a cluster that tests write."""

import asyncio
import contextlib
import http.server
import io
import ssl
import threading

from podium.service.components import Components
from podium.service.components import Service as Composed
from podium.service.extender.component import Extender
from podium.service.http.app import create_app
from podium.service.http.logs import Log
from podium.settings import load_settings
from support.extender import args, points
from support.service import JSON, Service


class Cluster:
    """Is a cluster that does as it is told."""

    def __init__(self, *objects):
        self.objects = objects
        self.age = 0.0
        self.bound = []
        self.events = []
        self.refusal = ""
        self.failure = None
        self.state = None
        self.is_open = False

    @contextlib.asynccontextmanager
    async def __call__(self, _settings, state, _log):
        self.state, self.is_open = state, True
        for each in self.objects:
            api_group = each["apiVersion"].rpartition("/")[0]
            kind = f"{each['kind']}.{api_group}" if api_group else each["kind"]
            state.apply(kind, "ADDED", each)
        yield self
        self.is_open = False

    def age_s(self):
        return self.age

    def lists(self):
        return 2

    def problems(self):
        return ["a watch has ended"] if self.age == float("inf") else []

    def unreadable(self):
        return 4

    async def write_event(self, event):
        self.events.append(event)
        return self.refusal

    async def bind(self, args, slots):
        self.bound.append((args.pod_name, args.node, slots))
        return ""


class Served(Service):
    """Answers requests in this process."""

    def __init__(self, folder, cluster, **flags):
        given = {f"extender.{name}": value for name, value in flags.items()}
        given["serve.components"] = "extender"
        settings = load_settings(given, environ={}, folder=folder)
        self.runner = asyncio.Runner()
        self.lines = io.StringIO()
        self.log = Log(self.lines)
        self.extender = Extender(settings, self.log.logger, cluster)
        self.components = Components([self.extender], self.log.logger)
        self.app = create_app(Composed(settings, self.components, self.log.logger))

    def start(self):
        self.runner.run(self.components.start())
        return self

    def __exit__(self, *_):
        self.runner.run(self.components.stop())
        self.runner.close()
        self.log.close()

    def prioritize(self, pod, names="abc"):
        reply = self.ask("POST", "/extender/prioritize", args(pod, names), JSON)
        assert reply.status == 200
        return points(reply.body, names)


@contextlib.contextmanager
def over_http(service, certificate=None):
    """Passes what is asked of a port on to a service in this process; gives its address.

    With the files of a certificate and its key it speaks TLS.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked = {name.lower(): value for name, value in self.headers.items()}
            reply = service.get(self.path, asked)
            self.send_response(reply.status)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        scheme = "http"
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            scheme = "https"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
