import json

import pytest

from podium.errors import InputError, PolicyError
from podium.search.run.folder import BEST, STATE, RunFolder
from podium.search.run.found import load_found
from podium.search.run.promoted import PROMOTION, Decision, decision_on, keep_decisions

LONG = "def score(pod, node):\n    return 7 - node.cpu_milli_left + 0\n"
SHORT = "def score(pod, node):\n    return 7 - node.cpu_milli_left\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Is the folder of a run that has found something."""
    monkeypatch.setenv("PODIUM_SEARCH_FOLDER", str(tmp_path))
    folder = RunFolder(tmp_path / "ab12")
    folder.create()
    folder.write_text(BEST, LONG)
    return folder


def found():
    return load_found("run:ab12")


@pytest.mark.usefixtures("run")
def test_what_nobody_promoted_is_not_validated():
    assert found().validation.word == "no"
    assert found().validation.reason == "it was not promoted"
    assert found().validation.hint == "podium search promote ab12 validates it"


@pytest.mark.parametrize(("fitness", "is_told"), [(93.1, True), (93.2, True), (93.3, False)])
def test_a_search_that_its_own_validation_speaks_against_says_so(run, fitness, is_told):
    run.write(STATE, {"validated": {"number": 3, "fitness": fitness, "baseline": 93.2}})
    told = f"on its validation seeds it reaches {fitness:.3f} where fgd reaches 93.200"
    assert (told in found().validation.reason) == is_told


@pytest.mark.parametrize("state", [{}, {"validated": None}, {"validated": {"fitness": "x"}}])
def test_a_search_without_a_validation_says_nothing_of_it(run, state):
    run.write(STATE, state)
    assert found().validation.reason == "it was not promoted"


def test_what_a_promotion_refused_is_not_validated(run):
    keep_decisions(run, [Decision.on(LONG, ["it gains -0.07", "it loses elsewhere"], None)])
    reason = "its promotion was refused: it gains -0.07; it loses elsewhere"
    assert (found().validation.word, found().validation.reason) == ("no", reason)
    assert found().source.text == LONG


def test_what_was_promoted_is_what_a_run_stands_for(run):
    keep_decisions(run, [Decision.on(LONG, ["it gains 0.9"], SHORT)])
    assert (found().validation.word, found().validation.reason) == ("yes", "it gains 0.9")
    assert found().source.text == SHORT


def test_a_best_that_is_found_later_is_not_validated(run):
    keep_decisions(run, [Decision.on(LONG, ["it gains 0.9"], SHORT)])
    run.write_text(BEST, LONG.replace("7", "8"))
    assert found().validation.word == "no"


def test_the_latest_decision_about_each_candidate_counts(run):
    keep_decisions(run, [Decision.on(LONG, ["it loses"], None), Decision.on("other", [], None)])
    keep_decisions(run, [Decision.on(LONG, ["it gains 0.9"], SHORT)])
    assert decision_on(run, LONG).promoted
    assert not decision_on(run, "other").promoted
    assert decision_on(run, "a third") is None
    assert len(json.loads((run.path / PROMOTION).read_text())["decisions"]) == 2


def test_what_is_claimed_to_be_promoted_passes_the_gates_all_the_same(run):
    keep_decisions(run, [Decision.on(LONG, [], "import os\n" + SHORT)])
    with pytest.raises(PolicyError, match="not what the run wrote"):
        found()


@pytest.mark.parametrize("content", ["[]", "{}", '{"decisions": [1]}', "not JSON"])
def test_a_file_that_no_promotion_wrote_is_told(run, content):
    run.write_text(PROMOTION, content)
    with pytest.raises(InputError, match="corrupt run file"):
        found()
