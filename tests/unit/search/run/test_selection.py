from dataclasses import replace

import pytest

from podium.evaluation.splits import SELECTION, VALIDATION
from podium.search.judging.judge import Judge
from podium.search.population.archive import Archive, IslandSettings
from podium.search.run.folder import BEST
from podium.search.run.plan import Budget
from podium.search.run.progress import Validated
from podium.search.run.selection import Finalist, Selector, chosen_of, finalists_of
from support.hostile import GOOD
from support.members import candidate, member
from support.searches import LIMITS, PLAN_OF_TESTS, TRAINING, Sittings

BUDGET = Budget(30)


@pytest.fixture(scope="module")
def selector():
    """Judges on selection seeds."""
    selector = Selector(TRAINING, "inflation", LIMITS)
    yield selector
    selector.close()


def test_seeds_of_training_selection_and_validation_have_nothing_in_common():
    sets = TRAINING, TRAINING.selection(), TRAINING.held_out()
    seeds = [{case.seed for case in each.cases} for each in sets]
    assert seeds[1] <= set(SELECTION)
    assert seeds[2] <= set(VALIDATION)
    assert not seeds[0] & seeds[1]
    assert not (seeds[0] | seeds[1]) & seeds[2]
    assert [replace(case, seed=0) for case in sets[0].cases] == [
        replace(case, seed=0) for case in sets[1].cases
    ]


def test_a_finalist_is_measured_on_selection_seeds(selector):
    found = selector.measure(7, GOOD)
    with Judge(TRAINING.selection(), "inflation", 1, LIMITS) as judge:
        scores = judge.judge(GOOD).scores
    assert found == Finalist(7, scores["fitness"], scores["fgd"]["fitness"])


def test_who_fails_there_is_never_chosen(selector):
    failing = selector.measure(8, "def score(pod, node):\n    return 1 / 0\n")
    assert failing.fitness is None


def planted(best):
    """Measures so that one candidate, by its rank among the finalists, is the best."""
    order = []

    def measure(number, _text):
        order.append(number)
        return Finalist(number, 50.0 + (len(order) - 1 == best), 50.0)

    return measure, order


@pytest.fixture
def run(executor, tmp_path):
    """Holds one run, which is worked on in as many sessions as wanted."""
    return Sittings(tmp_path, executor, plan=replace(PLAN_OF_TESTS, finalists=4))


def test_the_winner_is_chosen_among_the_best_by_training(run):
    measure, order = planted(best=2)
    search = run.search(measure=measure, validate=lambda n, _: Validated(n, 1.0, 2.0))
    search.go(BUDGET)
    finalists = finalists_of(search.archive, 4)
    assert order == [each.number for each in finalists]
    assert search.best == finalists[2]
    assert search.archive.best == finalists[0]
    assert (run.folder.path / BEST).read_text() == finalists[2].text
    assert search.winner.validated.number == finalists[2].number
    summary = run.store.runs.get("run").summary
    assert (summary["best"], summary["best_by_training"]) == (
        finalists[2].number, finalists[0].number,
    )  # fmt: skip
    assert (summary["selection_fitness"], summary["finalists"]) == (51.0, 4)


def test_a_session_that_has_nothing_left_to_do_chooses_the_same_and_measures_nothing_again(run):
    measure, order = planted(best=1)
    first = run.search(measure=measure)
    first.go(BUDGET)
    again = run.search(measure=measure)
    again.go(BUDGET)
    assert again.winner.chosen == first.winner.chosen
    assert len(order) == 4


def test_a_run_that_was_stopped_after_a_choice_ends_like_one_that_was_not(
    executor, tmp_path, selector
):
    ends = []
    for name, budgets in (("whole", [Budget(40)]), ("parted", [Budget(17), Budget(40)])):
        (tmp_path / name).mkdir()
        kept = Sittings(tmp_path / name, executor)
        for budget in budgets:
            search = kept.search(measure=selector.measure)
            search.go(budget)
        ends.append((search.winner.chosen, kept.rows()))
    assert ends[0] == ends[1]


def test_a_plan_without_finalists_keeps_the_best_by_training(executor, tmp_path):
    measure, order = planted(best=0)
    kept = Sittings(tmp_path, executor, plan=replace(PLAN_OF_TESTS, finalists=0))
    search = kept.search(measure=measure)
    search.go(BUDGET)
    assert search.best == search.archive.best
    assert not order


def test_of_equals_the_better_by_training_is_chosen(run):
    measure, _ = planted(best=-1)
    search = run.search(measure=measure)
    search.go(BUDGET)
    assert search.best == search.archive.best


def test_nobody_is_chosen_where_everybody_fails(run):
    search = run.search(measure=lambda number, _: Finalist(number, None, 50.0))
    search.go(BUDGET)
    assert search.winner.chosen is None
    assert search.best == search.archive.best
    assert chosen_of([], []) is None


def test_variants_of_one_program_leave_room_for_others():
    text = "from podium.policies import tunable\nW = tunable({}, 0, 9)\n" + GOOD
    variants = [member(number, 60.0 + number, text=text.format(number)) for number in range(1, 6)]
    other = member(9, 50.0)
    archive = Archive(IslandSettings(islands=1), 1, ())
    archive.end_batch([candidate(each.number, 0, (), each) for each in (*variants, other)])
    assert [each.number for each in finalists_of(archive, 4)] == [5, 4, 3, 2]
    assert [each.number for each in finalists_of(archive, 4, 3)] == [5, 4, 3, 9]
