import json

import pytest

from podium.policies.jit import cache_folder
from podium.store import open_store
from support.binary import PODIUM, run

# Read before any test cleans its environment.
COMPILED = cache_folder()
# To start a second worker takes longer than these searches.
GIVEN = {
    "PODIUM_SEARCH_WORKERS": "1",
    **({"PODIUM_COMPILE_CACHE": str(COMPILED)} if COMPILED else {}),
}
STORE = ("--store", "runs.db")
SMALL = ("--seeds", "2", "--largest", "40", "--tune-every", "0", "--evaluations", "20", *STORE)


def podium(folder, *arguments):
    return run([*PODIUM, "search", *arguments], folder, **GIVEN)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Holds a run, and another that began with what it found."""
    folder = tmp_path_factory.mktemp("promote")
    done = podium(folder, "run", *SMALL, "--name", "first", "--json")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)["run"]
    done = podium(folder, "run", *SMALL, "--name", "second", "--from", first)
    assert done.returncode == 0, done.stderr
    return folder


def runs(folder):
    with open_store(f"sqlite:///{folder / 'runs.db'}") as store:
        return {each.name: each.id for each in store.runs.all()}


def test_a_run_begins_with_the_best_of_another(folder):
    with open_store(f"sqlite:///{folder / 'runs.db'}") as store:
        begun = [
            each for each in store.candidates.of(runs(folder)["second"]) if each.kind == "seed"
        ]
        texts = {each.text for each in store.candidates.of(runs(folder)["first"]) if each.accepted}
    taken = [each for each in begun if each.source.startswith(runs(folder)["first"])]
    assert taken
    assert {each.text for each in taken} <= texts


def test_one_seed_proves_nothing_and_nothing_is_written(folder):
    (folder / "found").mkdir()
    done = podium(
        folder, "promote", runs(folder)["second"], "--seeds", "1", "--trace", "openb",
        "--to", "found", *STORE, "--json",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["promoted"] == []
    (promotion,) = told["promotions"]
    assert not promotion["accepted"]
    assert {row["trace"] for row in promotion["table"]} == {"openb"}
    assert not list(folder.glob("found/*"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("promote", "{first}", "--trace", "opnb"), 'held-out trace "opnb"'),
        (("promote", "{first}", "--candidate", "99999"), "99999"),
    ],
)
def test_a_mistake_is_told_in_three_lines(folder, arguments, told):
    words = [each.format(**runs(folder)) for each in arguments]
    done = podium(folder, *words, *STORE)
    assert done.returncode == 2
    assert told in done.stderr
    assert [line.split(":")[0].strip() for line in done.stderr.splitlines()][:1] == ["error"]


def test_arms_are_compared_on_held_out_cases(tmp_path):
    done = podium(
        tmp_path, "compare", "random", "tuned", "--runs", "1", "--evaluations", "20",
        "--seeds", "1", *STORE, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["arm"] for row in found["arms"]] == ["random", "tuned"]
    assert all(0 < each["validation"] <= 100 for each in found["runs"])
