from dataclasses import replace

import pytest

from podium.search.generator import Cost, Proposal
from podium.search.probe import Decisions
from podium.search.run.executor import Done
from podium.search.run.samples import Sample
from podium.search.run.verdicts import entry_of, judged, member_of, problem_of, proposed, refused
from podium.search.verdict import Judgement, Verdict
from podium.store import open_store
from support.hostile import GOOD
from support.stored import RUN

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
    return judged(row_of(), Done(7, GOOD, ACCEPTED))


def test_a_proposal_keeps_where_it_came_from():
    row = row_of()
    assert (row.run_id, row.number, row.batch, row.island) == ("run-a", 7, 4, 2)
    assert (row.source, row.operators, row.parents) == ("genetic", ("swap",), (3, 4))
    assert (row.prompt, row.thought, row.text) == ("prompt", "thought", GOOD)
    assert row.cost == {"seconds": 0.5, "calls": 1, "tokens_in": 2, "tokens_out": 3, "usd": 0.25}
    assert row.fingerprint
    assert row.complexity > 5
    assert problem_of(row) is None


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
    member = member_of(row)
    assert (member.number, member.fitness, member.case_scores) == (7, 92.0, (90.0, 94.0))
    assert (member.signature, member.behaviour) == (DECIDED.signature, DECIDED.behaviour)


def test_a_refused_candidate_becomes_no_member():
    lost = Judgement(Verdict(False, "race", "trails"), {}, 0.5, CASES[:1], DECIDED)
    row = judged(row_of(), Done(7, GOOD, lost))
    assert (row.accepted, row.gate, row.reason, row.fitness) == (False, "race", "trails", None)
    assert row.cases == CASES[:1]
    assert member_of(row) is None
    early = refused(row_of(), "novelty", "known")
    assert (early.state, early.accepted, early.gate) == ("judged", False, "novelty")
    assert entry_of(early).member is None


def test_a_tuned_candidate_has_the_text_and_the_size_it_was_judged_with():
    row = proposed("run-a", 4, replace(SAMPLE, kind="tuned"), replace(PROPOSAL, text=TUNABLE))
    text = TUNABLE.replace("0.5", "-0.25")
    found = judged(row, Done(7, text, ACCEPTED, 11))
    assert found.text == text
    assert found.complexity == row.complexity + 2  # a sign is read too
    assert found.cost["evaluations"] == 11


@pytest.mark.parametrize(
    ("kind", "is_for_all", "is_tuned"),
    [("seed", True, False), ("tuned", False, True), ("bred", False, False)],
)
def test_the_archive_hears_what_kind_a_candidate_is(kind, is_for_all, is_tuned):
    entry = entry_of(replace(accepted(), kind=kind))
    assert (entry.is_for_all, entry.is_tuned) == (is_for_all, is_tuned)
    assert (entry.number, entry.island, entry.parents) == (7, 2, (3, 4))
    assert entry.member is not None
