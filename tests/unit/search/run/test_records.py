from dataclasses import replace

import pytest

from podium.search.candidate.verdict import Decisions, Judgement, Verdict
from podium.search.generators.generator import Cost, Proposal
from podium.search.population import Archive, Member
from podium.search.population.archive import IslandSettings
from podium.search.run.batch import Sample
from podium.search.run.front import fronts_of
from podium.search.run.plan import RANDOM
from podium.search.run.records import Known, judged, problem_of, proposed, refused
from podium.store import open_store
from support.hostile import GOOD
from support.searches import PLAN_OF_TESTS, STARTERS, Sittings
from support.stored import RUN
from support.writing import Writing, unlike, written_by

SAMPLE = Sample(7, 2, "bred", "genetic", parents=(3, 4))
PROPOSAL = Proposal(
    GOOD, "genetic", "thought", "prompt", operators=("swap",), cost=Cost(0.5, 1, 2, 3, 0.25)
)
CASES = ({"allocation_130": 90.0}, {"allocation_130": 94.0})
SCORES = {
    "fitness": 92.0,
    "inflation": 92.0,
    "mean": {"allocation_130": 92.0},
    "fgd": {"fitness": 91.0},
    "cases": [{"case": "a", "score": 90.0}, {"case": "b", "score": 94.0}],
}
DECIDED = Decisions("a" * 16, (0.1, 0.2, 0.3, 0.0))
ACCEPTED = Judgement(Verdict(True, "training"), SCORES, 1.5, CASES, DECIDED, "8 GPUs 40 %")
TUNABLE = """from podium.policies import tunable

W = tunable(0.5, -1, 1)


def score(pod, node):
    return W * node.cpu_milli_left
"""


def row_of(**changes):
    """Proposes a candidate."""
    return proposed("run-a", 4, SAMPLE, replace(PROPOSAL, **changes))


def accepted():
    """Judges it well."""
    return judged(row_of(), replace(ACCEPTED, number=7, text=GOOD))


def test_a_proposal_keeps_where_it_came_from():
    row = row_of()
    assert (row.run_id, row.number, row.batch, row.island) == ("run-a", 7, 4, 2)
    assert (row.source, row.operators, row.parents) == ("genetic", ("swap",), (3, 4))
    assert (row.prompt, row.thought, row.text) == ("prompt", "thought", GOOD)
    assert row.cost == {"seconds": 0.5, "calls": 1, "tokens_in": 2, "tokens_out": 3, "usd": 0.25}
    assert row.fingerprint
    assert row.complexity > 5
    assert problem_of(row) is None


def test_only_parents_that_were_used_are_kept():
    assert row_of(parents=(4,)).parents == (4,)
    assert row_of(parents=()).parents == ()
    assert row_of(parents=None).parents == (3, 4)  # its author did not say


def test_a_text_that_is_no_candidate_is_kept_with_its_problem():
    row = row_of(text="def score(pod):\n    return 1\n")
    assert (row.fingerprint, row.complexity) == ("", 0)
    gate, reason = problem_of(row)
    assert gate == "signature"
    assert "score takes (pod)" in reason


def test_no_text_is_a_problem_of_its_own():
    assert problem_of(row_of(text="", problem="exit code 1")) == ("syntax", "exit code 1")
    assert problem_of(row_of(text="")) == ("syntax", "the generator wrote nothing")


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "def score(pod, node): \udfff"])
def test_what_no_database_keeps_is_replaced(tmp_path, text):
    row = row_of(text=text, thought=text, prompt=text, problem=text)
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        store.runs.create(RUN)
        store.candidates.propose([row])
        assert store.candidates.of("run-a") == [row]


def test_an_accepted_candidate_becomes_a_member():
    row = accepted()
    assert (row.state, row.accepted, row.fitness) == ("judged", True, 92.0)
    assert row.cost["evaluations"] == 1
    assert row.cost["usd"] == 0.25
    assert row.scores["by_case"] == [90.0, 94.0]
    assert set(row.scores) == {"fitness", "inflation", "mean", "by_case"}
    assert row.diagnostics == "8 GPUs 40 %"
    member = Member.of(row)
    assert (member.number, member.fitness, member.case_scores) == (7, 92.0, (90.0, 94.0))
    assert (member.signature, member.behaviour) == (DECIDED.signature, DECIDED.behaviour)


def test_a_refused_candidate_becomes_no_member():
    lost = Judgement(Verdict(False, "race", "trails"), {}, 0.5, CASES[:1], DECIDED)
    row = judged(row_of(), replace(lost, number=7, text=GOOD))
    assert (row.accepted, row.gate, row.reason, row.fitness) == (False, "race", "trails", None)
    assert row.cases == CASES[:1]
    assert Member.of(row) is None
    early = refused(row_of(), "novelty", "known")
    assert (early.state, early.accepted, early.gate) == ("judged", False, "novelty")
    assert Member.of(early) is None


def test_a_tuned_candidate_has_the_text_and_the_size_it_was_judged_with():
    row = proposed("run-a", 4, replace(SAMPLE, kind="tuned"), replace(PROPOSAL, text=TUNABLE))
    text = TUNABLE.replace("0.5", "-0.25")
    found = judged(row, replace(ACCEPTED, number=7, text=text, evaluations=11))
    assert found.text == text
    assert found.complexity == row.complexity + 2  # a sign is read too
    assert found.cost["evaluations"] == 11


@pytest.mark.parametrize(
    ("kind", "homes", "tuned", "children"),
    [
        ("seed", [0, 1, 2, 3], set(), {3: 1, 4: 1}),
        ("tuned", [0, 1, 2, 3], {7, 3, 4}, {}),  # a variant is no child, and this one is the best
        ("bred", [2], set(), {3: 1, 4: 1}),
    ],
)
def test_the_archive_takes_a_candidate_by_its_kind(kind, homes, tuned, children):
    archive = Archive(IslandSettings(), 7, ("a", "a"))
    archive.end_batch([replace(accepted(), kind=kind)])
    assert [each.index for each in archive.islands if each.members] == homes
    assert archive.tuned == tuned
    assert archive.islands[2].children == children


def test_a_variant_that_is_not_the_best_of_all_stays_where_it_was_tuned():
    archive = Archive(IslandSettings(), 7, ("a", "a"))
    best = accepted()
    worse = replace(best, number=8, kind="tuned", signature="other", fitness=best.fitness - 1.0)
    archive.end_batch([best, worse])
    homes = [each.index for each in archive.islands if any(m.number == 8 for m in each.members)]
    assert homes == [2]


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


@pytest.mark.parametrize("first", [0, 1])
def test_who_answers_first_does_not_decide_who_is_a_twin(first):
    """Of two models that write the same at the same time, both are heard in either order."""
    lag = PLAN_OF_TESTS.pipeline.lag
    twins = [replace(row_of(source="llm:small"), number=number) for number in (8, 9)]
    known = Known(PLAN_OF_TESTS)
    for row in (twins[first], twins[1 - first]):
        assert known.problem_of(row) is None
        known.add(row)
    later = replace(row_of(source="llm:small"), number=99, batch=4 + lag + 1)
    assert known.problem_of(later)[0] == "novelty"
    bred = replace(row_of(), number=9)
    known = Known(PLAN_OF_TESTS)
    known.add(replace(bred, number=8))
    assert known.problem_of(bred)[0] == "novelty"
