import contextlib
import http.client
import json
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from urllib.parse import urlsplit

import pytest

from podium.kube.local.certificate import make_certificate
from podium.service.learning.replies import ObserveReply, ScoreReply
from podium.store import open_store
from support.binary import PODIUM, run
from support.postgres import postgres_server
from support.service import ANSWER_S, ASSIGN, OBSERVE, SCORE, Process, eventually, served

TOKEN = "0123456789abcdef0123456789abcdef"


class Teller(threading.Thread):
    """Tells observations one after another until the connection breaks."""

    def __init__(self, process, name):
        super().__init__(daemon=True)
        self.process, self.name_of_job = process, name
        self.acknowledged = 0
        self.refused = []

    def run(self):
        body = {"job_type": self.name_of_job, "gpu_type": "g", "measured_runtime_s": 5.0}
        connection = self.process.connect()
        with (
            contextlib.closing(connection),
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            while True:
                reply = self.process.post("/v1/observe", body, connection=connection)
                if reply.status == 200:
                    self.acknowledged += 1
                else:
                    self.refused.append(reply)


def told_by_many(process, each):
    """Runs tellers; each has so many observations acknowledged by now, and goes on telling."""
    tellers = [Teller(process, f"job-{number}") for number in range(8)]
    for teller in tellers:
        teller.start()
    deadline = time.monotonic() + 300
    while any(teller.acknowledged < each for teller in tellers):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return tellers


def kept_of(folder):
    """Counts the observations in the store by job type."""
    with open_store(str(folder / "podium.db")) as store:
        return {job: count for (job, _), count in store.observations.counts().items()}


def test_a_served_score_observation_and_assignment(tmp_path):
    with served(tmp_path) as process:
        ScoreReply.model_validate_json(process.post("/v1/score", SCORE).body)
        ObserveReply.model_validate_json(process.post("/v1/observe", OBSERVE).body)
        assert process.post("/v1/assign", ASSIGN).json["assignment"] == [0, 1]
        assert process.get("/readyz").json == {"status": "ready", "store": "ok"}
        assert b"podium_online_decisions_total" in process.get("/metrics").body
        assert process.get("/openapi.json").json["info"]["title"] == "Podium"
        reply = process.post("/v1/score", "{", headers={"X-Request-ID": "abc"})
        assert (reply.status, reply.headers["x-request-id"]) == (400, "abc")
        assert process.end() == 0
        assert process.logs[-1]["message"] == "stopped"


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """Is a service that tests share; whatever they say to it, it stands."""
    with served(tmp_path_factory.mktemp("standing")) as process:
        yield process


def test_the_head_of_an_answer_comes_without_its_body(standing):
    with contextlib.closing(standing.connect()) as connection:
        for path in ("/healthz", "/", "/healthz"):
            connection.request("HEAD", path)
            reply = connection.getresponse()
            assert (reply.status, reply.read()) == (200, b"")


def spoken(process, *parts):
    """Sends bytes as they are, and gives all that is answered until the service hangs up."""
    host, port = urlsplit(process.url).hostname, urlsplit(process.url).port
    with socket.create_connection((host, port), timeout=ANSWER_S) as connection:
        for part in parts:
            connection.sendall(part)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        error = json.loads(answer.read())["error"]
        assert connection.recv(1) == b""
        return answer.status, error


@pytest.mark.parametrize(
    "said",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n",
        b"GET / HTTP/1.1\r\nA\x00: b\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
)
def test_what_is_no_request_is_refused_in_the_one_shape(standing, said):
    status, error = spoken(standing, said)
    assert (status, error["code"]) == (400, "malformed")
    assert error["hint"]
    assert standing.get("/healthz").status == 200


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """Is a service that waits for two seconds."""
    with served(tmp_path_factory.mktemp("hasty"), PODIUM_SERVE_READ_LIMIT_S="2") as process:
        yield process


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nX-Slow: "])
def test_nobody_is_waited_for_too_long(hasty, said):
    status, error = spoken(hasty, said)
    assert (status, error["code"]) == (408, "timeout")
    assert hasty.get("/healthz").status == 200


def test_the_time_to_wait_begins_anew_with_every_request_of_a_connection(hasty):
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with contextlib.closing(hasty.connect()) as connection:
        for _ in range(2):
            time.sleep(1.1)
            assert hasty.get("/healthz", connection=connection).status == 200
        connection.sock.sendall(whole[:20])
        answer = http.client.HTTPResponse(connection.sock)
        answer.begin()
        assert answer.status == 408


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool of Prometheus is not there")
def test_prometheus_itself_finds_nothing_wrong_with_the_metrics(tmp_path):
    with served(tmp_path) as process:
        for body in (OBSERVE, {**OBSERVE, "colocated_job_types": ["serve-llm"]}):
            assert process.post("/v1/observe", body).status == 200
        assert process.post("/v1/score", SCORE).status == 200
        assert process.post("/v1/score", "{").status == 400
        told = process.get("/metrics").body
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=told, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


def test_what_was_learned_is_there_after_a_restart(tmp_path):
    with served(tmp_path) as process:
        for _ in range(3):
            process.post("/v1/observe", OBSERVE)
        first = process.post("/v1/score", SCORE).json
    with served(tmp_path) as process:
        assert process.post("/v1/score", SCORE).json["candidates"] == first["candidates"]
        assert process.logs[-1]["last_id"] == 3


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    process = Process(tmp_path)
    tellers = told_by_many(process, 30)
    assert process.end(signal.SIGKILL) == -signal.SIGKILL
    for teller in tellers:
        teller.join(ANSWER_S)
    kept = kept_of(tmp_path)
    assert sum(teller.acknowledged for teller in tellers) > 8
    for teller in tellers:
        # One more may have been written whose answer was cut off.
        assert kept[teller.name_of_job] - teller.acknowledged in (0, 1)
    with served(tmp_path) as again:
        scored = again.post("/v1/score", {"job_type": "job-0", "candidate_gpu_types": ["g"]}).json
        assert scored["candidates"][0]["observations"] == kept["job-0"]


def test_an_end_in_order_under_load_loses_and_refuses_nothing(tmp_path):
    process = Process(tmp_path)
    tellers = told_by_many(process, 30)
    assert process.end(signal.SIGTERM) == 0
    for teller in tellers:
        teller.join(ANSWER_S)
    kept = kept_of(tmp_path)
    for teller in tellers:
        assert teller.refused == []
        assert kept[teller.name_of_job] == teller.acknowledged > 0
    with open_store(str(tmp_path / "podium.db")) as store:
        assert store.checkpoints.load("online").last_id == store.observations.newest()


def test_probes_see_the_end_before_connections_do(tmp_path):
    with served(tmp_path, PODIUM_SERVE_DRAIN_DELAY_S="600") as process:
        process.process.send_signal(signal.SIGTERM)
        eventually(lambda: process.get("/readyz").status == 503)
        assert process.post("/v1/score", SCORE).status == 200


def test_an_interrupt_ends_it_too(tmp_path):
    process = Process(tmp_path)
    assert process.end(signal.SIGINT) == 130
    assert process.logs[-1]["message"] == "stopped"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_every_line_of_the_log_is_json(tmp_path, number):
    process = Process(tmp_path, "--host", "0.0.0.0")
    assert process.post("/v1/score", "{").status == 400
    process.end(number)
    messages = [log["message"] for log in process.logs]
    assert messages[0] == "listening"
    assert "anyone who can reach this address can use the service" in messages
    assert messages[-1] == "stopped"
    assert process.others == []


def test_a_token_file_closes_the_service(tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    with served(tmp_path, "--token-file", "token") as process:
        assert process.post("/v1/score", SCORE).status == 401
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert process.post("/v1/score", SCORE, headers=right).status == 200
        assert process.get("/readyz").status == 200


def test_connections_are_encrypted_with_a_certificate(tmp_path):
    cert, key = make_certificate(tmp_path)
    with served(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key)) as process:
        assert process.url.startswith("https://")
        trusting = process.connect(ssl.create_default_context(cafile=cert))
        with contextlib.closing(trusting):
            assert process.post("/v1/score", SCORE, connection=trusting).status == 200
        with (
            contextlib.closing(process.connect()) as doubting,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            process.get("/healthz", connection=doubting)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request, tmp_path):
    if request.param == "sqlite":
        yield str(tmp_path / "podium.db")
        return
    with postgres_server() as databases, databases.lent() as address:
        yield address


@pytest.mark.deep
def test_two_replicas_learn_the_same(tmp_path, store_url):
    flags = ("--store", store_url)
    with (
        served(tmp_path, *flags, PODIUM_SERVE_POLL_S="0.1") as one,
        served(tmp_path, *flags, PODIUM_SERVE_POLL_S="0.1") as two,
    ):
        for number in range(20):
            body = {**OBSERVE, "measured_runtime_s": 10.0 + number}
            assert (one, two)[number % 2].post("/v1/observe", body).status == 200
        deadline, seen = time.monotonic() + ANSWER_S, [{}, {"other": 1}]
        while seen[0] != seen[1] and time.monotonic() < deadline:
            seen = [each.post("/v1/score", SCORE).json["candidates"] for each in (one, two)]
        assert seen[0] == seen[1]
        assert seen[0][0]["observations"] == 20


@pytest.mark.deep
def test_a_name_that_one_replica_is_told_to_forget_is_forgotten_by_all(tmp_path, store_url):
    flags, hasty = ("--store", store_url), {"PODIUM_SERVE_POLL_S": "0.1"}
    with served(tmp_path, *flags, **hasty) as one, served(tmp_path, *flags, **hasty) as two:
        for gpu_type in ("A100-80GB", *(f"typo-{number}" for number in range(63))):
            body = {**OBSERVE, "gpu_type": gpu_type}
            assert one.post("/v1/observe", body).status == 200
        real = {**OBSERVE, "gpu_type": "H100-80GB"}
        eventually(lambda: two.post("/v1/observe", real).status == 409)
        names = [f"typo-{number}" for number in range(63)]
        assert one.post("/v1/forget", {"gpu_types": names}).status == 200
        eventually(lambda: two.post("/v1/observe", real).status == 200)
        asked = {"job_type": "train-bert", "candidate_gpu_types": ["A100-80GB", "typo-1"]}
        candidates = two.post("/v1/score", asked).json["candidates"]
        assert [each["observations"] for each in candidates] == [1, 0]


def test_a_port_that_is_taken_is_said(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run([*PODIUM, "serve", "--port", port, "--store", "podium.db"], tmp_path)
    assert done.returncode == 3
    assert f"cannot listen on 127.0.0.1:{port}: " in done.stderr
    assert "choose another --port" in done.stderr


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--tls-cert", "cert.pem"], 2, "TLS needs a certificate and its key"),
        (["--token-file", "token"], 2, "the token cannot be read"),
        (["--port", "70000"], 2, "too large"),
        (["--log-level", "loud"], 2, "is not one of"),
        (["--store", "mysql://x"], 2, "is not a supported database"),
    ],
)
def test_mistakes_are_said_before_anything_listens(tmp_path, flags, code, said):
    done = run([*PODIUM, "serve", *flags], tmp_path)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


def test_a_state_of_other_features_ends_the_service_with_advice(tmp_path):
    with served(tmp_path) as process:
        process.post("/v1/observe", OBSERVE)
    done = run(
        [*PODIUM, "serve", "--port", "0", "--store", "podium.db"],
        tmp_path,
        PODIUM_ONLINE_FEATURES="batch_size",
    )
    assert done.returncode == 2
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert any("other features" in line.get("problem", "") for line in lines)
