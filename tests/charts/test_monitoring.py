"""Alerts and the dashboard ask for figures that exist, and alerts fire when they should."""

import io
import json
import re
import shutil
import subprocess
from dataclasses import dataclass

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from podium.service.extender.component import Extender
from podium.service.extender.outcome import Outcome
from podium.service.http.logs import Log
from podium.settings import load_settings
from support.helm import LEARNING, NAMESPACE, ROOT, of_kind, rendered
from support.service import Service

# Of kube-scheduler v1.36.4, and what Prometheus itself adds.
OF_OTHERS = {"scheduler_schedule_attempts_total", "scheduler_pending_pods", "up"}
FUNCTIONS = {
    "rate",
    "avg_over_time",
    "delta",
    "unless",
    "absent",
    "histogram_quantile",
    "time",
    "label_values",
    "namespace",
}
OWN = f'job="podium",namespace="{NAMESPACE}"'
TARGET_LABELS = {"job", "namespace", "pod", "endpoint", "le"}


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    made = rendered(LEARNING, tmp_path_factory.mktemp("values"))
    return of_kind(made, "PrometheusRule")["spec"]


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory):
    made = rendered({}, tmp_path_factory.mktemp("values"))
    return json.loads(of_kind(made, "ConfigMap", "-dashboard")["data"]["podium.json"])


@pytest.fixture(scope="module")
def extender_figures(tmp_path_factory):
    """Lists the figures of the extender with their labels."""
    settings = load_settings(environ={}, folder=tmp_path_factory.mktemp("settings"))
    log = Log(io.StringIO())
    extender = Extender(settings, log.logger, None)
    found = {}
    for each in extender.collectors():
        listed = each.collect() if isinstance(each, Outcome) else [each]
        found |= {family_name(family): {*family._labelnames} for family in listed}
    log.close()
    return found


def family_name(family):
    return getattr(family, "_name", None) or family.name


@pytest.fixture(scope="module")
def other_figures(tmp_path_factory):
    """Lists the figures of all requests and of online learning."""
    with Service(tmp_path_factory.mktemp("service")) as service:
        text = service.get("/metrics").body.decode()
    return {each.name for each in text_string_to_metric_families(text)}


@dataclass(frozen=True)
class Asked:
    """Is a figure in an expression, with the labels by which it is chosen."""

    name: str
    labels: frozenset


def asked_in(expression):
    """Lists the figures that an expression of PromQL asks for."""
    bare = re.sub(r"\[[^]]*\]|by \([^)]*\)", "", expression)
    for name, chosen in re.findall(r"([a-z_]{4,}|up)(\{[^}]*\})?", re.sub(r'"[^"]*"', '""', bare)):
        if name not in FUNCTIONS:
            yield Asked(name, frozenset(re.findall(r"(\w+)=", chosen)))


def expressions(rules, dashboard):
    yield from (rule["expr"] for group in rules["groups"] for rule in group["rules"])
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    queries = [each for each in dashboard["templating"]["list"] if each["type"] == "query"]
    yield from (each["definition"].replace(", job)", "").replace(", namespace)", "") + "]"
                for each in queries)  # fmt: skip


def base(name):
    return re.sub(r"_(total|count|bucket|sum)$", "", name)


def test_only_figures_that_exist_are_asked_for(rules, dashboard, extender_figures, other_figures):
    asked = {each.name for text in expressions(rules, dashboard) for each in asked_in(text)}
    known = {*extender_figures, *other_figures}
    assert {name for name in asked - OF_OTHERS if base(name) not in known} == set()
    assert asked >= {"podium_extender_duration_seconds_count", "up", "podium_store_trouble_seconds"}


def test_figures_are_chosen_and_summed_by_labels_that_they_have(rules, dashboard, extender_figures):
    for text in expressions(rules, dashboard):
        for each in asked_in(text):
            labels = extender_figures.get(base(each.name))
            if labels is not None:
                summed = {label.strip() for group in re.findall(r"by \(([^)]*)\)", text)
                          for label in group.split(",")}  # fmt: skip
                assert each.labels | summed <= labels | TARGET_LABELS, text


def test_every_figure_of_the_extender_is_on_the_dashboard(dashboard, extender_figures):
    text = json.dumps(dashboard)
    assert [name for name in extender_figures if name not in text] == []


def test_the_dashboard_is_one_that_grafana_reads(dashboard):
    panels = dashboard["panels"]
    assert len({each["id"] for each in panels}) == len(panels)
    places = {(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels}
    assert len(places) == len(panels)
    variables = {each["name"] for each in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)\b", json.dumps(panels)))
    assert used <= variables
    shown = [each for each in panels if each["type"] != "row"]
    assert all(target["expr"] for each in shown for target in each["targets"])


def test_what_becomes_of_the_cluster_has_a_row_of_its_own(dashboard, extender_figures):
    places = [(each["gridPos"]["y"], each) for each in dashboard["panels"]]
    ((start, _),) = [each for each in places if each[1]["type"] == "row"]
    below = json.dumps([each for y, each in places if y > start])
    outcome = {name for name in extender_figures if name.startswith("podium_cluster_")}
    assert outcome == {base(name) for name in re.findall(r"podium_\w+", below)}


@pytest.fixture(scope="module")
def promtool(rules, tmp_path_factory):
    """Runs promtool beside a file with the rules."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not there: tools/fetch_promtool.sh FOLDER puts it into a folder")
    folder = tmp_path_factory.mktemp("rules")
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))

    def run(*arguments):
        return subprocess.run(
            ["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )

    run.folder = folder
    return run


def test_prometheus_finds_nothing_wrong_with_the_rules(promtool):
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 rules found" in done.stdout


ATTEMPTS = f'scheduler_schedule_attempts_total{{{OWN},result="scheduled"}}'
ASKED = f'podium_extender_duration_seconds_count{{{OWN},pod="a",verb="prioritize"}}'
NEUTRAL = f'podium_extender_neutral_total{{{OWN},pod="a",reason="stale",verb="prioritize"}}'
BINDS = f'podium_extender_binds_total{{{OWN},pod="a",node="%s"}}'
BUCKET = f'podium_extender_duration_seconds_bucket{{{OWN},pod="a",verb="prioritize",le="%s"}}'
AGE = f'podium_extender_state_age_seconds{{{OWN},pod="a"}}'
LISTS = f'podium_extender_lists{{{OWN},pod="a"}}'
ALLOCATED = f'podium_cluster_gpus_allocated{{{OWN},pod="%s",scheduler="%s"}}'
STORE = f'podium_store_trouble_seconds{{{OWN},pod="a"}}'
UP = f'up{{{OWN},endpoint="http",pod="%s"}}'
HOURS = 150  # minutes
PATIENT = {"PodiumNotHelping": 450}  # minutes, of alerts that take longer

CASES = {
    "PodiumNotAsked": [
        ({ATTEMPTS: "0+60x150"}, True),
        ({ATTEMPTS: "0+60x150", ASKED: "5x150"}, True),
        ({ATTEMPTS: "0+60x150", ASKED: "0+60x150"}, False),
        ({ATTEMPTS: "7x150"}, False),  # nothing is scheduled at all
    ],
    "PodiumAbsent": [
        ({}, True),
        ({UP % "a": "0x150", UP % "b": "0x150"}, True),
        ({UP % "a": "0x150", UP % "b": "1x150"}, False),
    ],
    "PodiumSlow": [
        ({BUCKET % "0.1": "0+1x150", BUCKET % "0.25": "0+100x150", BUCKET % "+Inf": "0+100x150"},
         True),
        ({BUCKET % "0.1": "0+100x150", BUCKET % "0.25": "0+100x150", BUCKET % "+Inf": "0+100x150"},
         False),
    ],
    "PodiumStateOld": [
        ({AGE: "0+60x150"}, True),
        ({AGE: "-1x150"}, True),
        ({AGE: "59x150"}, False),
    ],
    "PodiumWatchBreaks": [
        ({LISTS: "0+2x150"}, True),
        ({LISTS: "0 20x149"}, False),
    ],
    "PodiumUnscored": [
        ({ASKED: "0+100x150", NEUTRAL: "0+10x150"}, True),
        ({ASKED: "0+100x150", NEUTRAL: "0+1x150"}, False),
        ({ASKED: "0+100x150"}, False),
    ],
    "PodiumOutvoted": [
        ({BINDS % "best": "0+60x150", BINDS % "other": "0+30x150"}, True),
        ({BINDS % "best": "0+60x150", BINDS % "other": "0+3x150"}, False),
    ],
    "PodiumNotHelping": [
        ({ALLOCATED % ("a", "baseline"): "103x450", ALLOCATED % ("a", "policy"): "100x450"}, True),
        ({ALLOCATED % ("a", "baseline"): "101x450", ALLOCATED % ("a", "policy"): "100x450"}, False),
        ({ALLOCATED % ("a", "baseline"): "0x450", ALLOCATED % ("a", "policy"): "0x450"}, False),
        ({ALLOCATED % ("a", "baseline"): "99x300 120x150",  # for less than six hours
          ALLOCATED % ("b", "policy"): "100x450"}, False),
    ],
    "PodiumStoreFails": [({STORE: "0+60x150"}, True), ({STORE: "0x150"}, False)],
}  # fmt: skip


def test_every_alert_is_tried(rules):
    assert [rule["alert"] for group in rules["groups"] for rule in group["rules"]] == [*CASES]


@pytest.mark.parametrize("page", ["on-call.md", "install.md"])
def test_every_alert_is_on_the_page_and_the_page_names_no_other(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert re.findall(r"^\| `(Podium\w+)` \|", text, re.MULTILINE) == [*CASES]


def test_where_podium_filters_pods_that_fail_are_asked_about_too(tmp_path):
    found = {}
    for is_on in (False, True):
        made = rendered({"extender": {"filter": is_on}}, tmp_path)
        rules = of_kind(made, "PrometheusRule")["spec"]["groups"][0]["rules"]
        found[is_on] = next(each for each in rules if each["alert"] == "PodiumNotAsked")
    assert 'result="scheduled"}' in found[False]["expr"]
    assert 'result=~"scheduled|error"}' in found[True]["expr"]
    assert "No pod is placed meanwhile" in found[True]["annotations"]["description"]


def test_whoever_is_on_call_turns_podium_off_by_one_command(tmp_path):
    text = (ROOT / "docs" / "on-call.md").read_text(encoding="utf-8")
    for command in (
        "helm upgrade podium charts/podium .* --set extender.enabled=false",
        "podium kube manifests --disabled | kubectl apply -f -",
    ):
        assert re.search(f"^{command}$".replace(" | ", r" \| "), text, re.MULTILINE)
    off = {"extender": {"enabled": False}}
    alerts = of_kind(rendered(off, tmp_path), "PrometheusRule")["spec"]["groups"][0]["rules"]
    assert not {"PodiumNotAsked", "PodiumNotHelping"} & {each["alert"] for each in alerts}


@pytest.mark.parametrize("alert", CASES)
def test_an_alert_fires_when_it_should_and_only_then(promtool, alert):
    for number, (series, is_firing) in enumerate(CASES[alert]):
        # What is not asked about is compared as a whole, so only whether there is one is asked.
        query = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
        test = {
            "interval": "1m",
            "input_series": [{"series": key, "values": value} for key, value in series.items()],
            "promql_expr_test": [
                {"expr": query, "eval_time": f"{PATIENT.get(alert, HOURS)}m",
                 "exp_samples": [{"labels": "{}", "value": int(is_firing)}]}
            ],
        }  # fmt: skip
        document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
        (promtool.folder / "test.yaml").write_text(yaml.safe_dump(document))
        done = promtool("test", "rules", "test.yaml")
        assert done.returncode == 0, f"case {number} of {alert}: {done.stdout}{done.stderr}"
