"""`podium kube explain` asks a service that runs in this process, over a port."""

import json
import re
import socket
from types import SimpleNamespace

import pytest

from podium.cli.main import app
from podium.kube.local.certificate import make_certificate
from support.found import found_run
from support.kubelike import gpu_node, gpu_pod, group, live
from support.served_extender import Cluster, Served, over_http
from support.service import Service

NODES = [gpu_node(name) for name in "abc"] + [gpu_node("d", 1)]
OLD = [live(gpu_pod("old"), "o", "b")]


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["kube", "explain", *map(str, arguments)])


@pytest.fixture
def cluster():
    return Cluster(*NODES, *OLD)


@pytest.fixture
def served(tmp_path, cluster):
    with Served(tmp_path, cluster, policy="best-fit", shadow="worst-fit").start() as made:
        yield made


@pytest.fixture
def url(served):
    with over_http(served) as address:
        yield address


def lines(done):
    """Reads the fields of the screen by their names."""
    assert done.exit_code == 0, done.stderr
    above = done.stdout.split("\n\n")[0]
    return dict(re.split("  +", line, maxsplit=1) for line in above.splitlines())


def test_a_pod_that_is_not_bound_yet_is_explained(run, served, url):
    served.prioritize(live(gpu_pod("p", 2), "u"), "abcd")
    done = run("default/p", "--url", url)
    told = lines(done)
    assert told["pod"] == "default/p"
    assert told["asks for"] == "1,000 milli CPU, 1,024 MiB, 2 GPUs"
    assert (told["policy"], told["offered"]) == ("best-fit", "4 nodes")
    assert told["preferred"] == "b, GPU 1-2; next a"
    assert told["bound to"] == "no node yet"
    assert told["without points"] == "1 node: not enough free GPUs"
    assert told["shadow"] == "worst-fit: a"
    assert "not offered" not in told
    table = done.stdout.split("\n\n")[1].splitlines()
    assert table[0].split()[:3] == ["node", "points", "score"]
    assert table[1].split()[:3] == ["b", "*", "1,000"]
    assert table[4].split()[:3] == ["d", "0", "none"]


def test_a_policy_that_is_not_validated_is_marked(run, tmp_path, cluster, monkeypatch):
    found_run(tmp_path / "runs", monkeypatch)
    flags = {"policy": "run:ab12", "unvalidated": True}
    with Served(tmp_path, cluster, **flags).start() as served, over_http(served) as url:
        served.prioritize(live(gpu_pod("p"), "u"))
        told = lines(run("default/p", "--url", url))
    assert told["policy"] == "run:ab12, which is not validated"


def test_where_a_pod_was_bound_is_compared_with_what_was_preferred(run, served, cluster, url):
    for name, node in (("p", "b"), ("q", "c")):
        served.prioritize(live(gpu_pod(name), name), "abc")
        served.prioritize(live(gpu_pod(name), name), "abc")
        served.runner.run(bound(cluster, name, node))
    assert lines(run("p", "--url", url))["bound to"] == "b, as preferred"
    told = lines(run("q", "-n", "default", "--url", url))
    assert told["bound to"] == "c, which has 999 points: other plugins outvoted the policy"
    assert told["scored at"].endswith(", the last of 2 times")
    assert told["not offered"] == "1 node: refused by another filter of kube-scheduler"


async def bound(cluster, name, node):
    cluster.state.apply("Pod", "ADDED", live(gpu_pod(name), name, node))


def test_the_domain_of_a_gang_is_named(run, tmp_path):
    racks = [
        gpu_node(name, labels={"topology.kubernetes.io/rack": f"rack-{name[0]}"})
        for name in ("a1", "a2", "b1")
    ]
    member = gpu_pod("p", 4, schedulingGroup={"podGroupName": "train"})
    cluster = Cluster(*racks, group("train", 2), live(member, "u"))
    with Served(tmp_path, cluster, policy="best-fit").start() as made, over_http(made) as address:
        made.prioritize(live(member, "u"), ["a1", "a2", "b1"])
        told = lines(run("p", "--url", address))
    assert told["gang"] == "default/train, preferably in rack rack-a"


def test_json_is_what_the_service_answers(run, served, url):
    served.prioritize(live(gpu_pod("p"), "u"))
    done = run("default/p", "--url", url, "--json")
    assert json.loads(done.stdout) == served.get("/v1/explain/default/p").json


def test_a_pod_that_nobody_asked_about_is_the_answer_no(run, url):
    done = run("ml/p", "--url", url)
    assert (done.exit_code, done.stdout) == (1, "")
    said = done.stderr.splitlines()
    assert said[0] == "error: nothing is known of pod ml/p"
    assert said[1] == f"  at:  {url}"
    assert "schedulerName" in said[2]


def test_a_service_without_the_extender_says_how_to_switch_it_on(run, tmp_path):
    with Service(tmp_path) as learning, over_http(learning) as address:
        done = run("p", "--url", address)
    assert done.exit_code == 3
    assert "it runs learning" in done.stderr
    assert 'try: start it with serve.components = "extender"' in done.stderr


def test_a_service_that_is_away_or_wants_a_token_is_missing(run, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    done = run("p", "--url", address)
    assert (done.exit_code, "does not answer: Connection refused" in done.stderr) == (3, True)
    assert "podium serve" in done.stderr
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    with Service(tmp_path, token="0123456789abcdef") as learning, over_http(learning) as address:
        refused = run("p", "--url", address)
        known = run("p", "--url", address, "--token-file", token)
    assert (refused.exit_code, "--token-file" in refused.stderr) == (3, True)
    assert "it runs learning" in known.stderr


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[" * 100_000, "is not Podium"),
        (b'{"candidates": 1, "points": [], "bound_to": {}}', "not one that this Podium knows"),
    ],
)
def test_an_answer_of_something_else_is_named(run, body, said):
    other = SimpleNamespace(get=lambda *_: SimpleNamespace(status=200, body=body))
    with over_http(other) as address:
        done = run("p", "--url", address)
    assert (done.exit_code, said in done.stderr) == (3, True), done.stderr


def test_the_service_of_the_settings_is_asked(run, served, url, monkeypatch):
    served.prioritize(live(gpu_pod("p"), "u"))
    monkeypatch.setenv("PODIUM_SERVE_HOST", "0.0.0.0")
    monkeypatch.setenv("PODIUM_SERVE_PORT", url.rpartition(":")[2])
    assert lines(run("p"))["policy"] == "best-fit"


def test_a_certificate_is_trusted_where_the_settings_name_it(run, served, tmp_path, monkeypatch):
    served.prioritize(live(gpu_pod("p"), "u"))
    certificate = make_certificate(tmp_path / "tls")
    with over_http(served, certificate) as address:
        stranger = run("p", "--url", address)
        monkeypatch.setenv("PODIUM_SERVE_TLS_CERT", str(certificate[0]))
        known = run("p", "--url", address)
        monkeypatch.setenv("PODIUM_SERVE_TLS_CERT", str(tmp_path / "none.pem"))
        missing = run("p", "--url", address)
    assert stranger.exit_code == 3
    assert "the certificate of the service is not trusted: self-signed" in stranger.stderr
    assert lines(known)["policy"] == "best-fit"
    assert (missing.exit_code, "check serve.tls_cert" in missing.stderr) == (2, True)


def test_somebody_else_at_the_address_is_recognised(run):
    class Other:
        def get(self, path, headers):
            del path, headers
            return type("Reply", (), {"status": 200, "body": b"<html></html>"})

    with over_http(Other()) as address:
        done = run("p", "--url", address)
    assert (done.exit_code, "not Podium" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a/b/c",), "is not the name of a pod"),
        (("/p",), "is not the name of a pod"),
        (("ml/p", "-n", "default"), "two namespaces are given"),
        (("p", "--url", "localhost:8080"), "is not an address"),
        (("p", "--url", "http://localhost:x"), "is not an address"),
    ],
)
def test_mistakes_are_refused(run, arguments, words):
    done = run(*arguments)
    assert (done.exit_code, words in done.stderr) == (2, True)


def test_terms_of_a_score_are_columns(run, tmp_path, cluster):
    with Served(tmp_path, cluster, policy="fed-gpu").start() as made, over_http(made) as address:
        made.prioritize(live(gpu_pod("p", 2), "u"), "abcd")
        done = run("p", "--url", address)
    titles, *rows = done.stdout.split("\n\n")[1].splitlines()
    assert titles.split()[:5] == ["node", "points", "score", "gpu_weight", "gpu_steps"]
    assert rows[3].split()[:5] == ["d", "0", "none", "-", "-"]
