"""Pods of which too little is read are placed by nobody."""

from dataclasses import replace
from pathlib import Path

import pytest

import podium
from podium.errors import UndecidedError
from podium.evaluation.cases import Case
from podium.evaluation.demand import known
from podium.experiments.case import Inputs, load_case
from podium.experiments.explain import explain
from podium.model import PodSpec, Workload
from podium.policies import load
from podium.settings import load_settings
from podium.traces import load_trace
from podium.traces.trace import Doubt

NODE = """\
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 8, memory: 16Gi, nvidia.com/gpu: 2}}
---
"""
POD = """\
kind: Pod
metadata: {name: %s, namespace: ml}
spec:
  %s
  containers: [{name: main, resources: {limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: %d}}}]
---
"""
CLAIMS = "resourceClaims: [{name: gpu, resourceClaimTemplateName: missing}]"
VOLUMES = "volumes: [{name: data, persistentVolumeClaim: {claimName: missing}}]"
LEFT_OUT = "too little is read of what they ask for to know where they fit, so left out: 1 pod"
pytestmark = [
    pytest.mark.usefixtures("_warm_cache"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(params=[CLAIMS, VOLUMES])
def dump(request):
    """Writes two pods that wait; of one the dump lacks what it asks for."""
    path = Path("dump.yaml")
    path.write_text(NODE + POD % ("plain", "", 1) + POD % ("asks", request.param, 0))
    return str(path)


def settings_of(dump):
    return load_settings({"simulate.trace": dump, "simulate.protocol": "rounds"})


def test_they_are_left_out_of_a_simulation(dump):
    case = load_case(settings_of(dump), Inputs())
    assert case.workload.names == ("plain",)
    assert LEFT_OUT in case.notes


def test_the_command_that_adds_what_is_missing_is_told(dump):
    (told,) = [note for note in podium.fit(dump).notes if "prints them as well" in note]
    assert "`kubectl get nodes,pods," in told


def test_where_they_went_is_not_explained(dump):
    with pytest.raises(UndecidedError, match="where ml/asks would be placed is not known"):
        explain(settings_of(dump), Inputs(), load("fgd"), "ml/asks")
    assert explain(settings_of(dump), Inputs(), load("fgd"), "ml/plain").node == "n"


def test_nothing_is_left_where_too_little_is_read_of_all():
    Path("dump.yaml").write_text(NODE + POD % ("asks", CLAIMS, 0))
    with pytest.raises(podium.PodiumError, match="left out: 1 of which too little is read"):
        podium.simulate("fgd", "dump.yaml", protocol="rounds")


def test_a_search_counts_what_is_read_of_its_demand():
    pods = [POD % ("plain", "", 1), POD % ("stored", VOLUMES, 1), POD % ("asks", CLAIMS, 0)]
    Path("dump.yaml").write_text(NODE + "".join(pods))
    assert Case("dump.yaml").read().workload.names == ("plain",)
    # Of a history, volumes do not matter: whatever ran had its own.
    assert Case("dump.yaml", state="history").read().workload.names == ("plain", "stored")


def test_their_gangs_are_left_out_but_what_runs_keeps_its_room(dump):
    pods = [
        PodSpec(name, 1000, 1024, node=node, namespace="ml", gang="ring")
        for name, node in (("runs", "n"), ("asks", ""), ("plain", ""))
    ]
    alone = PodSpec("alone", 1000, 1024, namespace="ml")
    doubts = {("ml", "asks"): Doubt("why", is_of_yes=True)}
    workload = Workload.of([*pods, alone])
    found = known(replace(load_trace(dump), workload=workload, doubts=doubts))
    assert found.workload.names == ("runs", "alone")
