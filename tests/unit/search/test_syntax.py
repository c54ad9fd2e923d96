import ast

import pytest

from podium.search.speed import bred_texts
from podium.search.syntax import children, walked

ODD = (
    "@f\nclass A(B, k=1):\n    def g(self, *a, b=2, **c) -> int:\n        return {1: 2, **a}[::1]\n"
)


@pytest.mark.parametrize("text", ["", ODD, *bred_texts(5)])
def test_trees_are_walked_as_the_standard_library_does(text):
    tree = ast.parse(text)
    assert walked(tree) == list(ast.walk(tree))
    assert children(tree) == list(ast.iter_child_nodes(tree))
