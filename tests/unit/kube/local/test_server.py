"""Connections to an API server stay open for as long as it keeps them."""

import contextlib
import http.server
import ssl
import threading

import pytest

from podium.kube.local import server as module
from podium.kube.local.certificate import make_certificate
from podium.kube.local.server import KubeApi, Server


@pytest.fixture
def api(tmp_path):
    """Asks a server that notes its connections; gives both."""
    connections = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self):
            super().setup()
            connections.append(self.client_address)

        def do_GET(self):
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_):
            pass

    certificate, key = make_certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        access = Server(server.server_address[1], "token", certificate)
        with contextlib.closing(KubeApi(access)) as api:
            yield api, connections
        server.shutdown()
        thread.join()


def test_a_connection_is_used_again_unless_it_idled_for_long(api, monkeypatch):
    api, connections = api
    assert [api.ask("GET", "/version") for _ in range(3)] == ["ok"] * 3
    assert len(connections) == 1
    monkeypatch.setattr(module, "IDLE_S", 0.0)
    assert api.ask("GET", "/version") == "ok"
    assert len(connections) == 2
