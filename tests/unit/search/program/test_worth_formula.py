"""Holds a formula of a person, with functions of its own, to what bred programs promise."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import support
from podium.evaluation.cases import Case, planned
from podium.evaluation.measures import measure_case
from podium.policies import load, policy_of
from podium.policies.source import read_source
from podium.search.candidate.gates import Candidate, read_candidate
from podium.search.generators.genetic.breeding import BreedingSettings, breed
from podium.search.judging.form import form_for
from podium.search.program.bounds import is_sound
from podium.search.program.interpreter import interpreted
from podium.search.program.reader import parse
from podium.search.program.writer import write
from podium.sim.execution import execute
from support.bred import policy, score, views

TEXT = (Path(support.__path__[0]) / "usable_worth.py").read_text(encoding="utf-8")
CASES = [Case(nodes=200, seed=seed) for seed in (1500, 1501)]


def test_it_is_a_candidate_that_breeding_reads_with_its_functions():
    assert isinstance(read_candidate(TEXT), Candidate)
    program = parse(TEXT)
    assert [each.name for each in program.functions] == ["worth", "starved"]
    assert is_sound(program)
    assert parse(write(program)) == program


def test_it_scores_alike_as_written_as_read_and_interpreted():
    original, copy = policy_of(read_source(TEXT, "worth.py"), "worth"), policy(parse(TEXT))
    fast = interpreted(parse(TEXT))
    table = fast.prepare(None)
    for pod, node, gpu in views(300):
        expected = score(original, pod, node, gpu)
        assert score(copy, pod, node, gpu) == expected
        assert fast.score_pair(pod, node, gpu, table) == expected


def test_it_is_interpreted_without_compiling():
    chosen = policy_of(read_source(TEXT, "worth.py"), "worth")
    assert form_for(TEXT, chosen, (), is_compiled=False).is_interpreted


def test_its_offspring_keep_its_functions():
    rng = np.random.default_rng(1)
    parent = parse(TEXT)
    children = [breed(rng, [parent], BreedingSettings(largest=200)) for _ in range(25)]
    assert not any(each.operators == ("random_program",) for each in children)
    assert sum(bool(each.program.functions) for each in children) > 15
    for each in children:
        assert isinstance(read_candidate(write(each.program)), Candidate)


@pytest.mark.deep
def test_it_places_more_than_fgd_and_than_what_a_search_has_found_before():
    def reached(chosen):
        plans = planned(CASES, chosen)
        runs = [execute(replace(plan, tier="scan")) for plan in plans]
        return np.mean([measure_case(run)["allocation_130"] for run in runs])

    own = reached(interpreted(parse(TEXT)))
    assert own > reached(load("fgd")) + 0.8
    assert own > reached(load("fed-gpu"))
