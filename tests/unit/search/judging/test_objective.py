import shutil
from pathlib import Path

import pytest

from podium.errors import InputError, UsageError
from podium.evaluation.cases import Case, TrainingSet
from podium.search.judging.fitness import Outcome, fitness_named
from podium.search.judging.judge import Judge
from podium.search.judging.objective import Objective, lent
from support.searches import LIMITS, TRAINING

EXAMPLES = Path(__file__).parents[4] / "examples" / "objectives"
GOOD = "def objective(run):\n    return run.allocation_130\n"


@pytest.fixture
def written(tmp_path):
    """Writes a file, and names the fitness that it is."""

    def write(text):
        path = tmp_path / "aim.py"
        path.write_text(text)
        return Objective.at(path).name

    return write


def inflated(at_100, at_130, fragmentation=5.0, cpu_only=90.0):
    return {
        "allocation_100": at_100, "allocation_130": at_130, "fragmentation": fragmentation,
        "cpu_only_placed": cpu_only,
    }  # fmt: skip


def replayed(mean_s, p95_s, fragmentation):
    return {
        "allocation_arriving": 50.0, "fragmentation_arriving": fragmentation, "queue_busy": 20.0,
        "wait_mean_s": mean_s, "wait_p95_s": p95_s,
    }  # fmt: skip


INFLATION = [
    Outcome("inflation", inflated(88.0, 97.0, 4.0, 80.0), inflated(95.0, 96.0, 6.0, 95.0)),
    Outcome("inflation", inflated(96.0, 98.5, 3.0, 99.0), inflated(94.0, 95.5, 5.0, 97.0)),
]
REPLAY = [
    Outcome("replay", replayed(30.0, 200.0, 9.0), replayed(90.0, 150.0, 11.0)),
    Outcome("replay", replayed(400.0, 3000.0, 14.0), replayed(0.0, 0.0, 13.0)),
]


@pytest.mark.parametrize(
    ("file", "rule", "outcomes"),
    [
        ("inflation", "inflation", INFLATION), ("holding_93", "holding:93", INFLATION),
        ("fragmentation", "fragmentation", INFLATION), ("waiting", "waiting", REPLAY),
    ],
)  # fmt: skip
def test_the_examples_are_the_rules(file, rule, outcomes):
    own = fitness_named(Objective.at(EXAMPLES / f"{file}.py").name)
    usual = fitness_named(rule)
    for some in (outcomes, outcomes[:1], outcomes[1:]):
        assert own.score(some) == pytest.approx(usual.score(some), rel=1e-12)
    assert (own.kinds, own.may_hold) == (usual.kinds, usual.may_hold)


def test_the_docstring_is_the_formula_in_words(written):
    assert fitness_named(written('"""Allocation alone."""\n' + GOOD)).text == "Allocation alone."
    assert fitness_named(written(GOOD)).text == GOOD.strip()


def test_runs_are_averaged_unless_the_file_combines_them(written):
    assert fitness_named(written(GOOD)).score(INFLATION) == pytest.approx(97.75)
    worst = GOOD + "def combine(runs):\n    return min(run.allocation_130 for run in runs)\n"
    assert fitness_named(written(worst)).score(INFLATION) == 97.0


def test_a_changed_file_is_noticed(written, tmp_path):
    fitness = fitness_named(written(GOOD))
    (tmp_path / "aim.py").write_text(GOOD.replace("130", "100"))
    shutil.copy(tmp_path / "aim.py", tmp_path / "other.py")
    assert fitness.score(INFLATION) == pytest.approx(97.75)  # by this process: it was loaded before
    path, _, digest = fitness.name.rpartition("@")
    moved = fitness_named(path.replace("aim", "other") + "@" + digest)
    with pytest.raises(InputError, match="changed after the search had been planned"):
        moved.score(INFLATION)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1\n", "defines no objective"),
        ("objective = 3\n", "defines no objective"),
        ("def objective(run):\n", "cannot be loaded: .*Error"),
        ("import nothing_of_the_kind\n", "cannot be loaded: ModuleNotFoundError"),
        ('CASES = ("inflated",)\n' + GOOD, "CASES names 'inflated'"),
        ("CASES = ()\n" + GOOD, "CASES is empty"),
    ],
)
def test_a_file_that_is_no_objective_is_refused_before_anything_runs(written, text, problem):
    with pytest.raises(InputError, match=problem):
        written(text)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("run.allocation_140", "has no allocation_140; it has allocation_100, allocation_130"),
        ("1 / 0", "objective failed: ZeroDivisionError"),
        ("float('nan')", "not a finite number"), ("None", "not a finite number"),
        ("True", "not a finite number"),
        ("10**400", "objective returned 1000.*, which is not a finite number"),
        ("10**5000", "a number with thousands of digits, which is not a finite number"),
        ("1.7e308", "the mean of objective is inf, which is not a finite number"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_told_with_its_line(written, body, problem):
    fitness = fitness_named(written(f"def objective(run):\n    return {body}\n"))
    with pytest.raises(InputError, match=problem) as caught:
        fitness.score(INFLATION)
    assert "aim.py" in caught.value.where
    if "failed" in problem:
        assert caught.value.where.endswith("line 2")


@pytest.mark.parametrize(
    "name", ["objective:", "objective:aim.py@0123456789abcdef", "objective:/a"]
)
def test_a_name_without_file_and_digest_is_refused(name):
    with pytest.raises(UsageError, match="names no objective"):
        fitness_named(name)


def best_of(run):
    """Says what it wants."""
    return run.allocation_130


def test_a_function_is_an_objective_for_as_long_as_it_is_lent(monkeypatch):
    monkeypatch.setattr(best_of, "CASES", "replay", raising=False)
    monkeypatch.setattr(best_of, "MAY_HOLD", True, raising=False)
    with lent(best_of) as name:
        fitness = fitness_named(name)
        assert fitness.score(INFLATION) == pytest.approx(97.75)
        assert (fitness.kinds, fitness.may_hold) == (("replay",), True)
        assert fitness.text == "Says what it wants."
        with lent(lambda run: run.allocation_100) as other:
            assert fitness_named(other).score(INFLATION) == pytest.approx(92.0)
    assert fitness_named(name).name == name
    with pytest.raises(InputError):
        fitness_named(name).score(INFLATION)


def test_a_function_is_checked_like_a_file(monkeypatch):
    monkeypatch.setattr(best_of, "CASES", ("paradise",), raising=False)
    with pytest.raises(InputError, match="CASES names 'paradise'"), lent(best_of):
        pass
    with lent(lambda _run: "much") as name, pytest.raises(InputError, match="not a finite number"):
        fitness_named(name).score(INFLATION)


DETAILED = """
import os
CASES = ("inflation",)
PROCESS = os.getpid()
def objective(run):
    assert os.getpid() == {pid}, "an objective is run in the user's process"
    assert set(run.lost) == {{"stranded", "broken", "idle"}}
    return run.placed["share"] - run.fgd.placed["share"] + run.allocation_130 / 100
"""
TUNED = """from podium.policies import tunable
W = tunable(0.5, 0.0, 1.0)
def score(pod, node):
    return -node.cpu_milli_left * W - sum(node.gpu_milli_left)
"""


def test_candidates_are_judged_and_raced_by_asking_the_user_s_process(written):
    import os

    name = written(DETAILED.format(pid=os.getpid()))
    with Judge(TRAINING, name, 1, LIMITS) as judge:
        found = judge.judge(TUNED)
        assert found.verdict.accepted, found.verdict
        placed = [each["placed_share"] for each in found.cases]
        fgd = [each["placed_share"] for each in judge.pool.baseline]
        means = [each["allocation_130"] for each in found.cases]
        expected = sum(
            own - other + mean / 100 for own, other, mean in zip(placed, fgd, means, strict=True)
        )
        assert found.scores["fitness"] == pytest.approx(expected / 2)
        assert "placed share" not in found.diagnostics.replace("placed: ", "")
        better = [{**each, "placed_share": 100.0} for each in found.cases]
        trailing = judge.judge(
            "def score(pod, node):\n    return node.cpu_milli_left\n", (), better
        )
        assert trailing.verdict.gate in ("race", "training")


def test_power_is_what_an_objective_makes_of_the_gpus_in_use():
    name = Objective.at(EXAMPLES / "power.py").name
    case = Case("openb:16", pods=60, protocol="replay", load=50.0)
    with Judge(TrainingSet((case,)), name, 1, LIMITS) as judge:
        found = judge.judge(TUNED)
    assert found.verdict.accepted, found.verdict
    (figures,) = found.cases
    rated_w = {"P100": 250, "V100M16": 300, "V100M32": 300, "G2": 250, "G3": 250}
    drawn_w = sum(figures[f"in_use_{model}"] / 100 * each for model, each in rated_w.items())
    assert 0 < drawn_w < 300
    expected = -drawn_w - figures["wait_mean_s"] / 30
    assert found.scores["fitness"] == pytest.approx(expected)


def test_an_objective_that_fails_on_a_candidate_ends_the_search_with_its_line(written):
    name = written("def objective(run):\n    return run.nothing\n")
    one = TrainingSet(TRAINING.cases[:1])
    with Judge(one, name, 1, LIMITS) as judge, pytest.raises(InputError, match="has no nothing"):
        judge.judge("def score(pod, node):\n    return node.cpu_milli_left\n")


def test_the_score_of_funsearch_is_judged_in_the_sandbox():
    case = Case("openb:16", pods=300, protocol="funsearch", load=20.0)
    with Judge(TrainingSet((case,)), "funsearch:40", 1, LIMITS) as judge:
        found = judge.judge("def score(pod, node):\n    return -node.cpu_milli_left\n")
        assert found.verdict.accepted, found.verdict
        (values,) = found.cases
        assert 0 < values["funsearch_score_without_retries"] <= 100
        assert found.scores["fitness"] <= values["funsearch_score_without_retries"]
        held = judge.judge(
            "from podium.policies import HOLD\ndef score(pod, node):\n"
            "    return HOLD if node.gpu_count > 2 else 1.0\n",
            may_hold=False,
        )
        assert not held.verdict.accepted
        assert "it holds pods" in held.verdict.reason
