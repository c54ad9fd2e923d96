from dataclasses import replace

import pytest

from podium.errors import MissingError, UsageError
from podium.search.generator import Spent
from podium.search.run.ending import MOST_IDLE, Ending
from podium.search.run.plan import RANDOM, Budget
from podium.store.records import JUDGED
from support.members import SMALL, folded, random_batches
from support.searches import PLAN_OF_TESTS, Sittings
from support.stored import bred, judged
from support.writing import BAD, Writing, unlike, written_by


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
