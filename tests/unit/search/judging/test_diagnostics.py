import pytest

from podium.evaluation.cases import Case, TrainingSet
from podium.evaluation.measures import FIGURES
from podium.evaluation.waste import LOSSES
from podium.search.judging.diagnostics import (
    CLASS_WORDS,
    FIGURE_WORDS,
    LOSS_WORDS,
    CaseFigures,
    diagnose,
)
from podium.search.judging.judge import Judge
from podium.sim.metrics import POD_CLASSES
from support.hostile import GOOD
from support.searches import LIMITS

CASES = (Case(nodes=6, pods=60), Case(nodes=6, pods=60, seed=1001))


def test_every_case_has_a_line_with_its_distance_from_fgd():
    told = diagnose(
        ["one", "two"],
        [
            CaseFigures({"allocation_130": 95.5}),
            CaseFigures({"wait_mean_s": 61.25, "queue_busy": 40.0}),
        ],
        [
            CaseFigures({"allocation_130": 95.0}),
            CaseFigures({"wait_mean_s": 70.0, "queue_busy": 41.0}),
        ],
    )
    assert told == (
        "one: allocated at 130 % 95.50 % (+0.50)\n"
        "two: mean wait 61 s (-9), queue busy 40.00 % (-1.00)"
    )


def test_losses_and_placed_pods_stand_beside_the_figures():
    own = {"stranded": 2.0, "broken": 1.5, "idle": 0.0, "share": 97.0, "8-gpu": 40.0}
    usual = {"stranded": 1.0, "broken": 2.5, "idle": 0.0, "share": 95.5, "8-gpu": 52.5}
    figures = {"allocation_130": 96.5, "cpu_only_placed": 100.0}
    told = diagnose(["case"], [CaseFigures(figures, own)], [CaseFigures(figures, usual)])
    assert told == (
        "Overall: most is lost as stranded without CPU 2.0 % (+1.0); "
        "beside fgd, the worst placed pods are those of class 8 GPUs, 40.0 % (-12.5)\n"
        "case: allocated at 130 % 96.50 % (+0.00); "
        "lost: stranded without CPU 2.0 % (+1.0), broken 1.5 % (-1.0), idle 0.0 % (+0.0); "
        "placed: share 97.0 % (+1.5), 8 GPUs 40.0 % (-12.5)"
    )


def test_the_overall_line_is_about_the_mean_of_the_cases():
    lost = [{"stranded": 4.0, "broken": 3.0, "idle": 0.0}, {"stranded": 1.0, "broken": 3.0}]
    placed = [{"1-gpu": 80.0}, {"1-gpu": 70.0, "4-gpu": 73.0}]
    own = [CaseFigures({}, {**a, **b}) for a, b in zip(lost, placed, strict=True)]
    usual = [CaseFigures({}, {**a, "1-gpu": 75.0, "4-gpu": 75.0}) for a in lost]
    first = diagnose(["a", "b"], own, usual).splitlines()[0]
    assert first == (
        "Overall: most is lost as broken 3.0 % (+0.0); "
        "beside fgd, the worst placed pods are those of class 4 GPUs, 73.0 % (-2.0)"
    )


@pytest.mark.parametrize("protocol", FIGURES)
def test_every_figure_has_its_words_and_its_unit(protocol):
    values = dict.fromkeys(FIGURES[protocol], 1.0)
    told = diagnose(["case"], [CaseFigures(values)], [CaseFigures(values)])
    assert told.count("(+0") == len(values)
    assert "_" not in told
    assert set(values) - {"cpu_only_placed"} <= set(FIGURE_WORDS)


def test_every_loss_and_class_has_its_words():
    assert tuple(LOSS_WORDS) == LOSSES
    assert tuple(CLASS_WORDS) == POD_CLASSES


def test_a_figure_that_fgd_lacks_is_left_out():
    own, usual = (
        CaseFigures({"a": 1.0, "b": 2.0}, {"2-gpu": 1.0}),
        CaseFigures({"b": 1.0}, {"4-gpu": 1.0}),
    )
    assert diagnose(["case"], [own], [usual]) == "case: b 2.00 % (+1.00)"


def test_cases_without_a_name_are_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        diagnose([], [CaseFigures({})], [CaseFigures({})])


def test_a_judged_candidate_is_diagnosed_and_a_refused_one_is_not():
    with Judge(TrainingSet(CASES), "inflation", 1, LIMITS) as judge:
        found = judge.judge(GOOD)
        wrong = judge.judge("def score(pod, node):\n    return 1 / 0\n")
    lines = found.diagnostics.splitlines()
    assert lines[0].startswith("Overall: most is lost as ")
    assert [line.partition(":")[0] for line in lines[1:]] == [case.name for case in CASES]
    assert all("lost: " in line and "placed: " in line for line in lines[1:])
    assert wrong.diagnostics == ""
