import pytest

from podium.evaluation.cases import Case, TrainingSet
from podium.search.candidate.verdict import Rejected
from podium.search.judging.contract import check_contract, decisions_of, is_proven
from podium.search.judging.fixtures import Fixtures
from podium.search.judging.form import form_as_written, form_for
from podium.search.judging.trial import read_policy
from podium.search.run.speed import bred_texts


@pytest.fixture(scope="module")
def fixtures():
    """Holds single states, the probe and little else."""
    return Fixtures.of(TrainingSet((Case(nodes=4, pods=20),)))


@pytest.mark.parametrize("expression", ["math.nan", "math.inf"])
def test_scores_that_are_no_numbers_are_refused_on_the_states_of_the_probe(fixtures, expression):
    wanted = f"{expression} if node.cpu_milli_left % 7 == 3 else 1.0"
    policy = read_policy(f"import math\n\n\ndef score(pod, node):\n    return {wanted}\n")
    form = form_as_written(policy, fixtures.plans, is_compiled=False)
    with pytest.raises(Rejected, match="NaN or infinite: for Pod"):
        decisions_of(policy, fixtures, form)


def test_a_bred_program_decides_alike_interpreted_and_as_written(fixtures):
    for text in bred_texts(12):
        policy = read_policy(text)
        written = form_as_written(policy, fixtures.plans, is_compiled=False)
        form = form_for(text, policy, fixtures.plans, is_compiled=False)
        assert form.is_interpreted
        assert is_proven(form, fixtures, check_contract(policy, fixtures))
        assert decisions_of(policy, fixtures, form) == decisions_of(policy, fixtures, written)


def test_an_engine_that_scores_otherwise_than_the_text_is_not_proven(fixtures):
    one, other = (read_policy(f"def score(pod, node):\n    return {sign}node.cpu_milli_left\n")
                  for sign in ("", "-"))  # fmt: skip
    scores = check_contract(one, fixtures)
    text = "def score(pod, node):\n    return -node.cpu_milli_left\n"
    assert not is_proven(form_for(text, other, fixtures.plans, is_compiled=False), fixtures, scores)
    assert is_proven(form_as_written(other, fixtures.plans, is_compiled=False), fixtures, scores)
