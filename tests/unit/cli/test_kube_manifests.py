import json

import pytest
import yaml

from podium.cli.main import app
from support.helm import of_kind


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


def test_a_policy_file_is_put_into_a_config_map(run, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def score(pod, node):\n    return 1.0\n")
    objects = list(yaml.safe_load_all(run("--policy", file).stdout))
    assert of_kind(objects, "ConfigMap", "-policy")["data"] == {"policy.py": file.read_text()}
    assert policy_of(objects) == "/etc/podium/policy/policy.py"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policy", "fdg"), ('unknown policy "fdg"', "did you mean fgd")),
        (("--namespace", "Podium"), ('"Podium" cannot be used', "at:  --namespace")),
        (("--scheduler-name", "default-scheduler"), ("--mode extender",)),
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
