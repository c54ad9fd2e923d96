from dataclasses import replace

from podium.search.run.plan import RANDOM
from support.searches import PLAN_OF_TESTS, STARTERS, Sittings
from support.writing import Writing, written_by


def test_a_text_that_was_judged_before_is_refused_unseen(executor, tmp_path):
    generator = Writing(lambda _request: STARTERS[0][1].replace("def score", "\n\ndef score"))
    run = written_by(generator, tmp_path, executor, tuning=replace(PLAN_OF_TESTS.tuning, every=0))
    search = run.go(2)
    rows = [row for row in run.rows() if row.kind == "bred"]
    assert {row.gate for row in rows} == {"novelty"}
    assert search.tally.evaluations == len(STARTERS)


def test_who_decides_like_another_is_wanted_only_if_it_is_simpler(executor, tmp_path):
    texts = [
        "def score(pod, node):\n    return -node.cpu_milli_left * 2.5 * 2 + 7 - 3\n",
        "def score(pod, node):\n    return -3 * node.cpu_milli_left - 1\n",
        "def score(pod, node):\n    return -node.cpu_milli_left\n",
    ]
    plan = replace(PLAN_OF_TESTS, start=RANDOM)
    found = []
    for i, text in enumerate(texts):
        folder = tmp_path / str(i)
        folder.mkdir()
        generator = Writing(lambda _request, text=text: text)
        run = Sittings(
            folder, executor, replace(plan, generators=(("command", 1.0),)),
            lambda generator=generator: {"command": generator}, starters=[("one", texts[1])],
        )  # fmt: skip
        run.go(2)
        row = next(row for row in run.rows() if row.kind == "bred")
        found.append((row.accepted, row.gate))
    assert found[0] == (False, "novelty")
    assert found[1] == (False, "novelty")
    assert found[2] == (True, "training")


def test_who_may_hold_is_refused_where_holding_is_not_asked_for(executor, tmp_path):
    text = (
        "from podium.policies import HOLD\n\n\ndef score(pod, node):\n"
        "    return HOLD if node.cpu_milli_left < 0 else -node.cpu_milli_left\n"
    )
    for may_hold in (False, True):
        folder = tmp_path / str(may_hold)
        folder.mkdir()
        plan = replace(PLAN_OF_TESTS, may_hold=may_hold)
        run = Sittings(folder, executor, plan, starters=[*STARTERS, ("holding", text)])
        run.go(1)
        row = run.rows()[-1]
        assert row.may_hold
        assert (row.gate == "allow-list") == (not may_hold)
