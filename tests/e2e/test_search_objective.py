"""Searches by an objective of the user's own, as people do: the real command and its files."""

import json

import pytest

from podium.policies.jit import cache_folder
from support.binary import PODIUM, run

pytestmark = pytest.mark.deep

COMPILED = cache_folder()
GIVEN = {
    "PODIUM_SEARCH_WORKERS": "1",
    **({"PODIUM_COMPILE_CACHE": str(COMPILED)} if COMPILED else {}),
}
SMALL = ["--seeds", "1", "--batch", "8", "--islands", "2", "--tune-every", "1"]
SMALL += ["--tune-evaluations", "10", "--store", "runs.db", "--time-limit", "60"]
AIM = '''"""Allocation at 130 %, and a tenth of the share pods that are placed."""


def objective(run):
    return run.allocation_130 + run.placed.get("share", 0.0) / 10
'''


def podium(folder, *arguments):
    return run([*PODIUM, "search", *arguments], folder, **GIVEN)


def test_a_file_of_the_user_s_is_the_aim_of_a_search_until_it_changes(tmp_path):
    (tmp_path / "aim.py").write_text(AIM)
    given = ["--objective", "aim.py", *SMALL, "--evaluations", "40", "--json"]
    done = podium(tmp_path, "run", *given)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert 100 < found["fitness"] <= 110
    assert found["name"] == "aim" if "name" in found else True
    more = ["resume", found["run"], "--store", "runs.db", "--evaluations", "60", "--json"]
    again = podium(tmp_path, *more)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["evaluations"] > found["evaluations"]
    (tmp_path / "aim.py").write_text(AIM.replace("/ 10", "/ 20"))
    changed = podium(tmp_path, *more[:-2], "80")
    assert changed.returncode == 2
    assert "the objective was changed after the search had been planned" in changed.stderr


def test_a_rule_and_a_file_exclude_each_other(tmp_path):
    (tmp_path / "aim.py").write_text(AIM)
    done = podium(tmp_path, "run", "--objective", "aim.py", "--fitness", "waiting", *SMALL)
    assert done.returncode == 2
    assert "--fitness and --objective exclude each other" in done.stderr
