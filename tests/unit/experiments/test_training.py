from dataclasses import replace
from pathlib import Path

import pytest

from podium.errors import InputError, UnknownName, UsageError
from podium.evaluation.cases import TrainingSet
from podium.evaluation.splits import BY_SEED, BY_TIME, VALIDATION, Split
from podium.experiments.listener import Listener
from podium.experiments.promote import PromotionRequest, held_out_cases, rule_of, worth_of
from podium.experiments.training import CasesRequest, fitness_of, training_set
from podium.policies import load
from podium.search.run.plan import RunPlan
from podium.settings import load_settings
from podium.traces import save_trace
from podium.traces.catalogue import LoadOptions, load_trace
from podium.traces.trace import Trace

BUSY = 512.0  # as many times as fast, pods of the small trace wait for each other


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Works in a folder with a trace of one's own: whole, in two files, and without times."""
    monkeypatch.chdir(tmp_path)
    trace = load_trace("openb", LoadOptions(seed=3, nodes=6, pods=120))
    save_trace(trace, Path("mine.yaml"))
    save_trace(Trace("nodes", trace.cluster, None), Path("nodes.yaml"))
    save_trace(Trace("pods", None, trace.workload), Path("pods.yaml"))
    timeless = replace(trace.workload, arrival_s=None, duration_s=None)
    save_trace(Trace("timeless", trace.cluster, timeless), Path("timeless.yaml"))
    return tmp_path


def cases_of(**given):
    return training_set(load_settings(), CasesRequest(**{"seeds": 2, **given})).cases


def test_a_fitness_of_packing_holds_out_seeds_and_one_of_waiting_the_last_arrivals(own):
    packing = cases_of(traces=("mine.yaml",))
    waiting = cases_of(traces=("mine.yaml",), fitness="waiting", load=BUSY)
    assert {case.split for case in packing} == {BY_SEED}
    assert {case.split for case in waiting} == {BY_TIME}
    assert {case.load for case in waiting} == {BUSY}
    assert {case.trace for case in (*packing, *waiting)} == {str(own / "mine.yaml")}


@pytest.mark.usefixtures("own")
def test_a_mixture_never_trains_on_pods_that_its_replays_hold_out():
    cases = cases_of(traces=("mine.yaml",), fitness="mix:inflation=1,waiting=1", load=BUSY)
    assert {(case.protocol, case.split) for case in cases} == {
        ("inflation", BY_TIME),
        ("replay", BY_TIME),
    }


@pytest.mark.usefixtures("own")
def test_a_part_of_another_size_is_held_out_where_it_is_asked_for():
    assert {case.split for case in cases_of(traces=("mine.yaml",), held_out="time:0.5")} == {
        Split(0.5)
    }


def test_pods_meet_the_nodes_of_another_file(own):
    (case, _) = cases_of(traces=("pods.yaml",), cluster="nodes.yaml")
    assert (case.trace, case.cluster) == (str(own / "pods.yaml"), str(own / "nodes.yaml"))


@pytest.mark.usefixtures("own")
def test_a_cluster_alone_gets_its_own_pods_or_those_of_the_profile():
    assert {case.title for case in cases_of(cluster="mine.yaml")} == {"mine.yaml"}
    assert {case.title for case in cases_of(cluster="nodes.yaml")} == {"openb on nodes.yaml"}


@pytest.mark.parametrize(
    ("given", "told", "hint"),
    [
        ({"traces": ("timeless.yaml",), "fitness": "waiting"}, "no times", "--fitness inflation"),
        ({"traces": ("timeless.yaml",), "held_out": "time"}, "no arrival times", "seed"),
        ({"traces": ("mine.yaml",), "fitness": "waiting"}, "nobody waits on mine.yaml", "--load"),
        ({"traces": ("pods.yaml",)}, "has no nodes", "--cluster"),
        ({"traces": ("nodes.yaml",)}, "has no pods", "--trace"),
        ({"traces": ("mine.yaml",), "load": 8.0}, "--load has no effect", "waiting"),
        ({"traces": ("mine.yaml",), "held_out": "tme"}, "held out", "time:0.3"),
        ({"traces": ("openb",), "held_out": "time"}, "drawn afresh", "seed"),
        ({"held_out": "seed"}, "--held-out needs --trace", "--trace"),
        ({"load": 2.0}, "--load needs --trace", "--trace"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("own")
def test_what_cannot_be_trained_on_is_refused_with_what_to_do(given, told, hint):
    with pytest.raises(UsageError, match=told) as caught:
        cases_of(**given)
    assert hint in caught.value.hint


class Heard(Listener):
    """Keeps the notes."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


RUNNING = """---
apiVersion: v1
kind: Pod
metadata: {name: running}
spec:
  nodeName: openb-node-0000
  containers:
  - {name: main, resources: {requests: {cpu: 100m}}}
"""


@pytest.mark.usefixtures("own")
def test_what_is_not_used_of_a_file_is_noted_once_as_for_a_simulation():
    Path("noted.yaml").write_text(Path("mine.yaml").read_text() + RUNNING)
    heard, trace = Heard(), load_trace("noted.yaml", LoadOptions(state="history"))
    training_set(load_settings(), CasesRequest(traces=("noted.yaml",), seeds=2), heard)
    assert [note for note in trace.notes if note in heard.notes] == heard.notes
    told = "pods arrive anew on empty nodes: 1 that run, 0 that ran and 120 that wait"
    assert told in heard.notes


def validated(plan, *traces, **given):
    request = PromotionRequest("run", traces=traces, seeds=2, **given)
    return held_out_cases(load_settings(), plan, request)


def plan_of(**given):
    fitness = given.get("fitness", "inflation")
    return RunPlan(training_set(load_settings(), CasesRequest(seeds=2, **given)), fitness)


@pytest.mark.usefixtures("own")
def test_what_was_found_on_an_own_trace_is_validated_on_what_was_held_out_of_it():
    cases = validated(plan_of(traces=("pods.yaml",), cluster="nodes.yaml", held_out="time"))
    assert {case.title for case in cases} == {"pods.yaml on nodes.yaml"}
    assert {case.since for case in cases} == {0.7}
    assert all(case.seed in VALIDATION for case in cases)
    assert {case.is_perturbed for case in cases} == {False, True}
    assert len({case.digest for case in cases}) == 1
    assert cases[0].digest


def test_a_trace_of_the_run_and_a_published_one_can_be_named_together(own):
    cases = validated(plan_of(traces=("mine.yaml",)), "./mine.yaml", "openb")
    assert {case.trace for case in cases} == {str(own / "mine.yaml"), "openb"}


@pytest.mark.usefixtures("own")
def test_a_file_that_the_run_never_saw_is_validated_on_whole():
    cases = validated(plan_of(traces=("mine.yaml",)), "pods.yaml", cluster="nodes.yaml")
    assert {(case.title, case.split) for case in cases} == {("pods.yaml on nodes.yaml", BY_SEED)}


@pytest.mark.usefixtures("own")
def test_a_dump_that_the_run_never_saw_is_read_as_it_is_meant():
    flags = {"simulate.state": "empty", "simulate.duration": "2h", "simulate.topology": "aws"}
    request = PromotionRequest("run", traces=("mine.yaml",), seeds=2)
    cases = held_out_cases(load_settings(flags), plan_of(), request)
    assert {(case.state, case.duration, case.topology) for case in cases} == {
        ("empty", "2h", "aws")
    }


@pytest.mark.parametrize("flag", ["state", "duration", "topology"])
def test_how_a_dump_is_meant_needs_one(flag):
    values = {"state": "empty", "duration": "2h", "topology": "aws"}
    settings = load_settings({f"simulate.{flag}": values[flag]})
    with pytest.raises(UsageError, match=f"--{flag} needs --trace"):
        held_out_cases(settings, plan_of(), PromotionRequest("run"))


@pytest.mark.usefixtures("own")
def test_other_nodes_do_not_bring_trained_arrivals_back():
    plan = plan_of(traces=("mine.yaml",), held_out="time")
    cases = validated(plan, "mine.yaml", cluster="nodes.yaml")
    assert {(case.title, case.since) for case in cases} == {("mine.yaml on nodes.yaml", 0.7)}


@pytest.mark.usefixtures("own")
def test_a_run_on_published_traces_is_validated_as_ever():
    cases = validated(plan_of(traces=("openb:16",)))
    assert {case.trace for case in cases} == {"openb", "openb:16"}


@pytest.mark.usefixtures("own")
def test_a_trace_that_changed_after_the_search_is_noticed():
    plan = plan_of(traces=("mine.yaml",))
    save_trace(load_trace("openb", LoadOptions(seed=4, nodes=6, pods=120)), Path("mine.yaml"))
    with pytest.raises(InputError, match="changed"):
        validated(plan)


@pytest.mark.usefixtures("own")
def test_an_unknown_name_is_told():
    with pytest.raises(UnknownName, match='held-out trace "opnb"'):
        validated(plan_of(traces=("mine.yaml",)), "opnb")


def test_the_score_of_funsearch_is_trained_on_the_recorded_trace_and_then_on_draws(own):
    first, second = cases_of(traces=("mine.yaml",), fitness="funsearch")
    assert {case.protocol for case in (first, second)} == {"funsearch"}
    recorded = load_trace(str(own / "mine.yaml"), LoadOptions()).workload
    policy = load("first-fit")
    assert first.plan(policy).trace.names == recorded.names
    assert second.plan(policy).trace.names != recorded.names
    assert first.held_out().plan(policy).trace.names != recorded.names


def test_a_recorded_trace_that_is_held_out_is_trained_on_in_versions_alone(own):
    cases = cases_of(traces=("mine.yaml",), fitness="funsearch", held_out="recorded")
    recorded = load_trace(str(own / "mine.yaml"), LoadOptions()).workload
    policy = load("first-fit")
    seen = [case.plan(policy).trace.arrival_s.tolist() for case in cases]
    assert recorded.by_arrival().arrival_s.tolist() not in seen
    assert len({tuple(each) for each in seen}) == len(cases)
    assert not any(case.is_perturbed for case in cases)
    again = TrainingSet.from_object(TrainingSet(cases).as_object())
    assert again.cases == cases
    later = TrainingSet(cases).held_out().cases
    assert all(case.shift_s == cases[0].shift_s for case in later)
    assert "(version)" in cases[0].name


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(("trace", "fitness"), [("mine.yaml", "inflation"), ("openb", "funsearch")])
def test_where_nothing_is_trained_on_as_recorded_it_cannot_be_held_out(trace, fitness):
    with pytest.raises(UsageError, match="holds nothing out") as caught:
        cases_of(traces=(trace,), fitness=fitness, held_out="recorded")
    assert caught.value.where == "flag --held-out"


def test_an_objective_names_the_cases_that_it_needs(own):
    (own / "aim.py").write_text(
        'CASES = ("inflation", "replay")\ndef objective(run):\n    return 1.0\n'
    )
    name = fitness_of("inflation", own / "aim.py")
    cases = cases_of(traces=("mine.yaml",), fitness=name, load=BUSY)
    assert {case.protocol for case in cases} == {"inflation", "replay"}
    with pytest.raises(UsageError, match="exclude each other"):
        fitness_of("waiting", own / "aim.py")
    assert fitness_of("waiting", None) == "waiting"


def test_what_was_searched_by_funsearch_is_judged_by_it_beside_allocation():
    plan = plan_of(fitness="funsearch:40")
    rule = rule_of(plan, PromotionRequest("run"))
    assert (rule.figure, rule.aim) == ("fitness", "the fitness funsearch:40")
    cases = validated(plan)
    assert {(case.trace, case.protocol) for case in cases} == {
        ("openb:16", "funsearch"), ("openb:16", "replay"), ("openb", "inflation"),
    }  # fmt: skip
    assert all(case.seed in VALIDATION for case in cases)
    assert {case.protocol for case in validated(plan, "openb")} == {"funsearch", "inflation"}
    worth = worth_of(plan)
    figures = {"funsearch_score": 41.0, "funsearch_score_without_retries": 40.0,
               "funsearch_wait_mean_s": 80.0}  # fmt: skip
    assert worth(cases[0], figures, figures) == 38.0  # less 2 for a doubling of the wait
    assert worth(next(c for c in cases if c.protocol == "inflation"), {}, {}) is None


def test_what_was_searched_by_an_objective_is_judged_by_it(own):
    (own / "aim.py").write_text("def objective(run):\n    return run.placed['share'] / 2\n")
    plan = plan_of(fitness=fitness_of("inflation", own / "aim.py"))
    rule = rule_of(plan, PromotionRequest("run", incumbent="best-fit"))
    assert (rule.figure, rule.aim) == ("fitness", "the objective aim.py")
    inflated = next(case for case in validated(plan) if case.protocol == "inflation")
    assert worth_of(plan)(inflated, {"placed_share": 90.0}, {}) == 45.0


@pytest.mark.parametrize(
    ("fitness", "figure"),
    [("inflation", "allocation_130"), ("holding:84", "allocation_130"),
     ("waiting", "wait_mean_s"), ("fragmentation", "fragmentation"),
     ("mix:inflation=1,waiting=1", "allocation_130")],
)  # fmt: skip
def test_other_fitness_rules_are_judged_by_the_figure_they_are_about(fitness, figure):
    plan = plan_of(fitness=fitness)
    rule = rule_of(plan, PromotionRequest("run"))
    assert (rule.figure, rule.aim, worth_of(plan)) == (figure, "", None)
