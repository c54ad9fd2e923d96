import pytest

from podium.errors import PolicyError
from podium.policies import policy_of, tunable
from podium.policies.source import read_source

WEIGHTED = """
from podium.policies import tunable

W_CPU = tunable(0.5, 0.0, 2.0)


def score(pod, node):
    return -W_CPU * node.cpu_milli_left
"""


def test_a_tunable_is_its_value_as_a_float():
    assert tunable(1, 0, 2) == 1.0
    assert isinstance(tunable(1, 0, 2), float)


@pytest.mark.parametrize("value", [-0.1, 2.1])
def test_a_value_outside_its_bounds_is_refused(value):
    with pytest.raises(PolicyError, match="not within 0 and 2"):
        tunable(value, 0, 2)


def test_bounds_that_are_not_finite_are_refused():
    with pytest.raises(PolicyError, match="not finite"):
        tunable(1, 0, float("inf"))


def test_a_policy_with_tunables_runs_plain_and_compiles():
    policy = policy_of(read_source(WEIGHTED, "weighted.py"), "weighted")
    assert policy.source is not None
    assert policy.source.namespace()["W_CPU"] == 0.5
    assert policy.native(1, 8).address
