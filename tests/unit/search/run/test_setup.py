import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from podium.errors import MissingError, UnknownName, UsageError
from podium.search.generators.command import CommandGenerator
from podium.search.generators.genetic.generator import GeneticGenerator
from podium.search.generators.genetic.seeds import seeds
from podium.search.run.folder import PLAN, SearchFolder
from podium.search.run.plan import PLAN_VERSION, RANDOM, Budget, RunPlan, Tuning
from podium.search.run.setup import (
    KIND,
    Means,
    create_run,
    open_generators,
    open_search,
    starters_of,
)
from podium.settings import Secrets
from podium.store import RunRecord, open_store
from support.searches import LIMITS, PLAN_OF_TESTS, TRAINING

MEANS = Means(1, limits=LIMITS, is_validating=False, environ={})


@pytest.fixture
def store(tmp_path):
    """Keeps runs in a file."""
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        yield store


def record_in(tmp_path, name="one"):
    """Describes a new run."""
    return RunRecord(name, KIND, "a run", 0.0, folder=str(tmp_path / name))


def test_a_run_is_opened_searched_and_closed(store, tmp_path):
    record = record_in(tmp_path)
    folder = create_run(store, PLAN_OF_TESTS, record)
    with open_search(store, record, MEANS) as search:
        assert folder.is_locked
        search.step()
        assert search.archive.best is not None
        with pytest.raises(UsageError, match="another process"), open_search(store, record, MEANS):
            pass
    assert not folder.is_locked
    with open_search(store, record, MEANS) as again:
        assert again.archive.best == search.archive.best


def test_a_run_with_a_plan_of_another_version_is_not_resumed(store, tmp_path):
    record = record_in(tmp_path)
    folder = create_run(store, PLAN_OF_TESTS, record)
    folder.write(PLAN, {**folder.read(PLAN), "version": PLAN_VERSION + 1})
    with (
        pytest.raises(UsageError, match="this Podium reads version 1") as error,
        open_search(store, record, MEANS),
    ):
        pass
    assert "begin a new run" in error.value.hint
    assert not folder.is_locked


def test_a_failure_lets_go_of_the_run(store, tmp_path):
    record = record_in(tmp_path)
    folder = create_run(store, PLAN_OF_TESTS, record)
    with pytest.raises(RuntimeError), open_search(store, record, MEANS):
        raise RuntimeError
    assert not folder.is_locked


STARTER = "podium-starter"  # the one thread of a process that starts workers, and ends with it


def test_a_session_that_is_cut_off_leaves_no_thread_behind(store, tmp_path):
    record, before = record_in(tmp_path), set(threading.enumerate())
    create_run(store, PLAN_OF_TESTS, record)
    with open_search(store, record, replace(MEANS, is_validating=True)) as search:
        search.step()
        assert search.archive.best is not None  # which is being validated
    left = [each for each in set(threading.enumerate()) - before if STARTER not in each.name]
    for each in left:
        each.join(10.0)
    assert [each.name for each in left if each.is_alive()] == []


def test_a_run_is_created_once(store, tmp_path):
    create_run(store, PLAN_OF_TESTS, record_in(tmp_path))
    with pytest.raises(UsageError, match="already"):
        create_run(store, PLAN_OF_TESTS, record_in(tmp_path))


def test_an_unknown_generator_leaves_no_trace(store, tmp_path):
    plan = replace(PLAN_OF_TESTS, generators=(("gentic", 1.0),))
    with pytest.raises(UnknownName, match="gentic"):
        create_run(store, plan, record_in(tmp_path))
    assert store.runs.all() == []
    assert not (tmp_path / "one").exists()


def test_a_run_whose_folder_is_gone_cannot_be_opened(store, tmp_path):
    record = record_in(tmp_path)
    store.runs.create(record)
    with pytest.raises(MissingError, match=r"plan\.json"), open_search(store, record, MEANS):
        pass
    assert not Path(record.folder).exists()


def test_an_unknown_executor_is_refused():
    with pytest.raises(UnknownName, match="cloud"):
        Means(executor="cloud")


def test_generators_are_opened_as_the_plan_says(tmp_path):
    command = {"command": {"command": sys.executable}}
    plan = replace(
        PLAN_OF_TESTS,
        generators=(("genetic", 1.0), ("random", 1.0), ("command", 1.0)),
        options=command,
        may_hold=True,
    )
    found = open_generators(plan, SearchFolder(tmp_path), MEANS)
    assert list(found) == ["genetic", "random", "command"]
    assert isinstance(found["genetic"], GeneticGenerator)
    assert isinstance(found["command"], CommandGenerator)
    assert all(generator.name == name for name, generator in found.items())


def test_a_run_begins_with_published_formulas_its_own_or_nothing():
    own = (("mine", "def score(pod, node):\n    return 1.0\n"),)
    plan = RunPlan(TRAINING, starters=own)
    names = [name for name, _ in starters_of(plan)]
    assert names == [*seeds(), "mine"]
    assert starters_of(replace(plan, start=RANDOM)) == list(own)
    assert starters_of(replace(plan, start=RANDOM, starters=())) == []


def test_the_best_is_validated_on_seeds_that_nothing_was_chosen_by(store, tmp_path):
    record = record_in(tmp_path)
    plan = replace(PLAN_OF_TESTS, tuning=Tuning(0))
    create_run(store, plan, record)
    with open_search(store, record, replace(MEANS, is_validating=True)) as search:
        search.go(Budget(evaluations=1))
        assert search.winner.validated.number == search.archive.best.number
        assert 0 < search.winner.validated.fitness <= 100


def test_what_is_known_to_be_secret_is_kept_nowhere_and_asked_for_again(store, tmp_path):
    command = f"{sys.executable} sEcretA1 --quick"
    plan = replace(
        PLAN_OF_TESTS, generators=(("command", 1.0),), options={"command": {"command": command}}
    )
    record = replace(record_in(tmp_path), settings=plan.as_object())
    folder = create_run(store, plan, record, Secrets(frozenset(["sEcretA1"])))
    assert "sEcretA1" not in (folder.path / "plan.json").read_text()
    assert "sEcretA1" not in str(store.runs.get(record.id).settings)
    kept = RunPlan.from_object(folder.read("plan.json"))
    assert open_generators(kept, folder, replace(MEANS, command=command))
    for other in ("", f"{sys.executable} sEcretA1 --slow"):
        with pytest.raises(MissingError, match="never stored"):
            open_generators(kept, folder, replace(MEANS, command=other))
