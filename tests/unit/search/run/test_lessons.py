from dataclasses import replace

from support.searches import PLAN_OF_TESTS
from support.writing import Writing, unlike, written_by


def test_generators_hear_what_became_of_their_candidates(executor, tmp_path):
    generator = Writing(unlike)
    run = written_by(generator, tmp_path, executor, tuning=replace(PLAN_OF_TESTS.tuning, every=0))
    search = run.go(2)
    rows = [row for row in run.rows() if row.kind == "bred"]
    assert len(generator.heard) == len(rows)
    assert {source for source, _, _ in generator.heard} == {"command"}
    for row, (_, gain, cost) in zip(rows, generator.heard, strict=True):
        assert (gain is None) == (not row.accepted)
        assert cost.calls == 1
    assert search.tally.calls == len(rows)
