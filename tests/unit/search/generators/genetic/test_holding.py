import numpy as np
import pytest

from podium.policies import HOLD
from podium.search.candidate.gates import read_candidate
from podium.search.generators.genetic.breeding import BreedingSettings, breed, finished
from podium.search.generators.genetic.crossover import take_hold
from podium.search.generators.genetic.holding import (
    HOLDINGS,
    drop_hold,
    holds,
    insert_hold,
    move_hold,
    narrow_hold,
    parts_of,
    refusals,
    widen_hold,
)
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.interpreter import interpreted
from podium.search.program.reader import parse
from podium.search.program.shape import with_ingredients
from podium.search.program.units import is_typed, units_of
from podium.search.program.writer import write
from support.bred import policy, score, views

HOLDING = BreedingSettings(may_hold=True, largest=130)


def _rng(seed=1):
    return np.random.default_rng(seed)


def _refusing(seed=1, parent="best-fit"):
    return finished(insert_hold(_rng(seed), seeds()[parent]), HOLDING)


def _bred(count, brood):
    rng = _rng(5)
    people = list(seeds().values())
    young = []
    for _ in range(count):
        parents = [people[int(rng.integers(len(people)))] for _ in range(2)]
        young.append(breed(rng, parents, brood).program)
        people[int(rng.integers(len(people)))] = young[-1]
    return young


@pytest.mark.parametrize("operator", HOLDINGS, ids=lambda each: each.__name__)
def test_an_operator_makes_programs_that_can_be_finished_and_read(operator):
    made = 0
    for seed in range(40):
        child = operator(_rng(seed), with_ingredients(_refusing(seed)))
        done = finished(child, HOLDING) if child is not None else None
        if done is not None:
            made += 1
            assert parse(write(done)) == done
    assert made > 10


def test_a_refusal_compares_like_with_like_and_its_limits_are_tunable():
    for seed in range(60):
        program = with_ingredients(insert_hold(_rng(seed), seeds()["best-fit"]))
        units = units_of(program)
        (guard,) = refusals(program)
        assert is_typed(guard.condition, units)
        for constant in program.constants:
            if constant.name in guard.condition.names:
                low, high = constant.bounds
                assert low <= constant.value <= high


def test_a_refusal_stands_before_every_branch():
    branched = parse(
        "def score(pod, node):\n    if pod.gpu_count == 0:\n        return 1\n    return 2"
    )
    program = insert_hold(_rng(), branched)
    assert program.block.statements[0] in refusals(program)


def test_refusals_are_narrowed_widened_moved_and_dropped():
    text = """
from podium.policies import HOLD, tunable

CPU_MILLI_LIMIT = tunable(4000.0, 0.0, 128000.0)


def score(pod, node):
    if pod.gpu_count == 0 and node.cpu_milli_left < CPU_MILLI_LIMIT:
        return HOLD
    return -node.cpu_milli_left
"""
    parent = parse(text)
    (guard,) = refusals(parent)
    assert len(parts_of(refusals(narrow_hold(_rng(), parent))[0])) > 2
    wider = {refusals(widen_hold(_rng(seed), parent))[0].condition for seed in range(20)}
    assert wider == set(parts_of(guard))
    moved = move_hold(_rng(), parent)
    assert moved.block == parent.block
    assert 0 < moved.constants[0].value != 4000.0
    assert not holds(drop_hold(_rng(), parent))


@pytest.mark.parametrize("operator", [narrow_hold, widen_hold, move_hold, drop_hold])
def test_what_refuses_nothing_has_no_refusal_to_change(operator):
    assert operator(_rng(), seeds()["best-fit"]) is None


def test_a_refusal_of_one_parent_is_taken_over_with_its_limit():
    one, other = seeds()["convex"], _refusing(3)
    child = finished(take_hold(_rng(), one, other), HOLDING)
    assert [write(child).count("return HOLD"), holds(one)] == [1, False]
    assert child.block.result == finished(one).block.result
    assert take_hold(_rng(), other, one) is None


def test_programs_hold_only_in_broods_that_may():
    assert not any(holds(program) for program in _bred(60, BreedingSettings()))
    assert sum(holds(program) for program in _bred(60, HOLDING)) > 10
    assert finished(_refusing()) is None


def test_a_bred_refusal_means_the_same_interpreted_and_written():
    refused = 0
    for program in _bred(40, HOLDING):
        written, quick = policy(program), interpreted(program)
        assert quick.may_hold == written.may_hold == holds(program)
        assert read_candidate(write(program)).may_hold == holds(program)
        table = quick.prepare(None)
        for pod, node, gpu in views(60):
            expected = score(written, pod, node, gpu)
            assert quick.score_pair(pod, node, gpu, table) == expected
            refused += expected == HOLD
    assert refused > 20


def test_a_long_refusal_is_written_over_several_lines():
    program = parse(
        "from podium.policies import HOLD\n\n\n"
        "def score(pod, node):\n"
        "    if pod.gpu_milli < 1000 and 0 < node.memory_mib_left and node.cpu_milli_left > 21000"
        " and node.memory_mib_total > 8192:\n"
        "        return HOLD\n"
        "    return 1\n"
    )
    text = write(program)
    assert max(map(len, text.splitlines())) <= 100
    assert parse(text).block == program.block
