import ast
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from podium.search.candidate.text import children, complexity_of, parse_text, walked
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.writer import write
from podium.search.run.speed import bred_texts

TEXT = "def score(pod, node):\n    return " + " + ".join(f"({i} - node.x)" for i in range(40))


class _Cycle:
    """Runs Python code when it is collected, so that other threads get their turn."""

    def __init__(self):
        self.me = self

    def __del__(self):
        sum(range(50))


@pytest.fixture
def busy():
    """Makes threads change places, and collections happen, as often as they can."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(1)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)


@pytest.mark.usefixtures("busy")
def test_threads_parse_side_by_side():
    def work(_index):
        for _ in range(10):
            _Cycle()
            parse_text(TEXT)
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(8)))


def test_a_text_is_parsed_as_ever():
    assert ast.dump(parse_text(TEXT)) == ast.dump(ast.parse(TEXT))
    with pytest.raises(SyntaxError) as caught:
        parse_text("a = (", "policy.py")
    assert caught.value.filename == "policy.py"


ODD = (
    "@f\nclass A(B, k=1):\n    def g(self, *a, b=2, **c) -> int:\n        return {1: 2, **a}[::1]\n"
)


@pytest.mark.parametrize("text", ["", ODD, *bred_texts(5)])
def test_trees_are_walked_as_the_standard_library_does(text):
    tree = ast.parse(text)
    assert walked(tree) == list(ast.walk(tree))
    assert children(tree) == list(ast.iter_child_nodes(tree))


PLAIN = "def score(pod, node):\n    return -node.cpu_milli_left\n"


def test_words_and_layout_are_free():
    told = (
        '"""Says a lot."""\n\n# And more.\ndef score(pod, node):\n    "Here too."\n'
        "    return (\n        -node.cpu_milli_left\n    )\n"
    )
    assert complexity_of(told) == complexity_of(PLAIN) == 6


def test_what_every_candidate_imports_is_free():
    assert complexity_of(f"import math\nfrom podium.policies import HOLD\n{PLAIN}") == 6


def test_a_further_term_costs():
    longer = PLAIN.replace("left\n", "left + pod.cpu_milli\n")
    assert complexity_of(longer) > complexity_of(PLAIN)


def test_a_text_that_is_not_words_at_the_beginning_counts():
    assert complexity_of(f"W = 'words'\n{PLAIN}") > complexity_of(PLAIN)


def test_every_seed_has_a_size():
    assert all(complexity_of(write(program)) > 2 for program in seeds().values())
