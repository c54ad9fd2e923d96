"""A real API server takes what the chart installs, and lets it do what it needs and no more."""

import contextlib
import json
import re
from dataclasses import replace

import pytest
import yaml

from podium.kube.local.daemon import free_ports
from podium.kube.manifests import Installation, manifests, objects
from podium.kube.policy_files import PackedPolicy, packed_text, packed_weights
from podium.kube.resources import RESOURCES
from podium.policies import load, registry
from support.control_plane import ControlPlane
from support.helm import (
    CHART,
    NAMESPACE,
    POLICY,
    VALUE_SETS,
    helm,
    rendered,
    scheduler_configuration,
)
from support.kube_api import AT_ONCE, KubeApi, KubeApiError
from support.manifests import bound, node, pod
from support.service import served

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:podium"
OPERATOR = {"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"}
DRY = "dryRun=All&fieldValidation=Strict"


pytestmark = pytest.mark.usefixtures("_namespace")


@pytest.fixture(scope="module")
def _namespace(plane):
    """Makes a namespace that admits restricted pods only, and the kinds of the operator."""
    for kind, plural in OPERATOR.items():
        plane.api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                      definition(kind, plural))  # fmt: skip
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    made = {"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": labels}}  # fmt: skip
    plane.api.create(made)


def definition(kind, plural):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural}
    group = "monitoring.coreos.com"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


class Kinds:
    """Knows under which path the API server takes objects of a kind."""

    def __init__(self, api):
        self._api = api
        self._known = {}

    def path(self, value):
        version, kind = value["apiVersion"], value["kind"]
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        if version not in self._known:
            listed = self._api.ask("GET", root)["resources"]
            self._known[version] = {
                each["kind"]: each for each in listed if "/" not in each["name"]
            }
        found = self._known[version][kind]
        where = f"/namespaces/{value['metadata']['namespace']}" if found["namespaced"] else ""
        return f"{root}{where}/{found['name']}"


def taken(api, values):
    """Has the API server check every object, and every pod that would come of it; lists kinds."""
    kinds, found = Kinds(api), []
    for value in values:
        if value["kind"] == "Namespace":
            continue  # it is there
        found.append(api.ask("POST", f"{kinds.path(value)}?{DRY}", value)["kind"])
        if value["kind"] == "Deployment":
            metadata = {"name": "one", "namespace": value["metadata"]["namespace"]}
            of_it = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
            made = {**of_it, "spec": value["spec"]["template"]["spec"]}
            found.append(api.ask("POST", f"{kinds.path(made)}?{DRY}", made)["kind"])
    return found


@pytest.mark.parametrize("name", VALUE_SETS)
def test_the_api_server_takes_every_object_of_the_chart(api, name, tmp_path):
    values = rendered(VALUE_SETS[name], tmp_path)
    assert {each["metadata"].get("namespace", NAMESPACE) for each in values} <= {
        NAMESPACE,
        "kube-system",
    }
    wanted = [each["kind"] for each in values]
    assert sorted(taken(api, values)) == sorted([*wanted, "Pod"])


@pytest.mark.parametrize("mode", ["scheduler", "extender"])
@pytest.mark.parametrize("has_files", [False, True], ids=["policy by name", "policy files"])
def test_the_api_server_takes_the_plain_manifests(api, mode, has_files):
    folder = registry._TRAINED
    mine = packed_text(replace(load("first-fit"), name="mine"), POLICY)
    card = json.loads((folder / "ppo.json").read_text())
    net = packed_weights(load("ppo"), (folder / "ppo.npz").read_bytes(), card)
    files = {"policy": mine, "shadow": (net, PackedPolicy("fgd")), "is_unvalidated": True}
    wanted = Installation(mode, namespace=NAMESPACE, **(files if has_files else {}))
    made = objects(manifests(wanted))
    kinds = [each["kind"] for each in made if each["kind"] != "Namespace"]
    assert sorted(taken(api, made)) == sorted([*kinds, "Pod"])


def test_a_mistake_in_an_object_would_be_found(api, tmp_path):
    (deployment,) = [each for each in rendered({}, tmp_path) if each["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    spec["enableServiceLink"] = spec.pop("enableServiceLinks")
    with pytest.raises(KubeApiError, match=r'unknown field "spec.template.spec.enableServiceLink"'):
        taken(api, [deployment])
    del spec["enableServiceLink"]
    del spec["securityContext"]
    with pytest.raises(KubeApiError, match='violates PodSecurity "restricted'):
        taken(api, [deployment])


def gpu_pod(name, **spec):
    return pod(name, requests={"nvidia.com/gpu": "1"}, **spec)


@contextlib.contextmanager
def installed(plane, folder, values):
    """Installs the chart with helm; gives what it says."""
    access = ["--kubeconfig", plane.kubeconfig, "--namespace", NAMESPACE]
    done = helm("install", "podium", CHART, *access, folder=folder, values=values)
    assert done.returncode == 0, done.stderr
    try:
        yield done.stdout
    finally:
        done = helm("uninstall", "podium", *access, "--cascade", "background", folder=folder)
        assert done.returncode == 0, done.stderr


def may(api, group, resource, verb, **more):
    """Asks the API server whether Podium's account may do something."""
    resource, _, subresource = resource.partition("/")
    attributes = {"group": group, "resource": resource, "subresource": subresource, "verb": verb}
    groups = ["system:authenticated", "system:serviceaccounts"]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": ACCOUNT, "groups": groups, "resourceAttributes": {**attributes, **more}},
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return api.ask("POST", path, review)["status"]["allowed"]


NEVER = (
    ("", "secrets", "get"), ("", "secrets", "list"), ("", "nodes", "patch"),
    ("", "nodes", "delete"), ("", "pods", "create"), ("", "pods", "update"),
    ("", "pods/exec", "create"), ("", "pods/eviction", "create"),
    ("", "serviceaccounts/token", "create"),
    ("apps", "deployments", "patch"), ("rbac.authorization.k8s.io", "clusterroles", "escalate"),
    ("", "users", "impersonate"),
)  # fmt: skip
SCHEDULING = (
    ("", "pods/binding", "create"), ("", "bindings", "create"), ("", "pods/status", "patch"),
    ("", "pods", "delete"), ("", "events", "create"), ("", "persistentvolumeclaims", "update"),
    ("storage.k8s.io", "csinodes", "watch"),
)  # fmt: skip


def test_podium_alone_may_read_and_nothing_more(plane, api, tmp_path):
    with installed(plane, tmp_path, {"mode": "extender"}):
        assert all(may(api, e.group, e.plural, v) for e in RESOURCES for v in ("list", "watch"))
        assert not any(may(api, *each) for each in (*NEVER, *SCHEDULING))
    assert not may(api, "", "nodes", "list")


def test_with_bind_podium_may_bind_and_nothing_more(plane, api, tmp_path):
    values = {"mode": "extender", "replicas": 1, "extender": {"bind": True}}
    with installed(plane, tmp_path, values):
        assert may(api, "", "pods/binding", "create")
        others = [each for each in SCHEDULING if each[1] != "pods/binding"]
        assert not any(may(api, *each) for each in (*NEVER, *others))


def test_with_events_podium_may_write_them_and_nothing_more(plane, api, tmp_path):
    with installed(plane, tmp_path, {"mode": "extender", "extender": {"events": True}}):
        assert may(api, "", "events", "create")
        assert not any(may(api, "", "events", verb) for verb in ("get", "patch", "delete"))
        others = [each for each in SCHEDULING if each[1] != "events"]
        assert not any(may(api, *each) for each in (*NEVER, *others))


def test_beside_kube_scheduler_it_may_also_do_what_that_does(plane, api, tmp_path):
    with installed(plane, tmp_path, {}):
        assert all(may(api, e.group, e.plural, v) for e in RESOURCES for v in ("list", "watch"))
        assert all(may(api, *each) for each in SCHEDULING)
        assert not any(may(api, *each) for each in NEVER)
        lease = {"group": "coordination.k8s.io", "resource": "leases", "verb": "update"}
        assert may(api, **lease, namespace=NAMESPACE, name="podium-scheduler")
        assert not may(api, **lease, namespace=NAMESPACE, name="another")


def test_the_notes_show_the_configuration_that_the_config_map_holds(plane, tmp_path):
    with installed(plane, tmp_path, {"mode": "extender"}) as said:
        shown = re.search(r"^  apiVersion: kubescheduler.*?(?=^\S)", said, re.DOTALL | re.MULTILINE)
        held = scheduler_configuration(rendered({"mode": "extender"}, tmp_path))
        assert yaml.safe_load(shown[0]) == held
        assert "Everybody in the cluster may ask Podium" in said
    with installed(plane, tmp_path, {"scheduler": {"name": "gpus"}}) as said:
        assert "schedulerName: gpus" in said


def test_a_release_can_be_upgraded_and_leaves_nothing_but_what_was_learned(plane, api, tmp_path):
    access = ["--kubeconfig", plane.kubeconfig, "--namespace", NAMESPACE]
    learning = {"replicas": 1, "learning": {"enabled": True}}
    with installed(plane, tmp_path, {}):
        mine = {"policy": {"name": "mine", "sources": {"mine": POLICY}}}
        for values in (learning, {"mode": "extender"}, mine, learning):
            done = helm("upgrade", "podium", CHART, *access, folder=tmp_path, values=values)
            assert done.returncode == 0, done.stderr
        done = helm("rollback", "podium", "1", *access, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    chosen = "labelSelector=app.kubernetes.io/instance%3Dpodium"
    kinds = Kinds(api)
    for value in rendered({}, tmp_path):
        if value["metadata"].get("annotations", {}).get("helm.sh/hook") != "test":
            left = api.ask("GET", f"{kinds.path(value)}?{chosen}")["items"]
            assert left == [], value["kind"]
    claims = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
    (claim,) = api.ask("GET", f"{claims}?{chosen}")["items"]
    assert claim["metadata"]["name"] == "podium"
    api.ask("DELETE", f"{claims}/podium", AT_ONCE)


@pytest.mark.parametrize("name", VALUE_SETS)
def test_the_real_kube_scheduler_takes_every_configuration(plane, api, name, tmp_path):
    """Nobody answers: it schedules alone, unless Podium is to filter and bind."""
    configuration = scheduler_configuration(rendered(VALUE_SETS[name], tmp_path))
    configuration["clientConnection"]["kubeconfig"] = str(plane.kubeconfig)
    configuration["leaderElection"]["leaderElect"] = False
    (extender,) = configuration["extenders"]
    (port,) = free_ports(1)
    extender["urlPrefix"] = re.sub(r"//.*/", f"//127.0.0.1:{port}/", extender["urlPrefix"])
    if "tlsConfig" in extender:
        extender["tlsConfig"]["caFile"] = str(plane.access.certificate)
    scheduler_name = configuration["profiles"][0]["schedulerName"]
    for each in (node("empty"), node("used"), bound(gpu_pod("old"), "used")):
        api.create(each)
    asked = gpu_pod("asked", schedulerName=scheduler_name)
    with plane.scheduler(configuration):
        api.create(asked)
        if not extender["ignorable"]:
            told = api.wait_until_unschedulable(asked)
            assert told.startswith("SchedulerError")
            assert "connection refused" in told
            return
        # By its own score, which packs, unless it has none.
        expected = ("empty", "used") if name == "bare" else ("used",)
        assert api.wait_until_scheduled(asked) in expected


def as_account(plane, folder):
    """Writes a kubeconfig with a token of Podium's own account, as its pod has one."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/podium/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = plane.api.ask("POST", path, asked)["status"]["token"]
    access = replace(plane.access, token=token)
    folder.mkdir()
    (folder / plane.key.name).symlink_to(plane.key)  # with which kube-scheduler serves
    (folder / "kubeconfig").write_text(json.dumps(access.kubeconfig()))
    return access


def test_both_containers_work_with_the_rights_of_their_account(plane, api, tmp_path):
    """The pod of the chart, as two processes: kube-scheduler asks Podium, and binds."""
    values = {"policy": {"name": "worst-fit"}}  # unlike kube-scheduler, which packs here
    made = rendered(values, tmp_path)
    (settings,) = [e["data"] for e in made if e["metadata"]["name"] == "podium-settings"]
    configuration = scheduler_configuration(made)
    for each in (node("empty"), node("used"), bound(gpu_pod("old"), "used")):
        api.create(each)
    asked = gpu_pod("asked", schedulerName="podium-scheduler")
    with installed(plane, tmp_path, values):
        access = as_account(plane, tmp_path / "account")
        own = {
            name: value
            for name, value in settings.items()
            if name not in ("PODIUM_SERVE_HOST", "PODIUM_SERVE_PORT", "PODIUM_STORE_URL",
                            "PODIUM_COMPILE_CACHE")
        }  # fmt: skip
        kubeconfig = str(tmp_path / "account" / "kubeconfig")
        with served(tmp_path, **own, PODIUM_EXTENDER_KUBECONFIG=kubeconfig) as podium:
            configuration["extenders"][0]["urlPrefix"] = f"{podium.url}/extender"
            configuration["extenders"][0]["httpTimeout"] = "5s"  # the machine may be busy
            configuration["clientConnection"]["kubeconfig"] = kubeconfig
            scheduler = account_plane(plane, access, tmp_path / "account")
            with scheduler.scheduler(configuration):
                api.create(asked)
                assert api.wait_until_scheduled(asked) == "empty"
            metrics = podium.get("/metrics").body.decode()
    assert 'podium_extender_duration_seconds_count{verb="prioritize"} 1.0' in metrics
    lists = re.search(r"^podium_extender_lists (\S+)$", metrics, re.MULTILINE)
    assert 4 <= float(lists[1]) <= len(RESOURCES)  # one for each kind that the cluster has
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/podium-scheduler"
    assert api.ask("GET", lease)["spec"]["leaseTransitions"] == 0
    log = scheduler.logs["kube-scheduler"].read_text()
    assert "forbidden" not in log


def account_plane(plane, access, folder):
    """Gives a control plane whose programs act with another account."""
    return ControlPlane(plane.programs, folder, access, plane.feature_gates, api=KubeApi(access))
