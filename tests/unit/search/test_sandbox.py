import os
import struct
import time
from pathlib import Path

import pytest

from podium.errors import PodiumError, UsageError
from podium.search.limits import Limits
from podium.search.sandbox import Pool
from podium.search.training import Case, TrainingSet
from podium.search.verdict import TINY
from support.hostile import GOOD

TRAINING = TrainingSet((Case(nodes=8, pods=60),))
LIMITS = Limits(time_s=10.0, trial_s=3.0, memory_mib=256)
GET = '__builtins__["__import__"]'


@pytest.fixture(scope="module")
def pool():
    """Runs texts as they are: what the gates before it refuse comes to the process here."""
    with Pool(TRAINING, "inflation", 1, LIMITS) as pool:
        yield pool


def _run(pool, expression):
    return pool.run(f"def score(pod, node):\n    return float({expression})\n")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ('len(__builtins__["open"]("/etc/passwd").read())', "may not cause open"),
        (f'{GET}("os").open("/etc/passwd", 0)', "may not cause open"),
        (f'{GET}("os").open("f", 65)', "may not cause open"),
        (f'len({GET}("os").listdir("/"))', "may not cause os.listdir"),
        (f'{GET}("os").mkdir("here")', "may not cause os.mkdir"),
        (f'{GET}("os").system("true")', "may not cause os.system"),
        (f'{GET}("os").fork()', "may not cause os.fork"),
        (f'{GET}("os").kill(1, 0)', "may not cause os.kill"),
        (f'{GET}("os").execv("/bin/true", ["true"])', "may not cause os.exec"),
        (f'{GET}("wave").open', "imports nothing"),
        (f'{GET}("_socket").socket().fileno()', ""),
        (f'{GET}("sys").exit(0)', ""),
        (f'{GET}("os")._exit(0)', "ended by itself (exit 0)"),
        (f'{GET}("os").abort()', "died of SIG"),
        (f'{GET}("os").write(1, b"x" * 9) + pod.nothing', "nothing"),
    ],
)
def test_a_text_that_got_past_the_gates_reaches_nothing(pool, expression, reason):
    trial = _run(pool, expression)
    assert (trial.verdict.accepted, trial.gate) == (False, TINY)
    assert trial.reason
    assert reason in trial.reason
    assert pool.run(GOOD).verdict.accepted


def test_the_environment_is_empty(pool):
    trial = _run(pool, f'1 / len({GET}("os").environ)')
    assert "ZeroDivisionError" in trial.reason


@pytest.mark.parametrize("body", ["{}", '{"done": true}', '{"case": 0, "values": {}}', "[]", "no"])
def test_forged_answers_are_refused(pool, body):
    told = (struct.pack(">I", len(body)) + body.encode()).hex()
    trial = _run(pool, f'{GET}("os").write(4, bytes.fromhex("{told}"))')
    assert not trial.verdict.accepted
    assert "the process answered with" in trial.reason
    assert pool.run(GOOD).verdict.accepted


def test_a_worker_is_kept_for_the_next_candidate_and_replaced_after_an_overrun():
    loop = "def score(pod, node):\n    x = 1\n    while x > 0:\n        x += 1\n    return x\n"
    with Pool(TRAINING, "inflation", 1, Limits(trial_s=0.5)) as pool:
        first = pool.run(GOOD)
        before = pool.processes()
        assert pool.run(GOOD).cases == first.cases
        assert pool.processes() == before
        trial = pool.run(loop)
        assert "within 0.5 s" in trial.reason
        assert trial.seconds < 5
        assert pool.processes() != before
        assert pool.run(GOOD).cases == first.cases


def test_the_process_gets_no_secret_and_an_empty_folder(monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "secret")
    with Pool(TRAINING, "inflation", 1, LIMITS) as pool:
        pool.get_ready()
        (pid,) = pool.processes()
        if not Path(f"/proc/{pid}").exists():
            pytest.skip("this system does not show processes as files")
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        folder = Path(f"/proc/{pid}/cwd").readlink()
        assert b"secret" not in environment
        assert b"PATH=" not in environment.split(b"LD_LIBRARY_PATH")[0]
        assert list(folder.iterdir()) == []
    assert not folder.exists()


def test_no_process_outlives_its_pool():
    with Pool(TRAINING, "inflation", 2, LIMITS) as pool:
        pids = pool.processes()
        assert len(pids) == 2
    deadline = time.monotonic() + 10
    while any(_is_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(_is_alive(pid) for pid in pids)


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_set_that_cannot_be_built_is_an_error_and_not_a_rejection():
    broken = TrainingSet((Case(trace="openb:nothing"),))
    with (
        Pool(broken, "inflation", 1, LIMITS) as pool,
        pytest.raises(PodiumError, match=r"does not start.*openb:nothing"),
    ):
        pool.run(GOOD)


def test_a_pool_without_workers_is_refused():
    with pytest.raises(UsageError, match="0 workers"):
        Pool(TRAINING, "inflation", 0, LIMITS)


@pytest.mark.parametrize("limits", [{"time_s": 0}, {"memory_mib": 1}, {"trial_s": float("nan")}])
def test_limits_that_bound_nothing_are_refused(limits):
    with pytest.raises(UsageError):
        Limits(**limits)
