import threading
from dataclasses import replace

import pytest

from podium.search.generators.generator import Proposal
from podium.search.run.batch import Sample
from podium.search.run.budget import Allowance
from podium.search.run.history import History
from podium.search.run.plan import RANDOM, Budget
from podium.search.run.requests import MOST_AT_ONCE, Requests, Writers
from podium.store import CandidateRecord
from podium.store.records import JUDGED
from support.searches import PLAN_OF_TESTS
from support.writing import Writing, unlike

SAMPLES = [Sample(number, 0, "bred") for number in range(2 * MOST_AT_ONCE + 10)]


def write(sample):
    """Writes the number."""
    return Proposal(str(sample.number), "test")


def asked(write, samples=SAMPLES):
    """Asks for all samples."""
    writers = Writers(write)
    for sample in samples:
        writers.ask(sample)
    return writers


def test_every_sample_is_written_once():
    writers, found = asked(write), []
    while writers.numbers:
        found += writers.answers(30.0)
    assert sorted(sample.number for sample, _ in found) == [each.number for each in SAMPLES]
    assert all(proposal.text == str(sample.number) for sample, proposal in found)
    assert writers.close() == []


def test_nobody_is_asked_where_there_is_nothing_to_write():
    writers = Writers(write)
    assert writers.answers(0.0) == writers.close() == []


def test_what_is_there_is_given_while_others_are_still_written():
    gate = threading.Event()

    def slow(sample):
        if sample.number == 0:
            assert gate.wait(30)
        return write(sample)

    writers, seen = asked(slow), []
    while writers.numbers != {0}:
        seen += [sample.number for sample, _ in writers.answers(30.0)]
    assert 0 not in seen
    gate.set()
    assert [sample.number for sample, _ in writers.answers(30.0)] == [0]


def test_who_leaves_early_gets_what_was_begun_and_nothing_else():
    begun, gate = [], threading.Event()

    def slow(sample):
        begun.append(sample.number)
        assert sample.number == 0 or gate.wait(30)
        return write(sample)

    writers = asked(slow)
    assert [sample.number for sample, _ in writers.answers(30.0)] == [0]
    threading.Timer(0.2, gate.set).start()
    left = [sample.number for sample, _ in writers.close()]
    assert sorted([0, *left]) == sorted(begun)
    assert len(begun) < len(SAMPLES)


def test_a_mistake_of_a_generator_is_raised():
    def fail(_sample):
        raise RuntimeError("broken")

    writers = asked(fail, SAMPLES[:1])
    with pytest.raises(RuntimeError, match="broken"):
        writers.answers(30.0)
    assert writers.close() == []


MODELS_ALONE = replace(PLAN_OF_TESTS, generators=(("command", 1.0),), start=RANDOM)


def requests_of(rows=None, plan=MODELS_ALONE):
    """Begins a run that only models write for."""
    return Requests(plan, {"command": Writing(unlike)}, History(plan, ()), rows or {})


def made(requests, allowed, budget=Budget(), answered_s=0.0):  # noqa: B008 - frozen
    """Asks for the first batch, and returns the numbers of what was asked for."""
    requests.ask(allowed, budget, 1, answered_s)
    numbers = sorted(requests.under_way)
    requests.close()
    return numbers


def test_models_are_asked_for_as_much_as_the_calls_allow():
    allowed = Allowance(calls=4)
    numbers = [sample.number for sample in requests_of().of(0)]
    assert len(numbers) == MODELS_ALONE.batch
    assert made(requests_of(), allowed) == numbers[:4]
    assert (allowed.called, allowed.may_call()) == (4, False)
    assert made(requests_of(), Allowance()) == numbers


def test_models_are_not_asked_for_what_would_come_too_late():
    assert made(requests_of(), Allowance(), Budget(seconds=10.0), answered_s=10.0) == []
    assert made(requests_of(), Allowance(), Budget(seconds=10.0), answered_s=9.9)


def test_what_is_known_or_given_up_is_not_asked_for_again():
    first, second, *others = [sample.number for sample in requests_of().of(0)]
    requests = requests_of({first: CandidateRecord("run", first)})
    requests.unwritten.add(second)
    allowed = Allowance()
    assert made(requests, allowed) == others
    assert allowed.called == 1 + len(others)  # what is known was a call; what was given up, none


def test_what_a_gate_refused_is_asked_for_once_more_and_a_repair_never():
    requests = requests_of()
    sample = next(requests.of(0))
    row = CandidateRecord("run", sample.number, text="import os", gate="allow-list", state=JUDGED)
    requests.repair(sample, replace(row, kind="repair"))
    assert len(list(requests.of(0))) == MODELS_ALONE.batch
    requests.repair(sample, row)
    *_, repair = requests.of(0)
    assert (repair.kind, repair.request.failure.gate) == ("repair", "allow-list")
    requests.end_batch([], 0)
    assert repair not in list(requests.of(0))
