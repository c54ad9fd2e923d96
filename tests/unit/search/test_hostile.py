from concurrent.futures import ThreadPoolExecutor

import pytest

from podium.evaluation.cases import TrainingSet
from podium.search.candidate.verdict import ALLOWLIST, SYNTAX, TRAINING
from podium.search.judging.judge import Judge
from support.hostile import GOOD, hostile_candidates

ALL = hostile_candidates()


def by_name(candidates):
    return [pytest.param(each, id=each.name) for each in candidates]


@pytest.fixture(scope="module")
def expected(judge):
    """Judges a good candidate before anything hostile has run."""
    found = judge.judge(GOOD)
    assert found.verdict.accepted, found.verdict
    return found.cases


def test_there_are_at_least_forty_of_them_under_different_names():
    names = [each.name for each in ALL]
    assert len(names) == len(set(names)) >= 40


@pytest.mark.parametrize("hostile", by_name(ALL))
def test_it_is_rejected_with_its_reason_and_the_next_one_is_judged_as_ever(
    judge, expected, hostile
):
    verdict = judge.judge(hostile.text).verdict
    assert not verdict.accepted
    assert (verdict.gate, hostile.reason in verdict.reason) == (hostile.gate, True), verdict
    assert verdict.reason
    if hostile.gate == ALLOWLIST:
        assert verdict.reason.startswith("line "), "a reason names the line"
    if hostile.gate != SYNTAX:
        assert judge.judge(GOOD).cases == expected


def test_a_comment_may_hold_any_word(judge):
    found = judge.judge(GOOD)
    assert "important" in GOOD
    assert (found.verdict.accepted, found.verdict.gate) == (True, TRAINING)


def test_workers_that_are_shared_by_threads_keep_candidates_apart(judge, expected):
    bad = {each.name: each.text for each in ALL}
    loop, bomb, nan = (
        bad[name] for name in ("an endless while", "a tuple that doubles", "infinity")
    )
    texts = [GOOD, loop, GOOD, bomb, GOOD, nan, GOOD, GOOD]
    training, fitness = judge.training, judge.fitness.name
    with (
        Judge(TrainingSet(training.cases), fitness, 2, judge.pool.limits) as shared,
        ThreadPoolExecutor(4) as threads,
    ):
        found = list(threads.map(shared.judge, texts))
    for text, judgement in zip(texts, found, strict=True):
        assert judgement.verdict.accepted == (text == GOOD), judgement.verdict
        assert judgement.cases == (expected if text == GOOD else ())
