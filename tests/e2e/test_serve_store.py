"""What the service does while its store is held up, full or gone: it scores, and says the truth."""

import contextlib
import shutil
import signal
import sqlite3
import threading
import time

import psycopg
import pytest

from podium.store import open_store
from podium.store.engine import TURN_LOCK
from support.depth import with_deep
from support.postgres import postgres_server
from support.service import ANSWER_S, OBSERVE, SCORE, eventually, served

LIMIT_S = 2.0
HASTY = {"PODIUM_SERVE_STORE_LIMIT_S": str(LIMIT_S), "PODIUM_SERVE_POLL_S": "0.2"}


@pytest.fixture(scope="module")
def databases():
    with postgres_server() as databases:
        yield databases


@contextlib.contextmanager
def held_sqlite(url):
    with contextlib.closing(sqlite3.connect(url, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextlib.contextmanager
def held_postgresql(url):
    with psycopg.connect(url) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [TURN_LOCK])
        yield


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    """Gives an address and what holds its lock up."""
    if request.param == "sqlite":
        url = str(tmp_path / "podium.db")
        yield url, lambda: held_sqlite(url)
        return
    with request.getfixturevalue("databases").lent() as url:
        yield url, lambda: held_postgresql(url)


def told(process, **changes):
    """Tells an observation; gives the answer, which comes while a lock is held, too."""
    return process.post("/v1/observe", {**OBSERVE, **changes})


def store_said(process):
    reply = process.get("/readyz")
    return reply.json["store"] if reply.status == 200 else reply.status


def test_a_lock_that_is_held_delays_observations_for_a_while_and_scores_never(tmp_path, store):
    url, hold = store
    few = {"PODIUM_SERVE_MAX_OBSERVING": "20", "PODIUM_SERVE_MAX_IN_FLIGHT": "20"}
    with served(tmp_path, "--store", url, **HASTY, **few) as process:
        assert told(process).status == 200
        with hold():
            replies = []
            threads = [
                threading.Thread(target=lambda: replies.append(told(process))) for _ in range(60)
            ]
            for thread in threads:
                thread.start()
            scored = []
            while any(thread.is_alive() for thread in threads):
                scored.append(process.post("/v1/score", SCORE).status)
            assert {reply.status for reply in replies} == {503}
            assert all(reply.headers["retry-after"] for reply in replies)
            assert set(scored) == {200}
            assert store_said(process) == "unavailable"
            trouble = process.get("/metrics").body.split(b"\npodium_store_trouble_seconds ")[1]
            assert float(trouble.split()[0]) > 0
        eventually(lambda: store_said(process) == "ok")
        assert told(process).status == 200
        assert process.end() == 0
        messages = [log["message"] for log in process.logs]
        assert messages.count("cannot write to the database") == 1
        assert messages.count("the database can be written again") == 1


@pytest.mark.deep
def test_a_held_lock_is_said_even_if_nobody_tells_anything(tmp_path, store):
    url, hold = store
    with served(tmp_path, "--store", url, **HASTY) as process:
        assert store_said(process) == "ok"
        with hold():
            eventually(lambda: store_said(process) == "unavailable")
        eventually(lambda: store_said(process) == "ok")


def stopped_in_its_turn(process, url):
    """Stops a replica at a moment when it holds the lock."""
    held = (
        "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE locktype = 'advisory' AND granted AND state = 'idle in transaction'"
        " AND query NOT LIKE 'COMMIT%'"
    )
    with psycopg.connect(url, autocommit=True) as server:
        for _ in range(500):
            process.process.send_signal(signal.SIGSTOP)
            time.sleep(0.05)
            if server.execute(held).fetchone()[0]:
                return
            process.process.send_signal(signal.SIGCONT)
            time.sleep(0.02)
    raise AssertionError("it was never stopped in its turn")


@pytest.mark.deep
def test_a_replica_that_is_stopped_in_its_turn_does_not_stop_the_others(tmp_path, databases):
    with databases.lent() as url:
        flags = ("--store", url)
        with served(tmp_path, *flags, **HASTY) as one, served(tmp_path, *flags, **HASTY) as two:
            is_over = threading.Event()

            def tell():
                while not is_over.is_set():
                    with contextlib.suppress(OSError):
                        told(one)

            tellers = [threading.Thread(target=tell, daemon=True) for _ in range(4)]
            for teller in tellers:
                teller.start()
            stopped_in_its_turn(one, url)
            try:
                assert told(two).status == 200
                assert two.post("/v1/score", SCORE).status == 200
                assert told(two).status == 200
                eventually(lambda: store_said(two) == "ok")
            finally:
                one.process.send_signal(signal.SIGCONT)
                is_over.set()
            for teller in tellers:
                teller.join(ANSWER_S)
            eventually(lambda: told(one).status == 200)


def remove(path):
    path.unlink()


def move(path):
    path.rename(path.with_name("moved"))


def replace(path):
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


def move_folder(path):
    path.parent.rename(path.parent.with_name("elsewhere"))


@pytest.mark.deep
@pytest.mark.parametrize("end", ["", "-wal"])
@pytest.mark.parametrize("harm", with_deep([remove, move_folder], [move, replace]))
def test_nothing_is_acknowledged_that_goes_into_a_file_nobody_will_find(tmp_path, harm, end):
    folder = tmp_path / "data"
    with served(tmp_path, "--store", str(folder / "podium.db"), **HASTY) as process:
        assert told(process).status == 200
        harm(folder / f"podium.db{end}")
        assert told(process, job_id="a").status == 503
        assert process.post("/v1/score", SCORE).status == 200
        reply = process.get("/readyz")
        assert (reply.status, "deleted, moved or replaced" in reply.error.message) == (503, True)
        process.end()
        lost = [log for log in process.logs if log["message"] == "cannot write to the database"]
        assert "deleted, moved or replaced" in lost[0]["problem"]
        assert harm is move_folder or f"podium.db{end}:" in lost[0]["problem"]


def test_a_file_that_is_gone_is_noticed_without_an_observation_and_welcome_back(tmp_path):
    path = tmp_path / "podium.db"
    with served(tmp_path, **HASTY) as process:
        assert told(process).status == 200
        path.rename(tmp_path / "moved")
        eventually(lambda: store_said(process) == 503)
        (tmp_path / "moved").rename(path)
        eventually(lambda: store_said(process) == "ok")
        assert told(process).status == 200


def test_a_full_disk_is_said_and_what_was_acknowledged_is_kept(tmp_path):
    with served(tmp_path, ulimit="-f 300", **HASTY) as process:
        acknowledged = 0
        while (reply := told(process, job_type="x" * 250)).status == 200:
            acknowledged += 1
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert process.post("/v1/score", SCORE).status == 200
        assert store_said(process) == "unavailable"
        time.sleep(1.0)
        assert store_said(process) == "unavailable"
        process.end(signal.SIGKILL)
    with open_store(str(tmp_path / "podium.db")) as kept:
        assert kept.observations.count() == acknowledged > 10
