import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from podium.service.http.metrics import MOST_LABELS, OTHER, Metrics
from podium.service.learning.metrics import LearningMetrics
from support.service import OBSERVE, SCORE, Service


@pytest.fixture
def service(tmp_path):
    with Service(tmp_path, {"online.exploration_cap": 0.1}) as made:
        yield made


def metrics_of(service):
    """Reads the metrics as Prometheus does."""
    reply = service.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(reply.body.decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_the_effective_configuration_is_shown(service):
    told = service.get("/").json
    assert told["service"] == "podium"
    assert {
        "lambda_uncertainty", "beta_exploration", "gamma_interference", "exploration_cap",
        "enable_interference", "enable_sinkhorn",
    } <= set(told["config"])  # fmt: skip
    assert told["config"]["exploration_cap"] == 0.1
    assert told["settings"]["serve.port"] == 8080
    assert told["settings"]["serve.token"] is None


def test_the_password_of_the_store_is_not_shown(service):
    from dataclasses import replace

    url = "postgresql://ada:secret@db/podium"
    service.composed.settings = replace(
        service.settings, store=replace(service.settings.store, url=url)
    )
    assert service.get("/").json["settings"]["store.url"] == "postgresql://ada:********@db/podium"


def test_probes_have_no_side_effects(service):
    before = service.state()
    for _ in range(3):
        assert service.get("/healthz").json == {"status": "healthy"}
        assert service.get("/readyz").json == {"status": "ready", "store": "ok"}
        service.get("/metrics")
        service.get("/")
    assert service.state() == before


def test_decisions_and_observations_are_counted(service):
    service.post("/v1/score", {**SCORE, "candidate_gpu_types": ["A100-80GB"]})
    service.post("/v1/observe", OBSERVE)
    for _ in range(3):
        service.post("/v1/score", {**SCORE, "candidate_gpu_types": ["A100-80GB"]})
    found = metrics_of(service)
    decided = "podium_online_decisions_total"
    gpu = ("gpu_type", "A100-80GB")
    assert found[decided, (("decision_type", "forced"), gpu)] == 1
    assert found[decided, (("decision_type", "exploitation"), gpu)] == 3
    assert found["podium_online_observed_total", (gpu, ("job_type", "train-bert"))] == 1
    assert found["podium_online_scoring_seconds_count", ()] == 4
    assert found["podium_online_exploration_ratio", ()] == 0
    assert found["podium_online_uncertainty_seconds", ()] > 0
    assert found["podium_online_exploration_price_ratio", ()] == 0
    assert found["podium_online_regret_ratio", ()] == 0  # there was no other candidate
    assert not any(name.startswith("scheduler_") for name, _ in found)
    assert found["podium_observations", ()] == found["podium_learned_id", ()] == 1
    assert found["podium_job_types", ()] == found["podium_pairs", ()] == 1
    assert found["podium_refused", ()] == 0
    route = (("route", "/v1/score"), ("status", "200"))
    assert found["podium_request_duration_seconds_count", route] == 4
    assert found["podium_observe_commit_seconds_count", ()] == 1


def test_figures_have_the_names_of_earlier_agents_as_well_if_asked(tmp_path):
    with Service(tmp_path, {"online.legacy_metrics": True}) as service:
        service.post("/v1/score", {**SCORE, "candidate_gpu_types": ["A100-80GB"]})
        service.post("/v1/observe", OBSERVE)
        found = metrics_of(service)
    gpu, job = ("gpu_type", "A100-80GB"), ("job_type", "train-bert")
    assert found["scheduler_decisions_total", (("decision_type", "forced"), gpu)] == 1
    assert found["scheduler_observe_events_total", (gpu, job)] == 1
    assert found["scheduler_scoring_duration_seconds_count", ()] == 1
    for old, new in (
        ("exploration_ratio", "exploration_ratio"),
        ("avg_uncertainty", "uncertainty_seconds"),
        ("regret_estimate", "exploration_price_ratio"),
    ):
        assert found[f"scheduler_{old}", ()] == found[f"podium_online_{new}", ()]


@pytest.mark.parametrize("is_legacy", [True, False])
def test_no_series_is_named_twice(tmp_path, is_legacy):
    with Service(tmp_path, {"online.legacy_metrics": is_legacy}) as service:
        _check_that_no_series_is_named_twice(service)


def _check_that_no_series_is_named_twice(service):
    service.post("/v1/score", SCORE)
    lines = [
        line.rpartition(" ")[0]
        for line in service.get("/metrics").body.decode().splitlines()
        if not line.startswith("#")
    ]
    assert len(lines) == len(set(lines))


def test_names_that_callers_choose_do_not_grow_the_metrics_for_ever():
    metrics, learning = Metrics(), LearningMetrics()
    metrics.add([learning._observed.counter])
    for number in range(MOST_LABELS + 50):
        learning.observed(f"job-{number}", "gpu", "")
    text = metrics.text().decode()
    assert text.count("podium_online_observed_total{") == MOST_LABELS + 1
    assert f'{{gpu_type="{OTHER}",job_type="{OTHER}"}} 50.0' in text


def test_the_documentation_fetches_nothing(service):
    reply = service.get("/docs")
    assert reply.headers["content-type"].startswith("text/html")
    page = reply.body.decode()
    assert "POST /v1/score" in page
    assert not re.search(r"<script[^>]|src=|https?://", page)


def test_the_description_for_machines_is_complete(service):
    document = service.get("/openapi.json").json
    assert set(document["paths"]) == {
        "/", "/healthz", "/readyz", "/metrics", "/docs", "/v1/score", "/v1/observe", "/v1/assign",
        "/v1/forget",
    }  # fmt: skip
    for path in ("/v1/score", "/v1/observe", "/v1/assign", "/v1/forget"):
        replies = document["paths"][path]["post"]["responses"]
        assert {"200", "400", "401", "408", "409", "413", "415", "422", "503"} <= set(replies)
        assert ("202" in replies) == (path in ("/v1/observe", "/v1/forget"))
        for status, reply in replies.items():
            if status not in ("200", "202"):
                schema = reply["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/ErrorReply"}
