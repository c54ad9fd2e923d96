import pytest

from podium.policies.states import random_states
from podium.search.candidate.constants import read_constants, with_constants
from podium.search.candidate.gates import read_candidate
from podium.search.candidate.verdict import Verdict
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.bounds import is_sound
from podium.search.program.interpreter import interpreted
from podium.search.program.parameters import FIXED, MOST, with_tunables
from podium.search.program.reader import parse
from podium.search.program.writer import write

STATES = random_states(60, 3).with_slots(8)


def scores(program):
    policy = interpreted(program)
    table = policy.prepare(STATES.shapes())
    call = policy.function
    given = (
        (*view, table) if policy.takes_gpu else (view[0], view[1], table) for view in STATES.views()
    )
    return [call(*each) for each in given]


@pytest.mark.parametrize("name", sorted(seeds()))
def test_numbers_become_constants_and_nothing_else_changes(name):
    before, after = seeds()[name], with_tunables(seeds()[name])
    assert scores(after) == pytest.approx(scores(before), rel=1e-12)


@pytest.mark.parametrize("name", sorted(seeds()))
def test_the_formula_can_be_written_read_and_judged(name):
    text = write(with_tunables(seeds()[name]))
    assert parse(text).block == with_tunables(seeds()[name]).block
    assert not isinstance(read_candidate(text), Verdict)
    assert is_sound(parse(text))


def test_every_number_that_is_a_matter_of_taste_is_declared_within_bounds():
    constants = read_constants(write(with_tunables(seeds()["best-fit"])))
    assert {"CPU_MILLI_MAX", "GPU_MILLI_MAX", "WEIGHT", "NUMBER"} <= {c.name for c in constants}
    assert all(c.low < c.value < c.high for c in constants)
    assert not any(c.value in FIXED for c in constants if c.name.startswith("NUMBER"))
    assert all(len(read_constants(write(with_tunables(p)))) <= MOST for p in seeds().values())


def test_other_constants_make_another_policy():
    text = write(with_tunables(seeds()["convex"]))
    assert scores(parse(text)) != scores(parse(with_constants(text, {"WEIGHT": -2.0})))


HELPED = """def worth(milli):
    if milli < 300:
        return 0
    return milli


def score(pod, node):
    total = 0
    for slot in range(node.gpu_count):
        total += worth(node.gpu_milli_left[slot])
    return -int(4 * total / 1000) if pod.gpu_count == 8 else 0.5 * total
"""


def test_numbers_of_functions_and_limits_are_declared_too():
    declared = read_constants(write(with_tunables(parse(HELPED))))
    numbers = [each.value for each in declared if each.name.startswith("NUMBER")]
    assert sorted(numbers) == [0.5, 4, 300]  # 8 is compared exactly


def test_constants_that_a_text_declares_itself_keep_their_bounds():
    text = "from podium.policies import tunable\n\nW = tunable(0.5, 0.0, 2.0)\n\n\n" + (
        "def score(pod, node):\n    return W * node.gpu_count + 3 * pod.cpu_milli\n"
    )
    declared = {each.name: each for each in read_constants(write(with_tunables(parse(text))))}
    assert (declared["W"].low, declared["W"].high) == (0.0, 2.0)
    assert declared["NUMBER"].value == 3
