from dataclasses import replace

from podium.search.generator import Proposal
from support.searches import PLAN_OF_TESTS
from support.writing import BAD, Writing, unlike, written_by


def test_a_refused_answer_is_repaired_once(executor, tmp_path):
    generator = Writing(lambda request: unlike(request) if request.failure else BAD)
    run = written_by(generator, tmp_path, executor, tuning=replace(PLAN_OF_TESTS.tuning, every=0))
    run.go(2)
    repairs = [row for row in run.rows() if row.kind == "repair"]
    assert len(repairs) == PLAN_OF_TESTS.batch
    assert all(row.accepted or row.gate in ("novelty", "race") for row in repairs)
    refused = {row.number: row for row in run.rows() if row.kind == "bred"}
    half = PLAN_OF_TESTS.block // 2
    for row in repairs:
        origin = refused[row.number - half]
        assert (row.island, row.parents) == (origin.island, origin.parents)
    failures = [request.failure for request in generator.asked if request.failure]
    assert {(each.text, each.gate) for each in failures} == {(BAD, "allow-list")}
    assert all("pod.name" in each.reason for each in failures)


def test_a_repair_that_fails_too_is_the_end_of_it(executor, tmp_path):
    generator = Writing(lambda _request: BAD)
    run = written_by(generator, tmp_path, executor, tuning=replace(PLAN_OF_TESTS.tuning, every=0))
    run.go(2)
    assert len(generator.asked) == 2 * PLAN_OF_TESTS.batch


def test_what_never_came_is_not_repaired(executor, tmp_path):
    generator = Writing(lambda _request: Proposal("", "command", problem="exit code 1"))
    run = written_by(generator, tmp_path, executor, tuning=replace(PLAN_OF_TESTS.tuning, every=0))
    run.go(2)
    rows = [row for row in run.rows() if row.kind == "bred"]
    assert {(row.gate, row.reason) for row in rows} == {("syntax", "exit code 1")}
    assert len(generator.asked) == len(rows) == PLAN_OF_TESTS.batch
