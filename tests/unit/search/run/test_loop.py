import json
from dataclasses import replace

import pytest

from podium.errors import MissingError, UsageError
from podium.search.generator import Cost, Proposal, Spent
from podium.search.genetic.generator import GeneticGenerator
from podium.search.run.executor import LocalExecutor
from podium.search.run.folder import BEST, STATE
from podium.search.run.plan import RANDOM, Budget
from podium.search.run.progress import Validated
from podium.store.records import JUDGED
from support.searches import (
    LIMITS,
    PLAN_OF_TESTS,
    STARTERS,
    TRAINING,
    Counting,
    Interrupting,
    Sittings,
    facts,
)

BATCHES = 5
BAD = "def score(pod, node):\n    return pod.name\n"
GOOD = "def score(pod, node):\n    return -node.cpu_milli_left - {}\n"


@pytest.fixture(scope="module")
def whole(executor, tmp_path_factory):
    """Is a run that nobody stopped."""
    run = Sittings(tmp_path_factory.mktemp("whole"), executor)
    return run, run.go(BATCHES)


class Writing:
    """Writes what a function says; remembers what it was asked for and what it heard."""

    can_repair = True
    reads_prompts = True

    def __init__(self, write, name="command"):
        self.name, self.write = name, write
        self.asked, self.heard, self.restored = [], [], []

    def propose(self, request):
        """Answers."""
        self.asked.append(request)
        found = self.write(request)
        return Proposal(found, self.name, cost=Cost(calls=1)) if isinstance(found, str) else found

    def learn(self, source, gain, cost):
        """Hears."""
        self.heard.append((source, gain, cost))

    def state(self):
        """Counts."""
        return {"asked": len(self.asked)}

    def restore(self, state):
        """Remembers."""
        self.restored.append(state)

    def close(self):
        """Holds nothing."""


def written_by(generator, path, executor, **others):
    """Has a run written by one generator."""
    plan = replace(PLAN_OF_TESTS, generators=((generator.name, 1.0),), **others)
    return Sittings(path, executor, plan, lambda: {generator.name: generator})


def unlike(request):
    """Writes a text like no other."""
    return GOOD.format(request.seed[1] * 10 + len(request.seed))


def test_every_candidate_is_judged_and_kept_with_where_it_came_from(whole):
    run, search = whole
    rows = run.store.candidates.of("run")
    assert {row.state for row in rows} == {JUDGED}
    assert {row.kind for row in rows} == {"seed", "bred", "tuned"}
    assert {row.batch for row in rows} == set(range(BATCHES))
    assert len(rows) == search.tally.candidates == search.tally.judged
    bred = [row for row in rows if row.kind == "bred"]
    assert all(row.parents and row.operators and row.text for row in bred)
    accepted = [row for row in rows if row.accepted]
    assert all(row.fitness and row.signature and row.diagnostics and row.cases for row in accepted)
    assert all(row.reason for row in rows if not row.accepted)
    best = max(row.fitness for row in accepted)
    assert search.archive.best.fitness == pytest.approx(best, abs=1e-3)


def test_children_live_on_the_island_they_were_planned_for(whole):
    run, _ = whole
    rows = [row for row in run.rows() if row.batch > 0]
    assert {row.island for row in rows} == {0, 1, 2}
    block = run.plan.block
    assert all(row.island == row.number % block % 3 for row in rows if row.kind != "repair")


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
    executor = LocalExecutor(TRAINING, "inflation", 1, LIMITS)
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


def test_a_generator_that_is_spent_ends_the_run_and_what_came_before_is_kept(executor, tmp_path):
    def write(request):
        if request.failure:
            return unlike(request)
        return Spent("5 of 5 USD are spent") if request.seed[1] % 2 == 0 else BAD

    generator = Writing(write)
    run = written_by(generator, tmp_path, executor, tuning=replace(PLAN_OF_TESTS.tuning, every=0))
    search = run.search()
    search.go(Budget(evaluations=10**6))
    assert search.ending == "5 of 5 USD are spent"
    rows = {row.number: row for row in run.rows()}
    bred = [row for row in rows.values() if row.kind == "bred"]
    repairs = [row for row in rows.values() if row.kind == "repair"]
    assert [row.number % 2 for row in bred] == [1, 1, 1]
    # Each repair belongs to the candidate that was refused, not to one that never came.
    half = PLAN_OF_TESTS.block // 2
    assert [row.number - half for row in repairs] == [row.number for row in bred]
    assert [row.parents for row in repairs] == [row.parents for row in bred]


def test_a_generator_that_cannot_go_on_is_an_error_and_what_it_wrote_is_kept(executor, tmp_path):
    def write(request):
        is_gone = request.seed[1] % 2 == 0
        return Spent("the key is refused", "http://there/v1") if is_gone else unlike(request)

    run = written_by(Writing(write), tmp_path, executor)
    search = run.search()
    with pytest.raises(MissingError, match="the key is refused") as caught:
        search.go(Budget(evaluations=10**6))
    assert caught.value.where == "http://there/v1"
    assert "podium search resume run goes on" in caught.value.hint
    bred = [row for row in run.rows() if row.kind == "bred"]
    assert [row.number % 2 for row in bred] == [1, 1, 1]
    assert all(row.state == JUDGED for row in bred)
    again = run.search(executor)
    assert again.archive.batches == search.archive.batches


def test_generators_hear_what_became_of_their_candidates(executor, tmp_path):
    generator = Writing(unlike)
    run = written_by(generator, tmp_path, executor, tuning=replace(PLAN_OF_TESTS.tuning, every=0))
    search = run.go(2)
    rows = [row for row in run.rows() if row.kind == "bred"]
    assert len(generator.heard) == len(rows)
    assert {source for source, _, _ in generator.heard} == {"command"}
    for row, (_, gain, cost) in zip(rows, generator.heard, strict=True):
        assert (gain is None) == (not row.accepted)
        assert cost.calls == 1
    assert search.tally.calls == len(rows)


def test_a_text_that_was_judged_before_is_refused_unseen(executor, tmp_path):
    generator = Writing(lambda _request: STARTERS[0][1].replace("def score", "\n\ndef score"))
    run = written_by(generator, tmp_path, executor, tuning=replace(PLAN_OF_TESTS.tuning, every=0))
    search = run.go(2)
    rows = [row for row in run.rows() if row.kind == "bred"]
    assert {row.gate for row in rows} == {"novelty"}
    assert search.tally.evaluations == len(STARTERS)


def test_who_decides_like_another_is_wanted_only_if_it_is_simpler(executor, tmp_path):
    texts = [
        "def score(pod, node):\n    return -node.cpu_milli_left * 2.5 * 2 + 7 - 3\n",
        "def score(pod, node):\n    return -3 * node.cpu_milli_left - 1\n",
        "def score(pod, node):\n    return -node.cpu_milli_left\n",
    ]
    plan = replace(PLAN_OF_TESTS, start=RANDOM)
    found = []
    for i, text in enumerate(texts):
        folder = tmp_path / str(i)
        folder.mkdir()
        generator = Writing(lambda _request, text=text: text)
        run = Sittings(
            folder, executor, replace(plan, generators=(("command", 1.0),)),
            lambda generator=generator: {"command": generator}, starters=[("one", texts[1])],
        )  # fmt: skip
        run.go(2)
        row = next(row for row in run.rows() if row.kind == "bred")
        found.append((row.accepted, row.gate))
    assert found[0] == (False, "novelty")
    assert found[1] == (False, "novelty")
    assert found[2] == (True, "training")


def test_who_may_hold_is_refused_where_holding_is_not_asked_for(executor, tmp_path):
    text = (
        "from podium.policies import HOLD\n\n\ndef score(pod, node):\n"
        "    return HOLD if node.cpu_milli_left < 0 else -node.cpu_milli_left\n"
    )
    for may_hold in (False, True):
        folder = tmp_path / str(may_hold)
        folder.mkdir()
        plan = replace(PLAN_OF_TESTS, may_hold=may_hold)
        run = Sittings(folder, executor, plan, starters=[*STARTERS, ("holding", text)])
        run.go(1)
        row = run.rows()[-1]
        assert row.may_hold
        assert (row.gate == "allow-list") == (not may_hold)


def test_tuned_candidates_keep_to_their_bounds_and_are_tuned_once(whole):
    run, search = whole
    tuned = [row for row in run.rows() if row.kind == "tuned"]
    assert tuned
    parents = [row.parents for row in tuned]
    assert len(parents) == len(set(parents))
    assert all(number in search.archive.tuned for row in tuned for number in row.parents)
    evaluations = [
        row.cost["evaluations"] for row in run.store.candidates.of("run") if row.kind == "tuned"
    ]
    assert all(1 <= each <= run.plan.tuning.evaluations + 1 for each in evaluations)


@pytest.mark.parametrize(
    ("budget", "ending"),
    [
        (Budget(evaluations=5), "5 evaluations are done"),
        (Budget(seconds=1e-9), "1e-09 seconds are over"),
        (Budget(target=1.0), "the target of 1 is reached"),
    ],
)
def test_a_run_ends_when_its_budget_is_spent(executor, tmp_path, budget, ending):
    run = Sittings(tmp_path, executor)
    search = run.search()
    search.go(budget)
    assert search.ending == ending


def test_a_run_that_is_over_does_nothing_more(whole):
    run, _ = whole
    before = run.rows()
    again = run.search()
    again.go(Budget(evaluations=1))
    assert again.ending == "1 evaluations are done"
    assert run.rows() == before


def test_a_beginning_of_no_use_is_told_at_once(executor, tmp_path):
    run = Sittings(tmp_path, executor, starters=[("mine", BAD)])
    with pytest.raises(UsageError, match="nothing that the run begins with") as error:
        run.go(3)
    assert "mine: allow-list" in str(error.value.where)


def test_a_generator_that_is_spent_at_once_says_so(executor, tmp_path):
    generator = Writing(lambda _request: Spent("no money"))
    run = written_by(generator, tmp_path, executor, start=RANDOM)
    run.others["starters"] = []
    with pytest.raises(UsageError) as error:
        run.go(1)
    assert error.value.where == "no money"


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
    assert again.validated == search.validated
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
