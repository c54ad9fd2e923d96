from dataclasses import replace

import pytest

from podium.errors import MissingError, UsageError
from podium.search.generators.generator import Spent
from podium.search.run.budget import MOST_IDLE, Ending, allowance_of
from podium.search.run.plan import RANDOM, Budget, Pipeline, Tuning
from podium.search.run.progress import Tally
from podium.store.records import JUDGED
from support.members import SMALL, folded, random_batches
from support.searches import PLAN_OF_TESTS, Counting, Interrupting, Sittings, facts
from support.stored import bred, judged
from support.writing import BAD, Writing, unlike, written_by

PLAN = replace(PLAN_OF_TESTS, tuning=Tuning(every=1, evaluations=10))


def test_an_evaluation_fits_in_whatever_those_before_come_to():
    allowed = allowance_of(Budget(20), Tally(evaluations=17))
    assert allowed.has_room()
    allowed.kept_back = 2
    assert allowed.has_room()
    allowed.used += 1
    assert not allowed.has_room()
    assert not allowed.is_spent  # those before may need less
    assert allowance_of(Budget(), Tally(evaluations=10**9)).has_room()


def test_calls_are_counted_beside_evaluations():
    # Repeats after a failure of the service are calls that nobody is asked for.
    asked = Tally(evaluations=5, calls=30, sources={"llm:small": 12, "command": 6, "genetic": 9})
    allowed = allowance_of(Budget(20), asked)
    allowed.called += 1
    assert allowed.may_call()
    allowed.calls_kept_back = 1
    assert not allowed.may_call()
    assert allowed.shortage() == "call budget reached (20)"
    assert allowance_of(Budget(), Tally(sources={"command": 10**6})).may_call()


@pytest.mark.parametrize("evaluations", [1, 3, 5, 9, 17, 40, 41])
def test_a_run_does_exactly_what_it_is_asked_for(executor, tmp_path, evaluations):
    run = Sittings(tmp_path, executor, PLAN)
    search = run.search()
    search.go(Budget(evaluations))
    assert search.progress().summary()["evaluations"] == evaluations
    assert search.ending == f"evaluation budget reached ({evaluations})"
    rows = run.rows()
    assert {row.state for row in rows} == {JUDGED}
    tuned = sum(row.kind == "tuned" for row in rows)
    assert tuned == 0 if evaluations < 17 else tuned > 0


@pytest.mark.parametrize("evaluations", [1, 5, 17, 23])
def test_a_run_that_tunes_nothing_does_all_that_it_is_asked_for(executor, tmp_path, evaluations):
    run = Sittings(tmp_path, executor, replace(PLAN, tuning=Tuning(every=0)))
    search = run.search()
    search.go(Budget(evaluations))
    assert search.tally.evaluations == evaluations
    assert search.ending == f"evaluation budget reached ({evaluations})"


@pytest.mark.parametrize("first", [1, 6, 9, 12, 15])
def test_a_run_that_is_given_more_ends_as_one_that_had_it_at_once(executor, tmp_path, first):
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole, parts = (Sittings(tmp_path / each, executor) for each in ("whole", "parts"))
    at_once = whole.search()
    at_once.go(Budget(30))
    parts.search().go(Budget(first))
    assert sum(row.cost.get("evaluations", 0) for row in parts.rows()) == first
    later = parts.search()
    later.go(Budget(30))
    assert facts(later) == facts(at_once)
    assert parts.rows() == whole.rows()


def test_a_run_that_is_taken_up_with_the_same_budget_does_nothing_more(executor, tmp_path):
    run = Sittings(tmp_path, executor, PLAN)
    first, counting = run.search(), Counting(executor)
    first.go(Budget(17))
    again = run.search(counting)
    again.go(Budget(17))
    assert counting.judged == []
    assert facts(again) == facts(first)
    assert again.ending == first.ending


@pytest.mark.parametrize("before_end", [1, 2, 5])
def test_a_run_that_is_cut_off_near_its_end_ends_as_an_unbroken_one(executor, tmp_path, before_end):
    (tmp_path / "whole").mkdir()
    (tmp_path / "broken").mkdir()
    budget, counting = Budget(24), Counting(executor)
    whole = Sittings(tmp_path / "whole", executor)
    unbroken = whole.search(counting)
    unbroken.go(budget)
    broken = Sittings(tmp_path / "broken", executor)
    with pytest.raises(KeyboardInterrupt):
        broken.search(Interrupting(executor, len(counting.judged) - before_end)).go(budget)
    resumed = broken.search()
    resumed.go(budget)
    assert facts(resumed) == facts(unbroken)
    assert broken.rows() == whole.rows()


@pytest.mark.parametrize("write", [lambda _request: BAD, unlike], ids=["refused", "accepted"])
def test_no_more_calls_are_made_than_evaluations_are_asked_for(executor, tmp_path, write):
    generator = Writing(write)
    run = written_by(generator, tmp_path, executor, tuning=Tuning(every=0))
    search = run.search()
    search.go(Budget(15))
    assert len(generator.asked) == search.tally.calls <= 15
    assert search.tally.evaluations <= 15
    assert search.ending in ("evaluation budget reached (15)", "call budget reached (15)")


@pytest.mark.parametrize(
    ("budget", "ending"),
    [
        (Budget(evaluations=5), "evaluation budget reached (5)"),
        (Budget(seconds=1e-9), "time budget reached (1e-09 s)"),
        (Budget(target=1.0), "target fitness reached (1)"),
    ],
)
def test_a_run_ends_when_its_budget_is_spent(executor, tmp_path, budget, ending):
    run = Sittings(tmp_path, executor)
    search = run.search()
    search.go(budget)
    assert search.ending == ending


def test_a_generator_that_is_spent_ends_the_run_and_what_came_before_is_kept(executor, tmp_path):
    def write(request):
        if request.failure:
            return unlike(request)
        return Spent("5 of 5 USD are spent") if request.seed[1] % 2 == 0 else BAD

    generator = Writing(write)
    run = written_by(generator, tmp_path, executor, tuning=Tuning(every=0), pipeline=Pipeline(0, 0))
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

    run = written_by(Writing(write), tmp_path, executor, pipeline=Pipeline(0, 0))
    search = run.search()
    with pytest.raises(MissingError, match="the key is refused") as caught:
        search.go(Budget(evaluations=10**6))
    assert caught.value.where == "http://there/v1"
    assert "fix this, then run: podium search resume run" in caught.value.hint
    bred = [row for row in run.rows() if row.kind == "bred"]
    assert [row.number % 2 for row in bred] == [1, 1, 1]
    assert all(row.state == JUDGED for row in bred)
    again = run.search(executor)
    assert again.archive.batches == search.archive.batches


def test_a_beginning_of_no_use_is_told_at_once(executor, tmp_path):
    run = Sittings(tmp_path, executor, starters=[("mine", BAD)])
    with pytest.raises(UsageError, match="none of the starting policies was accepted") as error:
        run.go(3)
    assert "mine: allow-list" in str(error.value.where)


def test_a_generator_that_is_spent_at_once_says_so(executor, tmp_path):
    generator = Writing(lambda _request: Spent("no money"))
    run = written_by(generator, tmp_path, executor, start=RANDOM)
    run.others["starters"] = []
    with pytest.raises(UsageError) as error:
        run.go(1)
    assert error.value.where == "no money"


def test_a_run_to_which_nothing_new_comes_ends_with_the_last_reason():
    archive = folded(random_batches(2), SMALL)
    known = judged(bred(1), accepted=False, gate="novelty", reason="it is known", cost={})
    ending = Ending("run")
    for _ in range(MOST_IDLE - 1):
        ending.end_batch(archive, [known])
    ending.end_batch(archive, [judged(bred(2), cost={"evaluations": 1})])
    for _ in range(MOST_IDLE - 1):
        ending.end_batch(archive, [known])
    assert ending.reason == ""
    ending.end_batch(archive, [known])
    told = f"nothing new was proposed in {MOST_IDLE} batches; the last reason: it is known"
    assert ending.reason == told
