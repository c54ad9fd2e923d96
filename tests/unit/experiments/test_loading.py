from pathlib import Path

import pytest

import podium
import support
from podium.errors import SettingsError, UsageError
from podium.evaluation.cases import Case, TrainingSet
from podium.experiments.case import Inputs, load_case
from podium.experiments.loading import load_options
from podium.experiments.search_plan import CasesRequest, training_set
from podium.policies import load
from podium.settings import load_settings
from support.manifests import write_dump_without_claims

DUMP = str(Path(support.__path__[0]) / "cluster_dump.yaml")


def options_of(**flags):
    return load_options(load_settings({f"simulate.{k}": v for k, v in flags.items()}))


def case_of(inputs=Inputs(), **flags):  # noqa: B008 - frozen
    return load_case(load_settings({f"simulate.{k}": v for k, v in flags.items()}), inputs)


def bound(workload):
    return sum(1 for node in workload.bound_to if node)


def test_a_dump_is_read_as_the_settings_say():
    found = options_of(state="EMPTY", duration="2h", topology="gcp", seed=3)
    assert (found.state, found.duration, found.topology) == ("empty", "2h", ("gcp",))
    assert found.seed == 3
    assert options_of(topology=" rack , ,zone").topology == ("rack", "", "zone")
    bare = options_of()
    assert (bare.state, bare.duration, bare.topology) == (None, None, ())


def test_the_environment_and_the_file_say_it_as_well(monkeypatch):
    monkeypatch.setenv("PODIUM_SIMULATE_STATE", "empty")
    Path("podium.toml").write_text('[simulate]\nduration = "90m"\n')
    found = options_of()
    assert (found.state, found.duration) == ("empty", "90m")


@pytest.mark.parametrize(
    ("flag", "value", "hint"),
    [
        ("state", "nwo", "did you mean now"),
        ("duration", "2 weeks", "give 90m, 2h or seconds"),
        ("topology", "awss", "did you mean aws"),
        ("topology", "a/b,c/d,e/f,g/h", "give the keys of rack, block, zone"),
        ("topology", " , ", "give aws"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_advice_whatever_the_trace(flag, value, hint):
    with pytest.raises((UsageError, SettingsError)) as caught:
        case_of(trace="openb:16", **{flag: value})
    assert caught.value.where == f"flag --{flag}, [simulate] {flag}"
    assert caught.value.hint.startswith(hint)


def test_the_state_decides_who_runs_already():
    now, empty = case_of(trace=DUMP, state="now"), case_of(trace=DUMP, state="empty")
    assert (bound(now.workload), bound(empty.workload)) == (6, 3)


def test_pods_that_run_on_nodes_of_another_cluster_stay_there():
    case = case_of(trace=DUMP, cluster="openb:16")
    assert (len(case.workload), bound(case.workload)) == (4, 0)
    assert any(note.endswith("where they fit, so left out: 1 pod") for note in case.notes)
    assert "bound to nodes that the cluster does not have, so left out: 7 pods" in case.notes


def test_a_cluster_that_none_of_the_running_pods_is_on_has_nothing_to_place():
    text = "kind: Pod\nmetadata: {name: a}\nspec: {nodeName: n, containers: [{}]}\n"
    Path("pods.yaml").write_text(text)
    with pytest.raises(UsageError, match="left out: 1 elsewhere") as caught:
        case_of(trace="pods.yaml", cluster="openb:16", state="now")
    assert caught.value.hint == "--state empty places pods anew that run on other nodes"
    assert len(case_of(trace="pods.yaml", cluster="openb:16", state="empty").workload) == 1


def test_options_of_a_dump_say_nothing_of_the_other_file():
    case = case_of(trace=DUMP, cluster="openb:16", state="now", topology="aws")
    assert "state is not honoured, this is not the dump of a cluster" not in case.notes
    assert "topology is not honoured, this is not the dump of a cluster" in case.notes


def test_who_judges_candidates_reads_the_dump_alike():
    flags = {"simulate.state": "empty", "simulate.duration": "2h", "simulate.topology": "aws"}
    request = CasesRequest(traces=(DUMP,), seeds=2)
    training = training_set(load_settings(flags), request)
    again = TrainingSet.from_object(training.as_object())
    assert again == training
    case = again.cases[0]
    assert (case.state, case.duration, case.topology) == ("empty", "2h", "aws")
    assert bound(case.read().workload) == 3
    told = "run times are those asked for: 2h"
    assert told in case.read().notes


def test_cases_that_say_nothing_of_dumps_are_written_without_it():
    written = TrainingSet((Case(),)).as_object()["cases"]
    assert list(written[0]) == [
        "trace", "nodes", "pods", "protocol", "ratio", "load", "seed", "is_perturbed", "folder",
    ]  # fmt: skip


@pytest.mark.parametrize("case", [Case("dump.yaml", is_perturbed=True), Case("dump.yaml", nodes=2)])
def test_a_part_of_a_dumps_cluster_has_its_taints_and_those_who_run_there(case):
    write_dump_without_claims(Path(case.trace))
    plan = case.plan(load("first-fit"))
    assert len(plan.cluster.taints) == len(plan.cluster) < 5
    names = dict.fromkeys(plan.cluster.names)
    whole = case.read().cluster
    of = dict(zip(whole.names, whole.taints, strict=True))
    assert plan.cluster.taints == tuple(of[name] for name in names)
    assert {node for node in plan.arrivals.bound_to if node} <= set(names)


def test_python_callers_say_it_too():
    trace = podium.load_trace(DUMP, state="empty", duration=90, topology=["a/rack", "", "a/zone"])
    assert bound(trace.workload) == 3
    assert "no node has the label a/rack of the chosen topology" in trace.notes
    assert "run times are those asked for: 90" in trace.notes
    with pytest.raises(podium.PodiumError) as caught:
        podium.load_trace(DUMP, state="nowe")
    assert (caught.value.where, caught.value.hint) == ("argument state", "did you mean now")
    with pytest.raises(podium.PodiumError, match="state cannot be set for a trace that is already"):
        podium.simulate(trace=trace, state="now")


def test_pods_of_a_cluster_without_run_times_can_be_given_some():
    node = "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 8, memory: 1Gi}}\n---\n"
    created = "creationTimestamp: '2026-03-01T12:00:00Z'"
    body = "spec: {containers: [{}]}"
    pod = f"kind: Pod\nmetadata: {{name: p, namespace: ml, {created}}}\n{body}\n"
    Path("dump.yaml").write_text(node + pod)
    with pytest.raises(UsageError, match="cannot be replayed") as caught:
        case_of(trace="dump.yaml")
    assert caught.value.hint.startswith("add --duration 2h, or use --protocol rounds")
    assert case_of(trace="dump.yaml", duration="2h").workload.duration_s.tolist() == [7200.0]
    assert case_of(trace="dump.yaml", protocol="rounds").protocol.name == "rounds"
