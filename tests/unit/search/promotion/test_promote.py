import ast
import json
from dataclasses import replace

import pytest

from podium.errors import UsageError
from podium.evaluation.cases import Case, TrainingSet
from podium.evaluation.validation import FITNESS, HeldOut
from podium.policies import catalogue, load, registry
from podium.search.candidate.gates import checked_policy
from podium.search.judging.fitness import fitness_named
from podium.search.judging.judge import Judge
from podium.search.judging.objective import Objective
from podium.search.program.ingredients import NOTES
from podium.search.promotion.card import Provenance
from podium.search.promotion.decision import Rule, worth_by
from podium.search.promotion.promote import Nominee, Settings, promote, rivals, scorer
from podium.search.promotion.reduction import ReductionSettings
from podium.sim.execution import execute
from podium.testing import check_policy
from support.nominees import BRITTLE, GOOD, PADDED

CASES = HeldOut(seeds=8, nodes=48, pods=600, replay_pods=40).cases()
TRAINING = tuple(Case(nodes=32, pods=400, seed=1000 + i, is_perturbed=i % 2 == 1) for i in range(6))
FIXED = ReductionSettings(evaluations=1)  # leaves a program as it is
SHOWN = "podium search run --seed 7 --store 'postgresql://ada:********@db/podium'"
PROVENANCE = Provenance(
    run="ab12", seed=7, generator="genetic",
    command="podium search run --seed 7 --store postgresql://ada:Zq7xWv@db/podium",
    evaluations=1200, seconds=61.5,
)  # fmt: skip


@pytest.fixture(scope="module")
def judge():
    with Judge(TrainingSet(TRAINING), "inflation", 1) as judge:
        yield judge


def settings(judge, folder, reduction=None, incumbent="best-fit"):
    rule = Rule(incumbent, trained=frozenset(["openb"]))
    return Settings(scorer(judge), folder, CASES, rule, reduction or FIXED, jobs=2)


@pytest.fixture(scope="module")
def promoted(judge, tmp_path_factory):
    folder = tmp_path_factory.mktemp("promoted")
    boast = PADDED.replace('"""Keeps', '"""Won 99.9 % on held-out traces; keeps').replace(
        "def score(pod, node):\n", 'def score(pod, node):\n    """Gains +9.99 over fgd."""\n'
    )
    words = "Keeps free CPU and free GPU alike, in whole steps, on nodes with few GPUs"
    nominees = [Nominee(boast, PROVENANCE, "in-balance", words)]
    heard = []
    outcome = promote(
        nominees,
        settings(judge, folder, ReductionSettings(0.02, 400)),
        lambda *told: heard.append(told),
    )
    return outcome, heard


def test_on_a_dump_candidates_are_also_measured_beside_what_runs_there():
    assert "kube-default" in rivals("fgd", [Case("/tmp/c180.yaml")])
    assert "kube-default" not in rivals("fgd", [Case("/tmp/pods.csv.gz"), *CASES])


def test_the_good_one_is_promoted(promoted):
    outcome, _ = promoted
    (good,) = outcome.promotions
    assert good.accepted, good.reasons
    assert [path.name for path in outcome.files] == ["in_balance.py"]


def test_one_that_wins_only_on_nodes_that_it_knows_is_refused(judge, tmp_path):
    large = HeldOut(seeds=8, nodes=120, pods=1500, replay_pods=40).cases()
    outcome = promote([Nominee(BRITTLE)], replace(settings(judge, tmp_path), cases=large))
    (found,) = outcome.promotions
    (plain,) = [row for row in found.table if row.group.name == "openb"]
    assert plain.differences["best-fit"]["allocation_130"].low > 0
    assert not found.accepted
    assert any("perturbed clusters" in reason for reason in found.reasons)
    assert outcome.files == ()
    assert list(tmp_path.iterdir()) == []


def test_the_written_file_keeps_the_contract(promoted):
    outcome, _ = promoted
    report = check_policy(load(str(outcome.files[0])))
    assert report.is_ok, report.broken


def test_the_written_file_decides_as_the_reduced_candidate(promoted):
    outcome, _ = promoted
    written = load(str(outcome.files[0]))
    candidate = checked_policy(outcome.reduced["in-balance"].text, "candidate")
    for seed in (1234, 1235):
        case = Case(nodes=40, pods=500, seed=seed, is_perturbed=seed % 2 == 1)
        assert execute(case.plan(written)).digest == execute(case.plan(candidate)).digest


def test_the_file_tells_where_it_came_from_and_names_its_numbers(promoted):
    outcome, _ = promoted
    text = outcome.files[0].read_text()
    assert text.startswith(
        '"""Keeps free CPU and free GPU alike, in whole steps, on nodes with few GPUs.\n'
    )
    assert "run ab12" in text
    assert "1,200 evaluations" in text
    assert f"    {SHOWN}\n" in text
    assert "Zq7xWv" not in text
    assert "USD" not in text
    assert "generations" not in text
    assert "# Thousandths of a GPU or of a CPU.\nMILLI = 1000\n" in text
    assert max(map(len, text.splitlines())) <= 100
    assert "tunable" not in text


def test_a_comment_says_what_a_term_means_or_nothing(promoted):
    outcome, _ = promoted
    code = outcome.files[0].read_text().split('"""\n', 1)[1]
    comments = {line.strip("# ") for line in code.splitlines() if line.strip().startswith("#")}
    known = {*NOTES.values(), "Thousandths of a GPU or of a CPU.", "Tuned within 0 and 20."}
    assert comments
    assert comments <= known


def test_a_candidate_that_is_no_program_is_promoted_as_it_is(judge, tmp_path):
    waiting = "    n = 0\n    while n < 2:\n        n += 1  # wins\n    return n - 2 -int("
    text = GOOD.replace("    return -int(", waiting)
    wanted = settings(judge, tmp_path, ReductionSettings(0.02, 400), "worst-fit")
    outcome = promote([Nominee(text, PROVENANCE, "uncut")], wanted)
    (path,) = outcome.files
    shown = path.read_text()
    assert shown.endswith(f"{ast.unparse(ast.parse(text).body[-1])}\n")
    assert "# wins" not in shown
    reason = "candidate, line 13: it has this statement"
    assert f"It could not be reduced ({reason})." in " ".join(shown.split())
    card = json.loads(path.with_suffix(".json").read_text())
    assert card["reduction"]["uncut"] == reason
    assert card["parts"] == []
    assert check_policy(load(str(path))).is_ok


def test_the_card_holds_every_figure_and_invents_none(promoted):
    outcome, _ = promoted
    card = json.loads(outcome.files[0].with_suffix(".json").read_text())
    assert card["provenance"] == {
        "run": "ab12", "seed": 7, "command": SHOWN,
        "generator": "genetic", "evaluations": 1200, "seconds": 61.5,
    }  # fmt: skip
    assert {row["trace"] for row in card["validation"]} == {"openb", "openb:16"}
    for row in card["validation"]:
        assert set(row["differences"]) == {"fgd", "first-fit", "best-fit", "kube-packing"}
        assert row["seeds"] == 8
    assert "placed_100_share" in card["validation"][0]["means"]
    assert card["decision"]["promoted"] is True
    assert card["decision"]["gain"][1] > 0
    assert card["reduction"]["parts"] < card["reduction"]["parts_before"]
    assert all("sentence" in part for part in card["parts"])


def test_what_a_candidate_says_of_itself_does_not_ship(promoted):
    outcome, _ = promoted
    text = outcome.files[0].read_text() + outcome.files[0].with_suffix(".json").read_text()
    assert "Won 99.9 %" not in text
    assert "+9.99" not in text
    assert text.startswith('"""Keeps free CPU and free GPU alike, in whole steps, on nodes')


def test_a_policy_and_its_card_may_lie_among_those_that_ship(promoted, monkeypatch):
    outcome, _ = promoted
    folder = outcome.files[0].parent
    monkeypatch.setitem(registry._FOLDERS, "discovered", folder)
    registry._files.cache_clear()
    try:
        (found,) = [each for each in catalogue() if each.name == "in-balance"]
        assert found.origin == "tuned"
        assert found.name == "in-balance"
        assert found.summary.startswith("Keeps free CPU and free GPU alike")
        shown = load("in-balance").source
        assert shown is not None
        assert "What the training fitness loses without each part:" in shown.text
    finally:
        for cache in (registry._files, registry._source, registry._card):
            cache.cache_clear()


def test_progress_is_told_stage_by_stage(promoted):
    _, heard = promoted
    stages = [stage for stage, _, _ in heard]
    assert list(dict.fromkeys(stages)) == ["reduce", "validate", "explain"]
    reduced = [done for stage, done, _ in heard if stage == "reduce"]
    assert reduced == sorted(reduced)


def test_twins_and_texts_that_are_no_candidates_are_refused_with_a_reason(judge, tmp_path):
    renamed = GOOD.replace("gpu_ratio", "share")
    nominees = [Nominee(GOOD), Nominee(renamed, name="twin"), Nominee("import os\n")]
    outcome = promote(nominees, settings(judge, tmp_path, incumbent="worst-fit"))
    assert [refusal.name for refusal in outcome.refusals] == ["twin", "nominee 3"]
    assert "computes the same" in outcome.refusals[0].reason
    (name,) = outcome.reduced
    assert name.startswith("found-")
    assert [path.stem for path in outcome.files] == [name.replace("-", "_")]


def test_nothing_is_written_over(judge, tmp_path):
    (tmp_path / "mine.py").write_text("")
    with pytest.raises(UsageError, match='already a policy "mine"'):
        promote([Nominee(GOOD, name="mine")], settings(judge, tmp_path))
    with pytest.raises(UsageError, match="does not exist"):
        promote([Nominee(GOOD)], settings(judge, tmp_path / "nowhere"))


def test_without_nominees_there_is_nothing_to_do(judge, tmp_path):
    outcome = promote([], settings(judge, tmp_path))
    assert outcome.promotions == ()
    assert outcome.results is None


AIM = """def objective(run):
    return 5 - sum(run.lost.values()) / 10
"""


def test_what_was_searched_by_an_objective_wins_by_it_and_its_file_says_so(tmp_path):
    (tmp_path / "aim.py").write_text(AIM)
    fitness = fitness_named(Objective.at(tmp_path / "aim.py").name)
    rule = Rule("worst-fit", FITNESS, trained=frozenset(["openb"]), aim="the objective aim.py")
    with Judge(TrainingSet(TRAINING[:2]), fitness.name, 1) as judge:
        wanted = Settings(
            scorer(judge), tmp_path, CASES, rule, FIXED, jobs=2, worth=worth_by(fitness)
        )
        outcome = promote([Nominee(GOOD, PROVENANCE, "aimed")], wanted)
    (found,) = outcome.promotions
    assert found.accepted, found.reasons
    assert "over worst-fit by the objective aim.py on held-out cases" in found.reasons[0]
    (path,) = outcome.files
    assert "What the search was for, the objective aim.py, on 8 seeds" in path.read_text()
    card = json.loads(path.with_suffix(".json").read_text())
    assert (card["decision"]["figure"], card["decision"]["aim"]) == (FITNESS, rule.aim)
    plain = [row for row in card["validation"] if not row["is_perturbed"]]
    assert [FITNESS in row["means"] for row in plain] == [True, False]  # inflation, replay
    assert "allocation_130" in plain[0]["means"]
