"""The chart renders what a cluster needs, and refuses what cannot work."""

import importlib.util
import json
import tomllib

import pytest
import yaml

from podium.kube.resources import RESOURCES
from podium.policies import load
from podium.settings import default_settings, keys
from support.helm import (
    CARD,
    CHART,
    EXTENDER_WITH_ALL,
    KUBERNETES,
    LEARNING,
    NAMESPACE,
    POLICY,
    ROOT,
    VALUE_SETS,
    helm,
    mounted,
    of_kind,
    rendered,
    scheduler_configuration,
    template,
)
from support.kubelike import gpu_node, gpu_pod, live
from support.served_extender import Cluster, Served

SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
FOUND_CARD = '{"origin": "found"}'  # somebody cut the decision out
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))


@pytest.fixture(params=VALUE_SETS)
def objects(request, tmp_path):
    return rendered(VALUE_SETS[request.param], tmp_path)


def settings_of(objects):
    """Gives the environment that the chart sets, without the container's own."""
    return of_kind(objects, "ConfigMap", "-settings")["data"]


def pod_of(objects):
    return of_kind(objects, "Deployment")["spec"]["template"]["spec"]


def containers(objects):
    return {each["name"]: each for each in pod_of(objects)["containers"]}


def documented(values, schema, path=""):
    """Lists the values that the schema does not describe."""
    for name, value in values.items():
        described = schema.get("properties", {}).get(name, {})
        if not described.get("description"):
            yield path + name
        elif isinstance(value, dict) and "properties" in described:
            yield from documented(value, described, f"{path}{name}.")


@pytest.mark.parametrize("name", VALUE_SETS)
def test_helm_finds_nothing_wrong_with_the_chart(name, tmp_path):
    done = helm(
        "lint", "--strict", "--kube-version", KUBERNETES, CHART,
        folder=tmp_path, values=VALUE_SETS[name],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_chart_and_package_have_one_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_every_value_is_described_and_every_description_has_a_value():
    assert list(documented(VALUES, SCHEMA)) == []
    assert set(SCHEMA["properties"]) - set(VALUES) == {"global"}


def test_the_chart_knows_every_policy_and_every_setting():
    spec = importlib.util.spec_from_file_location("told", ROOT / "tools" / "chart_schema.py")
    told = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(told)
    stale = [path.name for path, text in told.written().items() if path.read_text("utf-8") != text]
    assert stale == [], "run make manifests"


def test_every_setting_that_the_chart_makes_is_one_of_podium(objects):
    known = {name for key in keys().values() for name in key.env_names}
    assert {*settings_of(objects)} <= known


def test_names_fit_into_their_fields_however_long_the_release(tmp_path):
    done = helm(
        "template", "a" * 53, CHART, "--kube-version", KUBERNETES, "--namespace", "b" * 63,
        folder=tmp_path,
    )  # fmt: skip
    found = [each["metadata"]["name"] for each in yaml.safe_load_all(done.stdout) if each]
    assert max(map(len, found)) <= 90  # only RBAC has names beyond 63, and takes 253
    services = [each for each in yaml.safe_load_all(done.stdout) if each["kind"] == "Service"]
    assert len(services[0]["metadata"]["name"]) <= 63


def test_a_stock_kube_scheduler_and_podium_share_a_pod(tmp_path):
    found = rendered({}, tmp_path)
    assert {*containers(found)} == {"podium", "kube-scheduler"}
    assert containers(found)["kube-scheduler"]["image"].endswith(f":v{KUBERNETES}")
    configuration = scheduler_configuration(found)
    (profile,) = configuration["profiles"]
    (extender,) = configuration["extenders"]
    assert configuration["percentageOfNodesToScore"] == 100
    assert configuration["leaderElection"]["resourceName"] == profile["schedulerName"]
    assert profile["schedulerName"] == "podium-scheduler"
    times = [configuration["leaderElection"][key] for key in ("leaseDuration", "renewDeadline")]
    assert times == ["8s", "5s"]
    assert extender == {
        "urlPrefix": "http://127.0.0.1:8080/extender",
        "prioritizeVerb": "prioritize",
        "weight": 25,
        "nodeCacheCapable": True,
        "ignorable": True,
        "httpTimeout": "200ms",
    }


@pytest.mark.parametrize("mode", ["scheduler", "extender"])
@pytest.mark.parametrize("verb", ["filter", "bind"])
def test_what_podium_refuses_is_not_bound_without_it(verb, mode, tmp_path):
    values = {"mode": mode, "replicas": 1, "extender": {verb: True}}
    found = rendered(values, tmp_path)
    (extender,) = scheduler_configuration(found)["extenders"]
    assert extender["ignorable"] is False
    strategy = of_kind(found, "Deployment")["spec"].get("strategy")
    assert strategy == ({"type": "Recreate"} if mode == "extender" else None)


def test_beside_their_kube_scheduler_several_replicas_may_filter_and_bind(tmp_path):
    values = {"replicas": 2, "extender": {"filter": True, "bind": True}}
    assert of_kind(rendered(values, tmp_path), "Deployment")["spec"]["replicas"] == 2


@pytest.mark.parametrize("version", ["1.36.4+k3s1", "1.36.4-gke.100"])
def test_kube_scheduler_has_the_version_of_the_cluster_as_it_is_published(version, tmp_path):
    done = helm("template", "podium", CHART, "--kube-version", version, folder=tmp_path)
    assert '"registry.k8s.io/kube-scheduler:v1.36.4"' in done.stdout


@pytest.mark.parametrize("weight", [1, 25, 1000])
def test_one_point_of_a_preference_outvotes_podium_and_one_rank_outvotes_packing(weight, tmp_path):
    made = rendered({"extender": {"weight": weight}}, tmp_path)
    (profile,) = scheduler_configuration(made)["profiles"]
    enabled = profile["plugins"]["multiPoint"]["enabled"]
    preferences = {each["name"]: each["weight"] for each in enabled}
    packing = 2 * 100  # NodeResourcesFit and ImageLocality, of weight 1
    assert min(preferences.values()) > 10 * weight * 1000 + packing
    assert max(preferences.values()) < 2**31
    unit = preferences["NodeAffinity"] // 2
    assert preferences == {
        "TaintToleration": 3 * unit, "NodeAffinity": 2 * unit, "PodTopologySpread": 2 * unit,
        "InterPodAffinity": 2 * unit, "DynamicResources": 2 * unit,
    }  # fmt: skip
    (settings,) = [each["data"] for each in made if each["metadata"]["name"] == "podium-settings"]
    assert 10 * weight * int(settings["PODIUM_EXTENDER_DECISIVE_POINTS"]) > packing


def test_podium_is_switched_off_by_one_value_and_nothing_else_changes(tmp_path):
    on, off = (
        scheduler_configuration(rendered({"extender": {"enabled": is_on}}, tmp_path))
        for is_on in (True, False)
    )
    assert on.pop("extenders")
    assert on == off


def test_the_default_scores_do_not_spread_what_a_policy_packs(tmp_path):
    (profile,) = scheduler_configuration(rendered({}, tmp_path))["profiles"]
    assert profile["plugins"]["score"] == {
        "disabled": [{"name": "NodeResourcesBalancedAllocation"}]
    }
    fit, spread = profile["pluginConfig"]
    assert fit["args"]["scoringStrategy"]["type"] == "MostAllocated"
    assert spread["args"]["defaultConstraints"] == []
    without = {"mode": "extender", "scheduler": {"resourceScore": "none"}}
    (profile,) = scheduler_configuration(rendered(without, tmp_path))["profiles"]
    disabled = {each["name"] for each in profile["plugins"]["score"]["disabled"]}
    assert disabled == {"NodeResourcesBalancedAllocation", "NodeResourcesFit"}
    assert [each["name"] for each in profile["pluginConfig"]] == ["PodTopologySpread"]


def test_as_an_extender_podium_is_alone_and_says_how_it_is_asked(tmp_path):
    found = rendered(EXTENDER_WITH_ALL, tmp_path)
    assert {*containers(found)} == {"podium"}
    configuration = scheduler_configuration(found)
    (extender,) = configuration["extenders"]
    assert configuration["profiles"][0]["schedulerName"] == "default-scheduler"
    assert extender["urlPrefix"] == "https://10.0.0.77:8080/extender"
    assert (extender["filterVerb"], extender["bindVerb"]) == ("filter", "bind")
    assert extender["ignorable"] is False
    assert extender["managedResources"] == [{"name": "nvidia.com/gpu", "ignoredByScheduler": False}]
    assert extender["enableHTTPS"]
    assert of_kind(found, "Service")["spec"]["sessionAffinity"] == "ClientIP"
    scheme = containers(found)["podium"]["readinessProbe"]["httpGet"]["scheme"]
    assert scheme == "HTTPS"
    bound_roles = {
        each["roleRef"]["name"] for each in found if each["kind"] == "ClusterRoleBinding"
    }
    assert bound_roles == {f"{NAMESPACE}-podium"}  # nothing of kube-scheduler's


@pytest.mark.parametrize(
    ("values", "more"),
    [
        ({}, set()),
        (EXTENDER_WITH_ALL, {("", "pods/binding", "create"), ("", "events", "create")}),
        ({"extender": {"bind": True}}, {("", "pods/binding", "create")}),
        ({"extender": {"events": True}}, {("", "events", "create")}),
    ],
    ids=["default", "all", "bind", "events"],
)
def test_podium_may_read_what_it_follows_and_nothing_else(values, more, tmp_path):
    role = of_kind(rendered(values, tmp_path), "ClusterRole")
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    read = {(each.group, each.plural, verb) for each in RESOURCES for verb in ("list", "watch")}
    assert granted == read | more


def test_containers_have_no_more_rights_than_they_need(objects):
    pod = pod_of(objects)
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for each in pod["containers"]:
        assert each["securityContext"]["readOnlyRootFilesystem"]
        assert not each["securityContext"]["allowPrivilegeEscalation"]
        assert each["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= {*each}
        assert each["resources"]["limits"]["memory"]


def test_a_service_called_podium_is_not_taken_for_settings(objects):
    assert pod_of(objects)["enableServiceLinks"] is False


def test_what_podium_writes_has_a_volume(objects):
    pod, podium = pod_of(objects), containers(objects)["podium"]
    volumes = {each["name"] for each in pod["volumes"]}
    mounts = {each["mountPath"]: each["name"] for each in podium["volumeMounts"]}
    assert set(mounts.values()) <= volumes
    assert settings_of(objects)["PODIUM_COMPILE_CACHE"].startswith("/var/cache/podium/")
    store = settings_of(objects).get("PODIUM_STORE_URL")
    assert store in (None, "sqlite:////var/lib/podium/podium.db")
    assert {"/var/cache/podium", "/var/lib/podium", "/tmp"} <= {*mounts}


def test_a_policy_of_your_own_comes_out_of_the_chart_as_it_went_in(tmp_path):
    found = rendered(EXTENDER_WITH_ALL, tmp_path)
    assert of_kind(found, "ConfigMap", "-policy")["data"] == {
        "mine.py": POLICY, "found.py": POLICY, "found.json": f"{CARD}\n",
    }  # fmt: skip
    settings = settings_of(found)
    mounts = {each["name"]: each for each in containers(found)["podium"]["volumeMounts"]}
    folder = mounts["policy"]["mountPath"]
    assert settings["PODIUM_EXTENDER_POLICY"] == f"{folder}/mine.py"
    assert settings["PODIUM_EXTENDER_SHADOW"].split(",") == [
        "best-fit", f"{folder}/found.json", f"{folder}/net.json",
    ]  # fmt: skip
    (volume,) = [each for each in pod_of(found)["volumes"] if each["name"] == "policy"]
    held = [each["configMap"]["name"] for each in volume["projected"]["sources"]]
    assert held == ["policies", "podium-policy"]


def test_podium_takes_the_policies_that_the_chart_mounts(tmp_path):
    found = rendered(EXTENDER_WITH_ALL, tmp_path)
    for name, text in of_kind(found, "ConfigMap", "-policy")["data"].items():
        (tmp_path / name).write_text(text)
    mine, other = load(str(tmp_path / "mine.py")), load(str(tmp_path / "found.json"))
    assert (mine.name, mine.validation.word) == ("mine", "unknown")
    assert (other.name, other.validation.word) == ("run:ab12", "no")


def test_any_policy_scores_in_the_shadow_as_the_chart_mounts_it(tmp_path):
    values = {"shadow": ["mine", "found", "fed-gpu"], "sources": {"mine": POLICY, "found": POLICY}}
    made = rendered({"policy": {**values, "cards": {"found": CARD}}}, tmp_path)
    told = mounted(made, tmp_path)
    with Served(tmp_path, Cluster(*map(gpu_node, "abc")), **told).start() as service:
        service.prioritize(live(gpu_pod("p"), "u"))
        shown = service.get("/v1/explain/default/p").json["shadow"]
        words = service.get("/").json["config"]["shadow"]
    assert words == {"mine": "unknown", "run:ab12": "no", "fed-gpu": "yes"}
    assert shown.keys() == words.keys()


def test_a_promoted_policy_scores_by_its_card(tmp_path):
    card = json.dumps({**json.loads(CARD), "origin": "found", "decision": {"promoted": True}})
    values = {"policy": {"name": "m", "sources": {"m": POLICY}, "cards": {"m": card}}}
    found = settings_of(rendered(values, tmp_path))
    assert found["PODIUM_EXTENDER_POLICY"] == "/etc/podium/policy/m.json"


def test_roll_out_and_way_back_take_one_value(tmp_path):
    known = {"shadow": ["fgd", "mine"], "sources": {"mine": POLICY}}
    for name, policy, shadow in (
        ("fgd", "fgd", "/etc/podium/policy/mine.py"),
        ("mine", "/etc/podium/policy/mine.py", "fgd"),
    ):
        settings = settings_of(rendered({"policy": {**known, "name": name}}, tmp_path))
        assert settings["PODIUM_EXTENDER_POLICY"] == policy
        assert settings["PODIUM_EXTENDER_SHADOW"] == shadow


@pytest.mark.parametrize("is_unvalidated", [True, False])
def test_what_runs_a_policy_that_is_not_validated_is_marked(is_unvalidated, tmp_path):
    found = rendered({"policy": {"unvalidated": is_unvalidated}}, tmp_path)
    deployment = of_kind(found, "Deployment")
    for each in (deployment, deployment["spec"]["template"]):
        label = each["metadata"]["labels"].get("podium.dev/unvalidated")
        assert label == ("true" if is_unvalidated else None)
    assert settings_of(found)["PODIUM_EXTENDER_UNVALIDATED"] == str(is_unvalidated).lower()


def test_the_chart_and_podium_have_one_default_policy():
    assert VALUES["policy"]["name"] == default_settings().extender.policy


def test_another_policy_starts_the_pods_anew(tmp_path):
    def checksum(**policy):
        deployment = of_kind(rendered({"policy": policy}, tmp_path), "Deployment")
        return deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    assert checksum() == checksum(name=VALUES["policy"]["name"])
    mine = {"sources": {"mine": POLICY}}
    found = [{}, {"name": "best-fit"}, {**mine, "name": "mine"}, {**mine, "shadow": ["mine"]}]
    assert len({checksum(**each) for each in found}) == 4


def test_what_is_learned_is_kept_in_a_volume_that_outlives_the_release(tmp_path):
    found = rendered(LEARNING, tmp_path)
    claim = of_kind(found, "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert claim["spec"]["resources"]["requests"] == {"storage": "5Gi"}
    assert of_kind(found, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    settings = settings_of(found)
    assert settings["PODIUM_SERVE_COMPONENTS"] == "extender,learning"
    assert settings["PODIUM_ONLINE_LAMBDA_UNCERTAINTY"] == "0.5"
    assert settings["PODIUM_ONLINE_ENABLE_INTERFERENCE"] == "true"
    assert settings["PODIUM_EXTENDER_WINDOW_PODS"] == "1000000"


def test_one_pod_alone_can_be_evicted(tmp_path):
    assert of_kind(rendered({}, tmp_path), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    kinds = {each["kind"] for each in rendered({"replicas": 1}, tmp_path)}
    assert "PodDisruptionBudget" not in kinds


def test_kinds_of_the_prometheus_operator_are_made_where_the_cluster_has_them(tmp_path):
    done = helm("template", "podium", CHART, "--kube-version", KUBERNETES, folder=tmp_path)
    assert done.returncode == 0
    assert "monitoring.coreos.com" not in done.stdout
    kinds = {each["kind"] for each in rendered({}, tmp_path)}
    assert {"ServiceMonitor", "PrometheusRule"} <= kinds


@pytest.mark.parametrize(("mode", "told"), [("scheduler", "true"), ("extender", None)])
def test_beside_its_kube_scheduler_podium_scores_for_nobody_else(mode, told, tmp_path):
    settings = settings_of(rendered({"mode": mode}, tmp_path))
    assert settings.get("PODIUM_EXTENDER_LOOPBACK_ONLY") == told


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mode": "both"}, 'mode: mode must be one of the following: "scheduler", "extender"'),
        ({"polcy": {}}, "(root): Additional property polcy is not allowed"),
        ({"replicas": 0}, "replicas: Must be greater than or equal to 1"),
        ({"extender": {"httpTimeoutMs": "200ms"}}, "httpTimeoutMs: Invalid type. Expected: int"),
        ({"extender": {"weight": 0}}, "extender.weight: Must be greater than or equal to 1"),
        ({"extender": {"managedResources": ["gpu"]}}, "managedResources.0: Does not match pattern"),
        ({"config": {"explorationCap": 1.5}}, "config.explorationCap: Must be less than or equal"),
        ({"image": {"digest": "latest"}}, "image.digest: Does not match pattern"),
        ({"scheduler": {"resourceScore": "LeastAllocated"}}, "scheduler.resourceScore must be one"),
        ({"settings": {"serve": {"port": [1]}}}, "settings.serve.port: Invalid type"),
        ({"scheduler": {"name": "default-scheduler"}}, "choose another name, or set mode=extender"),
        ({"scheduler": {"name": "a..b"}}, "scheduler.name: Does not match pattern"),
        ({"learning": {"enabled": True}}, "set replicas=1, or store.urlSecret.name"),
        ({"tls": {"secretName": "x"}}, "leave it empty, or set mode=extender"),
        ({"policy": {"name": "a/b"}}, "policy.name: Does not match pattern"),
        ({"policy": {"shadow": ["a,b"]}}, "policy.shadow.0: Does not match pattern"),
        ({"policy": {"shadow": ["a", "a"]}}, "policy.shadow: array items[0,1] must be unique"),
        ({"policy": {"sources": {"a.b": "x"}}}, "policy.sources: Property name of"),
        ({"policy": {"name": "keep-rom"}}, 'unknown policy "keep-rom": give its text in'),
        ({"policy": {"shadow": ["fdg"]}}, 'unknown policy "fdg": give its text in'),
        ({"settings": {"extendr": {}}}, "settings: Additional property extendr is not allowed"),
        (
            {"settings": {"extender": {"gang_point": 5}}},
            "settings.extender: Additional property gang_point is not allowed",
        ),
        ({"settings": {"extender": {"assume_s": "soon"}}}, "settings.extender.assume_s: Invalid"),
        ({"policy": {"shadow": ["mine.py"]}}, "mine.py is a file, but policy.existingConfigMap is"),
        ({"policy": {"cards": {"m": "{}"}}}, "policy.cards.m is the card of a policy that is not"),
        (
            {"policy": {"name": "m", "sources": {"m": POLICY}, "cards": {"m": CARD}}},
            "policy.name is m, which is not validated (it was not promoted): promote it",
        ),
        (
            {"policy": {"name": "m", "sources": {"m": POLICY}, "cards": {"m": '{"decision": {}}'}}},
            "policy.name is m, which is not validated (its card holds no decision to promote it)",
        ),
        (
            {"policy": {"name": "m", "sources": {"m": POLICY}, "cards": {"m": FOUND_CARD}}},
            "policy.name is m, which is not validated (its card holds no decision to promote it)",
        ),
        ({"policy": {"sources": {"keep-room": POLICY}}}, "policy.sources.keep-room has the name"),
        ({"policy": {"sources": {"Keep_Room": POLICY}}}, "policy.sources.Keep_Room has the name"),
        ({"policy": {"sources": {"binpack": POLICY}}}, "policy.sources.binpack has the name"),
        (
            {"settings": {"extender": {"unvalidated": True}}},
            "settings.extender.unvalidated is made of another value: set policy.unvalidated",
        ),
        ({"settings": {"extender": {"policy": "x.py"}}}, "set policy.name"),
        ({"settings": {"extender": {"shadow": "x.py"}}}, "set policy.shadow"),
        ({"settings": {"extender": {"bind": True}}}, "set extender.bind"),
        ({"settings": {"serve": {"components": "webhook"}}}, "set learning.enabled"),
        ({"podLabels": {"podium.dev/unvalidated": "false"}}, "it follows from policy.unvalidated"),
        ({"mode": "extender", "extender": {"filter": True}}, "would give out the same GPUs: set"),
        ({"mode": "extender", "extender": {"bind": True}}, "would give out the same GPUs: set"),
        ({"settings": {"serve": {"token": "x"}}}, "settings.serve.token is secret"),
        ({"settings": {"store": {"url": "x"}}}, "settings.store.url is secret"),
    ],
)  # fmt: skip
def test_values_that_cannot_work_are_refused_with_the_reason(values, message, tmp_path):
    done = template(values, tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
