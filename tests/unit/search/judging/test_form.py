from dataclasses import replace

import numpy as np
import pytest

from podium.evaluation.cases import Case
from podium.policies import load
from podium.search.generators.genetic.seeds import seeds
from podium.search.judging.form import PLAIN_WORK, form_for
from podium.search.judging.trial import read_policy
from podium.search.program.writer import write
from podium.sim.execution import execute
from support.bred import brood

CASES = (Case(nodes=24, pods=150), Case(nodes=200, pods=300, seed=1001), Case(
    "openb:16", pods=60, protocol="replay", load=50.0, seed=1002))  # fmt: skip
PLANS = [case.plan(load("first-fit")) for case in CASES]
LOOP = """def score(pod, node):
    found = 0.0
    step = 1
    while step < 4:
        found = found - node.cpu_milli_left / step
        step = step + 1
    return found
"""


def digest(form, plan, tier=None):
    """Runs a plan and tells all its decisions in a word."""
    return execute(replace(plan, policy=form.policy, tier=tier or form.tier(plan))).digest


def texts():
    """Gives every seed and a hundred bred programs."""
    return [write(program) for program in (*seeds().values(), *brood(100))]


def test_interpreted_programs_decide_as_their_plain_text_does():
    for text in texts():
        policy = read_policy(text)
        form = form_for(text, policy, PLANS, is_compiled=False)
        assert not form.is_plain
        assert not form.is_compiled
        for plan in (PLANS[0], PLANS[2]):
            plain = execute(replace(plan, policy=policy, tier="python")).digest
            assert digest(form, plan) == plain, text


def test_interpreted_programs_decide_alike_on_large_clusters():
    for text in texts()[::20]:
        policy = read_policy(text)
        form = form_for(text, policy, PLANS, is_compiled=False)
        assert form.tier(PLANS[1]) == "cached"
        assert digest(form, PLANS[1]) == digest(form, PLANS[1], "scan")


@pytest.mark.parametrize("index", range(0, 12, 3))
def test_compiled_programs_decide_as_interpreted_ones_do(index):
    text = texts()[index]
    policy = read_policy(text)
    compiled = form_for(text, policy, PLANS, is_compiled=True)
    interpreted = form_for(text, policy, PLANS, is_compiled=False)
    assert compiled.is_compiled
    assert [digest(compiled, plan) for plan in PLANS] == [
        digest(interpreted, plan) for plan in PLANS
    ]


def test_what_cannot_be_bred_runs_plain_on_little_and_compiled_on_much():
    policy = read_policy(LOOP)
    assert form_for(LOOP, policy, PLANS[:1], is_compiled=False).is_plain
    count = PLAIN_WORK // (len(PLANS[0].cluster) * len(PLANS[0].arrivals)) + 1
    assert form_for(LOOP, policy, PLANS[:1] * count, is_compiled=False).is_compiled


def test_every_program_is_asked_for_the_same_pods():
    results = [
        execute(replace(PLANS[0], policy=read_policy(text), tier="python")) for text in texts()[:2]
    ]
    assert np.array_equal(results[0].plan.arrivals.pods, results[1].plan.arrivals.pods)
