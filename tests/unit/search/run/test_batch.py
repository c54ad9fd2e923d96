from dataclasses import replace

from podium.search.generators.generator import Proposal
from podium.search.population.archive import Archive
from podium.search.run.batch import asked_ahead, first_batch, next_batch, tuning_batch
from podium.search.run.plan import RANDOM, Pipeline, Tuning
from podium.search.run.tunings import POINTS, Tunings
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
    samples = next_batch(PLAN, archive, 1)
    assert [each.island for each in samples] == [0, 1, 2] * 3
    for each in samples:
        assert each.parents
        assert {number // 10 for number in each.parents} == {each.island}
        assert tuple(parent.number for parent in each.request.parents) == each.parents


def test_every_candidate_has_random_numbers_of_its_own():
    archive = archive_of()
    first = next_batch(PLAN, archive, 1)
    assert first == next_batch(PLAN, archive, 1)
    second = next_batch(PLAN, archive, 2)
    seeds = {each.request.seed for each in (*first, *second) if each.request}
    numbers = {each.number for each in (*first, *second)}
    assert len(seeds) == len(numbers) == 2 * PLAN.batch
    assert min(each.number for each in second) == 2 * PLAN.block
    other = next_batch(replace(PLAN, seed=5), archive, 2)
    assert {each.request.seed for each in other}.isdisjoint(seeds)


def test_a_generation_of_variants_stands_beside_what_is_bred():
    archive, tunings = archive_of(text=TUNABLE), Tunings(PLAN)
    samples = tuning_batch(PLAN, archive, 1, tunings, POINTS)
    assert [each.number - PLAN.block for each in samples] == list(range(9, 9 + POINTS))
    assert {(each.kind, each.island, each.parents) for each in samples} == {("tuned", 0, (2,))}
    assert len({each.text for each in samples}) == POINTS
    # The next batch has variants of another: those of the first are not judged yet.
    later = tuning_batch(PLAN, archive, 2, tunings, POINTS)
    assert {each.parents for each in later} == {(12,)}


def test_a_generation_is_whole_or_not_at_all():
    archive = archive_of(text=TUNABLE)
    assert tuning_batch(PLAN, archive, 1, Tunings(PLAN), POINTS - 1) == []


def test_a_plan_without_generators_fills_its_batches_with_variants():
    plan = replace(PLAN, generators=(), batch=24)
    samples = tuning_batch(plan, archive_of(text=TUNABLE), 1, Tunings(plan), 24)
    assert [each.number - plan.block for each in samples] == list(range(24))
    assert len({each.parents for each in samples}) == 24 // POINTS
    assert next_batch(plan, archive_of(), 1) == asked_ahead(plan, archive_of(), 1) == []


def test_models_are_asked_for_later_batches_and_others_fill_those_until_then():
    pipeline = Pipeline(lag=2, ahead=3)
    plan = replace(PLAN, generators=(("genetic", 1.0), ("llm", 1.0)), batch=60, pipeline=pipeline)
    archive = archive_of()
    early = next_batch(plan, archive, 3)
    assert {each.generator for each in early} == {"genetic"}
    assert len(early) == plan.batch
    assert asked_ahead(plan, archive, 3) == []
    late, asked = next_batch(plan, archive, 4), asked_ahead(plan, archive, 4)
    assert {each.generator for each in asked} == {"llm"}
    numbers = sorted(each.number for each in (*late, *asked))
    assert numbers == list(range(4 * plan.block, 4 * plan.block + plan.batch))
    alone = replace(plan, generators=(("llm", 1.0),))
    assert len(asked_ahead(alone, archive, 1)) == plan.batch  # nobody could fill the time


def test_generators_are_drawn_by_their_weights():
    plan = replace(PLAN, generators=(("genetic", 3.0), ("llm", 1.0)), batch=400)
    assert plan.ahead == 0
    names = [
        each.generator for part in (next_batch, asked_ahead) for each in part(plan, archive_of(), 1)
    ]
    assert 60 <= names.count("llm") <= 140
    assert names.count("genetic") == 400 - names.count("llm")


def test_generators_hear_that_an_island_stands_still():
    archive = archive_of()
    archive.islands[1].stale = PLAN.customs.respawn_after // 2 + 1
    for each in next_batch(PLAN, archive, 1):
        assert each.request.is_stagnant == (each.island == 1)


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
