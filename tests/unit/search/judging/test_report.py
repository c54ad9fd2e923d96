import pytest

from podium.search.judging.trial_pool import RaceTerms, ask_trial
from support.forgery import CASE, DECISIONS, DONE, HUGE, KIND, LOSSES, LOST, VALUES


@pytest.mark.parametrize(
    "messages",
    [
        [{**DONE, "tuned": {}, "evaluations": 0}],
        [{"tuned": {}, "evaluations": 0}],
        [CASE, DONE],
        [DECISIONS, DONE],
        [{**DECISIONS, "signature": "0" * 15}],
        [{**DECISIONS, "signature": "G" * 16}],
        [{**DECISIONS, "signature": None}],
        [{**DECISIONS, "behaviour": [0.5] * 3}],
        [{**DECISIONS, "behaviour": [0.5, 0.5, 0.5, 1.5]}],
        [{**DECISIONS, "behaviour": [0.5, 0.5, 0.5, True]}],
        [{**DECISIONS, "behaviour": "0.50"}],
        [{**DECISIONS, "behaviour": [0.5, 0.5, 0.5, HUGE]}],
        [DECISIONS, DECISIONS],
        [{"case": 0.0, "values": VALUES}],
        [{"case": False, "values": VALUES}],
        [{"case": [0], "values": VALUES}],
        [{"case": 1, "values": VALUES}],
        [{"case": 0, "values": {**VALUES, "fragmentation": HUGE}}],
        [{**CASE, "values": {**VALUES, "allocation_130": 101.0}}],
        [{**CASE, "values": {**VALUES, "allocation_100": 50.01}}],
        [{**CASE, "held": None}],
        [{**CASE, "held": [1, 0]}],
        [{**CASE, "held": [-1, 60]}],
        [{**CASE, "held": [True, 60]}],
        [{**CASE, "held": [0.0, 60]}],
        [{**CASE, "held": [0, HUGE]}],
        [{**CASE, "held": [0]}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "idle": 50.0}}],
        [CASE, CASE],
        [DECISIONS, CASE, DONE],
        [DECISIONS, LOSSES],
        [DECISIONS, CASE, LOSSES, LOSSES],
        [DECISIONS, CASE, {**LOSSES, "losses": False}],
        [DECISIONS, CASE, {**LOSSES, "losses": "0"}],
        [DECISIONS, CASE, {"losses": 0}],
        [DECISIONS, CASE, {**LOSSES, "values": [1.0, 0.5, 0.0]}],
        [DECISIONS, CASE, {**LOSSES, "values": {"stranded": 1.0}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "gold": 1.0}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "idle": 100.1}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "idle": -0.1}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "idle": HUGE}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "idle": True}}],
        [DECISIONS, CASE, {**LOSSES, "values": {**LOST, "idle": float("nan")}}],
        [{"gate": ["training"]}],
        [{"gate": "paradise"}],
        [{"outcomes": [[KIND, VALUES, VALUES]]}],
    ],
)
def test_forged_answers_of_a_trial_are_refused(taken_over, messages):
    trial = ask_trial(taken_over(*messages), (KIND,), "")
    assert not trial.verdict.accepted
    assert "the process answered with" in trial.reason
    assert trial.is_spoiled


def test_figures_are_judged_by_what_is_possible_on_their_case(taken_over):
    bounds = {"allocation_130": 60.0, "after_100": 0.5, "after_130": 0.25}
    for changed, is_possible in (
        ({}, True),
        ({"allocation_130": 60.1}, False),
        ({"allocation_130": 60.0, "fragmentation": 72.5}, True),  # 0.25 * 50 + 0.25 * 60 + 72.5
        ({"allocation_130": 60.0, "fragmentation": 72.6}, False),
    ):
        worker = taken_over(DECISIONS, {**CASE, "values": {**VALUES, **changed}}, LOSSES, DONE)
        worker.facts["bounds"] = [bounds]
        assert ask_trial(worker, (KIND,), "").verdict.accepted is is_possible


def test_figures_beside_the_measurement_may_be_anything(taken_over):
    odd = [DECISIONS, {**CASE, "simulated_s": HUGE}, LOSSES, {**DONE, "processor_s": "long"}]
    trial = ask_trial(taken_over(*odd), (KIND,), "")
    assert trial.verdict.accepted
    assert trial.losses == [LOSSES["values"]]


def test_a_process_whose_candidate_is_unwanted_hears_so(taken_over):
    heard = []
    worker = taken_over(DECISIONS, {**DONE, "reason": "nobody wants it"})
    trial = ask_trial(worker, (KIND,), "", wants=lambda each: bool(heard.append(each)))
    assert trial.reason == "nobody wants it"
    assert [each.signature for each in heard] == ["0" * 16]


@pytest.mark.parametrize(
    "outcomes",
    [
        None, [], {}, [[]], [[KIND, VALUES]], [["paradise", VALUES, VALUES]],
        [[KIND, VALUES, {}]], [[KIND, {**VALUES, "allocation_130": 101.0}, VALUES]],
        [[KIND, {**VALUES, "placed_gold": 1.0}, VALUES]],
    ],
)  # fmt: skip
def test_an_objective_is_not_asked_about_runs_that_cannot_be(taken_over, outcomes):
    asked = []
    trial = ask_trial(
        taken_over({"outcomes": outcomes}), (KIND,), "", terms=RaceTerms(score=asked.append)
    )
    assert "the process answered with runs that no fitness asks about" in trial.reason
    assert asked == []
