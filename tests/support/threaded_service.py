"""Runs the service in a thread of this process, on a port: for tests that need no process."""

import contextlib
import io
import json
import threading
import time

from podium.service.http.logs import Log
from podium.service.http.server import listen, server_of
from podium.service.start import compose
from podium.settings import load_settings
from support.service import ANSWER_S, Client


class ThreadedService(Client):
    """Is a service without a store, which answers until it is ended."""

    def __init__(self, folder, **environ):
        own = {"PODIUM_SERVE_PORT": "0", "XDG_CONFIG_HOME": str(folder / ".config"), **environ}
        settings = load_settings(environ=own, folder=folder)
        self.lines = io.StringIO()
        self.log = Log(self.lines, settings.serve.log_level)
        self.service = compose(settings, None, self.log.logger)
        listener = listen(settings.serve)
        self.url = "http://{}:{}".format(*listener.getsockname()[:2])
        self.server = server_of(self.service)
        self.thread = threading.Thread(target=self.server.run, args=([listener],), daemon=True)
        self.thread.start()

    def wait_until_ready(self):
        deadline = time.monotonic() + ANSWER_S
        while self.get("/readyz").status != 200:
            assert self.service.components.failure is None, self.logged()
            assert time.monotonic() < deadline, self.logged()
            time.sleep(0.01)

    def logged(self):
        """Lists what was logged so far."""
        return [json.loads(line) for line in self.lines.getvalue().splitlines()]

    def end(self):
        """Ends it as a signal would, and waits."""
        self.server.should_exit = True
        self.thread.join(ANSWER_S)
        self.log.close()
        assert not self.thread.is_alive(), self.logged()


@contextlib.contextmanager
def served_in_thread(folder, **environ):
    """Runs a service as long as the block."""
    service = ThreadedService(folder, **environ)
    try:
        service.wait_until_ready()
        yield service
    finally:
        service.end()
