"""Holds hundreds of bred programs to what every policy promises, and to their own text."""

import dataclasses
import math
import pickle

import numpy as np
import pytest

from podium.model.records import NODE_8
from podium.policies.abi import CALLBACK
from podium.policies.source import read_source
from podium.search.generators.genetic.breeding import BreedingSettings, breed
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.bounds import is_sound
from podium.search.program.interpreter import interpreted
from podium.search.program.program import complexity
from podium.search.program.reader import parse
from podium.search.program.simplify import simplify
from podium.search.program.writer import write
from support.bred import brood, policy, score, states, views

COUNT = 300


def _native(chosen, table):
    call = CALLBACK(chosen.native(2, 8).address)
    rows, columns = table.shape

    def run(pod, node, gpu):
        nodes, pods = np.array([node], NODE_8), np.array([pod], pod.dtype)
        return call(pods.ctypes.data, nodes.ctypes.data, gpu, table.ctypes.data, rows, columns)

    return run


def _same(one, other):
    return one == other or (math.isnan(one) and math.isnan(other))


def test_every_offspring_reads_back_as_itself():
    for program in brood(COUNT):
        assert parse(write(program)) == program


def test_every_offspring_is_a_policy_that_the_source_check_accepts():
    for program in brood(COUNT):
        source = read_source(write(program), "bred.py")
        assert source.is_pair


@pytest.mark.deep
def test_every_offspring_is_finite_wherever_a_pod_fits():
    for program in brood(COUNT):
        chosen = policy(program)
        for pod, node, gpu in views(15):
            assert math.isfinite(score(chosen, pod, node, gpu))


def test_every_offspring_is_bounded_and_no_larger_than_allowed():
    for program in brood(COUNT):
        assert is_sound(program)
        assert complexity(program) <= BreedingSettings().largest


def test_simplifying_never_changes_a_score():
    for program in [*brood(COUNT)[::3], *seeds().values()]:
        before, after = policy(program), policy(simplify(program))
        for pod, node, gpu in views(25):
            assert score(before, pod, node, gpu) == score(after, pod, node, gpu)


def test_the_interpreter_scores_as_the_written_program_to_the_bit():
    for program in [*brood(COUNT)[::2], *seeds().values()]:
        plain, fast = policy(program), interpreted(program)
        table = fast.prepare(None)
        run = _native(fast, table)
        for (pod, node, gpu), seen in zip(states(25), views(25), strict=True):
            assert _same(run(pod, node, gpu), score(plain, *seen))


@pytest.mark.deep
@pytest.mark.parametrize("program", brood(COUNT)[::30])
def test_compiled_offspring_score_as_plain_ones_to_the_bit(program):
    chosen = policy(program)
    run = _native(chosen, np.zeros((1, 1)))
    for (pod, node, gpu), seen in zip(states(60), views(60), strict=True):
        assert run(pod, node, gpu) == score(chosen, *seen)


def test_the_same_seed_breeds_the_same_text():
    parents = list(seeds().values())[:3]

    def texts():
        rng = np.random.default_rng(3)
        return [write(breed(rng, parents).program) for _ in range(30)]

    assert texts() == texts()


def test_programs_survive_the_way_to_another_process():
    for program in brood(COUNT)[::20]:
        copy = pickle.loads(pickle.dumps(program))
        assert copy == program
        assert {copy: 1}[program] == 1


def test_offspring_differ_from_their_parents():
    rng = np.random.default_rng(4)
    for parent in seeds().values():
        for _ in range(10):
            child = breed(rng, [parent]).program
            assert dataclasses.replace(child, summary=parent.summary) != parent
