import pytest

from podium.errors import PodiumError
from podium.evaluation.cases import Case, TrainingSet
from podium.search.candidate.verdict import Decisions
from podium.search.judging.race import Rivals
from podium.search.run.executor import Context, Task, local_executor
from support.hostile import GOOD
from support.searches import LIMITS

WORSE = "def score(pod, node):\n    return node.cpu_milli_left + sum(node.gpu_milli_left)\n"
DECIDED = Decisions("a" * 16, (0.5, 0.5, 0.5, 0.0))


def test_every_task_comes_back_once(executor):
    tasks = [Task(number, GOOD + f"# {number}\n", 12) for number in range(7)]
    found = list(executor.run(tasks, Context()))
    assert sorted(done.number for done in found) == list(range(7))
    assert len({str(done.scores) for done in found}) == 1
    assert all(done.verdict.accepted for done in found)


def test_no_task_is_no_work(executor):
    assert list(executor.run([], Context())) == []


def test_fgd_is_measured_on_every_case(executor):
    assert len(executor.baseline()) == 2
    assert executor.baseline() == executor.baseline()


def test_who_decides_as_another_is_wanted_if_it_is_simpler():
    context = Context((), {DECIDED.signature: 20})
    assert context.wants(19, DECIDED)
    assert not context.wants(20, DECIDED)
    assert context.wants(99, Decisions("b" * 16, DECIDED.behaviour))


def test_a_known_signature_is_refused_before_anything_is_simulated(executor):
    (done,) = executor.run([Task(0, GOOD, 12)], Context())
    known = Context((), {done.decisions.signature: 12})
    (again,) = executor.run([Task(1, GOOD, 12)], known)
    assert (again.verdict.accepted, again.verdict.gate) == (False, "novelty")
    assert again.cases == ()
    (simpler,) = executor.run([Task(2, GOOD, 11)], known)
    assert simpler.verdict.accepted


def test_a_candidate_races_against_those_of_its_own_island(executor):
    (best,) = executor.run([Task(0, GOOD, 12)], Context())
    context = Context((Rivals(), Rivals(best.cases)))
    (same,) = executor.run([Task(1, GOOD, 12, 1)], context)
    assert same.scores == best.scores
    (elsewhere,) = executor.run([Task(2, WORSE, 12, 0)], context)
    assert elsewhere.verdict.accepted
    (worse,) = executor.run([Task(3, WORSE, 12, 1)], context)
    assert worse.verdict.gate == "race"
    assert "trails the incumbent" in worse.verdict.reason


def test_who_stops_listening_gets_its_workers_back(executor):
    tasks = [Task(number, GOOD, 12) for number in range(6)]
    listening = executor.run(tasks, Context())
    next(listening)
    listening.close()
    assert len(list(executor.run(tasks[:2], Context()))) == 2


def test_workers_that_do_not_start_are_an_error_and_no_judgement():
    broken = local_executor(TrainingSet((Case(trace="openb:nothing"),)), "inflation", 1, LIMITS)
    try:
        with pytest.raises(PodiumError, match="could not be started"):
            broken.baseline()
    finally:
        broken.close()


def test_a_variant_races_against_the_best_of_its_kind_and_may_decide_alike(executor):
    (best,) = executor.run([Task(0, GOOD, 12)], Context())
    known = Context((), {best.decisions.signature: 12})
    (same,) = executor.run([Task(1, GOOD, 12, rival=best.cases)], known)
    assert (same.verdict.accepted, same.evaluations) == (True, 1)
    (worse,) = executor.run([Task(2, WORSE, 12, rival=best.cases)], known)
    assert (worse.verdict.accepted, worse.verdict.gate) == (False, "race")
    assert [each["score"] for each in worse.scores["cases"]]  # as far as it came
