from dataclasses import replace

import pytest

from podium.evaluation.cases import Case, TrainingSet
from podium.evaluation.measures import measure_case
from podium.search.candidate.constants import with_constants
from podium.search.judging import form as forms
from podium.search.judging.case_run import run_case
from podium.search.judging.contract import check_compiled
from podium.search.judging.fixtures import Fixtures
from podium.search.judging.form import form_for, large_cases, work_of
from podium.search.judging.machine_code import Library, Parted
from podium.search.judging.trial import Forms, read_policy
from podium.sim.execution import execute

CASE = Case(nodes=80, pods=300)
TEXT = '''"""Scores by constants, some of them in functions."""

from podium.policies import tunable

LIMIT = tunable(250.0, 0.0, 1000.0)
WEIGHT = tunable(0.5, 0.01, 3.0)


def worth(gpu_milli):
    if gpu_milli < LIMIT:
        return 0
    return gpu_milli


def doubled(gpu_milli):
    return 2 * worth(gpu_milli)


def plain(cpu_milli):
    return cpu_milli / 1000


def score(pod, node):
    total = 0
    for slot in range(node.gpu_count):
        total += doubled(node.gpu_milli_left[slot])
    return -WEIGHT * total - plain(node.cpu_milli_left - pod.cpu_milli)
'''
OTHER = with_constants(TEXT, {"LIMIT": 600.0, "WEIGHT": 2.5})


def reached(policy):
    """Measures a policy on a cluster of 80 nodes."""
    plan = CASE.plan(policy)
    return measure_case(execute(replace(plan, policy=policy, tier="cached")))


def test_constants_are_read_from_the_table_by_those_who_need_them_alone():
    program = Parted.of(TEXT).program
    assert "def worth(gpu_milli, table):" in program
    assert "2 * worth(gpu_milli, table)" in program
    assert "def plain(cpu_milli):" in program
    assert "def score(pod, node, table):" in program
    assert "tunable(" not in program


def test_variants_are_one_program_compiled_once_and_score_as_they_are_written():
    library = Library()
    one, other = (library.of(Parted.of(text), read_policy(text)) for text in (TEXT, OTHER))
    assert Parted.of(TEXT).program == Parted.of(OTHER).program
    assert one.compiled is other.compiled
    assert reached(one) == reached(read_policy(TEXT))
    assert reached(other) == reached(read_policy(OTHER))
    assert reached(one) != reached(other)
    assert len(one.compiled) == 1


def test_a_text_without_constants_is_kept_as_it_is():
    text = "def score(pod, node):\n    return -node.cpu_milli_left\n"
    library, policy = Library(), read_policy(text)
    assert library.known(Parted.of(text)) is None
    assert library.of(Parted.of(text), policy) is policy
    assert library.known(Parted.of(text)) is policy


def test_programs_that_were_not_used_for_long_are_forgotten():
    library = Library(most=2)
    texts = [f"def score(pod, node):\n    return {i} * node.cpu_milli_left\n" for i in range(3)]
    for text in texts[:2]:
        library.of(Parted.of(text), read_policy(text))
    library.known(Parted.of(texts[0]))
    library.of(Parted.of(texts[2]), read_policy(texts[2]))
    assert [library.known(Parted.of(text)) is not None for text in texts] == [True, False, True]


def test_only_several_large_cases_are_worth_compiling(monkeypatch):
    small, large = (Case(nodes=n, pods=100).plan(read_policy(TEXT)) for n in (8, 70))
    monkeypatch.setattr(forms, "LARGE_WORK", work_of(large))
    monkeypatch.setattr(forms, "WORTH_COMPILING", 2 * work_of(large))
    assert large_cases([small, large]) == frozenset()
    assert large_cases([small, large, large]) == {1, 2}


@pytest.fixture(scope="module")
def fixtures():
    """Holds a small case and one that counts as large."""
    cases = (Case(nodes=8, pods=80), CASE)
    return replace(Fixtures.of(TrainingSet(cases)), large=frozenset({1}))


def test_large_cases_are_compiled_small_ones_once_machine_code_is_there(fixtures):
    text = TEXT.replace("2 * worth", "3 * worth")  # no other test has compiled it
    policy = read_policy(text)
    usual = form_for(text, policy, fixtures.plans, is_compiled=False)
    assert usual.is_interpreted
    first = Forms.of(fixtures, text, policy, usual)
    assert [first.on(index).is_interpreted for index in (0, 1)] == [True, False]
    again = Forms.of(fixtures, text, policy, usual)
    assert [again.on(index).is_compiled for index in (0, 1)] == [True, True]
    for index in (0, 1):
        found = [
            run_case(fixtures, index, form, may_hold=False).values
            for form in (usual, first.on(index), again.on(index))
        ]
        assert found[0] == found[1] == found[2]


def test_shared_code_is_checked_against_the_candidate_as_it_is_written(fixtures):
    one, other = read_policy(TEXT), read_policy(OTHER)
    code = Library().of(Parted.of(TEXT), one)
    check_compiled(one, fixtures, code)
    with pytest.raises(Exception, match="compiled score differs"):
        check_compiled(other, fixtures, code)
