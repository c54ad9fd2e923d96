"""The extender behind the one address of the service, on a cluster that tests write."""

import asyncio
import io
import json

import pytest

from podium.errors import PodiumError
from podium.service.extender import component
from podium.service.http.app import create_app
from podium.service.http.logs import Log
from podium.service.start import compose
from podium.settings import load_settings
from podium.store import open_store
from support.extender import args
from support.found import FOUND, found_run
from support.kubelike import gpu_node, gpu_pod, live
from support.observed import wait_until
from support.served_extender import Cluster, Served
from support.service import JSON

OWN = FOUND.replace("7", "8")
NODES = [gpu_node(name) for name in "abc"]
OLD = [live(gpu_pod(f"old-{i}", 1 + i % 2), f"o{i}", "b") for i in range(2)]


@pytest.fixture
def cluster():
    return Cluster(*NODES, *OLD)


@pytest.fixture
def served(tmp_path, cluster):
    with Served(tmp_path, cluster, policy="best-fit").start() as made:
        yield made


def test_pods_are_scored_over_http(served, cluster):
    ready = {"status": "ready", "policy": "best-fit", "validated": "unknown", "slow_policies": ""}
    assert served.get("/readyz").json == ready
    assert served.prioritize(live(gpu_pod("p"), "u")) == {"b": 1000, "a": 999, "c": 999}
    assert cluster.is_open


def test_before_and_after_its_time_no_node_is_preferred(tmp_path, cluster):
    with Served(tmp_path, cluster, policy="best-fit") as service:
        assert service.prioritize(live(gpu_pod("p"), "u")) == {"a": 0, "b": 0, "c": 0}
        assert service.get("/readyz").status == 503
        service.start()
        assert service.prioritize(live(gpu_pod("p"), "u"))["b"] == 1000
        service.runner.run(service.components.stop())
        assert service.prioritize(live(gpu_pod("p"), "u")) == {"a": 0, "b": 0, "c": 0}
    assert not cluster.is_open


def test_a_silent_api_server_makes_it_unready_and_neutral(served, cluster):
    cluster.age = 181.0
    reply = served.get("/readyz")
    assert (reply.status, reply.error.code) == (503, "unavailable")
    assert "silent for 181 s" in reply.error.message
    assert served.prioritize(live(gpu_pod("p"), "u")) == {"a": 0, "b": 0, "c": 0}
    cluster.age = 1.0
    assert served.prioritize(live(gpu_pod("p"), "u"))["b"] == 1000


def test_a_watch_that_has_ended_makes_it_unready_and_neutral(served, cluster):
    cluster.age = float("inf")
    reply = served.get("/readyz")
    assert (reply.status, reply.error.message) == (
        503,
        "extender is not ready: a watch has ended",
    )
    assert served.prioritize(live(gpu_pod("p"), "u")) == {"a": 0, "b": 0, "c": 0}
    text = served.get("/metrics").body.decode()
    assert "podium_extender_failing_watches 1.0" in text.splitlines()
    assert "podium_extender_unreadable_objects 4.0" in text.splitlines()


def test_it_lives_while_the_api_server_is_silent_and_not_once_a_watch_has_ended(served, cluster):
    cluster.age = 5000.0
    assert served.get("/readyz").status == 503
    assert served.get("/healthz").json == {"status": "healthy"}
    cluster.failure = KeyError("secret")
    reply = served.get("/healthz")
    assert (reply.status, reply.error.message) == (503, "extender is beyond recovery: KeyError")
    assert "restart" in reply.error.hint


def test_nodes_that_cannot_be_modelled_are_counted(served, cluster):
    cluster.state.apply("Node", "ADDED", gpu_node("large", 17))
    served.prioritize(live(gpu_pod("p"), "u"))  # what changed is worked out when somebody asks
    lines = served.get("/metrics").body.decode().splitlines()
    assert "podium_extender_unmodelled_nodes 1.0" in lines
    assert "podium_extender_nodes 3.0" in lines


def test_what_becomes_of_the_cluster_is_told(tmp_path, cluster):
    with Served(tmp_path, cluster, policy="best-fit", shadow="worst-fit", twin=True) as service:
        assert service.start().get("/v1/outcome").json == {"schedulers": []}
        service.prioritize(live(gpu_pod("p", 4), "u"))
        cluster.state.apply("Pod", "ADDED", live(gpu_pod("p", 4), "u"))
        list(service.extender.outcome.advance())
        told = {each["scheduler"]: each for each in service.get("/v1/outcome").json["schedulers"]}
        lines = service.get("/metrics").body.decode().splitlines()
    held = {name: each["gpus_allocated"] for name, each in told.items()}
    assert held == {"cluster": 3.0, "worst-fit (shadow)": 7.0, "policy": 7.0, "baseline": 7.0}
    assert told["cluster"]["gpus_free"] == {"stranded": 0.0, "broken": 0.0, "idle": 9.0}
    assert told["cluster"]["pods"][0]["waiting"] == 1
    assert 'podium_cluster_gpus_allocated{scheduler="cluster"} 3.0' in lines
    assert 'podium_cluster_gpus_allocated{scheduler="worst-fit (shadow)"} 7.0' in lines


def test_figures_come_by_themselves(tmp_path, cluster):
    with Served(tmp_path, cluster, policy="best-fit").start() as service:

        async def come():
            while not service.extender.outcome.accounts:
                await asyncio.sleep(0.01)

        service.runner.run(asyncio.wait_for(come(), 120))
        assert service.get("/v1/outcome").json["schedulers"][0]["gpus"] == 12


@pytest.mark.parametrize("verb", ["filter", "bind"])
def test_other_verbs_are_there_only_if_they_are_switched_on(tmp_path, cluster, served, verb):
    assert served.ask("POST", f"/extender/{verb}", b"{}", JSON).status == 404
    with Served(tmp_path, cluster, policy="best-fit", **{verb: True}).start() as service:
        assert service.ask("POST", f"/extender/{verb}", b"{}", JSON).status == 200


def test_a_pod_is_bound_with_its_gpus(tmp_path, cluster):
    with Served(tmp_path, cluster, policy="best-fit", bind=True).start() as service:
        cluster.state.apply("Pod", "ADDED", live(gpu_pod("p"), "u"))
        service.prioritize(live(gpu_pod("p"), "u"))
        sent = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "b"}
        reply = service.post("/extender/bind", sent)
    assert reply.json == {"Error": ""}
    assert cluster.bound == [("p", "b", (3,))]


def test_a_recent_pod_is_explained(served):
    served.prioritize(live(gpu_pod("p"), "u"))
    told = served.get("/v1/explain/default/p").json
    assert (told["best"], told["runner_up"], told["points"]["b"]) == ("b", "a", 1000)
    missing = served.get("/v1/explain/default/other")
    assert (missing.status, missing.error.code) == (404, "not_found")
    assert "kube-scheduler asked about" in missing.error.hint


@pytest.mark.parametrize("is_on", [True, False])
def test_events_are_written_where_they_are_switched_on(tmp_path, cluster, is_on):
    with Served(tmp_path, cluster, policy="best-fit", events=is_on).start() as service:
        service.prioritize(live(gpu_pod("p"), "u"))

        async def bind():
            cluster.state.apply("Pod", "ADDED", live(gpu_pod("p"), "u", "b"))
            for _ in range(20):
                await asyncio.sleep(0)

        service.runner.run(bind())
        text = service.get("/metrics").body.decode()
    said = (
        "best-fit preferred b (1,000 points) of 3 feasible nodes; next a (999 points); bound there"
    )
    assert [each["message"] for each in cluster.events] == ([said] if is_on else [])
    assert ('podium_extender_events_total{outcome="written"} 1.0' in text) == is_on


def test_figures_are_those_of_what_happened(served, cluster):
    served.prioritize(live(gpu_pod("p"), "u"))

    async def bind():
        cluster.state.apply("Pod", "ADDED", live(gpu_pod("p"), "u", "b"))

    served.runner.run(bind())
    text = served.get("/metrics").body.decode()
    for line in (
        'podium_extender_duration_seconds_count{verb="prioritize"} 1.0',
        'podium_extender_binds_total{node="best"} 1.0',
        "podium_extender_lists 2.0",
        "podium_extender_nodes 3.0",
        "podium_extender_pods 3.0",
        "podium_extender_assumed_pods 0.0",
        "podium_extender_state_age_seconds 0.0",
        "podium_extender_recent_pods 3.0",
    ):
        assert line in text.splitlines(), line


def test_pods_that_are_there_already_are_the_first_demand(served):
    shapes = served.extender.verbs.prioritizer.scorer.shapes
    assert sorted(shapes.pods["gpu_count"].tolist()) == [1, 2]


def test_a_table_is_prepared_again_before_the_pod_is_scored_that_makes_it_due(tmp_path, cluster):
    with Served(tmp_path, cluster, policy="fgd", shadow="mlp").start() as service:
        service.prioritize(live(gpu_pod("p", 4), "u"))
        verbs = service.extender.verbs
        shapes = verbs.prioritizer.scorer.shapes
        service.runner.run(asyncio.sleep(0))  # shadows score once the answer is on its way
        assert verbs.shadows[0].shapes is shapes
    assert shapes.pods["gpu_count"].tolist()[-1] == 4


def test_a_policy_is_compiled_before_anybody_asks(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("def score(pod, node):\n    return node.gpu_count\n")
    with Served(tmp_path, Cluster(), policy=str(file)).start() as service:
        assert service.extender.verbs.prioritizer.scorer.policy.compiled


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Is the folder of a run that nobody promoted."""
    return found_run(tmp_path / "runs", monkeypatch)


def info_lines(service):
    text = service.get("/metrics").body.decode()
    return [line for line in text.splitlines() if line.startswith("podium_extender_policy_info{")]


def logged(service):
    """Reads the log up to the end of the start: a thread writes it."""
    wait_until(lambda: '"ready"' in service.lines.getvalue())
    return [json.loads(line) for line in service.lines.getvalue().splitlines()]


def test_a_run_that_was_not_promoted_ends_the_start(tmp_path, cluster, run):
    with Served(tmp_path, cluster, policy=f"run:{run.path.name}") as service:
        service.start()
        failure = service.components.failure
    assert failure.exit_code == 1
    assert "run:ab12 is not validated: it was not promoted" in failure.message
    assert "podium search promote ab12" in failure.hint
    assert "extender.unvalidated" in failure.hint


def test_it_is_marked_wherever_it_scores_all_the_same(tmp_path, cluster, run):
    name = f"run:{run.path.name}"
    with Served(tmp_path, cluster, policy=name, unvalidated=True).start() as service:
        service.prioritize(live(gpu_pod("p"), "u"))
        assert service.get("/v1/explain/default/p").json["validated"] == "no"
        assert service.get("/readyz").json["validated"] == "no"
        told = {"policy": name, "validated": "no", "shadow": {}}
        assert service.get("/").json["config"] == told
        assert info_lines(service) == [
            f'podium_extender_policy_info{{policy="{name}",role="active",validated="no"}} 1.0'
        ]
        warning, ready = logged(service)
    assert (warning["level"], warning["role"]) == ("warning", "active")
    assert warning["problem"] == "it was not promoted"
    assert told.items() <= ready.items()


def test_any_policy_may_be_a_shadow_under_its_own_name(tmp_path, cluster, run):
    (tmp_path / "mine.py").write_text(OWN)
    shadow = f"run:{run.path.name}, {tmp_path / 'mine.py'}, fed-gpu, best-fit"
    with Served(tmp_path, cluster, policy="best-fit", shadow=shadow).start() as service:
        service.prioritize(live(gpu_pod("p"), "u"))
        assert set(service.get("/v1/explain/default/p").json["shadow"]) == {
            "run:ab12", "mine", "fed-gpu",
        }  # fmt: skip
        words = {"run:ab12": "no", "mine": "unknown", "fed-gpu": "yes"}
        assert service.get("/").json["config"]["shadow"] == words
        assert info_lines(service)[1:] == [
            f'podium_extender_policy_info{{policy="{name}",role="shadow",validated="{word}"}} 1.0'
            for name, word in words.items()
        ]
        assert (logged(service)[0]["role"], logged(service)[0]["policy"]) == ("shadow", "run:ab12")


def test_shadows_that_could_not_be_told_apart_end_the_start(tmp_path, cluster):
    (tmp_path / "best-fit.py").write_text(OWN)
    shadow = str(tmp_path / "best-fit.py")
    with Served(tmp_path, cluster, policy="best-fit", shadow=shadow) as service:
        service.start()
        told = "best-fit is the name of a policy that ships with Podium, and this is another"
        assert told in service.components.failure.message


def test_a_policy_of_nobody_known_is_told_apart_where_it_scores(tmp_path, cluster):
    (tmp_path / "mine.py").write_text(OWN)
    with Served(tmp_path, cluster, policy=str(tmp_path / "mine.py")).start() as service:
        warning, ready = logged(service)
        assert (warning["level"], warning["policy"]) == ("warning", "mine")
        assert warning["message"] == "nothing says whether a policy is validated"
        assert ready["validated"] == service.get("/readyz").json["validated"] == "unknown"
        assert service.get("/").json["config"]["validated"] == "unknown"
        assert info_lines(service) == [
            'podium_extender_policy_info{policy="mine",role="active",validated="unknown"} 1.0'
        ]


def test_a_policy_that_is_not_there_ends_the_start(tmp_path, cluster):
    with Served(tmp_path, cluster, policy="best-fti") as service:
        service.start()
        failure = service.components.failure
    assert isinstance(failure, PodiumError)
    assert "best-fit" in failure.hint
    assert "extender.policy" in failure.where


def test_routes_are_described(served):
    document = json.loads(json.dumps(served.app.openapi()))
    assert {"/extender/prioritize", "/v1/explain/{namespace}/{pod}"} <= set(document["paths"])
    assert "/extender/bind" not in document["paths"]
    told = document["paths"]["/extender/prioritize"]["post"]
    assert "0 to 1000" in told["description"]


def test_all_components_fit_behind_one_address(tmp_path):
    flags = {"serve.components": "learning,extender,webhook", "extender.policy": "best-fit"}
    settings = load_settings(
        {"store.url": str(tmp_path / "podium.db"), **flags}, environ={}, folder=tmp_path
    )
    log = Log(io.StringIO())
    with open_store(settings.store.url) as store:
        service = compose(settings, store, log.logger)
        app = create_app(service)
        assert [life.component.name for life in service.components] == [
            "learning", "extender", "webhook",
        ]  # fmt: skip
        paths = app.openapi()["paths"]
    assert {"/v1/score", "/score", "/extender/prioritize"} <= set(paths)
    log.close()


@pytest.mark.parametrize(
    ("client", "status"),
    [
        ("127.0.0.1", 200), ("127.8.0.1", 200), ("::1", 200), ("::ffff:127.0.0.1", 200),
        ("10.0.0.7", 403), ("fd00::7", 403), ("::ffff:10.0.0.7", 403), ("somebody", 403),
    ],
)  # fmt: skip
def test_verbs_can_be_kept_to_callers_on_a_loopback_address(tmp_path, client, status):
    sent = [{"type": "http.request", "body": args(gpu_pod("p", 1), "abc"), "more_body": False}]
    with Served(tmp_path, Cluster(*NODES), loopback_only=True).start() as served:
        asked = served.exchange("POST", "/extender/prioritize", JSON, sent, client)
        reply = served.runner.run(asked)
        probe = served.exchange("GET", "/readyz", {}, [{"type": "http.request"}], client)
        assert (reply.status, served.runner.run(probe).status) == (status, 200)
    if status == 403:
        assert (reply.error.code, "loopback" in reply.error.message) == ("forbidden", True)


def test_verbs_are_answered_to_anybody_unless_that_is_set(tmp_path):
    sent = [{"type": "http.request", "body": args(gpu_pod("p", 1), "abc"), "more_body": False}]
    with Served(tmp_path, Cluster(*NODES)).start() as served:
        asked = served.exchange("POST", "/extender/prioritize", JSON, sent, "10.0.0.7")
        assert served.runner.run(asked).status == 200


ENDLESS = """
import json

def score(pod, node):
    while pod.gpu_count == 3:
        json.dumps(1)  # it runs in plain Python, which can be ended
    return -node.cpu_milli_left
"""


@pytest.fixture
def endless(tmp_path):
    """Writes a policy that never ends for pods of three GPUs."""
    file = tmp_path / "endless.py"
    file.write_text(ENDLESS)
    return str(file)


def test_a_policy_that_never_ends_for_some_pods_holds_nobody_up(tmp_path, endless):
    none = {"a": 0, "b": 0, "c": 0}
    served = Served(tmp_path, Cluster(*NODES), policy=endless, ties="order")
    with served.start() as service:
        assert service.prioritize(live(gpu_pod("p"), "u"))["a"] == 1000
        assert service.prioritize(live(gpu_pod("q", 3), "v")) == none
        assert service.prioritize(live(gpu_pod("r"), "w")) == none  # it is busy
        lines = service.get("/metrics").body.decode().splitlines()
    slow = 'podium_extender_neutral_total{reason="slow",verb="prioritize"}'
    assert f"{slow} 2.0" in lines


def test_a_policy_that_never_ends_for_a_pod_that_is_there_starts_neutral(
    tmp_path, endless, monkeypatch
):
    monkeypatch.setattr(component, "FIRST_S", 0.1)
    old = live(gpu_pod("old", 3), "o", "b")
    with Served(tmp_path, Cluster(*NODES, old), policy=endless).start() as service:
        assert service.get("/readyz").json["slow_policies"] == "endless"
        assert "podium_extender_slow_policies 1.0" in service.get("/metrics").body.decode()
        assert set(service.prioritize(live(gpu_pod("p"), "u")).values()) == {0}
    service.log.close()
    assert "the policy is too slow" in service.lines.getvalue()


def test_a_shadow_that_never_ends_changes_no_answer(tmp_path, endless):
    served = Served(tmp_path, Cluster(*NODES), policy="best-fit", shadow=endless, ties="order")
    with served.start() as service:
        for number in range(3):
            pod = live(gpu_pod(f"p{number}", 3), f"u{number}")
            assert max(service.prioritize(pod).values()) == 1000
            service.runner.run(asyncio.sleep(0))
    service.log.close()
    assert "a shadow policy failed" in service.lines.getvalue()


def test_a_shadow_that_never_ends_has_a_twin_that_holds_nobody_up(tmp_path, endless):
    waiting = [live(gpu_pod(f"w{number}", 3), f"w{number}") for number in range(3)]
    served = Served(tmp_path, Cluster(*NODES, *waiting), policy="best-fit", shadow=endless)
    with served.start() as service:
        for _ in range(2):
            assert all(each is None for each in service.extender.outcome.advance())
        names = [each.scheduler for each in service.extender.outcome.accounts]
    assert names == ["cluster", "endless (shadow)"]


@pytest.mark.parametrize("policy", ["best-fit", "round-robin"])
def test_the_rehearsal_leaves_no_trace(tmp_path, policy):
    with Served(tmp_path, Cluster(*NODES), policy=policy).start() as service:
        lines = service.get("/metrics").body.decode().splitlines()
        assert not service.extender.state.notes
        first = service.prioritize(live(gpu_pod("p"), "u"))
    assert "podium_extender_assumed_pods 0.0" in lines
    assert "podium_extender_recent_pods 0.0" in lines
    assert 'podium_extender_duration_seconds_count{verb="prioritize"} 0.0' in lines
    assert max(first, key=first.get) == "a"


def test_only_learning_needs_a_store(tmp_path):
    flags = {"serve.components": "extender,webhook", "extender.policy": "best-fit"}
    settings = load_settings(flags, environ={}, folder=tmp_path)
    log = Log(io.StringIO())
    names = [life.component.name for life in compose(settings, None, log.logger).components]
    assert names == ["extender", "webhook"]
    log.close()


def test_a_cluster_without_nodes_starts(tmp_path):
    waiting = live(gpu_pod("old"), "o")
    with Served(tmp_path, Cluster(waiting), policy="best-fit", ties="order").start() as service:
        assert service.get("/readyz").status == 200
        assert service.prioritize(live(gpu_pod("p"), "u"), []) == {}
        for node in NODES:
            service.extender.state.apply("Node", "ADDED", node)
        assert service.prioritize(live(gpu_pod("p"), "u"))["a"] == 1000
