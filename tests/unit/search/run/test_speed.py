from podium.evaluation.cases import Case, TrainingSet
from podium.search.candidate.gates import Candidate, read_candidate
from podium.search.judging.judge import Judge
from podium.search.run.speed import bred_texts, judge_batch, plain_rate


def test_the_same_candidates_are_bred_every_time_and_all_can_be_read():
    texts = bred_texts(6)
    assert texts == bred_texts(6)
    assert len(set(texts)) == 6
    assert all(isinstance(read_candidate(text), Candidate) for text in texts)


def test_a_batch_tells_its_rate_and_the_part_that_is_no_simulation():
    with Judge(TrainingSet((Case(nodes=8, pods=80),)), "inflation") as judge:
        rate, overhead = judge_batch(judge, [*bred_texts(2), "no candidate at all"])
    assert rate > 0
    assert 0 < overhead < 1


def test_plain_python_is_timed_on_the_same_cases():
    assert plain_rate(bred_texts(1)) > 0
