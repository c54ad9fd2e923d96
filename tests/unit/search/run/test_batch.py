import threading
from dataclasses import replace

import pytest

from podium.search.generators.generator import Proposal
from podium.search.population.archive import Archive
from podium.search.run.batch import MOST_AT_ONCE, Sample, as_written, first_batch, next_batch
from podium.search.run.plan import RANDOM, Tuning
from support.members import candidate, member
from support.searches import PLAN_OF_TESTS, STARTERS
from support.writing import BAD, Writing, unlike, written_by

TUNABLE = "from podium.policies import tunable\nW = tunable(0.5, 0, 1)\n"
PLAN = replace(PLAN_OF_TESTS, batch=9, tuning=Tuning(every=2))


def archive_of(plan=PLAN, members=3, batches=1, text=""):
    """Gives islands with members of their own: number 10 * island and on."""
    archive = Archive(plan.customs, plan.seed, plan.training.families)
    found = [
        candidate(
            10 * island + i, island, (), member(10 * island + i, 50.0 + i, text=text or "x = 1")
        )
        for island in range(3)
        for i in range(members)
    ]
    archive.end_batch(found)
    while archive.batches < batches:
        archive.batches += 1
    return archive


def test_a_run_begins_with_its_starters():
    samples = first_batch(PLAN, STARTERS)
    assert [(each.name, each.text) for each in samples] == STARTERS
    assert {each.kind for each in samples} == {"seed"}
    assert [each.number for each in samples] == list(range(len(STARTERS)))


def test_a_run_from_nothing_begins_with_requests_without_parents():
    samples = first_batch(replace(PLAN, start=RANDOM), [])
    assert len(samples) == PLAN.batch
    assert [each.island for each in samples] == [0, 1, 2] * 3
    assert all(each.request.parents == () and each.parents == () for each in samples)
    assert len({each.request.seed for each in samples}) == PLAN.batch


def test_islands_take_turns_and_give_the_parents_of_their_own():
    archive = archive_of()
    samples = next_batch(PLAN, archive)
    assert [each.island for each in samples] == [0, 1, 2] * 3
    for each in samples:
        assert each.parents
        assert {number // 10 for number in each.parents} == {each.island}
        assert tuple(parent.number for parent in each.request.parents) == each.parents


def test_every_candidate_has_random_numbers_of_its_own():
    archive = archive_of()
    first = next_batch(PLAN, archive)
    assert first == next_batch(PLAN, archive)
    archive.batches += 1
    second = next_batch(PLAN, archive)
    seeds = {each.request.seed for each in (*first, *second) if each.request}
    numbers = {each.number for each in (*first, *second)}
    assert len(seeds) == len(numbers) == 2 * PLAN.batch
    assert min(each.number for each in second) == 2 * PLAN.block
    other = next_batch(replace(PLAN, seed=5), archive)
    assert {each.request.seed for each in other}.isdisjoint(seeds)


@pytest.mark.parametrize(("batches", "is_turn"), [(1, False), (2, True), (3, False), (4, True)])
def test_constants_are_tuned_when_it_is_their_turn(batches, is_turn):
    samples = next_batch(PLAN, archive_of(batches=batches, text=TUNABLE))
    tuned = [each for each in samples if each.kind == "tuned"]
    assert [each.island for each in tuned] == ([0, 1, 2] if is_turn else [])
    for each in tuned:  # the best of each island
        assert each.parents == (10 * each.island + 2,)
        assert each.text == TUNABLE
        assert each.request is None


def test_a_member_is_tuned_once_and_on_one_island():
    archive = archive_of(members=1, batches=2, text=TUNABLE)
    archive.tuned |= {0, 10}
    samples = next_batch(PLAN, archive)
    assert [each.parents for each in samples if each.kind == "tuned"] == [(20,)]
    everywhere = Archive(PLAN.customs, PLAN.seed, PLAN.training.families)
    everywhere.end_batch([candidate(0, 0, (), member(0, text=TUNABLE), is_for_all=True)])
    everywhere.batches = 2
    tuned = [each for each in next_batch(PLAN, everywhere) if each.kind == "tuned"]
    assert [each.parents for each in tuned] == [(0,)]


def test_nothing_is_tuned_where_tuning_is_off():
    plan = replace(PLAN, tuning=Tuning(every=0))
    assert {each.kind for each in next_batch(plan, archive_of(batches=2, text=TUNABLE))} == {"bred"}


def test_a_plan_without_generators_tunes_until_nothing_is_left():
    plan = replace(PLAN, generators=())
    archive = archive_of(members=2, text=TUNABLE)
    samples = next_batch(plan, archive)
    assert {each.kind for each in samples} == {"tuned"}
    assert len({each.parents for each in samples}) == len(samples) == 6
    archive.tuned |= {number for each in samples for number in each.parents}
    assert next_batch(plan, archive) == []


def test_generators_are_drawn_by_their_weights():
    plan = replace(PLAN, generators=(("genetic", 3.0), ("llm", 1.0)), batch=400)
    names = [each.generator for each in next_batch(plan, archive_of())]
    assert 60 <= names.count("llm") <= 140
    assert names.count("genetic") == 400 - names.count("llm")


def test_generators_hear_that_an_island_stands_still():
    archive = archive_of()
    archive.islands[1].stale = PLAN.customs.respawn_after // 2 + 1
    for each in next_batch(PLAN, archive):
        assert each.request.is_stagnant == (each.island == 1)


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


def test_a_refused_answer_is_repaired_once(executor, tmp_path):
    generator = Writing(lambda request: unlike(request) if request.failure else BAD)
    run = written_by(generator, tmp_path, executor, tuning=replace(PLAN_OF_TESTS.tuning, every=0))
    run.go(2)
    repairs = [row for row in run.rows() if row.kind == "repair"]
    assert len(repairs) == PLAN_OF_TESTS.batch
    assert all(row.accepted or row.gate in ("novelty", "race") for row in repairs)
    refused = {row.number: row for row in run.rows() if row.kind == "bred"}
    half = PLAN_OF_TESTS.block // 2
    for row in repairs:
        origin = refused[row.number - half]
        assert (row.island, row.parents) == (origin.island, origin.parents)
    failures = [request.failure for request in generator.asked if request.failure]
    assert {(each.text, each.gate) for each in failures} == {(BAD, "allow-list")}
    assert all("pod.name" in each.reason for each in failures)


def test_a_repair_that_fails_too_is_the_end_of_it(executor, tmp_path):
    generator = Writing(lambda _request: BAD)
    run = written_by(generator, tmp_path, executor, tuning=replace(PLAN_OF_TESTS.tuning, every=0))
    run.go(2)
    assert len(generator.asked) == 2 * PLAN_OF_TESTS.batch


def test_what_never_came_is_not_repaired(executor, tmp_path):
    generator = Writing(lambda _request: Proposal("", "command", problem="exit code 1"))
    run = written_by(generator, tmp_path, executor, tuning=replace(PLAN_OF_TESTS.tuning, every=0))
    run.go(2)
    rows = [row for row in run.rows() if row.kind == "bred"]
    assert {(row.gate, row.reason) for row in rows} == {("syntax", "exit code 1")}
    assert len(generator.asked) == len(rows) == PLAN_OF_TESTS.batch
