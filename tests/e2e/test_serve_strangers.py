"""What somebody without a token can do to the service: nothing that others would notice."""

import contextlib
import json
import os
import socket
import ssl
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from podium.kube.local.certificate import make_certificate
from podium.service.http.tls import HandshakeLimits
from support.service import ANSWER_S, OBSERVE, SCORE, served

pytestmark = pytest.mark.deep

TOKEN = "0123456789abcdef0123456789abcdef"
RIGHT = {"Authorization": f"Bearer {TOKEN}"}
MIB = 2**20
GENEROUS_MIB = 60
"""More than any bound needs; each of these attacks once cost hundreds."""


@pytest.fixture
def guarded(tmp_path):
    """Is a service that only its friends may use."""
    (tmp_path / "token").write_text(TOKEN)
    with served(tmp_path, "--token-file", "token") as process:
        assert process.post("/v1/observe", OBSERVE, headers=RIGHT).status == 200
        yield process


def connected(process, receive_bytes=0):
    """Connects; who takes in little fills the service's side sooner."""
    connection = socket.socket()
    if receive_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.settimeout(ANSWER_S)
    connection.connect((urlsplit(process.url).hostname, urlsplit(process.url).port))
    return connection


def memory_mib(process):
    pages = int(Path(f"/proc/{process.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def cpu_s(process):
    """Gives the seconds that the service has worked: a busy machine does not lengthen them."""
    fields = Path(f"/proc/{process.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Friend(threading.Thread):
    """Asks for scores one after another; notes the most work before an answer, and memory."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process = process
        self.is_done = threading.Event()
        self.statuses, self.longest_s, self.most_mib = set(), 0.0, 0.0
        self.is_known = threading.Event()

    def run(self):
        with contextlib.closing(self.process.connect()) as connection:
            while not self.is_done.wait(0.01):
                started = cpu_s(self.process)
                reply = self.process.post("/v1/score", SCORE, headers=RIGHT, connection=connection)
                self.longest_s = max(self.longest_s, cpu_s(self.process) - started)
                self.statuses.add(reply.status)
                self.most_mib = max(self.most_mib, memory_mib(self.process))
                self.is_known.set()

    def __enter__(self):
        self.start()
        assert self.is_known.wait(ANSWER_S)
        self.usual_mib = memory_mib(self.process)
        return self

    def __exit__(self, *_):
        self.is_done.set()
        self.join(ANSWER_S)

    def is_undisturbed(self):
        """Tells whether the service answered as ever and did not grow."""
        is_small = self.most_mib < self.usual_mib + GENEROUS_MIB
        return self.statuses == {200} and self.longest_s < 1.0 and is_small


def poured(connection, data, total):
    """Sends data again and again until so many bytes are sent or the service hangs up."""
    sent = 0
    with contextlib.suppress(OSError):
        while sent < total:
            sent += connection.send(data)
    return sent


HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = b"POST /v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "data"),
    [
        (HEAD, b"a:b\r\n" * 13_000),
        (HEAD + b"X-Long: ", b"a" * 2**16),
        (HEAD, b"A" * 2**16),
        (b"GET /", b"a" * 2**16),
        (b"", b"\r\n" * 2**15),
        (HEAD + b"\r\n", b"\r\n" * 2**15),
        (CHUNKED + b"0\r\n", b"a:b\r\n" * 13_000),
        (CHUNKED + b"0\r\nX-Long: ", b"a" * 2**16),
        (CHUNKED + b"1;", b"a" * 2**16),
    ],
    ids=["fields", "value", "name", "target", "lines", "later", "trailers", "trailer", "chunk"],
)
def test_a_head_without_an_end_is_cut_off_early(guarded, begin, data):
    with Friend(guarded) as friend, connected(guarded) as connection:
        connection.sendall(begin)
        assert poured(connection, data, 60 * MIB) < 8 * MIB  # what the system buffers
    assert friend.is_undisturbed(), vars(friend)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (HEAD + b"a:b\r\n" * 100 + b"\r\n", 431),
        (HEAD + b"X-Long: " + b"a" * 40_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n\r\n", 414),
        (HEAD + b"a:b\r\n" * 98 + b"X-Long: " + b"a" * 20_000 + b"\r\n\r\n", 200),
        (b"GET /healthz?" + b"a" * 8_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 200),
    ],
)
def test_a_head_has_a_bounded_size(guarded, said, status):
    with connected(guarded) as connection:
        connection.sendall(said)
        answer = connection.recv(2**16)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:200]
        if status != 200:
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"


def test_requests_that_come_ahead_of_their_answers_are_left_waiting(guarded):
    asked = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with Friend(guarded) as friend:
        connections = [connected(guarded) for _ in range(20)]
        for connection in connections:
            connection.settimeout(1.0)
            # The answers fill the system's buffers first, then the requests do.
            assert poured(connection, asked * 500, 40 * MIB) < 20 * MIB
        time.sleep(1.0)
        for connection in connections:
            connection.close()
    assert friend.is_undisturbed(), vars(friend)


@pytest.mark.parametrize(
    ("path", "headers"), [("/healthz", ""), ("/openapi.json", f"Authorization: Bearer {TOKEN}\r\n")]
)
def test_a_new_caller_does_not_wait_for_what_others_sent_ahead(guarded, path, headers):
    asked = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n".encode()
    with contextlib.ExitStack() as kept:
        crowd = [kept.enter_context(connected(guarded, 4096)) for _ in range(600)]
        sent, waits_s = 0, []
        for connection in crowd:
            connection.setblocking(False)
            sent += connection.send(asked * 3000)
        for _ in range(7):
            started = cpu_s(guarded)
            assert guarded.get("/healthz").status == 200
            waits_s.append(cpu_s(guarded) - started)
        told = guarded.get("/metrics", headers=RIGHT).body.decode()
    counts = [line for line in told.splitlines() if "duration_seconds_count{" in line]
    answered = sum(float(line.split()[-1]) for line in counts)
    assert answered < sent // len(asked)  # the flood went on all the time
    assert sorted(waits_s)[3] < 1.0, waits_s


def test_who_does_not_read_is_cut_off(tmp_path):
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    hasty = {"PODIUM_SERVE_READ_LIMIT_S": "1"}
    with served(tmp_path, **hasty) as process, connected(process, 4096) as one:
        one.sendall(asked * 500)
        while is_connected(one):
            time.sleep(0.05)
        count = 0
        with contextlib.suppress(ConnectionError):
            while count < 500 and (got := one.recv(2**20)):
                count += got.count(b"HTTP/1.1 200")
        assert count < 500
        assert process.get("/healthz").status == 200


def is_connected(connection):
    """Tells whether the service keeps its end open."""
    ours, theirs = (f"{end[1]:04X}" for end in (connection.getsockname(), connection.getpeername()))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1][-4:] == theirs and row[2][-4:] == ours and row[3] == "01" for row in rows)


def test_requests_that_were_sent_ahead_are_all_answered_in_their_order(guarded):
    body = json.dumps(SCORE).encode()
    scored = b"POST /v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    scored += (
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )
    parts = [
        (HEAD + f"X-Request-ID: n{number}\r\n\r\n".encode()) if number % 3
        else scored.replace(b"Host:", f"X-Request-ID: n{number}\r\nHost:".encode())
        for number in range(2000)
    ]  # fmt: skip
    answers = b""
    with connected(guarded) as connection:
        sender = threading.Thread(target=connection.sendall, args=(b"".join(parts),), daemon=True)
        sender.start()
        while answers.count(b"x-request-id: ") < 2000:
            answers += (got := connection.recv(2**18))
            assert got, answers[-300:]
        sender.join(ANSWER_S)
    names = [part.split(b"\r\n")[0] for part in answers.split(b"x-request-id: ")[1:]]
    assert names == [f"n{number}".encode() for number in range(2000)]
    assert answers.count(b"HTTP/1.1 200 OK") == 2000


def scored(number):
    """Writes a request with a body."""
    body = json.dumps(SCORE)
    return (
        f"POST /v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nX-Request-ID: n{number}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


BROKEN_BODY = (
    b"POST /v1/observe HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"
)


@pytest.mark.parametrize(
    ("good", "bad", "statuses"),
    [
        ([HEAD + b"\r\n"], b"garbage\r\n\r\n", [200, 400]),
        ([HEAD + b"\r\n"] * 3, b"\x00", [200, 200, 200, 400]),
        ([scored(1)], b"garbage\r\n\r\n", [200, 400]),
        ([scored(1), HEAD + b"\r\n", scored(2)], b"GET\r\n\r\n" * 9, [200, 200, 200, 400]),
        ([scored(1)], HEAD + b"a:b\r\n" * 100 + b"\r\n", [200, 431]),
        ([HEAD + b"Connection: close\r\n\r\n"], b"garbage\r\n\r\n", [200]),
        ([], b"garbage\r\n\r\n", [400]),
        ([HEAD + b"\r\n"], BROKEN_BODY, [200, 400]),
        ([HEAD + b"\r\n"] * 3, BROKEN_BODY, [200, 200, 200, 400]),
        ([scored(1), scored(2)], BROKEN_BODY, [200, 200, 400]),
    ],
)
def test_what_came_before_garbage_is_answered_before_the_connection_closes(
    guarded, good, bad, statuses
):
    answers = b""
    with connected(guarded) as connection:
        connection.sendall(b"".join(good) + bad)
        while got := connection.recv(2**18):
            answers += got
    told = [int(part[:3]) for part in answers.split(b"HTTP/1.1 ")[1:]]
    assert told == statuses


def test_one_connection_too_many_takes_the_place_of_the_idlest(tmp_path):
    with served(tmp_path, PODIUM_SERVE_MAX_CONNECTIONS="10") as process:
        with contextlib.ExitStack() as kept:
            idle = [kept.enter_context(connected(process)) for _ in range(10)]
            time.sleep(0.2)
            assert process.get("/healthz").status == 200
            assert idle[0].recv(1) == b""
            assert process.get("/readyz").status == 200
        assert process.end() == 0
        warned = [log for log in process.logs if log["message"] == "too many connections"]
        assert len(warned) == 1
        assert warned[0]["connections"] == 11


def test_few_open_files_are_said_at_the_start_and_borne(tmp_path):
    with served(tmp_path, ulimit="-n 64") as process:
        with contextlib.ExitStack() as kept:
            for _ in range(200):
                kept.enter_context(connected(process))
            assert process.get("/healthz").status == 200
        assert process.end() == 0
        messages = [log["message"] for log in process.logs]
        assert "serve.max_connections is more than open files allow" in messages
        assert messages.count("too many connections") == 1


def test_a_handshake_that_never_comes_is_not_waited_for(tmp_path):
    cert, key = make_certificate(tmp_path)
    with served(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key)) as process:
        with connected(process) as connection:
            assert connection.recv(1) == b""
        trusting = process.connect(ssl.create_default_context(cafile=cert))
        with contextlib.closing(trusting):
            assert process.get("/healthz", connection=trusting).status == 200


@pytest.mark.parametrize(
    "said",
    [
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /hea",
        b"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nx",
        b"POST /v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: 9\r\n\r\n{",
    ],
    ids=["half a second head", "a body left over", "half a body"],
)
def test_who_waits_in_the_middle_of_a_request_keeps_nobody_out(tmp_path, said):
    with served(tmp_path, PODIUM_SERVE_MAX_CONNECTIONS="10") as process:
        with contextlib.ExitStack() as kept:
            for _ in range(10):
                connection = kept.enter_context(connected(process))
                connection.sendall(said)
            time.sleep(0.5)
            assert process.get("/healthz").status == 200
        assert process.end() == 0


def test_callers_that_never_shake_hands_keep_nobody_out(tmp_path):
    cert, key = make_certificate(tmp_path)
    flags = ("--tls-cert", str(cert), "--tls-key", str(key))
    with served(tmp_path, *flags, ulimit="-n 100") as process:
        with contextlib.ExitStack() as kept:
            started = time.monotonic()
            for _ in range(6):
                silent = [kept.enter_context(connected(process)) for _ in range(100)]
                trusting = process.connect(ssl.create_default_context(cafile=cert))
                with contextlib.closing(trusting):
                    assert process.get("/healthz", connection=trusting).status == 200
            assert time.monotonic() - started < 6 * HandshakeLimits().limit_s
            assert silent[0].recv(1) == b""
        assert process.end() == 0
        assert not process.others
