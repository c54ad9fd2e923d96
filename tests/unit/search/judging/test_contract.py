import pytest

from podium.evaluation.cases import Case, TrainingSet
from podium.search.candidate.verdict import Rejected
from podium.search.judging.contract import check_contract, decisions_of, is_proven
from podium.search.judging.form import engine_as_written, engine_for
from podium.search.judging.testbed import Bench
from podium.search.judging.trial import read_policy
from podium.search.run.speed import bred_texts


@pytest.fixture(scope="module")
def bench():
    """Holds single states, the probe and little else."""
    return Bench.of(TrainingSet((Case(nodes=4, pods=20),)))


@pytest.mark.parametrize("expression", ["math.nan", "math.inf"])
def test_scores_that_are_no_numbers_are_refused_on_the_states_of_the_probe(bench, expression):
    wanted = f"{expression} if node.cpu_milli_left % 7 == 3 else 1.0"
    policy = read_policy(f"import math\n\n\ndef score(pod, node):\n    return {wanted}\n")
    engine = engine_as_written(policy, bench.plans, is_compiled=False)
    with pytest.raises(Rejected, match="NaN or infinite: for Pod"):
        decisions_of(policy, bench, engine)


def test_a_bred_program_decides_alike_interpreted_and_as_written(bench):
    for text in bred_texts(12):
        policy = read_policy(text)
        written = engine_as_written(policy, bench.plans, is_compiled=False)
        engine = engine_for(text, policy, bench.plans, is_compiled=False)
        assert engine.is_interpreted
        assert is_proven(engine, bench, check_contract(policy, bench))
        assert decisions_of(policy, bench, engine) == decisions_of(policy, bench, written)


def test_an_engine_that_scores_otherwise_than_the_text_is_not_proven(bench):
    one, other = (read_policy(f"def score(pod, node):\n    return {sign}node.cpu_milli_left\n")
                  for sign in ("", "-"))  # fmt: skip
    scores = check_contract(one, bench)
    text = "def score(pod, node):\n    return -node.cpu_milli_left\n"
    assert not is_proven(engine_for(text, other, bench.plans, is_compiled=False), bench, scores)
    assert is_proven(engine_as_written(other, bench.plans, is_compiled=False), bench, scores)
