import pytest

from podium.search.generators.genetic.seeds import seeds
from podium.search.program.reader import parse_inlined
from podium.search.promotion.authorship import authorship_of
from podium.search.promotion.description import described

HOLDING = '''"""Any."""

from podium.policies import HOLD, tunable

LIMIT = tunable(8.0, 0.0, 64.0)
W = tunable(-2.5, -4.0, 4.0)


def score(pod, node):
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    if pod.gpu_milli > 500 and cpu_milli_after < LIMIT:
        return HOLD
    weight = W * cpu_milli_after
    return weight + 3 * node.gpu_count
'''


def test_signs_decide_what_counts_against_and_what_for_a_node():
    told = described(parse_inlined(HOLDING), None)
    assert told == (
        "Against a node counts free CPU once the pod is here. For a node counts the node's GPUs. "
        "It refuses a node if pod.gpu_milli > 500 and cpu_milli_after < 8."
    )


@pytest.mark.parametrize("name", sorted(set(seeds()) - {"first-fit"}))
def test_every_seed_is_described_and_its_reason_given(name):
    program = seeds()[name]
    told = described(program, authorship_of(program, seeds()))
    assert told.endswith(".")
    assert f"The reason is that of {name}: " in told


def test_steps_are_told():
    assert "(in whole steps)" in described(seeds()["fed"], None)
