"""Speaks the chat protocol over HTTP on the loopback interface, and misbehaves on request."""

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "sk-test-5ecret-0123456789"

POLICY = '''"""Prefers nodes with little CPU left."""


def score(pod, node):
    return -node.cpu_milli_left / 1000
'''


def fenced(code=POLICY, thought="fill nodes up", fence="```", info="python"):
    """Writes an answer as it is asked for, or nearly."""
    return f"Thought: {thought}\n\n{fence}{info}\n{code}{fence}\n"


@dataclass
class Answer:
    """Says how the server answers one call."""

    content: object = field(default_factory=fenced)
    status: int = 200
    headers: dict = field(default_factory=dict)
    raw: bytes | None = None  # instead of a chat completion
    usage: object = "honest"
    finish: str = "stop"
    message: dict = field(default_factory=dict)  # more fields of the message
    hang_s: float = 0.0
    drip_s: float = 0.0  # sends blanks for so long before the body
    sent_share: float = 1.0  # of the body, before the connection closes
    tokens_out: int | None = None  # what an honest count gives; a quarter of the bytes otherwise


def error(status, message, headers=None, **more):
    """Answers with an error as the protocol shapes it."""
    body = {"error": {"message": message, **more}}
    return Answer(status=status, raw=json.dumps(body).encode(), headers=headers or {})


class ChatServer:
    """Answers calls from a script: a list used up in order, or a function of the body."""

    def __init__(self):
        self.script = lambda _body: Answer()
        self.calls = []  # bodies, in the order they came
        self.keys = []
        self.headers = []
        self.models = None  # what GET /models lists
        self.price = None  # (in, out) in USD a token: what the server charges an account
        self.charged_usd = 0.0
        self.charged_tokens = 0
        self.in_flight = self.most_in_flight = 0
        self._lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def take(self, body, key):
        """Notes a call and says how it is answered."""
        with self._lock:
            self.calls.append(body)
            self.keys.append(key)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            if callable(self.script):
                return self.script(body)
            return self.script.pop(0) if self.script else Answer()

    def finish(self):
        with self._lock:
            self.in_flight -= 1

    def body_of(self, answer, body):
        """Writes a chat completion, and charges the account for it."""
        prompt = "".join(message["content"] for message in body["messages"])
        tokens_in = len(prompt.encode()) // 4
        text = answer.content if isinstance(answer.content, str) else json.dumps(answer.content)
        tokens_out = answer.tokens_out
        if tokens_out is None:
            tokens_out = -(-len(text.encode()) // 4)
        with self._lock:
            self.charged_tokens += tokens_in + tokens_out
            if self.price:
                self.charged_usd += tokens_in * self.price[0] + tokens_out * self.price[1]
        usage = answer.usage
        if usage == "honest":
            usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}
        message = {"role": "assistant", "content": answer.content, **answer.message}
        choice = {"index": 0, "message": message, "finish_reason": answer.finish}
        made = {"id": "x", "object": "chat.completion", "model": body["model"], "choices": [choice]}
        return json.dumps(made | ({} if usage is None else {"usage": usage})).encode()


def _handler(outer):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(length))
            outer.headers.append(dict(self.headers))
            answer = outer.take(body, self.headers.get("Authorization", ""))
            try:
                if not self.path.endswith("/v1/chat/completions"):
                    answer = error(404, "no such path")
                self.answer(answer, body)
            except (BrokenPipeError, ConnectionResetError):
                pass
            finally:
                outer.finish()

        def answer(self, answer, body):
            if answer.hang_s:
                time.sleep(answer.hang_s)
            raw = outer.body_of(answer, body) if answer.raw is None else answer.raw
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            blanks = int(answer.drip_s / 0.02)
            self.send_header("Content-Length", str(len(raw) + blanks))
            self.end_headers()
            for _ in range(blanks):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.02)
            self.wfile.write(raw[: int(len(raw) * answer.sent_share)])

        def do_GET(self):
            raw = json.dumps(outer.models or {}).encode()
            self.send_response(200 if outer.models else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *arguments):
            pass

    return Handler


@contextlib.contextmanager
def running_chat_server():
    """Runs a server until the end of the block."""
    server = ChatServer()
    thread = threading.Thread(target=server.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()
        thread.join()
