import json
from dataclasses import replace

import pytest

from podium.search.candidate.constants import read_constants
from podium.search.generators.genetic.generator import GeneticGenerator
from podium.search.population.member import STEP
from podium.search.run.executor import local_executor
from podium.search.run.folder import BEST, STATE
from podium.search.run.plan import RANDOM, Budget
from podium.search.run.progress import Validated
from podium.search.run.tunings import FEWEST
from podium.store.records import JUDGED
from support.searches import (
    LIMITS,
    PLAN_OF_TESTS,
    TRAINING,
    Counting,
    Interrupting,
    Sittings,
    facts,
)
from support.writing import Writing, unlike, written_by

BATCHES = 5


@pytest.fixture(scope="module")
def whole(executor, tmp_path_factory):
    """Is a run that nobody stopped."""
    run = Sittings(tmp_path_factory.mktemp("whole"), executor)
    return run, run.go(BATCHES)


def test_every_candidate_is_judged_and_kept_with_where_it_came_from(whole):
    run, search = whole
    rows = run.store.candidates.of("run")
    assert {row.state for row in rows} == {JUDGED}
    assert {row.kind for row in rows} == {"seed", "bred", "tuned"}
    assert {row.batch for row in rows} == set(range(BATCHES))
    assert len(rows) == search.tally.candidates == search.tally.judged
    bred = [row for row in rows if row.kind == "bred"]
    assert all(row.operators and row.text for row in bred)
    # Only parents that were used: one, two, or none of a program that was drawn.
    assert {len(row.parents) for row in bred} > {1}
    assert all(bool(row.parents) == (row.operators != ("random_program",)) for row in bred)
    accepted = [row for row in rows if row.accepted]
    assert all(row.fitness and row.signature and row.diagnostics and row.cases for row in accepted)
    assert all(row.reason for row in rows if not row.accepted)
    best = max(row.fitness for row in accepted)
    assert search.archive.best.fitness == pytest.approx(best, abs=STEP)


def test_children_live_on_the_island_they_were_planned_for(whole):
    run, _ = whole
    rows = [row for row in run.rows() if row.batch > 0 and row.kind == "bred"]
    assert {row.island for row in rows} == {0, 1, 2}
    block = run.plan.block
    assert all(row.island == row.number % block % 3 for row in rows)


def test_parents_are_of_the_same_island_but_for_seeds_migrants_and_founders(executor, tmp_path):
    alone = replace(PLAN_OF_TESTS.customs, migrate_every=10**6, respawn_after=10**6)
    run = Sittings(tmp_path, executor, replace(PLAN_OF_TESTS, customs=alone))
    run.go(BATCHES)
    rows = {row.number: row for row in run.rows()}
    children = [row for row in rows.values() if row.batch > 1]
    assert children
    for child in children:
        for parent in child.parents:
            assert rows[parent].kind == "seed" or rows[parent].island == child.island


def test_one_worker_finds_what_two_find(whole, tmp_path):
    executor = local_executor(TRAINING, "inflation", 1, LIMITS)
    try:
        run = Sittings(tmp_path, executor)
        search = run.go(BATCHES)
    finally:
        executor.close()
    assert run.rows() == whole[0].rows()
    assert facts(search) == facts(whole[1])


def test_another_seed_finds_something_else(whole, executor, tmp_path):
    run = Sittings(tmp_path, executor, replace(PLAN_OF_TESTS, seed=1001))
    run.go(2)
    texts = {row.text for row in run.rows() if row.kind == "bred"}
    assert not texts <= {row.text for row in whole[0].rows()}


def test_a_run_stopped_after_every_batch_finds_the_same(whole, executor, tmp_path):
    run = Sittings(tmp_path, executor)
    for batch in range(1, BATCHES + 1):
        search = run.go(batch)
    assert run.rows() == whole[0].rows()
    assert facts(search) == facts(whole[1])


@pytest.mark.parametrize("after", [1, 3])
def test_a_run_cut_off_again_and_again_judges_nothing_twice(whole, executor, tmp_path, after):
    run = Sittings(tmp_path, executor)
    judged = []
    while True:
        cutting = Interrupting(executor, after)
        search = run.search(cutting)
        try:
            while search.archive.batches < BATCHES:
                search.step()
        except KeyboardInterrupt:
            judged += cutting.judged
            kept = {row.number for row in run.rows() if row.state == JUDGED}
            assert set(cutting.judged) <= kept
            continue
        judged += cutting.judged
        break
    assert len(judged) == len(set(judged))
    assert run.rows() == whole[0].rows()
    assert facts(search) == facts(whole[1])


def test_a_batch_whose_end_was_not_written_down_ends_once_more(whole, executor, tmp_path):
    run = Sittings(tmp_path, executor)
    run.go(2)
    state = run.folder.read(STATE)
    run.go(3)
    run.folder.write(STATE, state)  # as if the power had failed before the last line
    counting = Counting(executor)
    search = run.search(counting)
    search.step()
    assert counting.judged == []
    assert search.archive.batches == 3
    while search.archive.batches < BATCHES:
        search.step()
    assert run.rows() == whole[0].rows()
    assert facts(search) == facts(whole[1])


def test_proposals_that_were_kept_are_not_asked_for_again(executor, tmp_path):
    generator = Writing(unlike)
    run = written_by(generator, tmp_path, executor)
    run.go(1)
    with pytest.raises(KeyboardInterrupt):
        run.search(Interrupting(executor, 0)).step()
    asked = len(generator.asked)
    assert asked == sum(row.kind == "bred" for row in run.rows())
    run.search().step()
    assert len(generator.asked) == asked


def test_what_a_generator_has_spent_is_written_down_before_anything_is_judged(executor, tmp_path):
    generator = Writing(unlike)
    run = written_by(generator, tmp_path, executor)
    run.go(1)
    with pytest.raises(KeyboardInterrupt):
        run.search(Interrupting(executor, 0)).step()
    state = run.folder.read(STATE)
    assert state["batches"] == 1
    assert state["generators"]["command"] == {"asked": len(generator.asked)}
    run.search()
    assert generator.restored[-1] == {"asked": len(generator.asked)}


def test_variants_are_candidates_of_their_own_and_differ_in_constants_alone(whole):
    run, search = whole
    tuned = [row for row in run.store.candidates.of("run") if row.kind == "tuned"]
    assert len(tuned) >= 2 * FEWEST  # two generations
    assert all(row.cost["evaluations"] == 1 for row in tuned)
    assert all(number in search.archive.tuned for row in tuned for number in row.parents)
    names = {tuple(c.name for c in read_constants(row.text)) for row in tuned if row.batch < 3}
    assert len(names) == 1
    assert all(c.low <= c.value <= c.high for row in tuned for c in read_constants(row.text))
    assert len({row.text for row in tuned}) == len(tuned)


def test_a_run_that_is_over_does_nothing_more(whole):
    run, _ = whole
    before = run.rows()
    again = run.search()
    again.go(Budget(evaluations=1))
    assert again.ending == "evaluation budget reached (1)"
    assert run.rows() == before


def test_the_best_is_written_down_and_validated_whenever_it_changes(executor, tmp_path):
    seen = []

    def validate(number, text):
        seen.append((number, text))
        return Validated(number, 80.0 + len(seen), 79.0)

    run = Sittings(tmp_path, executor, validate=validate)
    search = run.go(BATCHES)
    best = search.archive.best
    assert seen[-1] == (best.number, best.text)
    assert len(seen) == len(set(seen))
    assert (run.folder.path / BEST).read_text() == best.text
    summary = run.store.runs.get("run").summary
    assert (summary["best"], summary["validated"]) == (best.number, best.number)
    # Who takes the run up again knows it without measuring.
    again = run.search()
    assert again.winner.validated == search.winner.validated
    assert again.progress().summary()["validation_fitness"] == 80.0 + len(seen)


def test_the_time_of_earlier_sittings_counts(executor, tmp_path):
    run = Sittings(tmp_path, executor)
    now = [100.0]
    search = run.search(clock=lambda: now[0])
    now[0] = 130.0
    search.step()
    assert json.loads((run.folder.path / STATE).read_text())["seconds"] == 30.0
    again = run.search(clock=lambda: now[0])
    now[0] = 135.0
    assert again.seconds == 35.0


def test_a_run_can_begin_with_nothing(executor, tmp_path):
    plan = replace(PLAN_OF_TESTS, start=RANDOM, batch=12)
    run = Sittings(tmp_path, executor, plan, starters=[])
    search = run.go(2)
    rows = run.rows()
    assert {row.kind for row in rows if row.batch == 0} == {"bred"}
    assert all(row.operators == ("random_program",) for row in rows if row.batch == 0)
    assert {row.island for row in rows if row.batch == 0} == {0, 1, 2}
    assert search.archive.best is not None


def test_two_generators_share_the_work_by_their_weights(executor, tmp_path):
    plan = replace(PLAN_OF_TESTS, generators=(("genetic", 1.0), ("command", 1.0)), batch=24)
    generator = Writing(unlike)
    run = Sittings(
        tmp_path, executor, plan, lambda: {"genetic": GeneticGenerator(), "command": generator}
    )
    run.go(2)
    sources = [row.source for row in run.rows() if row.kind == "bred"]
    assert 5 <= sources.count("command") <= 19
    assert set(sources) == {"genetic", "command"}
