import pytest

from podium.evaluation.cases import Case, TrainingSet
from podium.search.candidate.constants import read_constants, with_constants
from podium.search.judging.case_run import run_baseline
from podium.search.judging.fitness import fitness_named
from podium.search.judging.fixtures import Fixtures
from podium.search.judging.tuning import EACH_START, POINTS, Tuner, cost_of, starts_within, tune

HEAD = "from podium.policies import tunable\n"
CASES = (Case(nodes=8, pods=80), Case(nodes=8, pods=80, seed=1001))
WEIGHTED = f"""{HEAD}CPU = tunable(0.9, -1, 1)
GPU = tunable(0.9, -1, 1)


def score(pod, node):
    return CPU * node.cpu_milli_left / 1000 + GPU * sum(node.gpu_milli_left) / 1000
"""
FRAGILE = f"""{HEAD}W = tunable(0.9, 0, 1)


def score(pod, node):
    return 1.0 if W > 0.5 else pod.cpu_milli / (node.gpu_count - node.gpu_count)
"""


class Planted:
    """Measures constants by their distance from an optimum, case by case alike."""

    def __init__(self, **optimum):
        self.optimum = optimum
        self.seen = []

    def loss(self, values):
        """Remembers what was asked for."""
        self.seen.append(values)
        return sum((values[name] - best) ** 2 for name, best in self.optimum.items())


class PlantedTuner(Tuner):
    """Tunes against a formula instead of a simulation."""

    def loss(self, point):
        """Measures a variant."""
        values = self.variant(point)
        self.evaluations += 1
        found = self.fitness.loss(values)
        if -found > self.best:
            self.best, self.values = -found, values
        return found


@pytest.fixture(scope="module")
def fixtures():
    """Holds two tiny cases."""
    return Fixtures.of(TrainingSet(CASES))


@pytest.fixture(scope="module")
def baseline(fixtures):
    """Measures fgd."""
    return [("inflation", values) for values, _ in run_baseline(fixtures)]


def tuned(fixtures, baseline, text, evaluations=40, seed=5):
    """Tunes on real simulations."""
    tuner = Tuner(fixtures, text, fitness_named("inflation"), baseline)
    return tuner, dict(tune(tuner, evaluations, seed))


def text_of(**bounds):
    """Declares constants."""
    lines = [f"{name} = tunable({', '.join(map(str, b))})\n" for name, b in bounds.items()]
    return HEAD + "".join(lines) + "def score(pod, node):\n    return 1.0\n"


@pytest.mark.parametrize("optimum", [{"A": 3.25, "B": -40.0}, {"A": 10.0, "B": 100.0}])
def test_a_planted_optimum_is_found_even_on_the_bounds(optimum):
    text = text_of(A=(5.0, 0, 10), B=(0, -100, 100))
    found = tune(PlantedTuner(None, text, Planted(**optimum), ()), 400, 1)
    assert found["A"] == pytest.approx(optimum["A"], abs=0.1)
    assert found["B"] == pytest.approx(optimum["B"], abs=1.0)


def test_one_constant_is_tuned_too():
    found = tune(PlantedTuner(None, text_of(A=(9.0, 0, 10)), Planted(A=2.5), ()), 200, 1)
    assert found["A"] == pytest.approx(2.5, abs=0.05)


@pytest.mark.parametrize("value", [-1, 0.5, 7])
def test_no_variant_leaves_the_bounds_and_the_first_is_the_text_itself(value):
    planted = Planted(A=1e6)
    tune(
        PlantedTuner(None, text_of(A=(value, -1, 7), B=(0.12345678, 0.1, 0.2)), planted, ()), 90, 2
    )
    assert planted.seen[0] == {"A": value, "B": 0.1235}
    assert all(-1 <= each["A"] <= 7 and 0.1 <= each["B"] <= 0.2 for each in planted.seen)


@pytest.mark.parametrize("evaluations", [10, 17, 60])
def test_no_more_is_spent_than_was_granted(evaluations):
    planted = Planted(A=2.5)
    tuner = PlantedTuner(None, text_of(A=(9.0, 0, 10)), planted, ())
    tune(tuner, evaluations, 3)
    assert evaluations - POINTS < tuner.evaluations == len(planted.seen) <= evaluations


def test_the_same_seed_tries_the_same_constants():
    seen = []
    for seed in (4, 4, 5):
        planted = Planted(A=2.5, B=1.0)
        tune(PlantedTuner(None, text_of(A=(9, 0, 10), B=(2, 0, 3)), planted, ()), 60, seed)
        seen.append(planted.seen)
    assert seen[0] == seen[1] != seen[2]


def test_positive_constants_are_searched_by_their_logarithm():
    planted = Planted(A=0.02)
    found = tune(PlantedTuner(None, text_of(A=(5.0, 0.01, 1000)), planted, ()), 120, 1)
    assert found["A"] == pytest.approx(0.02, rel=0.1)
    below = sum(each["A"] < 1 for each in planted.seen)
    assert below > len(planted.seen) / 4


def test_many_evaluations_are_shared_by_several_starts():
    planted = Planted(A=2.5, B=1.0)
    tuner = PlantedTuner(None, text_of(A=(9, -10, 10), B=(2, -3, 3)), planted, ())
    found = tune(tuner, 4 * EACH_START, 3)
    assert starts_within(4 * EACH_START) == 4
    assert found["A"] == pytest.approx(2.5, abs=0.02)
    # Away from the optimum again, after it was found.
    apart = [abs(each["A"] - 2.5) for each in planted.seen]
    nearest = min(range(len(apart)), key=lambda i: apart[i] > 0.1)
    assert any(each > 5 for each in apart[nearest + 20 :])


def test_what_tuning_takes_grows_with_the_constants_and_keeps_to_the_limit():
    one, two = text_of(A=(9, 0, 10)), text_of(A=(9, 0, 10), B=(1, 0, 3))
    assert cost_of(text_of(), 60) == 0
    assert 0 < cost_of(one, 60) < cost_of(two, 60) <= 60
    assert cost_of(two, 10) == 10


@pytest.mark.parametrize("text", [text_of(), text_of(A=(3, 3, 3))])
def test_nothing_to_tune_costs_nothing(text):
    planted = Planted()
    assert tune(PlantedTuner(None, text, planted, ()), 60, 1) == {}
    assert planted.seen == []


def test_simulations_find_better_constants(fixtures, baseline):
    tuner, values = tuned(fixtures, baseline, WEIGHTED)
    first = Tuner(fixtures, WEIGHTED, fitness_named("inflation"), baseline)
    first.constants = read_constants(WEIGHTED)
    first.loss([0.95, 0.95])
    assert tuner.best > first.best
    assert values["GPU"] < 0.9
    assert read_constants(with_constants(WEIGHTED, values))
    assert tuned(fixtures, baseline, WEIGHTED)[1] == values


def test_the_best_score_is_that_of_the_best_constants(fixtures, baseline):
    tuner, values = tuned(fixtures, baseline, WEIGHTED, 20)
    again = Tuner(fixtures, with_constants(WEIGHTED, values), tuner.fitness, baseline)
    again.constants = read_constants(again.text)
    again.loss([(c.value - c.low) / (c.high - c.low) for c in again.constants])
    assert again.best == tuner.best


def test_constants_that_make_a_candidate_fail_are_survived(fixtures, baseline):
    tuner, values = tuned(fixtures, baseline, FRAGILE, 30)
    assert values["W"] > 0.5
    assert tuner.best > 0


def test_a_candidate_that_always_fails_keeps_its_constants(fixtures, baseline):
    tuner, values = tuned(fixtures, baseline, FRAGILE.replace("0.9, 0, 1", "0.2, 0, 0.4"), 30)
    assert values == {}
    assert 0 < tuner.evaluations <= 30
