import json

import pytest
from typer.testing import CliRunner

from podium.cli.main import app
from podium.errors import UsageError
from podium.experiments.training import CasesRequest, training_set, training_sources
from podium.rl.configuration import create_config
from podium.rl.mlp.worth import training_cases
from podium.rl.ppo.algorithm import make_world
from podium.settings import load_settings
from support.gpu_cluster import dump

BEGUN = {
    "search": lambda path, kinds: training_set(
        load_settings(), CasesRequest(traces=(path,), seeds=2, waiting=kinds)
    ),
    "train": lambda path, kinds: training_sources(load_settings(), (path,), None, waiting=kinds),
}


@pytest.fixture
def gated(tmp_path):
    """Writes a dump of which every pod waits for a gate, as Kueue lets them wait."""
    found = dump(has_gang=False)
    kept = [each for each in found["items"] if each["kind"] == "Node"]
    for each in found["items"]:
        asked = each["kind"] == "Pod" and each["status"].get("phase") == "Pending"
        if asked and not each["spec"].get("nodeName"):
            each["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
            kept.append(each)
    path = tmp_path / "gated.json"
    path.write_text(json.dumps(found | {"items": kept}))
    return str(path)


@pytest.mark.parametrize("verb", BEGUN)
def test_learning_on_gated_work_names_the_flag_that_tries_it(gated, verb):
    with pytest.raises(UsageError, match="has no pods") as caught:
        BEGUN[verb](gated, ())
    assert caught.value.hint == "--waiting gated tries what waits"


def test_a_search_learns_on_gated_work_where_it_is_asked_to(gated):
    found = BEGUN["search"](gated, ("gated",))
    assert {len(case.read().workload) for case in found.cases} == {11}


def test_nets_are_trained_on_gated_work_where_they_are_asked_to(gated):
    told = {"traces": [gated], "waiting": list(BEGUN["train"](gated, ("gated",)).waiting)}
    (case,) = training_cases(create_config("mlp", workload=told).workload, 600, [1000])
    assert len(case.read().workload) == 11
    assert len(make_world(create_config("ppo", workload=told, cluster={"nodes": 0})).draw(0)[1])


def test_a_training_that_is_refused_leaves_no_run_behind(gated, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    done = CliRunner().invoke(app, ["train", "mlp", "--trace", gated])
    assert done.exit_code == 2
    assert "--waiting gated" in done.stderr
    assert not list((tmp_path / "data").rglob("plan.json"))
