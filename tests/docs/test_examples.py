import sys

import pytest

from support.binary import run
from support.pages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LONG = ("search_policy",)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.deep] * (path.stem in LONG))
        for path in EXAMPLES
    ],
)
def test_an_example_prints_what_stands_beside_it(script, tmp_path):
    done = run([sys.executable, str(script)], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == script.with_suffix(".out").read_text(encoding="utf-8")


def test_every_expected_output_belongs_to_an_example():
    outputs = {path.stem for path in (ROOT / "examples").glob("*.out")}
    assert outputs == {path.stem for path in EXAMPLES}
