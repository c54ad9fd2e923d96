import base64
import importlib.util
import json
import re
from dataclasses import replace

import pytest
import yaml

from podium.errors import UsageError
from podium.kube.manifests import LARGEST_BYTES, Installation, manifests, objects
from podium.kube.policy_files import PackedPolicy, packed_text, packed_weights
from podium.policies import load
from podium.policies.validation import Validation
from support.helm import (
    CHART,
    POLICY,
    ROOT,
    helm_program,
    of_kind,
    rendered,
    scheduler_configuration,
)

FROM_HELM = ("helm.sh/chart", "app.kubernetes.io/managed-by")


NOT_PROMOTED = Validation(False, "it was not promoted", "promote it")


def made(**changes):
    return objects(manifests(Installation(**changes)))


def named(name, **changes):
    return replace(load("first-fit"), name=name, **changes)


def own(text=POLICY, name="mine", **changes):
    """Packs a policy of somebody's own."""
    return packed_text(named(name, **changes), text)


def card_of(packed):
    (name,) = [name for name in packed.texts if name.endswith(".json")]
    return packed.texts[name]


def without_helm(value):
    """Leaves out what Helm says of itself, and a digest that is formed in another way."""
    if isinstance(value, dict):
        left = {k: v for k, v in value.items() if k not in (*FROM_HELM, "checksum/config")}
        return {key: without_helm(each) for key, each in left.items()}
    return [without_helm(each) for each in value] if isinstance(value, list) else value


def test_the_templates_are_those_of_the_chart():
    helm_program()
    spec = importlib.util.spec_from_file_location("render", ROOT / "tools" / "render_manifests.py")
    render = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(render)
    stale = [
        path.name for path, text in render.templates().items() if path.read_text("utf-8") != text
    ]
    assert stale == [], "run make manifests"


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        ({}, {}),
        ({"mode": "extender"}, {"mode": "extender"}),
        ({"is_disabled": True}, {"extender": {"enabled": False}}),
        ({"policy": own()}, {"policy": {"name": "mine", "sources": {"mine": POLICY}}}),
        (
            {"shadow": (PackedPolicy("best-fit"), own(), own(name="other"))},
            {
                "policy": {
                    "shadow": ["best-fit", "mine", "other"],
                    "sources": {"mine": POLICY, "other": POLICY},
                }
            },
        ),
        (
            {"policy": own(name="m", validation=NOT_PROMOTED), "is_unvalidated": True},
            {
                "policy": {
                    "name": "m",
                    "sources": {"m": POLICY},
                    "cards": {"m": card_of(own(name="m", validation=NOT_PROMOTED))},
                    "unvalidated": True,
                }
            },
        ),
        (
            {
                "scheduler_name": "gpus",
                "policy": PackedPolicy("best-fit"),
                "image": "registry.local/podium:7",
            },
            {
                "scheduler": {"name": "gpus"},
                "policy": {"name": "best-fit"},
                "image": {"repository": "registry.local/podium", "tag": "7"},
            },
        ),
    ],
)
def test_plain_manifests_are_what_the_chart_installs(changes, values, tmp_path):
    plain = made(**changes)
    chart = rendered({**values, "dashboard": {"enabled": False}}, tmp_path)
    ours = [each for each in chart if not each["apiVersion"].startswith("monitoring.coreos.com")]
    installed = [each for each in ours if "helm.sh/hook" not in str(each["metadata"])]
    assert plain[0]["kind"] == "Namespace"
    assert without_helm(plain[1:]) == without_helm(installed)


def test_everything_is_in_the_namespace_that_was_asked_for():
    for each in made(namespace="gpu-team"):
        if each["kind"] in ("Namespace", "ClusterRole", "ClusterRoleBinding"):
            assert each["metadata"]["name"].startswith("gpu-team")
        elif each["metadata"]["namespace"] == "kube-system":
            assert each["roleRef"]["name"] == "extension-apiserver-authentication-reader"
        else:
            assert each["metadata"]["namespace"] == "gpu-team"
        for subject in each.get("subjects", ()):
            assert subject["namespace"] == "gpu-team"


def test_the_namespace_admits_restricted_pods_only():
    labels = made()[0]["metadata"]["labels"]
    assert labels == {"pod-security.kubernetes.io/enforce": "restricted"}


@pytest.mark.parametrize("mode", ["scheduler", "extender"])
@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "default"])
def test_a_namespace_of_the_cluster_is_left_as_it_is(namespace, mode):
    text = manifests(Installation(mode=mode, namespace=namespace))
    assert text.startswith(f"# The namespace {namespace} is the cluster's own and left as it is.\n")
    kinds = [each["kind"] for each in objects(text)]
    assert ["Namespace", *kinds] == [each["kind"] for each in made(mode=mode)]


@pytest.mark.parametrize("name", ["gpus", "a.b", "team-a.gpu-scheduler.example", "g", "a" * 63])
def test_a_dns_subdomain_names_the_scheduler(name):
    profile = scheduler_configuration(made(scheduler_name=name))["profiles"][0]
    assert profile["schedulerName"] == name


@pytest.mark.parametrize(
    "source",
    [
        POLICY,
        "  # indented\ndef score(pod, node):\n\treturn 1",
        "def score(pod, node):\r\n    return 1\r\n",
        '"""$dollar ${namespace} $$ é — 日本"""\n\n\ndef score(pod, node):\n    return 1\n\n\n',
    ],
)
def test_a_policy_comes_out_as_it_went_in(source):
    held = of_kind(made(policy=own(source)), "ConfigMap", "-policy")["data"]["mine.py"]
    assert held == source.replace("\r\n", "\n").rstrip("\n") + "\n"


def test_another_policy_starts_the_pods_anew():
    def digest(**changes):
        template = of_kind(made(**changes), "Deployment")["spec"]["template"]
        return template["metadata"]["annotations"]["checksum/config"]

    assert digest() == digest()
    changes = ({}, {"policy": PackedPolicy("best-fit")}, {"policy": own()}, {"shadow": (own(),)},
               {"is_disabled": True})  # fmt: skip
    assert len({digest(**each) for each in changes}) == 5


def test_what_is_known_of_a_policy_goes_with_it(tmp_path):
    packed = own(name="run:ab12", validation=NOT_PROMOTED)
    data = of_kind(made(shadow=(packed,)), "ConfigMap", "-policy")["data"]
    for name, text in data.items():
        (tmp_path / name).write_text(text)
    policy = load(str(tmp_path / packed.reference.rpartition("/")[2]))
    assert (policy.name, policy.validation) == ("run:ab12", NOT_PROMOTED)


def test_policies_keep_names_that_are_no_keys_of_a_config_map(tmp_path):
    packed = [own(name=name) for name in ("my policy", "my-policy", "日本", "-")]
    data = of_kind(made(shadow=tuple(packed)), "ConfigMap", "-policy")["data"]
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]+", name) for name in data)
    for name, text in data.items():
        (tmp_path / name).write_text(text)
    loaded = [load(str(tmp_path / each.reference.rpartition("/")[2])) for each in packed]
    assert [each.name for each in loaded] == ["my policy", "my-policy", "日本", "-"]
    assert {each.validation.word for each in loaded} == {"unknown"}


def test_weights_are_held_as_bytes():
    content = bytes(range(256))
    packed = packed_weights(named("net"), content, {"network": "mlp"})
    held = of_kind(made(shadow=(own(), packed)), "ConfigMap", "-policy")
    assert base64.b64decode(held["binaryData"]["net.npz"]) == content
    assert json.loads(held["data"]["net.json"]) == {"network": "mlp", "name": "net"}
    assert set(held["data"]) == {"net.json", "mine.py"}


@pytest.mark.parametrize("is_unvalidated", [True, False])
def test_a_policy_that_is_not_validated_is_marked(is_unvalidated):
    found = made(is_unvalidated=is_unvalidated)
    deployment = of_kind(found, "Deployment")
    for each in (deployment, deployment["spec"]["template"]):
        label = each["metadata"]["labels"].get("podium.dev/unvalidated")
        assert label == ("true" if is_unvalidated else None)
    settings = of_kind(found, "ConfigMap", "-settings")["data"]
    assert settings["PODIUM_EXTENDER_UNVALIDATED"] == str(is_unvalidated).lower()


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"namespace": "Podium"}, "--namespace"),
        ({"namespace": "1e3"}, "--namespace"),
        ({"namespace": "true"}, "--namespace"),
        ({"namespace": "a" * 64}, "--namespace"),
        ({"namespace": "x\n---\nkind: Secret"}, "--namespace"),
        ({"scheduler_name": 'a"b'}, "--scheduler-name"),
        ({"scheduler_name": "default-scheduler"}, "--scheduler-name"),
        ({"scheduler_name": "a..b"}, "--scheduler-name"),
        ({"scheduler_name": "a.-b"}, "--scheduler-name"),
        ({"scheduler_name": "a-.b"}, "--scheduler-name"),
        ({"scheduler_name": "a" * 64}, "--scheduler-name"),
        ({"image": 'podium"\n'}, "--image"),
        ({"kubernetes_version": "1.36"}, "--kubernetes-version"),
        ({"kubernetes_version": "v1.32.9"}, "--kubernetes-version"),
        ({"is_disabled": True, "mode": "extender"}, "--disabled"),
        ({"policy": own("x" * (LARGEST_BYTES + 1))}, "--policy"),
        ({"shadow": tuple(own("x" * 300_000, f"p{i}") for i in range(3))}, "--policy"),
        ({"policy": own("x = '\x07'\n")}, "--policy"),
    ],
)
def test_what_cannot_be_written_is_refused(changes, where):
    with pytest.raises(UsageError) as refused:
        made(**changes)
    assert refused.value.where == where


def test_kube_scheduler_gets_the_version_that_was_asked_for():
    deployment = of_kind(made(kubernetes_version="v1.35.8"), "Deployment")
    images = [each["image"] for each in deployment["spec"]["template"]["spec"]["containers"]]
    assert images[1] == "registry.k8s.io/kube-scheduler:v1.35.8"


def test_podium_and_its_chart_take_the_same_versions():
    (oldest,) = re.findall(r'kubeVersion: ">=(.*)-0"', (CHART / "Chart.yaml").read_text())
    configuration = scheduler_configuration(made(kubernetes_version=f"v{oldest}"))
    (profile,) = configuration["profiles"]
    weighed = [each["name"] for each in profile["plugins"]["multiPoint"]["enabled"]]
    assert "DynamicResources" not in weighed  # as the chart says of what is older than 1.34


def test_every_document_is_yaml_that_names_its_kind():
    text = manifests(Installation(mode="extender"))
    assert len(list(yaml.safe_load_all(text))) == text.count("\n---\n") + 1
    assert scheduler_configuration(objects(text))["profiles"][0]["schedulerName"]
