import functools
import inspect
import json
import pydoc
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import podium
from podium.cli.main import app
from podium.errors import InputError, PodiumError, UnknownName, UsageError
from podium.experiments import face
from podium.model import Cluster, NodeSpec
from podium.policies import from_function, load
from podium.store import open_store
from podium.traces import save_trace

SMALL = {"trace": "openb:16", "pods": 200, "protocol": "inflation"}
CHEAP = """
import sys
import podium
dir(podium)
podium.__all__
podium.PodiumError
heavy = [name for name in ("numpy", "numba", "sqlalchemy", "typer", "rich") if name in sys.modules]
rooms = sorted(name for name in sys.modules if name.startswith("podium."))
print(heavy, rooms)
"""


def least_free(pod, node):  # noqa: ARG001
    return -sum(node.gpu_milli_left)


def test_importing_podium_imports_nothing_else():
    done = subprocess.run([sys.executable, "-c", CHEAP], capture_output=True, text=True, check=True)
    assert done.stdout == "[] ['podium.errors']\n"


def test_everything_that_is_promised_is_there():
    assert dir(podium) == sorted(podium.__all__)
    for name in podium.__all__:
        assert getattr(podium, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = podium.nothing


@pytest.mark.usefixtures("_warm_cache")
def test_a_simulation_is_that_of_the_command(runner):
    result = podium.simulate("fgd", seed=3, **SMALL)
    asked = ["simulate", "--policy", "fgd", "--trace", "openb:16", "--pods", "200"]
    told = runner.invoke(app, [*asked, "--protocol", "inflation", "--seed", "3", "--json"])
    assert json.loads(told.stdout)["digest"] == result.digest


@pytest.mark.usefixtures("_warm_cache")
def test_settings_count_as_they_do_for_commands(monkeypatch):
    monkeypatch.setenv("PODIUM_SIMULATE_SEED", "7")
    assert podium.simulate("first-fit", **SMALL).plan.seed == 7
    assert podium.simulate("first-fit", seed=3, **SMALL).plan.seed == 3


@pytest.mark.usefixtures("_warm_cache")
def test_policies_are_names_files_functions_or_objects():
    Path("mine.py").write_text("def score(pod, node):\n    return -sum(node.gpu_milli_left)\n")
    given = ["mine.py", Path("mine.py"), least_free, from_function(least_free)]
    digests = {podium.simulate(each, **SMALL).digest for each in given}
    assert len(digests) == 1
    with pytest.raises(UsageError, match="int is not a policy"):
        podium.simulate(3, **SMALL)


def weighed(weight, pod, node):  # noqa: ARG001
    return -weight * sum(node.gpu_milli_left)


class Weighing:
    """Prefers the fullest node."""

    def __init__(self, weight):
        self.weight = weight

    def __call__(self, pod, node):
        return weighed(self.weight, pod, node)

    def score(self, pod, node):
        return podium.HOLD if node.gpu_count > 99 else self(pod, node)


@pytest.mark.usefixtures("_warm_cache")
@pytest.mark.parametrize(
    ("given", "name"),
    [
        (functools.partial(weighed, 2.0), "weighed"),
        (Weighing(2.0), "Weighing"),
        (Weighing(2.0).score, "score"),
        (functools.lru_cache(least_free), "least_free"),
    ],
)
def test_whatever_is_called_like_a_function_is_a_policy(given, name):
    result = podium.simulate(given, **SMALL)
    assert result.digest == podium.simulate(least_free, **SMALL).digest
    policy = result.plan.policy
    assert (policy.name, policy.may_hold) == (name, name == "score")


@pytest.mark.parametrize("given", [functools.partial(weighed, 2.0, 3), max, Weighing])
def test_what_is_called_otherwise_is_no_policy(given):
    with pytest.raises(PodiumError) as caught:
        podium.load_policy(given)
    assert caught.value.hint


@pytest.mark.usefixtures("_warm_cache")
def test_traces_are_references_or_objects():
    trace = podium.load_trace("openb:16", pods=200)
    assert podium.simulate("fgd", trace, protocol="inflation").digest == (
        podium.simulate("fgd", **SMALL).digest
    )
    cluster = Cluster.of([NodeSpec("n", 64_000, 2**18, 8, "T4")], name="mine")
    assert podium.simulate("fgd", trace, cluster=cluster).plan.cluster is cluster
    named = podium.simulate("fgd", trace, cluster="openb", nodes=20)
    assert len(named.plan.cluster) == 20
    with pytest.raises(UsageError, match="pods cannot be set") as caught:
        podium.simulate("fgd", trace, pods=3)
    assert caught.value.where == "argument pods"
    assert podium.load_trace(trace) is trace


@pytest.mark.usefixtures("_warm_cache")
def test_a_comparison_ranks_functions_beside_names():
    found = podium.compare(["fgd", least_free, "worst-fit"], seeds=2, **SMALL)
    assert {row.policy for row in found.ranking.rows} == {"fgd", "least_free", "worst-fit"}
    assert found.ranking.seeds == (1000, 1001)
    assert found.best == found.ranking.rows[0].policy
    assert found.ranking.metric == "gpu_allocation"
    assert found.mean("fgd", "gpu_allocation") == pytest.approx(
        next(row.mean for row in found.ranking.rows if row.policy == "fgd")
    )
    assert "least_free" in found._repr_html_()


@pytest.mark.usefixtures("_warm_cache")
@pytest.mark.parametrize("seeds", [2, "1000-1001", [1000, 1001], range(1000, 1002)])
def test_seeds_are_a_number_a_text_or_a_list(seeds):
    found = podium.compare(["first-fit"], "openb:16", seeds=seeds, pods=20, protocol="inflation")
    assert found.ranking.seeds == (1000, 1001)


@pytest.mark.usefixtures("_warm_cache")
def test_a_name_is_escaped_in_a_notebook():
    hostile = from_function(least_free, "<i>x</i>")
    found = podium.compare([hostile], seeds=1, **SMALL)
    assert "<i>" not in found._repr_html_() + hostile._repr_html_()


@pytest.mark.parametrize(
    ("given", "error", "where"),
    [
        ({"policies": ["fdg"]}, UnknownName, "argument policy"),
        ({"policies": "fgd"}, UsageError, ""),
        ({"policies": []}, UsageError, ""),
        ({"policies": [least_free, least_free]}, UsageError, "argument policies"),
        ({"policies": ["fgd"], "seeds": "x"}, UsageError, "argument seeds"),
        ({"policies": ["fgd"], "metric": "speed"}, UnknownName, "argument metric"),
        ({"policies": ["fgd"], "trace": "opnb"}, UnknownName, "argument trace"),
        ({"policies": ["fgd"], "seeds": [1, 1]}, UsageError, "argument seeds"),
    ],
)
def test_a_mistake_names_the_argument(given, error, where):
    with pytest.raises(error) as caught:
        podium.compare(**given)
    assert caught.value.where == where


@pytest.mark.usefixtures("_warm_cache", "small_trace")
def test_notes_are_warnings():
    with pytest.warns(UserWarning, match="the trace has no nodes: the cluster openb is used"):
        podium.simulate("first-fit", "pods.csv")


@pytest.mark.usefixtures("_warm_cache", "small_trace")
@pytest.mark.parametrize(
    "call", [podium.simulate, lambda *given, **named: podium.compare([given[0]], given[1], **named)]
)
def test_a_warning_is_of_the_callers_line_and_speaks_of_arguments(call):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        call("first-fit", "pods.csv", load=2.0, protocol="rounds")
    assert {each.filename for each in heard} == {__file__}
    told = {str(each.message) for each in heard}
    assert "the trace has no nodes: the cluster openb is used (cluster changes it)" in told
    assert "load has no effect with rounds" in told


@pytest.mark.usefixtures("_warm_cache")
def test_an_explanation_is_of_a_result():
    result = podium.simulate("fgd", **SMALL)
    pod = result.plan.arrivals.names[0]
    found = podium.explain(result, pod)
    assert (found.pod, found.node) == (pod, next(result.placements()).node)
    with pytest.raises(PodiumError):
        podium.explain(result, "nobody")


def test_a_policy_is_loaded_by_reference():
    assert podium.load_policy("fgd").name == "fgd"
    assert podium.load_policy(least_free).name == "least_free"
    with pytest.raises((InputError, PodiumError)):
        podium.load_policy("nothing.py")


@pytest.mark.usefixtures("_warm_cache")
def test_a_search_gives_a_policy_and_leaves_nothing_behind(tmp_path):
    heard = []

    class Ear(podium.Listener):
        def search_progress(self, progress):
            heard.append(progress.tally.evaluations)

    found = podium.search(
        evaluations=40, trace="openb", nodes=32, seeds=2, workers=1, listener=Ear()
    )
    assert found.summary["evaluations"] == 40 == heard[-1]
    assert found.ending == "evaluation budget reached (40)"
    assert found.folder == ""
    assert not list((tmp_path / "data").rglob("*"))
    # What was found goes wherever a policy goes, and the package keeps its name.
    assert podium.search.run.__name__ == "podium.search.run"
    ranked = podium.compare([found.best, "worst-fit"], seeds=1, **SMALL)
    assert ranked.best == found.best.name
    assert found.text in found.best.source.text
    assert "def score" in found._repr_html_()


@pytest.mark.deep
@pytest.mark.usefixtures("_warm_cache")
def test_a_search_that_is_named_is_kept_and_can_be_resumed(runner, tmp_path):
    first = podium.search(evaluations=20, trace="openb", nodes=32, seeds=2, workers=1, keep="mine")
    with open_store(str(tmp_path / "data" / "podium" / "podium.db")) as store:
        record = store.runs.get("mine")
        assert (record.id, record.kind, record.status) == (first.run_id, "search", "finished")
    asked = ["search", "resume", "mine", "--evaluations", "30", "--workers", "1", "--json"]
    done = runner.invoke(app, asked)
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["run"], told["evaluations"]) == (first.run_id, 30)
    assert podium.load_policy(f"run:{first.run_id}").name == f"run:{first.run_id}"


@pytest.mark.deep
@pytest.mark.usefixtures("_warm_cache")
@pytest.mark.parametrize("keep", [None, "mine"])
def test_a_search_trains_on_a_loaded_trace(tmp_path, keep):
    trace = podium.load_trace("openb:16", seed=1000, pods=60)
    asked = {"evaluations": 4, "seeds": 1, "workers": 1, "time": 600}
    found = podium.search(trace=trace, keep=keep, **asked)
    save_trace(trace, Path("mine.json"))
    assert found.fitness == podium.search(trace="mine.json", **asked).fitness
    assert len(list((tmp_path / "data").rglob("traces/trace-*.json"))) == (keep is not None)


@pytest.mark.deep
@pytest.mark.usefixtures("_warm_cache")
@pytest.mark.parametrize("what", ["trace", "cluster"])
def test_a_search_takes_the_nodes_of_what_is_loaded(what):
    trace = podium.load_trace("openb:16", seed=1000, pods=60)
    asked = {"evaluations": 4, "seeds": 1, "workers": 1, "time": 600}
    pods = replace(trace, cluster=None)
    nodes = trace if what == "trace" else trace.cluster
    found = podium.search(trace=pods, cluster=nodes, **asked)
    assert found.fitness == podium.search(trace=trace, **asked).fitness


AIM = """def objective(run):
    return run.allocation_130 / 2 + WEIGHT * run.placed.get("share", 0.0)


WEIGHT = 0.125
"""


@pytest.mark.usefixtures("_warm_cache")
def test_a_search_goes_by_a_function_as_it_does_by_its_file():
    weight = 0.125

    def objective(run):
        return run.allocation_130 / 2 + weight * run.placed.get("share", 0.0)

    Path("aim.py").write_text(AIM)
    asked = {"evaluations": 8, "seeds": 1, "workers": 1, "trace": "openb", "nodes": 16}
    by_function = podium.search(objective=objective, **asked)
    by_file = podium.search(objective="aim.py", **asked)
    assert 40 < by_file.fitness < 62.5
    assert (by_function.text, by_function.fitness) == (by_file.text, by_file.fitness)


def broken(run):
    return run.nothing


@pytest.mark.usefixtures("_warm_cache")
def test_a_function_that_fails_ends_the_search_with_its_line():
    with pytest.raises(PodiumError, match="objective failed: AttributeError: a run under") as found:
        podium.search(objective=broken, evaluations=4, seeds=1, workers=1, trace="openb", nodes=16)
    assert found.value.where == f"{__file__}, line {broken.__code__.co_firstlineno + 1}"
    assert found.value.hint == "correct the objective and begin a new search"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"objective": 7}, "int is not an objective"),
        ({"objective": broken, "fitness": "waiting"}, "fitness and objective exclude each other"),
        ({"objective": "aim.py", "fitness": "waiting"}, "fitness and objective exclude each other"),
        ({"objective": broken, "keep": "mine"}, "a search that is kept needs a file"),
        ({"objective": "gone.py"}, "gone.py"),
        ({"objective": "empty.py"}, "the file defines no objective"),
    ],
)
def test_an_objective_that_cannot_be_used_is_refused_before_a_search(given, told):
    Path("aim.py").write_text(AIM)
    Path("empty.py").write_text("")
    with pytest.raises(PodiumError) as caught:
        podium.search(**given)
    assert told in f"{caught.value.message} {caught.value.where}"
    assert not Path("data").exists()


def test_help_on_the_search_describes_the_function():
    assert inspect.signature(podium.search) == inspect.signature(face.search)
    shown = pydoc.render_doc(podium.search, renderer=pydoc.plaintext)
    for name in inspect.signature(face.search).parameters:
        assert f"\n            {name}: " in shown
    assert "candidate (package)" in shown


def test_a_search_that_cannot_begin_names_the_argument():
    with pytest.raises(PodiumError) as caught:
        podium.search(fitness="speed")
    assert caught.value.where == "argument fitness"


def test_loaded_policies_pass_through():
    policy = load("fgd")
    assert podium.load_policy(policy) is policy
