import re

import pytest

from podium.errors import MissingError, PolicyError, UsageError
from podium.experiments.case import named_policy
from podium.policies import load
from podium.search.run.found import best_of, load_found
from podium.store import RunRecord, open_store

GOOD = "def score(pod, node):\n    return 7 - node.cpu_milli_left\n"
FOREIGN = {
    "a comprehension": "def score(pod, node):\n    return sum([x for x in node.gpu_milli_left])\n",
    "a prepare": "def prepare(shapes):\n    return [1.0]\n\n\n" + GOOD,
    "a table": "def score(pod, node, table):\n    return 1.0\n",
    "an import": "import os\n\n\ndef score(pod, node):\n    return len(os.environ)\n",
    "no Python": "def score(pod, node)\n",
    "more than a candidate": GOOD + "# filler\n" * 3000,
    "bytes": "\x00\x01",
}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Writes what a run keeps as its best policy."""
    monkeypatch.setenv("PODIUM_SEARCH_FOLDER", str(tmp_path))
    (tmp_path / "ab12").mkdir()
    return (tmp_path / "ab12" / "best.py").write_text


@pytest.mark.parametrize("load", [load_found, lambda name: named_policy(name, "flag --policy")])
def test_what_a_run_found_is_loaded_by_its_id(kept, load):
    kept(GOOD)
    policy = load("run:ab")
    assert policy.name == "run:ab"
    assert policy.source.text == GOOD


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("load", [load_found, lambda name: named_policy(name, "flag --policy")])
def test_what_no_run_can_have_written_is_not_loaded(kept, name, load):
    kept(FOREIGN[name])
    with pytest.raises(PolicyError, match="not what the run wrote") as caught:
        load("run:ab12")
    assert "best.py" in caught.value.where + str(caught.value)


def test_a_run_without_a_policy_is_told(kept):
    kept(GOOD)
    with pytest.raises(MissingError, match="no policy is stored"):
        load_found("run:zz")


@pytest.fixture
def entered(kept, tmp_path, monkeypatch):
    """Keeps the best policy of a run that the store names, beside a simulation and another run."""
    kept(GOOD)
    monkeypatch.setenv("PODIUM_STORE_URL", str(tmp_path / "runs.db"))
    with open_store(str(tmp_path / "runs.db")) as store:
        for id, kind, name in (
            ("ab12", "search", "mine"), ("cd34", "simulation", "one run"),
            ("ef56", "search", "twice"), ("ef78", "search", "twice"), ("0123", "search", "ab12"),
        ):  # fmt: skip
            store.runs.create(RunRecord(id, kind, name, 0.0))


@pytest.mark.usefixtures("entered")
@pytest.mark.parametrize("reference", ["run:mine", "run:ab12", "run:ab1"])
def test_what_a_run_found_is_loaded_by_its_name(reference):
    policy = named_policy(reference, "flag --policy")
    assert (policy.name, policy.source.text) == (reference, GOOD)


@pytest.mark.usefixtures("entered")
@pytest.mark.parametrize(
    ("reference", "error", "told", "hint"),
    [
        ("run:cd34", UsageError, "run cd34 is a simulation, not a search", "podium runs show cd34"),
        ("run:one run", UsageError, "run cd34 is a simulation", "podium runs list --kind search"),
        ("run:twice", UsageError, 'several runs are named "twice"', "use an id: ef56, ef78"),
        ("run:ef56", MissingError, 'no policy is stored for a run "ef56"', "podium runs list"),
        ("run:nobody", MissingError, 'no policy is stored for a run "nobody"', "podium runs list"),
        ("run:", MissingError, "no policy is stored", "podium runs list"),
        ("run:../ab12", MissingError, "no policy is stored", "podium runs list"),
    ],
)
def test_a_run_that_found_no_policy_is_told(reference, error, told, hint):
    with pytest.raises(error, match=re.escape(told)) as caught:
        named_policy(reference, "flag --policy")
    assert hint in caught.value.hint
    assert caught.value.where


def test_no_store_is_made_to_look_for_a_run(kept, tmp_path, monkeypatch):
    kept(GOOD)
    monkeypatch.setenv("PODIUM_STORE_URL", str(tmp_path / "none.db"))
    assert load_found("run:ab").name == "run:ab"
    assert not (tmp_path / "none.db").exists()


@pytest.fixture
def runs(tmp_path):
    """Keeps the best policies of three runs."""
    for run in ("ab12", "ab34", "cd56"):
        (tmp_path / run).mkdir()
        text = f"def score(pod, node):\n    return {int(run[2:])} - node.cpu_milli_left\n"
        (tmp_path / run / "best.py").write_text(text)
    return tmp_path


@pytest.mark.parametrize(("reference", "name"), [("run:ab12", "ab12"), ("run:c", "cd56")])
def test_the_best_policy_of_a_run_is_named_by_its_id(runs, reference, name):
    path = best_of(reference.removeprefix("run:"), runs)
    assert path.parent.name == name
    with pytest.raises(UsageError, match="gates of candidates"):
        load(reference)


@pytest.mark.parametrize(
    ("reference", "told"),
    [("run:zz", 'no policy is stored for a run "zz"'), ("run:ab", 'several runs begin with "ab"')],
)
def test_a_run_that_is_not_kept_or_not_alone_is_told(runs, reference, told):
    with pytest.raises(MissingError, match=told):
        best_of(reference.removeprefix("run:"), runs)
