import ast
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from podium.search.parsing import parse_text

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
