import json
import struct

import pytest

from podium.search import process
from podium.search.judge import Judge
from podium.search.limits import Limits
from podium.search.measurement import FIGURES
from podium.search.process import Worker, anything
from podium.search.run.executor import Context, Task, perform
from podium.search.training import Case, TrainingSet
from podium.search.verdict import TRAINING
from support.hostile import GOOD

KIND = "inflation"
LIMITS = Limits(time_s=6.0, trial_s=1.5, tuning_s=20.0, memory_mib=256)
OS = '__builtins__["__import__"]("os")'
HUGE = 10**400
VALUES = dict.fromkeys(FIGURES[KIND], 50.0)
DECISIONS = {"signature": "0" * 16, "behaviour": [0.5, 0.5, 0.5, 0.0]}
CASE = {"case": 0, "values": VALUES}
LOST = {"stranded": 1.0, "broken": 0.5, "idle": 0}
LOSSES = {"losses": 0, "values": {**LOST, "8-gpu": 100.0}}
DONE = {"done": True, "reason": "", "spoiled": False}
HEAD = "from podium.policies import tunable\nW = tunable(0.5, 0, 1)\n"


@pytest.fixture(scope="module")
def judge():
    """Judges on one tiny case; its pool takes texts that no gate has read."""
    with Judge(TrainingSet((Case(nodes=8, pods=60),)), KIND, 1, LIMITS) as judge:
        yield judge


@pytest.fixture
def taken_over(monkeypatch):
    """Makes a worker whose process says what it likes, once it is asked."""

    def start(*messages):
        told = b"".join(_packed(json.dumps(each).encode()) for each in messages).hex()
        script = _READY + f'answer("{told}")\n'
        monkeypatch.setattr(process, "_BOOT", script.replace("{", "{{").replace("}", "}}"))
        workers.append(Worker({}, LIMITS, (KIND,)))
        workers[-1].get_ready()
        return workers[-1]

    workers = []
    yield start
    for worker in workers:
        worker.close()


_READY = """
import struct, sys, time
def hear():
    (size,) = struct.unpack(">I", sys.stdin.buffer.read(4))
    sys.stdin.buffer.read(size)
def say(told):
    sys.stdout.buffer.write(told)
    sys.stdout.buffer.flush()
def answer(told):
    hear()
    ready = b'{"ready": true, "baseline": [], "losses": [], "doors": []}'
    say(struct.pack(">I", len(ready)) + ready)
    hear()
    say(bytes.fromhex(told))
    time.sleep(60)
"""


def forging(*messages, head=""):
    """Writes a candidate that answers for its process."""
    told = b"".join(_packed(json.dumps(each).encode()) for each in messages).hex()
    answer = f'{OS}.write(4, bytes.fromhex("{told}"))'
    # It waits, so that what it said is not mixed up with what the process says.
    return f"{head}def score(pod, node):\n    {answer}\n    while True:\n        pod\n"


def _packed(body):
    return struct.pack(">I", len(body)) + body


@pytest.mark.parametrize(
    "messages",
    [
        [{**DONE, "tuned": {}, "evaluations": 0}],
        [{"tuned": {}, "evaluations": 0}],
        [CASE, DONE],
        [DECISIONS, DONE],
        [{**DECISIONS, "signature": "0" * 15}],
        [{**DECISIONS, "signature": "G" * 16}],
        [{**DECISIONS, "signature": None}],
        [{**DECISIONS, "behaviour": [0.5] * 3}],
        [{**DECISIONS, "behaviour": [0.5, 0.5, 0.5, 1.5]}],
        [{**DECISIONS, "behaviour": [0.5, 0.5, 0.5, True]}],
        [{**DECISIONS, "behaviour": "0.50"}],
        [{**DECISIONS, "behaviour": [0.5, 0.5, 0.5, HUGE]}],
        [DECISIONS, DECISIONS],
        [{"case": 0.0, "values": VALUES}],
        [{"case": False, "values": VALUES}],
        [{"case": [0], "values": VALUES}],
        [{"case": 1, "values": VALUES}],
        [{"case": 0, "values": {**VALUES, "fragmentation": HUGE}}],
        [{"case": 0, "values": {**VALUES, "allocation_130": 101.0}}],
        [CASE, CASE],
        [DECISIONS, CASE, DONE],
        [DECISIONS, LOSSES],
        [DECISIONS, CASE, LOSSES, LOSSES],
        [DECISIONS, CASE, {**LOSSES, "losses": False}],
        [DECISIONS, CASE, {**LOSSES, "losses": "0"}],
        [DECISIONS, CASE, {"losses": 0}],
        [DECISIONS, CASE, {**LOSSES, "values": [1.0, 0.5, 0.0]}],
        [DECISIONS, CASE, {**LOSSES, "values": {"stranded": 1.0}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "gold": 1.0}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "idle": 100.1}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "idle": -0.1}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "idle": HUGE}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "idle": True}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "idle": float("nan")}}],
        [{"gate": ["training"]}],
        [{"gate": "paradise"}],
    ],
)
def test_forged_answers_of_a_trial_are_refused(taken_over, messages):
    trial = taken_over(*messages).run("", (), anything)
    assert not trial.verdict.accepted
    assert "the process answered with" in trial.reason
    assert trial.is_spoiled


def test_figures_beside_the_measurement_may_be_anything(taken_over):
    odd = [DECISIONS, {**CASE, "simulated_s": HUGE}, LOSSES, {**DONE, "processor_s": "long"}]
    trial = taken_over(*odd).run("", (), anything)
    assert trial.verdict.accepted
    assert trial.losses == [LOSSES["values"]]


def test_a_process_whose_candidate_is_unwanted_hears_so(taken_over):
    heard = []
    worker = taken_over(DECISIONS, {**DONE, "reason": "nobody wants it"})
    trial = worker.run("", (), lambda decisions: bool(heard.append(decisions)))
    assert trial.reason == "nobody wants it"
    assert [each.signature for each in heard] == ["0" * 16]


def test_a_candidate_that_answers_for_its_process_is_refused(judge):
    trial = judge.pool.run(forging(CASE, DONE))
    assert not trial.verdict.accepted
    assert "no decisions" in trial.reason


def test_a_process_that_never_stops_talking_is_stopped(judge):
    told = _packed(b'{"gate": "contract"}').hex()
    text = (
        f"def score(pod, node):\n    write = {OS}.write\n"
        f'    told = bytes.fromhex("{told}") * 100\n    while True:\n        write(4, told)\n'
    )
    trial = judge.pool.run(text)
    assert not trial.verdict.accepted
    assert trial.seconds < 10
    assert judge.pool.run(GOOD).verdict.accepted


@pytest.mark.parametrize("tuned", [{"W": HUGE}, {"W": "0.5"}, {"W": True}, [0.5], None])
def test_tuned_constants_that_are_no_numbers_are_refused(taken_over, tuned):
    told = {**DONE, "tuned": tuned, "evaluations": 7}
    trial = taken_over(told).tune("", {"evaluations": 20})
    assert "answered with constants" in trial.reason
    assert (trial.tuned, trial.evaluations, trial.is_spoiled) == ({}, 0, True)


@pytest.mark.parametrize("evaluations", [HUGE, 21, -1, 2.0, None])
def test_a_tuning_that_claims_an_impossible_cost_is_refused(taken_over, evaluations):
    told = {**DONE, "tuned": {"W": 0.25}, "evaluations": evaluations}
    trial = taken_over(told).tune("", {"evaluations": 20})
    assert trial.reason
    assert 0 <= trial.evaluations <= 20
    assert trial.is_spoiled


@pytest.mark.parametrize("messages", [[CASE, DECISIONS, DONE], [DONE]])
def test_a_tuning_is_no_trial(taken_over, messages):
    assert taken_over(*messages).tune("", {"evaluations": 20}).reason


@pytest.mark.parametrize("tuned", [{"W": 5.0}, {"V": 0.5}])
def test_tuned_constants_that_were_never_allowed_are_refused(judge, tuned):
    told = {**DONE, "tuned": tuned, "evaluations": 7, "spoiled": True}
    done = perform(judge, Task(3, forging(told, head=HEAD), 10, tuning=20, seed=1), Context())
    assert (done.number, done.judgement.verdict.accepted, done.evaluations) == (3, False, 8)
    assert done.judgement.verdict.gate == TRAINING
    assert "W is 5.0" in done.judgement.verdict.reason or '"V"' in done.judgement.verdict.reason


def test_what_was_tuned_is_judged_with_its_new_constants(judge):
    text = (
        HEAD.replace("0.5", "0.912345")
        + "def score(pod, node):\n    return (W - 0.7) * node.cpu_milli_left\n"
    )
    done = perform(judge, Task(3, text, 10, tuning=20, seed=1), Context())
    assert done.judgement.verdict.accepted
    assert done.text != text
    assert 1 < done.evaluations <= 21
    plain = perform(judge, Task(4, done.text, 10), Context())
    assert plain.judgement.scores == done.judgement.scores
    assert plain.evaluations == 1
