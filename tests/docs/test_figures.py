import hashlib
import json
import subprocess
import sys

import pytest

from support.binary import PODIUM, run
from support.pages import DOCS, PAGES, README, ROOT, links

FIGURES = sorted(path.name for path in (DOCS / "figures").glob("*.svg"))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    tool = [sys.executable, str(ROOT / "tools" / "draw_figures.py"), str(folder)]
    subprocess.run(tool, check=True)
    return folder


@pytest.mark.parametrize("name", FIGURES)
def test_redrawing_a_figure_gives_the_committed_file(redrawn, name):
    assert digest(redrawn / name) == digest(DOCS / "figures" / name), "run make figures"


def test_every_figure_that_is_drawn_is_committed(redrawn):
    assert sorted(path.name for path in redrawn.iterdir()) == FIGURES


def test_every_figure_is_shown_on_a_page():
    shown = {target for page in PAGES for target in links(page) if target.endswith(".svg")}
    assert {target.rpartition("/")[2] for target in shown} == set(FIGURES)


@pytest.mark.deep
def test_the_picture_of_the_demo_shows_what_it_prints_today(tmp_path):
    kept = json.loads((DOCS / "figures" / "demo.json").read_text())
    printed = run([*PODIUM, "demo"], tmp_path).stdout.splitlines()
    assert [line for line in kept["lines"] if line not in printed] == []


def test_the_packing_figure_shows_what_the_program_finds_today(tmp_path):
    kept = json.loads((DOCS / "figures" / "packing.json").read_text())
    options = ["--protocol", "inflation", "--seeds", "1000", "--json"]
    printed = json.loads(
        run([*PODIUM, "compare", "fgd", "kube-default", *options], tmp_path).stdout
    )
    for found in printed["runs"]:
        curve = [round(found["allocation_at"][str(load)], 6) for load in kept["loads"]]
        assert curve == kept["allocation"][found["policy"]]["1000"], found["policy"]


def test_the_learning_figure_shows_what_the_program_finds_today(tmp_path):
    kept = json.loads((DOCS / "figures" / "learning.json").read_text())
    options = ["--neighbours", "0", "--seed", "2000", "--json"]
    printed = json.loads(run([*PODIUM, "learn", *options], tmp_path).stdout)
    found = {each["way"]: each["course"] for each in printed["runs"]}
    for way, by_seed in kept["course"].items():
        assert found[way] == by_seed["2000"], way


def test_what_is_said_of_learning_is_in_its_data():
    kept = json.loads((DOCS / "figures" / "learning.json").read_text())
    online, capped = kept["ways"]["online"], kept["ways"]["capped-oracle"]
    late = [sum(course[-20:]) / 20 for course in kept["course"]["online"].values()]
    said = " ".join((DOCS / "online.md").read_text(encoding="utf-8").split())
    assert f"take {100 * online['late_regret']:.1f} % longer" in said
    assert f"{100 * max(late):.1f} % in the worst of {len(late)} worlds" in said
    assert f"**{100 * online['mean_regret']:.1f} %** over all 1,000 decisions" in said
    assert f"**{100 * capped['mean_regret']:.1f} %**" in said
    assert max(late) <= 0.1


def test_what_is_said_of_the_reproduction_is_in_its_data():
    kept = json.loads((DOCS / "figures" / "reproduction.json").read_text())
    judged = [row for row in kept["rows"] if row[1] != "random"]
    runs, traces = 3 * len(judged), len({row[0] for row in judged})
    said = f"All {runs} deterministic runs on {traces} traces agree within 0.01 points"
    assert said in " ".join(README.read_text(encoding="utf-8").split())
    assert all(row[-1] <= 0.01 for row in judged)
