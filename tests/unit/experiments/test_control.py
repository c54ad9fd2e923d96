from dataclasses import replace

import pytest

from podium.errors import InputError
from podium.experiments import arms
from podium.experiments.arms import Contest, best_of_arm
from podium.experiments.control import Searched, controls_of, spent
from podium.experiments.listener import Cancelled, Listener
from podium.experiments.search import SearchOutcome
from podium.search.generators.genetic.seeds import seeds
from podium.search.run.setup import Means
from podium.settings import load_settings
from podium.store import CandidateRecord, RunRecord, open_store
from support.searches import LIMITS, PLAN_OF_TESTS

EVALUATIONS = 40
SUMMARY = {"evaluations": EVALUATIONS, "seconds": 12.0}


class Told(Listener):
    """Remembers what it hears, and cancels after so many steps of progress."""

    def __init__(self, most=None):
        self.lines, self.stages, self.left = [], [], most
        self.warnings = []

    def warn(self, text):
        """Remembers a warning."""
        self.warnings.append(text)

    def status(self, text):
        """Remembers a line."""
        self.lines.append(text)

    def progress(self, stage, done, total):
        """Remembers how far a stage is."""
        self.stages.append((stage, done, total))
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Cancelled


@pytest.fixture
def searched(tmp_path):
    """Keeps a search that is over, whose seeds were judged."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    settings = load_settings({"store.url": url, "search.folder": str(tmp_path / "runs")})
    with open_store(url) as store:
        record = RunRecord("abcd1234", "search", "mine", 0.0, summary=SUMMARY)
        store.runs.create(record)
        rows = [
            CandidateRecord("abcd1234", i, kind="seed", source=name, accepted=True, state="judged",
                            fitness=60.0 + 30 * (name in ("typical", "fed")))
            for i, name in enumerate(sorted(seeds()))
        ]  # fmt: skip
        store.candidates.propose(rows)
        store.candidates.judge(rows)
        means = Means(1, limits=LIMITS)
        yield Searched(store, settings, record, PLAN_OF_TESTS, means, EVALUATIONS)


def names(searched):
    return sorted(each.name for each in searched.store.runs.all() if each.id != "abcd1234")


@pytest.mark.deep
def test_controls_are_told_of_kept_and_not_run_again(searched):
    told = Told()
    tuned, drawn = controls_of(searched, ("tuned", "random"), told)
    assert told.lines[0] == "controls with 40 evaluations each: tuned and random, about 24 s in all"
    assert {stage for stage, _, _ in told.stages} == set(names(searched))
    assert {name.partition(":")[0] for name in names(searched)} == {"control of abcd1234"}
    assert tuned.source in seeds()
    assert (tuned.evaluations, drawn.evaluations) == (EVALUATIONS, EVALUATIONS)
    assert told.warnings == []
    again = Told()
    assert controls_of(searched, ("tuned", "random"), again) == (tuned, drawn)
    assert again.lines == again.stages == []
    longer = replace(searched, evaluations=EVALUATIONS + 10)
    controls_of(longer, ("random",), again)
    assert "controls with 50 evaluations each: random" in again.lines[0]


@pytest.mark.deep
def test_a_control_that_was_stopped_goes_on_where_it_was(searched):
    with pytest.raises(Cancelled):
        controls_of(searched, ("random",), Told(12))
    (begun,) = [each for each in searched.store.runs.all() if each.id != "abcd1234"]
    judged = {each.number: each for each in searched.store.candidates.of(begun.id)}
    (found,) = controls_of(searched, ("random",))
    assert found.runs == (begun.id,)
    after = {each.number: each for each in searched.store.candidates.of(begun.id)}
    done = [number for number, each in judged.items() if each.state == "judged"]
    assert done
    assert all(after[number] == judged[number] for number in done)
    assert found.evaluations == EVALUATIONS


def contest_of(searched, evaluations, **more):
    """Gives a comparison of which nothing is known."""
    parts = (searched.store, searched.settings, "compare 1", "comparison 1", PLAN_OF_TESTS)
    return Contest(*parts, searched.means, evaluations, **more)


@pytest.mark.deep
def test_tuning_uses_all_evaluations_where_no_formula_was_judged_before(searched):
    told = Told()
    found = best_of_arm(contest_of(searched, 30), "tuned", told)
    assert (found.evaluations, told.warnings) == (30, [])


@pytest.mark.deep
def test_it_is_said_that_no_formula_has_numbers_to_tune(searched):
    told, text = Told(), "def score(pod, node):\n    return node.cpu_milli_left\n"
    found = best_of_arm(contest_of(searched, 30, formulas={"plain": text}), "tuned", told)
    assert found.evaluations < 30
    assert "nothing is left to tune" in told.warnings[0]
    assert "no formula can be tuned with the rest" in told.warnings[-1]


def test_it_is_said_why_a_run_did_not_use_its_evaluations(searched, monkeypatch):
    def begin(store, entry, *_):
        store.runs.create(RunRecord("short000", "search", entry.name, 1.0, summary={}))
        return SearchOutcome("short000", "", "the model has no money left", {"evaluations": 7}, "")

    monkeypatch.setattr(arms, "begin", begin)
    told = Told()
    arms._run(contest_of(searched, 40), ("llm", 1), PLAN_OF_TESTS, 40, told)
    assert told.warnings == ["run short000 used 7 of 40 evaluations: the model has no money left"]


def test_a_search_is_charged_for_what_it_began_with(searched):
    store = searched.store
    later = RunRecord("later000", "search", "later", 1.0, summary={"evaluations": 7})
    store.runs.create(later)
    store.candidates.propose([CandidateRecord("later000", 0, kind="seed", source="abcd1234-3")])
    assert spent(store, later) == EVALUATIONS + 7
    store.runs.update("later000", summary={"evaluations": "many"})
    with pytest.raises(InputError, match="the record of run later000 is corrupt"):
        spent(store, store.runs.get("later000"))
