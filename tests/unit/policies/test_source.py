import pytest

from podium.errors import PolicyError
from podium.policies.policy import policy_of
from podium.policies.source import read_source
from support.views import node, pod

GOOD = '"""Likes all."""\n\n\ndef score(pod, node):\n    return 1\n'


def made(text):
    return policy_of(read_source(text, "mine.py"), "mine")


@pytest.mark.parametrize(
    ("text", "told", "where"),
    [
        ("def score(pod, node:\n    return 1", "not Python", "mine.py, line 1"),
        ("x = 1\ndef score(pod, node):\n  return (\n", "not Python", "mine.py, line 3"),
        ("x = '\0'", "not Python", "mine.py"),
        ("-" * 100_000 + "1", "not Python", "mine.py"),
        ("", "defines no policy", "mine.py"),
        ("x = 1", "defines no policy", "mine.py"),
        ("class Policies:\n    pass", "defines no policy", "mine.py"),
        ("import os\n" + GOOD, "imports os", "mine.py, line 1"),
        (GOOD + "    node.rack = 1\n", "changes a record", "mine.py, line 6"),
    ],
)
def test_a_text_that_is_no_policy_is_told_with_its_line(text, told, where):
    with pytest.raises(PolicyError, match=told) as raised:
        read_source(text, "mine.py")
    assert raised.value.where == where


@pytest.mark.parametrize(
    "arguments", ["", "pod", "node, pod", "pod, node, table, gpu", "pod, node, gpus", "p, n"]
)
def test_a_score_with_other_arguments_is_told_the_four_forms(arguments):
    with pytest.raises(PolicyError, match="score takes") as raised:
        made(f"def score({arguments}):\n    return 1\n")
    assert "score(pod, node, gpu, table)" in raised.value.hint


def test_a_decorated_score_is_told_to_be_plain():
    with pytest.raises(PolicyError, match="not a plain function"):
        made("import functools\n\n\n@functools.cache\n" + GOOD.split("\n\n\n")[1])


@pytest.mark.parametrize("line", ["1 / 0", "raise SystemExit(3)", "import nothing_of_that_name"])
def test_a_file_that_fails_when_it_is_run_is_told(line):
    with pytest.raises(PolicyError, match=r"ZeroDivisionError|SystemExit|ModuleNotFoundError"):
        made(f"{line}\n{GOOD}")


@pytest.mark.parametrize(
    ("setting", "value"), [("TIES", "'best'"), ("GPU_CHOICE", "'tight'"), ("TIES", "3")]
)
def test_a_setting_with_another_value_is_told_the_known_ones(setting, value):
    with pytest.raises(PolicyError, match=setting) as raised:
        made(f"{setting} = {value}\n{GOOD}")
    assert "random" in raised.value.hint


@pytest.mark.parametrize(
    ("line", "may_hold"),
    [
        ("return HOLD", True),
        ("return podium.policies.HOLD", True),
        ("return -math.inf", True),
        ("return float('-inf')", True),
        ('return float("-Infinity")', True),
        ("return -1e999", True),
        ("return 1.0", False),
        ("return info", False),
    ],
)
def test_a_policy_that_can_refuse_a_node_is_recognised(line, may_hold):
    text = f"import math\n\n\ndef score(pod, node):\n    {line}\n"
    assert read_source(text, "mine.py").mentions_hold is may_hold


def test_the_summary_is_the_first_line_of_the_docstring():
    assert made(GOOD).summary == "Likes all."
    assert (
        made("def score(pod, node):\n    '''Does.\n\n    More.'''\n    return 1").summary == "Does."
    )
    assert made("def score(pod, node):\n    return 1").summary == ""


def test_every_policy_of_a_file_runs_it_afresh():
    text = "STATE = [0]\n" + GOOD
    source = read_source(text, "mine.py")
    assert source.namespace()["STATE"] is not source.namespace()["STATE"]


def test_a_function_defined_beside_score_can_be_called():
    policy = made("def help(x):\n    return x + 1\n\n\ndef score(pod, node):\n    return help(1)\n")
    assert policy.score_pair(pod(), node(), -1, None) == 2
    assert policy.native(1, 8).address > 0


@pytest.mark.parametrize(
    "text",
    [
        "\nscore = make(2.0)\n",
        "\nfrom mine import score\n",
        "\nasync def score(pod, node):\n    return 1\n",
        "if True:\n    def score(pod, node):\n        return 1\n",
    ],
)
def test_a_score_that_is_not_defined_at_the_top_is_told_so(text):
    with pytest.raises(PolicyError, match="defined at the top") as raised:
        read_source(text, "mine.py")
    assert raised.value.where == "mine.py, line 2"
    assert "def score(pod, node)" in raised.value.hint


@pytest.mark.parametrize(
    "line",
    [
        "from podium.policies import HOLD, tunable",
        "from podium.policies.builtin.best_fit import score as other",
        "from podium.policies.dot_products import dot_product",
        "from podium.policies.fragmentation import fragmentation, typical_pods",
        "from podium.policies.mixture import Mixture, Term",
        "from podium.policies.noderesources import least_allocated, most_allocated",
    ],
)
def test_what_files_of_users_import_keeps_its_place(line):
    source = read_source(f"{line}\n\n\ndef score(pod, node):\n    return 1\n", "mine.py")
    assert source.namespace()["score"](None, None) == 1
