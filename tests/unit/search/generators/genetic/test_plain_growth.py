import re
from dataclasses import replace

import numpy as np
import pytest

from podium.search.generators.genetic.breeding import BreedingSettings, finished
from podium.search.generators.genetic.plain_growth import (
    count_change,
    fix_sizes,
    insert_rest,
    insert_within,
    limit_loop,
)
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.expression import walk
from podium.search.program.layout import text_of
from podium.search.program.program import complexity
from podium.search.program.reader import parse
from podium.search.program.shape import with_ingredients
from podium.search.program.writer import write

PLAIN = BreedingSettings(draws_ingredients=False)
BALANCED = replace(seeds()["balanced"], draws_ingredients=False)


def _rng(seed=1):
    return np.random.default_rng(seed)


def test_a_part_of_the_score_is_counted_by_how_much_the_pod_changes_it():
    program = parse(
        "def score(pod, node):\n    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli\n"
        "    return -abs(cpu_milli_after / 1000 - 4)\n"
    )
    both_sides = (
        "-(abs((node.cpu_milli_left - pod.cpu_milli) / 1000 - 4)"
        " - abs((node.cpu_milli_left - 0) / 1000 - 4))"
    )
    changed = [text_of(count_change(_rng(seed), program).block.result) for seed in range(20)]
    assert set(changed) == {both_sides, both_sides.replace("abs(", "max(0, ")}


def test_where_the_score_does_not_look_at_the_pod_it_is_placed_first():
    program = parse("def score(pod, node):\n    return -abs(node.cpu_milli_left / 1000 - 4)\n")
    both_sides = (
        "-(abs((node.cpu_milli_left - pod.cpu_milli) / 1000 - 4)"
        " - abs(node.cpu_milli_left / 1000 - 4))"
    )
    changed = text_of(count_change(_rng(), program).block.result)
    assert changed in (both_sides, both_sides.replace("abs(", "max(0, "))


@pytest.mark.parametrize("score", ["node.cpu_milli_left / 1000", "abs(node.gpu_count - 4)"])
def test_what_the_pod_does_not_bend_is_not_counted_by_its_change(score):
    program = parse(f"def score(pod, node):\n    return {score}\n")
    changed = count_change(_rng(), program)
    assert changed is None or "pod" in write(finished(changed))


@pytest.mark.parametrize("operator", [insert_within, insert_rest])
def test_what_is_added_within_steps_leaves_the_steps(operator):
    children = [finished(operator(_rng(seed), BALANCED), PLAIN) for seed in range(30)]
    grown = [child for child in children if child is not None]
    assert len(grown) > 20
    for child in grown:
        assert re.match(r"^-(int\(|\w+_steps)", text_of(child.block.result)), write(child)
    assert max(map(complexity, grown)) > complexity(BALANCED)
    assert operator(_rng(), parse("def score(pod, node):\n    return node.gpu_count / 8\n")) is None


def test_no_term_within_steps_is_a_ratio_of_something_to_itself():
    for seed in range(200):
        child = insert_within(_rng(seed), BALANCED)
        ratios = [p for _, p in walk(child.block.result) if p.head == "/"]
        assert all(each.arguments[0] != each.arguments[1] for each in ratios)


def test_what_the_pod_leaves_on_its_gpu_may_count_where_it_is_little():
    texts = [
        write(finished(with_ingredients(insert_rest(_rng(seed), BALANCED)), PLAIN))
        for seed in range(100)
    ]
    here = [each for each in texts if "def score(pod, node, gpu)" in each]
    assert any("gpu_milli_here - pod.gpu_milli < GPU_MILLI_LIMIT" in each for each in here)


def test_sizes_that_all_nodes_share_take_the_place_of_their_own():
    child = fix_sizes(_rng(), BALANCED)
    assert {each.name for each in child.constants} == {"CPU_MILLI_EACH", "GPUS_EACH"}
    text = write(finished(child, PLAIN))
    assert "gpu_milli_after / (1000 * GPUS_EACH)" in text
    assert "cpu_milli_after / CPU_MILLI_EACH" in text
    assert fix_sizes(_rng(), child) is None


def test_a_loop_that_leaves_out_gpus_does_not_keep_its_name():
    child = finished(limit_loop(_rng(), BALANCED), PLAIN)
    text = write(child)
    assert "if left >= GPU_MILLI_LIMIT:" in text
    assert "gpu_milli_free" not in text
    assert limit_loop(_rng(), child) is None


def test_nothing_is_left_where_only_the_pod_has_gpu():
    text = "def score(pod, node):\n    return int(pod.gpu_milli / 1000)\n"
    program = replace(parse(text), draws_ingredients=False)
    grown = [insert_rest(_rng(seed), program) for seed in range(60)]
    assert None in grown
    assert any(grown)
