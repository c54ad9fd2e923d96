import os
from pathlib import Path

import pytest

from podium.errors import PolicyError, UsageError
from podium.evaluation.cases import Case
from podium.evaluation.splits import HELD_OUT, VALIDATION
from podium.evaluation.validation import EXPERIMENT, HeldOut, baselines, placed_shares, validate
from podium.policies import load
from podium.search.candidate.gates import checked_policy
from podium.sim.execution import execute
from podium.sim.metrics import placed_share

SMALL = HeldOut(seeds=2, nodes=8, pods=80, replay_pods=60)


def test_cases_are_all_held_out_plain_and_perturbed():
    cases = SMALL.cases()
    assert {case.seed for case in cases} == {2000, 2001}
    assert {(case.trace, case.protocol, case.is_perturbed) for case in cases} == {
        ("openb", "inflation", False),
        ("openb", "inflation", True),
        ("openb:16", "replay", False),
        ("openb:16", "replay", True),
    }
    assert all(case.seed in VALIDATION for case in HeldOut().cases())
    assert not {case.seed for case in HeldOut().cases()} & set(HELD_OUT[0])


@pytest.mark.parametrize("seeds", [0, 21])
def test_there_are_twenty_seeds_of_validation(seeds):
    with pytest.raises(UsageError, match="validation on"):
        HeldOut(seeds=seeds)


def test_original_traces_that_lie_in_the_folder_take_part(tmp_path):
    for name in ("default", "gpushare40", "cpu037"):
        (tmp_path / f"openb_pod_list_{name}.csv").touch()
    traces = {case.trace for case in HeldOut(folder=str(tmp_path)).cases()}
    assert traces == {"openb", "openb:16", "openb:default", "openb:gpushare40"}


@pytest.mark.openb
def test_every_trace_of_the_experiment_is_found():
    folder = os.environ.get("PODIUM_TRACES", "")
    if not Path(folder, "openb_pod_list_default.csv").is_file():
        pytest.skip("PODIUM_TRACES does not name a folder with the original OpenB files")
    traces = {case.trace for case in HeldOut(1, folder).cases()}
    assert {f"openb:{name}" for name in EXPERIMENT} <= traces


def test_every_policy_is_measured_on_every_case_and_progress_is_told():
    heard = []
    policies = baselines(("first-fit", "best-fit"))
    cases = SMALL.cases()
    sheet = validate(policies, cases, lambda done, total: heard.append((done, total)), jobs=2)
    assert heard[-1] == (16, 16)
    assert len(heard) == len(cases)
    for case, values in zip(cases, sheet.values["best-fit"], strict=True):
        expected = "wait_p95_s" if case.protocol == "replay" else "placed_130_share"
        assert expected in values


def test_a_policy_measured_twice_gains_nothing_over_itself():
    sheet = validate({"one": load("best-fit"), "other": load("best-fit")}, SMALL.cases(), jobs=2)
    gains = sheet.seed_gains("one", "other", "allocation_130", lambda _group: True)
    assert gains.tolist() == [0.0, 0.0]
    for row in sheet.table("one", ("other",), frozenset(["openb"])):
        assert row.is_trained_on == (row.group.trace == "openb")
        assert all(each.mean == each.low == 0 for each in row.differences["other"].values())


def test_figures_are_those_of_plain_runs():
    case = Case(nodes=8, pods=80, seed=2000)
    policy = load("best-fit")
    sheet = validate({"best-fit": policy}, [case])
    result = execute(case.plan(policy))
    shares = placed_share(result)
    for name, share in shares.items():
        assert sheet.values["best-fit"][0][f"placed_130_{name}"] == pytest.approx(100 * share)


def test_fewer_pods_are_turned_away_while_there_is_room():
    shares = placed_shares(execute(Case(nodes=8, pods=80, seed=2000).plan(load("best-fit"))))
    classes = {key.removeprefix("placed_100_") for key in shares if key.startswith("placed_100")}
    assert {"share", "1-gpu"} <= classes
    assert shares["placed_100_share"] >= shares["placed_130_share"]


@pytest.mark.parametrize(
    "text",
    [
        "import os\n\n\ndef score(pod, node):\n    return len(os.environ)\n",
        "def score(pod):\n    return 1\n",
        "not python at all",
    ],
)
def test_a_text_that_fails_the_reading_gates_becomes_no_policy(text):
    with pytest.raises(PolicyError):
        checked_policy(text, "curious")


def test_what_runs_are_worth_is_asked_with_all_that_an_objective_knows():
    asked = []

    def worth(case, values, baseline):
        asked.append((case, values, baseline))
        return None if case.protocol == "replay" else values["placed_share"] - values["lost_idle"]

    cases = SMALL.cases()
    sheet = validate(baselines(("fgd", "first-fit")), cases, jobs=1, worth=worth)
    assert len(asked) == 2 * len(cases)
    for case, values, baseline in asked:
        assert {"placed_share", "lost_idle"} <= values.keys() == baseline.keys(), case
    for case, values in zip(cases, sheet.values["first-fit"], strict=True):
        assert ("fitness" in values) == (case.protocol == "inflation")
        assert not {"placed_share", "lost_idle"} & values.keys()
    plain = validate(baselines(("first-fit",)), cases, jobs=1).values["first-fit"]
    assert all(figures.items() <= own.items() for figures, own in
               zip(plain, sheet.values["first-fit"], strict=True))  # fmt: skip


def test_cases_by_the_rules_of_funsearch_are_measured_by_them():
    case = Case("openb:16", pods=200, protocol="funsearch", load=7.0, seed=2000)
    cases = HeldOut(1, nodes=8, pods=80, replay_pods=60, beside=(case,)).cases()
    assert [each.protocol for each in cases][:2] == ["funsearch"] * 2
    assert {each.trace for each in cases} == {"openb", "openb:16"}
    sheet = validate(baselines(("best-fit",)), cases[:1])
    (values,) = sheet.values["best-fit"]
    assert 0 < values["funsearch_score"] <= 100
    assert sheet.held_by("best-fit")[1] >= 200
    assert sheet.groups()[0].name == "openb:16 funsearch"
