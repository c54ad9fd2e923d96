from dataclasses import replace

from podium.search.run.front import fronts_of
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


def test_who_holds_without_a_name_for_it_is_refused_or_marked(executor, tmp_path):
    text = (
        "def score(pod, node):\n    if pod.gpu_count == 0:\n        return -1e308 * 10.0\n"
        "    return -node.cpu_milli_left\n"
    )
    for may_hold in (False, True):
        folder = tmp_path / str(may_hold)
        folder.mkdir()
        plan = replace(PLAN_OF_TESTS, may_hold=may_hold)
        run = Sittings(folder, executor, plan, starters=[*STARTERS, ("holding", text)])
        search = run.go(1)
        row = run.rows()[-1]
        assert (row.accepted, row.may_hold) == (may_hold, may_hold)
        assert ("it holds pods: at" in row.reason) is not may_hold
        assert (row.scores.get("held", 0) > 0) is may_hold
        fronts = fronts_of(run.rows())
        assert [each.may_hold for each in fronts] == ([False, True] if may_hold else [False])
        assert may_hold or search.archive.best.number != row.number


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
