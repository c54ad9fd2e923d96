import numpy as np
import pytest

from podium.search.program.algebra import condensed
from podium.search.program.program import complexity
from podium.search.program.reader import parse
from podium.search.program.simplify import simplify
from podium.search.program.writer import write
from support.bred import brood, policy, score, views

HEAD = (
    "from podium.policies import tunable\n\n"
    "W = tunable(0.5, 0.0, 2.0)\nV = tunable(0.25, 0.0, 2.0)\n"
)


def _returned(body):
    """Condenses a score and returns what its last line gives."""
    program = parse(f"{HEAD}\n\ndef score(pod, node):\n{body}")
    found = simplify(condensed(program))
    return write(found).rstrip().splitlines()[-1].removeprefix("    return "), found


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("node.gpu_count + node.gpu_count", "node.gpu_count"),
        (
            "node.gpu_count - 3 * node.rack + 2 * node.gpu_count",
            "3 * node.gpu_count - 3 * node.rack",
        ),
        ("node.gpu_count - (node.gpu_count - node.rack)", "node.rack"),
        ("node.gpu_count + pod.cpu_milli / 1000 + 7", "node.gpu_count"),
        ("-node.gpu_count + pod.gpu_milli", "-node.gpu_count"),
        ("node.rack - V * pod.cpu_milli", "node.rack"),
        ("node.gpu_count + node.rack", "node.gpu_count + node.rack"),
        ("int(node.rack / 3 + pod.cpu_milli)", "int(node.rack / 3 + pod.cpu_milli)"),
        ("pod.cpu_milli", "0"),
    ],
)
def test_like_terms_are_one_and_those_that_are_the_same_for_all_nodes_go(given, left):
    assert _returned(f"    return {given}\n")[0] == left


def test_two_weights_of_one_term_become_one():
    text, program = _returned("    return W * node.rack - node.gpu_count + V * node.rack\n")
    assert text == "W * node.rack - node.gpu_count"
    assert [(each.name, each.value) for each in program.constants] == [("W", 0.75)]


def test_a_weight_that_cancels_out_leaves_room_for_another():
    sum_ = "W * node.rack - node.gpu_count - W * node.rack + V * node.rack"
    text, program = _returned(f"    return {sum_}\n")
    assert text == "V * node.rack - node.gpu_count"
    assert [(each.name, each.value) for each in program.constants] == [("V", 0.25)]


def test_a_weight_never_leaves_its_bounds():
    text, program = _returned("    return W * node.rack - node.gpu_count + 5 * node.rack\n")
    assert "5 * node.rack" in text
    assert [each.value for each in program.constants] == [0.5]


def test_where_nodes_are_told_apart_every_number_counts():
    guarded = "    if node.gpu_count > 4:\n        return 3\n    return node.rack + 7\n"
    assert _returned(guarded)[0] == "node.rack + 7"
    by_pod = "    if pod.gpu_count > 4:\n        return node.rack\n    return node.gpu_count + 7\n"
    assert _returned(by_pod)[0] == "node.gpu_count"


def test_bred_programs_decide_as_before():
    rng = np.random.default_rng(1)
    seen = views(60)
    for program in brood(120)[::2]:
        other = simplify(condensed(program))
        assert complexity(other) <= complexity(program)
        one, two = policy(program), policy(other)
        for index in rng.integers(len(seen), size=6):
            pod, _, _ = seen[index]
            pairs = [
                (score(one, pod, node, gpu), score(two, pod, node, gpu))
                for other_pod, node, gpu in seen
                if other_pod == pod
            ]
            first = [pair[0] for pair in pairs]
            second = [pair[1] for pair in pairs]
            best = max(range(len(first)), key=first.__getitem__)
            assert second[best] == pytest.approx(max(second), rel=1e-9, abs=1e-9)
