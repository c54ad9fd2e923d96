import threading

import pytest

from podium.search.generators.generator import Proposal
from podium.search.run.batch import Sample
from podium.search.run.requests import MOST_AT_ONCE, Writers

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
