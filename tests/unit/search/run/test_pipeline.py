"""Runs whose batches overlap, with models that answer late: the same run, whatever comes first."""

import random
import threading
import time
from dataclasses import replace

import pytest

from podium.search.generators.genetic.generator import GeneticGenerator
from podium.search.run.plan import Budget, Pipeline, Tuning
from podium.store.records import JUDGED
from support.searches import PLAN_OF_TESTS, Counting, Interrupting, Sittings, facts
from support.writing import BAD, Writing, unlike

PLAN = replace(
    PLAN_OF_TESTS,
    generators=(("genetic", 2.0), ("command", 1.0)),
    pipeline=Pipeline(lag=2, ahead=2),
)
BUDGET = Budget(70)


def answer(request):
    """Writes a program; one in three is refused at first, one in seven is known already."""
    number = request.seed[1]
    if request.failure is None and number % 3 == 0:
        return BAD
    return unlike(replace(request, seed=(7, 7))) if number % 7 == 0 else unlike(request)


def sittings(path, executor, write=answer, plan=PLAN):
    """Opens a run that is bred and written by turns."""
    made = {"genetic": GeneticGenerator(), "command": Writing(write)}
    return Sittings(path, executor, plan, lambda: made)


@pytest.fixture(scope="module")
def whole(executor, tmp_path_factory):
    """Is a run whose model answers at once."""
    run = sittings(tmp_path_factory.mktemp("whole"), executor)
    search = run.search()
    search.go(BUDGET)
    return run, search


def test_models_write_for_later_batches_and_repairs_join_still_later(whole):
    run, _ = whole
    rows = run.rows()
    written = [row for row in rows if row.source == "command"]
    assert {row.kind for row in written} == {"bred", "repair"}
    assert min(row.batch for row in written if row.kind == "bred") == 3
    assert min(row.batch for row in written if row.kind == "repair") == 5
    origins = {row.number: row for row in written}
    step = PLAN.block // 2 + PLAN.ahead * PLAN.block
    repairs = [row for row in written if row.kind == "repair"]
    assert all(origins[row.number - step].gate == "allow-list" for row in repairs)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_model_that_answers_when_it_likes_changes_nothing(whole, executor, tmp_path, seed):
    rng, lock = random.Random(seed), threading.Lock()

    def late(request):
        with lock:
            pause_s = rng.random() * 0.4
        time.sleep(pause_s)
        return answer(request)

    run = sittings(tmp_path, executor, late)
    search = run.search()
    search.go(BUDGET)
    assert facts(search) == facts(whole[1])
    assert run.rows() == whole[0].rows()  # also those that nobody judged in the end


class Shuffling(Counting):
    """Gives judgements in another order than they come."""

    def receive(self, timeout_s):
        """Holds some back."""
        self._held = [*getattr(self, "_held", ()), *self.executor.receive(timeout_s / 5)]
        random.Random(len(self.judged)).shuffle(self._held)
        cut = len(self._held) // 2 if len(self._held) > 1 else len(self._held)
        found, self._held = self._held[:cut], self._held[cut:]
        self.judged += [each.number for each in found]
        return found


def test_a_slow_candidate_changes_nothing(whole, executor, tmp_path):
    run = sittings(tmp_path, executor)
    shuffling = Shuffling(executor)
    search = run.search(shuffling)
    search.go(BUDGET)
    assert sorted(shuffling.judged) != shuffling.judged
    assert facts(search) == facts(whole[1])
    assert run.rows() == whole[0].rows()


@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("calls", [21, 24])
def test_who_gets_the_last_calls_does_not_depend_on_time(executor, tmp_path, ahead, calls):
    def late(request):
        time.sleep(0.3 if request.failure is None and request.seed[1] % 3 == 0 else 0.0)
        return answer(request)

    plan = replace(
        PLAN, generators=(("genetic", 0.05), ("command", 1.0)) if ahead else (("command", 1.0),),
        pipeline=Pipeline(lag=2, ahead=ahead), tuning=Tuning(every=0),
    )  # fmt: skip
    found = []
    for name, write in (("soon", answer), ("late", late)):
        (tmp_path / name).mkdir()
        run = sittings(tmp_path / name, executor, write, plan)
        search = run.search()
        search.go(Budget(calls))
        assert max(search.tally.calls, search.tally.evaluations) <= calls
        found.append((search.ending, run.rows()))
    assert found[0] == found[1]
    assert {"bred", "repair"} <= {row.kind for row in found[0][1]}


class Learning(Writing):
    """Knows how many of its candidates it has heard of."""

    def state(self):
        """Counts what it heard, which it goes on from."""
        before = self.restored[-1]["heard"] if self.restored else 0
        return {"heard": before + len(self.heard)}


@pytest.mark.parametrize("ahead", [0, 2])
def test_requests_tell_what_was_learned_when_they_were_planned(executor, tmp_path, ahead):
    def late(request):
        time.sleep(0.2 if request.failure is None and request.seed[1] % 4 == 0 else 0.0)
        return answer(request)

    plan = replace(
        PLAN, generators=(("genetic", 1.0), ("command", 1.0)) if ahead else (("command", 1.0),),
        pipeline=Pipeline(lag=2, ahead=ahead), tuning=Tuning(every=0),
    )  # fmt: skip
    found = []
    for name, write, budgets in (
        ("soon", answer, [40]),
        ("late", late, [40]),
        ("cut", late, [22, 40]),
    ):
        (tmp_path / name).mkdir()
        made = []

        def generators(write=write, made=made):
            made.append(Learning(write))
            return {"genetic": GeneticGenerator(), "command": made[-1]}

        run = Sittings(tmp_path / name, executor, plan, generators)
        for budget in budgets:
            run.search().go(Budget(budget))
        requests = [each for generator in made for each in generator.asked]
        found.append({each.seed: each.learned.get("heard") for each in requests})
    assert found[0] == found[1] == found[2]
    assert len(set(found[0].values())) > 2


@pytest.mark.parametrize("after", [2, 7])
def test_a_run_cut_off_again_and_again_ends_as_an_unbroken_one(whole, executor, tmp_path, after):
    run, judged = sittings(tmp_path, executor), []
    while True:
        cutting = Interrupting(executor, after)
        search = run.search(cutting)
        try:
            search.go(BUDGET)
        except KeyboardInterrupt:
            judged += cutting.judged
            continue
        judged += cutting.judged
        break
    assert len(judged) == len(set(judged)) == 70
    assert facts(search) == facts(whole[1])
    kept = [row for row in run.rows() if row.state == JUDGED]
    assert kept == [row for row in whole[0].rows() if row.state == JUDGED]


def test_a_budget_is_used_to_the_last_evaluation(whole):
    run, search = whole
    assert search.tally.evaluations == 70
    assert search.ending == "evaluation budget reached (70)"
    # What a model wrote for batches that never came is paid for, and kept.
    left = [row for row in run.rows() if row.state != JUDGED]
    assert {row.source for row in left} <= {"command"}


def test_time_is_over_when_it_is_over_and_what_was_judged_counts(executor, tmp_path):
    run, now = sittings(tmp_path, executor), [0.0]

    def clock():
        now[0] += 0.01
        return now[0]

    search = run.search(clock=clock)
    search.go(Budget(seconds=1.5))
    assert search.ending == "time budget reached (1.5 s)"
    assert search.seconds < 3.0
    best = max(row.fitness for row in run.rows() if row.fitness is not None)
    assert search.archive.best.fitness == pytest.approx(best, abs=0.02)
