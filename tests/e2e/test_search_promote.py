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
DRAWN = ("--trace", "openb", "--nodes", "32")  # small clusters of one workload
SMALL = ("--seeds", "2", "--largest", "40", "--tune-every", "0", "--evaluations", "20", *STORE)


def podium(folder, *arguments):
    return run([*PODIUM, "search", *arguments], folder, **GIVEN)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Holds a run, and another that began with what it found."""
    folder = tmp_path_factory.mktemp("promote")
    done = podium(folder, "run", *DRAWN, *SMALL, "--name", "first", "--json")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)["run"]
    done = podium(folder, "run", *DRAWN, *SMALL, "--name", "second", "--from", first)
    assert done.returncode == 0, done.stderr
    return folder


def runs(folder):
    with open_store(f"sqlite:///{folder / 'runs.db'}") as store:
        return {each.name: each.id for each in store.runs.all()}


@pytest.mark.deep
def test_a_run_begins_with_the_best_of_another(folder):
    with open_store(f"sqlite:///{folder / 'runs.db'}") as store:
        begun = [
            each for each in store.candidates.of(runs(folder)["second"]) if each.kind == "seed"
        ]
        texts = {each.text for each in store.candidates.of(runs(folder)["first"]) if each.accepted}
    taken = [each for each in begun if each.source.startswith(runs(folder)["first"])]
    assert taken
    assert {each.text for each in taken} <= texts


@pytest.mark.deep
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
    assert promotion["origin"] in ("tuned", "written")  # one seed cannot show more
    assert [each["arm"] for each in promotion["control"]] == ["tuned", "random"]
    for row in promotion["table"]:
        assert {"tuned seed", "random drawing"} <= set(row["differences"])
    done = installed(folder, "--policy", f"run:{runs(folder)['second']}")
    assert done.returncode == 1
    assert "its promotion was refused: its mean gain over fgd" in done.stderr


def installed(folder, *arguments):
    return run([*PODIUM, "kube", "manifests", *arguments], folder, **GIVEN)


@pytest.mark.deep
def test_what_nobody_promoted_goes_to_no_cluster_unless_somebody_says_so(folder):
    name = f"run:{runs(folder)['first']}"
    done = installed(folder, "--policy", name)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{name} is not validated: it was not promoted" in done.stderr
    assert f"podium search promote {runs(folder)['first']}" in done.stderr
    done = installed(folder, "--policy", name, "--unvalidated")
    assert done.returncode == 0, done.stderr
    assert 'podium.dev/unvalidated: "true"' in done.stdout
    done = installed(folder, "--shadow", name)
    assert done.returncode == 0, done.stderr
    assert "podium.dev/unvalidated" not in done.stdout
    assert f"note: {name} is not validated: it was not promoted" in done.stderr


@pytest.mark.deep
def test_controls_have_the_budget_of_the_search_and_are_run_once(folder):
    small = ("--seeds", "2", "--trace", "openb", *STORE)
    done = podium(folder, "control", "first", *small, "--json")
    assert done.returncode == 0, done.stderr
    assert "controls with 20 evaluations each: tuned and random, about" in done.stderr
    found = json.loads(done.stdout)
    assert found["evaluations"] == 20
    assert [each["arm"] for each in found["control"]] == ["tuned", "random"]
    assert all(each["evaluations"] <= 20 for each in found["control"])
    names = [name for name in runs(folder) if name.startswith(f"control of {found['run']}")]
    assert len(names) == len({run for each in found["control"] for run in each["runs"]})
    again = podium(folder, "control", "first", *small, "--arm", "random")
    assert again.returncode == 0, again.stderr
    assert "controls with" not in again.stderr
    (run_id,) = found["control"][1]["runs"]
    assert f"{run_id}\n" in again.stdout
    assert "only --arm tuned tells" in again.stdout
    assert "tuned seed" not in again.stdout


@pytest.mark.deep
def test_a_search_that_began_with_another_is_charged_for_both(folder):
    done = podium(
        folder, "control", "second", "--arm", "random", "--seeds", "1", "--trace", "openb", *STORE,
        "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["evaluations"], found["origin"]) == (40, None)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("promote", "{first}", "--trace", "opnb"), 'held-out trace "opnb"'),
        (("promote", "{first}", "--candidate", "99999"), "99999"),
        (("control", "{first}", "--arm", "tund"), 'arm "tund"'),
    ],
)
def test_a_mistake_is_told_in_three_lines(folder, arguments, told):
    words = [each.format(**runs(folder)) for each in arguments]
    done = podium(folder, *words, *STORE)
    assert done.returncode == 2
    assert told in done.stderr
    assert [line.split(":")[0].strip() for line in done.stderr.splitlines()][:1] == ["error"]


@pytest.mark.deep
def test_arms_are_compared_on_held_out_cases(tmp_path):
    done = podium(
        tmp_path, "compare", "random", "tuned", "--runs", "1", "--evaluations", "20",
        "--seeds", "1", *DRAWN, *STORE, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["arm"] for row in found["arms"]] == ["random", "tuned"]
    assert all(0 < each["validation"] <= 100 for each in found["runs"])


@pytest.mark.deep
def test_a_comparison_finds_its_runs_again_and_adds_what_is_missing(tmp_path):
    given = (
        "--evaluations",
        "20",
        "--seeds",
        "1",
        *DRAWN,
        *STORE,
        "--ingredients",
        "none",
        "--json",
    )
    whole = ("--validate-on", "openb", "--validation-seeds", "1")
    outcomes = []
    for arguments in (("tuned", "--runs", "1"), ("random", "tuned", "--runs", "1", *whole)):
        done = podium(tmp_path, "compare", *arguments, *given)
        assert done.returncode == 0, done.stderr
        outcomes.append({each["arm"]: each for each in json.loads(done.stdout)["runs"]})
    first, both = outcomes
    assert both["tuned"]["run_id"] == first["tuned"]["run_id"]
    assert both["tuned"]["fitness"] == first["tuned"]["fitness"]
    assert both["tuned"]["source"] not in ("fed", "typical")  # these are made of ingredients
    assert set(both["random"]["figures"]) >= {"allocation_100", "allocation_130"}
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        made = {part for each in both.values() for part in each["run_id"].split()}
        assert {each.id for each in store.runs.all()} == made


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Holds two files of one's own, and a run that was trained on them by relative paths."""
    folder = tmp_path_factory.mktemp("own")
    made = [*PODIUM, "traces", "generate", "mine.csv", "--nodes", "32", "--pods", "400"]
    assert run(made, folder).returncode == 0
    files = ("--trace", "mine-pods.csv", "--cluster", "mine-nodes.csv")
    done = podium(folder, "run", *SMALL, *files, "--held-out", "time:0.4", "--json")
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)["run"]


@pytest.mark.deep
def test_a_policy_found_on_ones_own_cluster_is_promoted_by_what_was_held_out_of_it(own):
    folder, run_id = own
    easy = ("--incumbent", "worst-fit", "--seeds", "12", "--name", "mine", *STORE)
    done = podium(folder, "promote", run_id, *easy, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (promotion,) = json.loads(done.stdout)["promotions"]
    assert {(row["trace"], row["split"], row["is_own"]) for row in promotion["table"]} == {
        ("mine-pods.csv on mine-nodes.csv", "time:0.4", True)
    }
    card = json.loads((folder / "mine.json").read_text())
    (digest,) = {row["digest"] for row in card["validation"]}
    words = " ".join((folder / "mine.py").read_text().split())
    assert f"mine-nodes.csv is the user's own trace (digest {digest[:12]})" in words
    assert "held out: the last 40 % of its arrivals" in words
    assert card["origin"] == promotion["origin"]
    assert [each["arm"] for each in card["control"]] == ["tuned", "random"]
    assert f"It is called {card['origin']}: " in words
    done = installed(folder, "--policy", f"run:{run_id}", "--shadow", "mine.py", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (held,) = [
        each["data"]
        for each in json.loads(done.stdout)["items"]
        if each["metadata"]["name"] == "podium-policy"
    ]
    texts = [text for name, text in held.items() if name.endswith(".py")]
    assert texts == [(folder / "mine.py").read_text()] * 2
    cards = [json.loads(text) for name, text in held.items() if name.endswith(".json")]
    assert {each["name"] for each in cards} == {f"run:{run_id}", "mine"}
    assert all(each["decision"]["promoted"] for each in cards)
    shown = run([*PODIUM, "policies", "show", "mine.json", "--json"], folder)
    assert json.loads(shown.stdout)["origin"] == card["origin"]


@pytest.mark.deep
def test_a_trace_that_changed_since_is_no_longer_the_one_that_was_held_out(own):
    folder, run_id = own
    path = folder / "mine-pods.csv"
    text = path.read_text()
    try:
        path.write_text("\n".join(text.splitlines()[:-1]) + "\n")
        done = podium(folder, "promote", run_id, "--seeds", "1", *STORE)
    finally:
        path.write_text(text)
    assert done.returncode == 2
    assert "changed" in done.stderr
