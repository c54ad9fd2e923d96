import itertools
from dataclasses import replace

import numpy as np
import pytest

from podium.policies import HOLD, ClusterPolicy, from_function, load
from podium.policies.policy import policy_of
from podium.policies.source import read_source
from podium.testing import Finding, Report, check_policy
from podium.testing.attempt import Attempt
from podium.testing.tiers import check_tiers

CALLS = itertools.count()


def broken(policy):
    return {finding.name: finding.detail for finding in check_policy(policy).broken}


def counting(pod, node):  # noqa: ARG001
    return next(CALLS)


def nan_on_full_nodes(pod, node):  # noqa: ARG001
    return float("nan") if node.cpu_milli_left == 0 else 1.0


def infinite(pod, node):  # noqa: ARG001
    return float("inf") if node.gpu_count == 16 else 1.0


def dividing(pod, node):
    return 1 / (pod.cpu_milli % 500) + node.rack


def telling(pod, node):  # noqa: ARG001
    return "high"


def forgetting(pod, node):
    if node.gpu_count == 0:
        return pod.cpu_milli


def averaging_slots(pod, node):  # noqa: ARG001
    return sum(node.gpu_milli_left) / len(node.gpu_milli_left)


def writing(pod, node):
    node.cpu_milli_left -= pod.cpu_milli
    return 1.0


def overflowing(pod, node):  # noqa: ARG001
    return (node.cpu_milli_left * node.memory_mib_left * node.memory_mib_total * 10**6) % 1009


def holding_in_silence(pod, node):
    return -1e308 * 10.0 if pod.gpu_count == 0 else node.cpu_milli_left


def holding_by_name(pod, node):
    return HOLD if pod.gpu_count == 0 else node.cpu_milli_left


def test_a_policy_that_names_hold_may_hold():
    policy = from_function(holding_by_name)
    assert policy.may_hold
    assert broken(policy) == {}


@pytest.mark.parametrize(
    ("function", "promise", "told"),
    [
        (counting, "gives the same score again", ", then "),
        (nan_on_full_nodes, "gives finite scores", "nan for Pod("),
        (infinite, "gives finite scores", "inf for Pod("),
        (dividing, "raises nothing", "ZeroDivisionError"),
        (telling, "raises nothing", "'high', not a number"),
        (forgetting, "raises nothing", "ends without a result"),
        (writing, "raises nothing", "AttributeError"),
        (overflowing, "raises nothing", "beyond 2**53"),
        (holding_in_silence, "holds only if it names HOLD", "decisions a pod fitted"),
        (averaging_slots, "scores alike in both record sizes", "slots that the node does not have"),
    ],
)
def test_a_pair_policy_that_breaks_a_promise_is_found_out(function, promise, told):
    assert told in broken(from_function(function))[promise]


def test_a_policy_file_whose_prepare_fails_is_found_out(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "def prepare(shapes):\n    return 1 / 0\n\n\n"
        "def score(pod, node, table):\n    return table[0]\n"
    )
    assert "ZeroDivisionError" in broken(load(str(path)))["raises nothing"]


def test_a_policy_that_does_not_compile_passes_in_plain_python():
    def score(pod, node):
        return float(str(pod.cpu_milli + node.rack + 10))

    report = check_policy(from_function(score))
    assert report.is_ok
    told = {finding.name: finding.detail for finding in report.findings}
    assert "plain Python only" in told["scores alike plain and compiled"]
    assert told["places alike in every tier"].startswith("python:")


def two_faced():
    """Makes a policy whose machine code is not that of its text."""
    honest = load("best-fit")
    other = {(1, slots): from_function(indifferent).native(1, slots) for slots in (8, 16)}
    return replace(honest, compiled=other)


def test_a_policy_that_scores_otherwise_when_compiled_is_not_run_any_further():
    report = check_policy(two_faced())
    assert "scores alike plain and compiled" in {finding.name for finding in report.broken}
    assert "places alike in every tier" not in {finding.name for finding in report.findings}


def indifferent(pod, node):  # noqa: ARG001
    return 0


def test_tiers_that_place_pods_differently_are_found_out():
    finding = check_tiers(two_faced(), 0, Attempt(), can_compile=True)[0]
    assert (finding.is_ok, "tiers python and" in finding.detail) == (False, True)


def test_runs_that_fail_are_found_out():
    finding = check_tiers(from_function(dividing), 0, Attempt(), can_compile=False)[0]
    assert (finding.is_ok, "replay, python: " in finding.detail) == (False, True)


class Chooser:
    def __init__(self, seed):
        self.seed = seed

    def choose(self, pod, nodes, feasible):  # noqa: ARG002
        return int(feasible.argmax())


class Reckless(Chooser):
    def choose(self, pod, nodes, feasible):  # noqa: ARG002
        return int((~feasible).argmax())


class OffTheEnd(Chooser):
    def choose(self, pod, nodes, feasible):  # noqa: ARG002
        return len(nodes)


class Halfway(Chooser):
    def choose(self, pod, nodes, feasible):
        return super().choose(pod, nodes, feasible) + 0.5


class Failing(Chooser):
    def choose(self, pod, nodes, feasible):  # noqa: ARG002
        raise KeyError(pod)


class Unrepeatable(Chooser):
    def choose(self, pod, nodes, feasible):  # noqa: ARG002
        fitting = np.flatnonzero(feasible)
        return int(fitting[next(CALLS) % len(fitting)])


class Writing(Chooser):
    def choose(self, pod, nodes, feasible):
        nodes["cpu_milli_left"] = 0
        return super().choose(pod, nodes, feasible)


class Unstartable(Chooser):
    def __init__(self, seed):
        raise RuntimeError(f"no seed {seed}")


@pytest.mark.parametrize(
    ("chooser", "promise"),
    [
        (Reckless, "chooses nodes that fit"),
        (OffTheEnd, "chooses nodes that fit"),
        (Halfway, "chooses nodes that fit"),
        (Failing, "raises nothing"),
        (Unstartable, "raises nothing"),
        (Unrepeatable, "makes the same choices again"),
        (Writing, "leaves records alone"),
    ],
)
def test_a_cluster_policy_that_breaks_a_promise_is_found_out(chooser, promise):
    assert promise in broken(ClusterPolicy("mine", chooser))


def test_two_runs_of_a_cluster_policy_that_differ_are_found_out():
    finding = check_tiers(ClusterPolicy("mine", Unrepeatable), 0, Attempt(), can_compile=False)[0]
    assert (finding.is_ok, "two runs with one seed differ" in finding.detail) == (False, True)


def test_a_good_cluster_policy_keeps_all_promises():
    report = check_policy(ClusterPolicy("mine", Chooser))
    assert report.is_ok
    assert report.findings[-1].name == "time per decision"


def test_a_report_is_good_when_every_finding_is():
    good, bad = Finding("a", True), Finding("b", False, "why")
    assert Report("p", (good,)).is_ok
    assert Report("p", (good, bad)).broken == (bad,)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def score(pod, node):\n    return node.cpu_left\n", "line 2: AttributeError"),
        ("def score(pod, node):\n    return node.cpu_left\n", "did you mean cpu_milli_left"),
        ("ONE = 1\ndef score(pod, node):\n    pass\n", "line 2: score returned nothing"),
        ("class Policy:\n    def __init__(self, seed): pass\n"
         "    def choose(self, pod, nodes, feasible):\n        return pod.cpu\n", "line 4: "),
    ],
)  # fmt: skip
def test_a_policy_that_always_raises_is_told_the_line_and_nothing_that_was_not_judged(text, told):
    report = check_policy(policy_of(read_source(text, "mine.py"), "mine"))
    (finding,) = report.findings
    assert (finding.name, finding.is_ok) == ("raises nothing", False)
    assert told in finding.detail


def test_promises_are_judged_where_a_policy_does_not_raise():
    text = "def score(pod, node):\n    return 1.0 / node.gpu_count\n"
    report = check_policy(policy_of(read_source(text, "mine.py"), "mine"))
    details = {finding.name: finding.detail for finding in report.findings}
    assert "line 2: ZeroDivisionError" in details["raises nothing"]
    assert details["gives finite scores"].startswith("judged in ")


def endless_for_pairs(pod, node):
    total = 0.0
    while pod.gpu_count == 2:
        total += 1.0
    return total - node.cpu_milli_left


class NeverChooses:
    def __init__(self, seed):
        del seed

    def choose(self, _pod, _nodes, feasible):
        while feasible.any():
            pass
        return HOLD


def preparing_for_ever(_shapes):
    while True:
        pass


@pytest.mark.parametrize(
    ("policy", "case"),
    [
        (from_function(endless_for_pairs), ["for Pod(", "gpu_count=2", " on Node("]),
        (ClusterPolicy("mine", NeverChooses), ["for Pod("]),
        (
            replace(from_function(lambda pod, node, table: 1.0), prepare=preparing_for_ever),  # noqa: ARG005
            ["in prepare"],
        ),
    ],
)
def test_a_policy_that_never_ends_is_found_out(policy, case):
    (finding,) = check_policy(policy, step_s=1.0).findings
    assert (finding.name, finding.is_ok) == ("ends", False)
    assert all(each in finding.detail for each in case)
