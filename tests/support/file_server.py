"""Serves files over HTTP on the loopback interface, for tests of downloads."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer:
    """Answers GET requests from a mapping; counts them; can break its promises."""

    def __init__(self):
        self.files = {}
        self.asked = []
        self.cut = set()  # names whose body ends early
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.rsplit("/", 1)[-1]
                outer.asked.append(name)
                body = outer.files.get(name)
                if body is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if name in outer.cut else body)

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/csv"


@contextlib.contextmanager
def running_file_server():
    server = FileServer()
    thread = threading.Thread(target=server.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()
        thread.join()
