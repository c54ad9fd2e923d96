import threading

import pytest

from podium.search.generator import Proposal
from podium.search.run.proposals import MOST_AT_ONCE, as_written
from podium.search.run.samples import Sample

SAMPLES = [Sample(number, 0, "bred") for number in range(20)]


def write(sample):
    """Writes the number."""
    return Proposal(str(sample.number), "test")


def test_every_sample_is_written_once():
    found = [pair for group in as_written(SAMPLES, write) for pair in group]
    assert sorted(sample.number for sample, _ in found) == list(range(20))
    assert all(proposal.text == str(sample.number) for sample, proposal in found)


def test_nothing_to_write_is_nothing():
    assert list(as_written([], write)) == []


def test_what_is_there_is_given_while_others_are_still_written():
    gate = threading.Event()

    def slow(sample):
        if sample.number == 0:
            assert gate.wait(30)
        return write(sample)

    seen = []
    for group in as_written(SAMPLES, slow):
        seen += [sample.number for sample, _ in group]
        if len(seen) == 19:
            assert 0 not in seen
            gate.set()
    assert seen[-1] == 0


def test_who_leaves_early_pays_for_what_was_begun_alone():
    begun, gate = [], threading.Event()

    def slow(sample):
        begun.append(sample.number)
        assert sample.number == 0 or gate.wait(30)
        return write(sample)

    writing = as_written(SAMPLES, slow)
    next(writing)
    gate.set()
    writing.close()
    assert len(begun) <= 2 * MOST_AT_ONCE < len(SAMPLES)


def test_a_mistake_of_a_generator_is_raised():
    def fail(_sample):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        list(as_written(SAMPLES, fail))
