import json
import shutil

import pytest
import yaml

from podium.cli.main import app
from podium.policies.registry import _TRAINED
from podium.search.run.promoted import Decision, keep_decisions
from support.found import FOUND, found_run
from support.helm import mounted, of_kind
from support.kubelike import gpu_node, gpu_pod, live
from support.served_extender import Cluster, Served


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["kube", "manifests", *map(str, arguments)])


def policy_of(objects):
    return of_kind(objects, "ConfigMap", "-settings")["data"]["PODIUM_EXTENDER_POLICY"]


def test_the_same_objects_are_printed_as_yaml_and_as_json(run):
    as_yaml = list(yaml.safe_load_all(run().stdout))
    as_json = json.loads(run("--json").stdout)
    assert as_json == {"apiVersion": "v1", "kind": "List", "items": as_yaml}


def test_options_reach_the_objects(run):
    done = run("--mode", "extender", "--policy", "best-fit", "--namespace", "gpu-team",
               "--image", "registry.local/podium:7")  # fmt: skip
    objects = list(yaml.safe_load_all(done.stdout))
    assert policy_of(objects) == "best-fit"
    (podium,) = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert podium["image"] == "registry.local/podium:7"
    assert of_kind(objects, "Service")["metadata"]["namespace"] == "gpu-team"


def test_podium_is_switched_off_by_one_option(run):
    assert "extenders:" in run().stdout
    assert "extenders:" not in run("--disabled").stdout


def test_a_policy_file_is_put_into_a_config_map(run, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def score(pod, node):\n    return 1.0\n")
    objects = list(yaml.safe_load_all(run("--policy", file).stdout))
    assert of_kind(objects, "ConfigMap", "-policy")["data"] == {"mine.py": file.read_text()}
    assert policy_of(objects) == "/etc/podium/policy/mine.py"


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Is the folder of a run that nobody promoted."""
    return found_run(tmp_path / "runs", monkeypatch)


@pytest.mark.usefixtures("found")
def test_a_run_that_was_not_promoted_is_refused_with_the_reason(run):
    done = run("--policy", "run:ab12")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "run:ab12 is not validated: it was not promoted" in done.stderr
    assert "podium search promote ab12" in done.stderr
    assert "--unvalidated" in done.stderr


@pytest.mark.usefixtures("found")
def test_it_is_marked_where_it_is_taken_all_the_same(run):
    done = run("--policy", "run:ab12", "--unvalidated")
    objects = list(yaml.safe_load_all(done.stdout))
    labels = of_kind(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert labels["podium.dev/unvalidated"] == "true"
    assert "note: run:ab12 is not validated: it was not promoted" in done.stderr


@pytest.mark.usefixtures("found")
def test_a_copy_of_it_is_refused_and_marked_alike(run, tmp_path):
    (tmp_path / "mine.py").write_text(FOUND)
    done = run("--policy", tmp_path / "mine.py")
    assert done.exit_code == 1
    assert "mine is not validated: run:ab12 wrote what it computes" in done.stderr
    done = run("--policy", tmp_path / "mine.py", "--unvalidated")
    assert 'podium.dev/unvalidated: "true"' in done.stdout


def test_a_promoted_run_needs_no_leave_and_has_no_mark(run, found):
    keep_decisions(found, [Decision.on(FOUND, ["it gains 0.9"], FOUND)])
    for flags in ((), ("--unvalidated",)):
        done = run("--policy", "run:ab12", *flags)
        assert (done.exit_code, done.stderr) == (0, "")
        assert "podium.dev/unvalidated" not in done.stdout


@pytest.mark.usefixtures("found")
def test_any_policies_score_in_the_shadow(run, tmp_path):
    (tmp_path / "mine.py").write_text(FOUND.replace("7", "8"))
    shadows = ("mlp", "run:ab12", tmp_path / "mine.py", "fgd", "mlp")
    done = run("--policy", "fgd", *(word for each in shadows for word in ("--shadow", each)))
    objects = list(yaml.safe_load_all(done.stdout))
    told = of_kind(objects, "ConfigMap", "-settings")["data"]["PODIUM_EXTENDER_SHADOW"].split(",")
    assert (told[0], told[2]) == ("mlp", "/etc/podium/policy/mine.py")
    files = of_kind(objects, "ConfigMap", "-policy")["data"]
    assert json.loads(files[told[1].rpartition("/")[2]])["name"] == "run:ab12"
    assert "podium.dev/unvalidated" not in done.stdout
    assert done.stderr == "note: run:ab12 is not validated: it was not promoted\n"


def test_what_it_prints_has_any_policy_score_in_the_shadow(run, found, tmp_path):
    (tmp_path / "mine.py").write_text(FOUND.replace("7", "8"))
    card = (_TRAINED / "mlp.json").read_text().replace('"name": "mlp"', '"name": "learned"')
    (found.path.parent / "cd34").mkdir()
    (found.path.parent / "cd34" / "best.json").write_text(card)
    shutil.copy(_TRAINED / "mlp.npz", found.path.parent / "cd34" / "best.npz")
    shadows = ("run:ab12", "run:cd34", tmp_path / "mine.py", "fed-gpu")
    done = run("--policy", "fgd", *(word for each in shadows for word in ("--shadow", each)))
    (tmp_path / "volume").mkdir()
    told = mounted(list(yaml.safe_load_all(done.stdout)), tmp_path / "volume")
    shutil.rmtree(found.path.parent)  # no run is known in the cluster
    with Served(tmp_path, Cluster(*map(gpu_node, "abc")), **told).start() as service:
        service.prioritize(live(gpu_pod("p"), "u"))
        shown = service.get("/v1/explain/default/p").json["shadow"]
        words = service.get("/").json["config"]["shadow"]
    assert words == {"run:ab12": "no", "run:cd34": "unknown", "mine": "unknown", "fed-gpu": "yes"}
    assert shown.keys() == words.keys()


def test_large_policies_are_applied_by_the_server(run, tmp_path):
    (tmp_path / "mine.py").write_text(FOUND + "# filler\n" * 25_000)
    assert "kubectl apply --server-side" in run("--policy", tmp_path / "mine.py").stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policy", "fdg"), ('unknown policy "fdg"', "did you mean fgd")),
        (("--namespace", "Podium"), ('"Podium" cannot be used', "at:  --namespace")),
        (("--scheduler-name", "default-scheduler"), ("--mode extender",)),
        (("--kubernetes-version", "v1.32.0"), ("v1.32.0 is too old", "1.33 or newer")),
        (("--disabled", "--mode", "extender"), ("take extenders out of its configuration",)),
    ],
)
def test_mistakes_are_refused_with_what_to_do(run, arguments, words):
    done = run(*arguments)
    assert done.exit_code == 2
    assert all(each in done.stderr for each in words)
    assert done.stdout == ""


def test_a_file_that_is_no_policy_is_refused(run, tmp_path):
    (tmp_path / "broken.py").write_text("def score(pod, node:\n")
    done = run("--policy", tmp_path / "broken.py")
    assert done.exit_code == 2
    assert "broken.py" in done.stderr
