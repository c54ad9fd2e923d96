import pytest

from podium.errors import PolicyError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import HOLD
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.expression import apply, number
from podium.search.program.interpreter import interpreted
from podium.search.program.program import Term, program_of
from podium.search.program.reader import parse
from podium.sim import Inflation, Setup, simulate
from support.views import node, node_records, pod, pod_record


def _program(body, arguments="pod, node"):
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return parse(f'TIES = "random"\n\n\ndef score({arguments}):\n{lines}\n')


def _scores(program, the_pod, *nodes):
    chosen = interpreted(program)
    table = chosen.prepare(None)
    return list(chosen.scores(pod_record(the_pod), node_records(nodes), table))


def test_a_program_runs_without_being_compiled():
    body = """
if pod.gpu_count == 0:
    return -1
free = 0
for slot in range(node.gpu_count):
    if node.gpu_milli_left[slot] == 1000:
        free += 1
return 10 * free if free > 1 else free
"""
    nodes = [node(gpus=(1000, 500)), node(gpus=(1000, 1000, 0))]
    assert _scores(_program(body), pod(gpus=1, milli=500), *nodes) == [1, 20]
    assert _scores(_program(body), pod(), *nodes) == [-1, -1]


def test_a_loop_over_no_gpus_does_nothing():
    body = "n = 7\nfor slot in range(node.gpu_count):\n    n += 1\nreturn n"
    assert _scores(_program(body), pod(), node()) == [7]


def test_a_share_pod_is_scored_on_its_best_gpu():
    program = _program("return node.gpu_milli_left[gpu] if gpu >= 0 else 0", "pod, node, gpu")
    assert _scores(program, pod(gpus=1, milli=400), node(gpus=(500, 900))) == [900]


def test_settings_and_refusals_come_along():
    program = _program("if node.gpu_count > 0:\n    return HOLD\nreturn 1")
    chosen = interpreted(program)
    assert (chosen.ties, chosen.may_hold) == ("random", True)
    assert _scores(program, pod(), node(gpus=(1000,)), node()) == [HOLD, 1]
    assert not interpreted(seeds()["packed"]).may_hold


def test_two_programs_share_one_compiled_interpreter():
    cluster = Cluster.of([NodeSpec("a", 8000, 8000, 2, "X"), NodeSpec("b", 8000, 8000, 1, "X")])
    workload = Workload.of([PodSpec(f"p{i}", 1000, 1000, 1, 1000) for i in range(2)])
    setup = Setup(tier="scan", ranks="listed")
    placed = []
    for body in ("return node.gpu_count", "return -node.gpu_count"):
        chosen = interpreted(_program(body))
        placed.append(simulate(cluster, workload, chosen, Inflation(1.0), setup).node[0])
    assert placed == [0, 1]
    assert interpreted(seeds()["packed"]).compiled is interpreted(seeds()["convex"]).compiled


def test_what_does_not_fit_into_the_interpreter_is_refused():
    terms = [Term(f"t{i}", apply("+", number(i), number(1))) for i in range(100)]
    with pytest.raises(PolicyError, match="too many terms"):
        interpreted(program_of(number(0), *terms))
    with pytest.raises(PolicyError, match="only squares"):
        interpreted(program_of(apply("power", number(2), number(3))))
