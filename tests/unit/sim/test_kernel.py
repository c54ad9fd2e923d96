"""The two variants of the compiled core: one source, one memory, and the same answers."""

import inspect

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.typing import Context

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Constraints, Gang
from podium.policies import load
from podium.sim import Inflation, Replay, Rounds, Setup, simulate
from podium.sim.engine import make_plan
from podium.sim.feasible import moment_before, present_plan
from podium.sim.kernel import calendar, constraints, gangs
from podium.sim.kernel.compiler import FLAGS
from podium.sim.kernel.layout import RECORDS, RUN
from podium.sim.plan import Plan
from podium.sim.state import build_state
from support.agreement import same_result
from support.instances import random_cluster, random_workload

PLAIN, FULL = (numba.from_dtype(RECORDS[variant]) for variant in ("plain", "full"))
RANDOM = np.random.default_rng(5)
NODES, PODS = random_cluster(9, RANDOM), random_workload(200, RANDOM)
SELECTIVE = PodSpec("selective", 100, 1, constraints=Constraints(node_labels=(("disk", "ssd"),)))
ASKING = {"is_free", "set_floors", "allows", "line_of", "_home", "tries_elsewhere"}
"""They look at a flag themselves, and of a plain run nothing is left behind it."""


def optional_code():
    for module in (constraints, gangs):
        for name, found in vars(module).items():
            is_own = isinstance(found, Dispatcher) and found.py_func.__module__ == module.__name__
            if is_own and name not in ASKING:
                yield pytest.param(found, id=f"{module.__name__.split('.')[-1]}.{name}")


@pytest.mark.parametrize("function", list(optional_code()))
def test_what_plain_runs_do_without_does_not_compile_for_them(function):
    """So none of it is in the plain core, which compiles."""
    others = [numba.int64] * (len(inspect.signature(function.py_func).parameters) - 1)
    with pytest.raises((KeyError, TypingError)) as caught:
        function.compile((PLAIN, *others))
    assert any(name in str(caught.value) for name in set(FULL.fields) - set(PLAIN.fields))


def test_neither_record_is_taken_for_the_other():
    """Numba would call code for one with the other, if one began like the other."""
    assert FULL.can_convert_to(Context(), PLAIN) is None
    assert PLAIN.can_convert_to(Context(), FULL) is None


def test_machine_code_of_the_variants_has_different_names():
    for record in (PLAIN, FULL):
        calendar.next_time.compile((record,))
    names = {each.fndesc.qualname for each in calendar.next_time.overloads.values()}
    assert names == {"next_time_plain", "next_time"}


def test_both_variants_see_the_same_numbers():
    record = np.zeros(1, RUN)
    for i, name in enumerate(RUN.names):
        record[name] = i
    seen = record.view(RECORDS["plain"])
    assert set(RUN.names) > set(seen.dtype.names)
    assert not set(FLAGS) & set(seen.dtype.names)
    assert all(seen[name] == record[name] for name in seen.dtype.names)


def test_no_flag_is_set_in_a_plain_run():
    plan = make_plan(NODES, PODS, load("best-fit"), Replay(), Setup())
    state = build_state(plan)
    assert plan.variant == "plain"
    assert {state.number(name) for name in FLAGS} == {0}


@pytest.mark.parametrize(
    "workload",
    [
        Workload.of([SELECTIVE]),
        Workload.of([PodSpec("member", 100, 1, gang="g")], gangs=[Gang("g", 1)]),
        Workload.of([PodSpec("by memory", 100, 1, 1, 1000, gpu_memory_mib=2048)]),
    ],
    ids=["constraints", "gangs", "shares"],
)
def test_a_run_with_more_than_resources_takes_the_full_core(workload):
    cluster = Cluster.of([NodeSpec("a", 4000, 900, 2, "A", gpu_memory_mib=4096)])
    assert present_plan(cluster, workload).variant == "full"


@pytest.mark.parametrize("protocol", [Replay(), Rounds(), Inflation()], ids=lambda each: each.name)
def test_a_plain_run_comes_out_the_same_on_either_core(protocol, monkeypatch):
    plain = simulate(NODES, PODS, load("fgd"), protocol, Setup(3))
    monkeypatch.setattr(Plan, "variant", "full")
    full = simulate(NODES, PODS, load("fgd"), protocol, Setup(3))
    assert same_result(plain, full)
    assert plain.digest == full.digest


def test_a_plain_question_is_answered_the_same_by_either_core(monkeypatch):
    moment = moment_before(present_plan(NODES, PODS))
    plain = [moment.feasible(pod).tolist() for pod in range(20)]
    monkeypatch.setattr(Plan, "variant", "full")
    assert [moment.feasible(pod).tolist() for pod in range(20)] == plain
