"""A text means what Python says, however it is run; or it is refused.

`python tools/try_programs.py` tries as many drawn programs as one likes.
"""

import warnings

import numpy as np
import pytest

from podium.errors import PolicyError
from podium.model.records import NODE_8, POD
from podium.policies import policy_of
from podium.policies.source import read_source
from podium.policies.states import States
from podium.search.candidate.gates import read_candidate
from podium.search.candidate.verdict import Verdict
from podium.search.judging.machine_code import Parted
from podium.search.program.reader import parse, parse_inlined
from podium.search.promotion.control import tunable_text
from support.programs import draw_program, draw_sober
from support.tiers import states_for_programs, tried

STATES = states_for_programs(7)
TUNABLE = "from podium.policies import tunable\n\nW = tunable(0.5, 0.0, 2.0)\n\n\n"


def _states():
    """Adds to states of all kinds the one of which the programs below make something special."""
    pods, nodes = np.zeros(2, POD), np.zeros(2, NODE_8)
    pods["cpu_milli"] = 9810
    pods["gpu_models"], pods["gpu_count"], pods["gpu_milli"] = -1, [0, 1], [0, 300]
    nodes["cpu_milli_left"], nodes["cpu_milli_total"] = [20_000, 31_000], 64_000
    nodes["gpu_count"], nodes["gpu_milli_left"][1, :2] = [0, 2], [300, 1000]
    return States(
        np.concatenate([STATES.pods, pods]),
        np.concatenate([STATES.nodes, nodes]),
        np.concatenate([STATES.gpus, np.array([-1, 0], STATES.gpus.dtype)]),
    )


RARE = "pod.cpu_milli == 9810"
BODIES = {
    "and as a value": f"bonus = ({RARE}) and node.cpu_milli_left\nreturn bonus - pod.gang",
    "or as a value": f"bonus = ({RARE}) or node.cpu_milli_left\nreturn bonus - pod.gang",
    "and of numbers": "return pod.cpu_milli and node.cpu_milli_left",
    "and of truths": f"t = {RARE}\nreturn (t and node.gpu_count == 0) + 1",
    "one arm": f"if {RARE}:\n    bonus = 5\nreturn bonus if {RARE} else node.cpu_milli_left",
    "one arm, read": f"if not ({RARE}):\n    bonus = 5\nreturn bonus",
    "one arm of two": f"if {RARE}:\n    a = 1\nelse:\n    b = 2\nreturn a",
    "one arm within": f"if {RARE}:\n    if node.gpu_count == 0:\n        a = 1\n    x = a\n"
    "else:\n    x = 2\nreturn x",
    "one arm, not read and failing": f"if {RARE}:\n    a = 1 / node.gpu_count\nreturn pod.gang",
    "loop variable": "i = 0\nn = 0\nfor i in range(node.gpu_count):\n    n += 1\nreturn n + i",
    "loop variable that no round sets": "n = 0\nfor i in range(node.gpu_count):\n    n += 1\n"
    "return n + i",
    "loop variable that is set": "n = 0\nfor i in range(node.gpu_count):\n    i = i + 1\n"
    "    n += i\nreturn n",
    "two additions": "n = 0.1\nfor i in range(node.gpu_count):\n"
    "    n += node.gpu_milli_left[i] / 7\n    n += pod.cpu_milli / 3\nreturn n",
    "whole additions to a fraction": "n = 0.1\nfor i in range(node.gpu_count):\n"
    "    n += node.gpu_milli_left[i]\n    n -= pod.cpu_milli\nreturn n * 1000",
    "additions of two arms": "n = 0.1\nfor i in range(node.gpu_count):\n"
    "    if node.gpu_milli_left[i] > 500:\n        n += node.gpu_milli_left[i] / 7\n"
    "    else:\n        n -= pod.cpu_milli / 3\nreturn n",
    "a sum that begins with a fraction": "n = pod.cpu_milli / 7\nfor i in range(node.gpu_count):\n"
    "    n += node.gpu_milli_left[i] / 7\nreturn n",
    "set in one arm of a loop": "n = 0\nfor i in range(node.gpu_count):\n    t = 1\n"
    "    if node.gpu_milli_left[i] > 500:\n        t = 2\n    n += t\nreturn n",
    "swapped in a loop": "n = 0\nfor i in range(node.gpu_count):\n    a = i\n    b = 2 * i\n"
    "    a, b = b, a\n    n += a\nreturn n",
    "two names in a loop": "n = 0\nm = 0\nfor i in range(node.gpu_count):\n    n = m = 1\n"
    "return n + m",
    "chained": "a = node.cpu_milli_left\na = b = -a\nreturn b",
    "chained through itself": "a = 1\nb = 2\na = b = a + b\nreturn 10 * a + b",
    "chained fractions": "a = 1\na = b = a / 2\nreturn a + b",
    "powers of whole numbers": "return (pod.gpu_count - 3) ** (node.gpu_count - 4)",
    "powers beyond": "x = 1 + node.cpu_milli_left / 3\nreturn 1 / (x ** 64) ** 64",
    "the larger of both sorts": "x = max(0.5, node.cpu_milli_left) * node.memory_mib_left\n"
    "return x + 1 - x",
    "a choice of both sorts": "x = pod.cpu_milli if pod.gang == 0 else 0.5\nreturn x * x * x % 7",
    "a name of both sorts": "x = 0\nfor i in range(node.gpu_count):\n"
    "    x = x * 1000 + max(node.gpu_milli_left[i], 0.5)\nreturn x - x // 7",
    "a function of both sorts": "return (pod.priority or 0.5) * pod.cpu_milli * 3 % 1000",
    "a sum of both sorts": "x = (max(pod.cpu_milli, 0.5) * 4194304, 1)\nreturn sum(x) - x[0]",
    "fractions beyond": "x = max(0.5, node.cpu_milli_left / 3)\nreturn x * x * x * x",
    "large powers of whole numbers": "return node.cpu_milli_left ** 4 % 1000",
    "computed powers of whole numbers": "n = pod.gpu_count + 2\nreturn pod.cpu_milli ** n % 7",
    "sums of sums": "a = node.cpu_milli_left\nb = pod.cpu_milli\n"
    + "a, b = b, a + b\n" * 50 + "return a",
    "sums of sums in names": "v0 = node.gpu_count\nv1 = pod.gpu_count\n"
    + "".join(f"v{i + 2} = v{i} + v{i + 1}\n" for i in range(40)) + "return v41 > 7 and v40 > 8",
    "the power of math": "z = math.pow(1, 2)\nreturn z ^ 2",
    "large powers of math": "return math.pow(node.cpu_milli_left, 4) - math.pow(2, 70)",
    "a place that is not computed": "t = (pod.cpu_milli, pod.gang)\n"
    "return t[node.cpu_milli_left % (pod.priority == 0)]",
    "a length that is computed": "return len((1 // (pod.gang - 1), 2))",
    "products of powers": "return node.gpu_count ** 2 * pod.cpu_milli * node.memory_mib_left % 7",
    "rounding": "return round(pod.cpu_milli / 400 + 2.675, 2) + round(node.cpu_milli_left / 8, 1)",
    "signs of remainders": "x = pod.cpu_milli - 5000\n"
    "return x // 7 + x % 7 + x // -7 + x % -7 + int(x / 7)",
}  # fmt: skip


def _text(body, arguments="pod, node", head=""):
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"{head}def score({arguments}):\n{lines}\n"


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_judged_is_what_is_written(body):
    text = _text(body, head="import math\n\n\n")
    assert tried(text, _states()).wrong == ""


BY_GPU = {
    "no GPU of its own": f"if {RARE}:\n    return node.gpu_milli_left[gpu]\nreturn 1",
    "asked first": "here = node.gpu_milli_left[gpu] if gpu >= 0 else 0\nreturn here",
    "asked first, in words": "return (gpu >= 0 and node.gpu_milli_left[gpu] > 500) + pod.gang",
    "or else": "return (gpu < 0 or node.gpu_milli_left[gpu] > 500) + pod.gang",
    "asked between": "return 5 if node.gpu_count > 0 and gpu >= 0 and node.gpu_milli_left[gpu] > 5"
    " else 7",
    "another GPU": "gpu = 0\nreturn node.gpu_milli_left[gpu]",
    "a loop over GPUs": "n = 0\nfor gpu in range(node.gpu_count):\n"
    "    n += node.gpu_milli_left[gpu]\nreturn n + gpu",
}  # fmt: skip


@pytest.mark.parametrize("body", BY_GPU.values(), ids=BY_GPU)
def test_a_gpu_is_read_where_there_is_one(body):
    assert tried(_text(body, "pod, node, gpu"), _states()).wrong == ""


SHADOWS = {
    "local": _text("x = W\nreturn x * node.cpu_milli_left", head=TUNABLE).replace("x = W", "W = 3"),
    "argument": TUNABLE + "def f(W):\n    return W * 2\n\n\n" + _text("return f(pod.gang) + W"),
    "loop": _text("n = W\nfor W in range(3):\n    n += W\nreturn n", head=TUNABLE),
    "table": TUNABLE + "def f(table):\n    return table * W\n\n\n" + _text("return f(pod.gang)"),
    "set twice": _text("return W * node.cpu_milli_left", head=f"{TUNABLE}W = 3\n\n\n"),
    "read by a constant": _text("return V * W", head=f"{TUNABLE}V = W * 3\n\n\n"),
    "exponent": _text("return (node.cpu_milli_left / 7) ** W", head=TUNABLE),
    "whole exponent": _text("return (node.cpu_milli_left / 7) ** W", head=TUNABLE).replace(
        "tunable(0.5", "tunable(2.0"),
    "base": _text("return W ** 3 * node.cpu_milli_left", head=TUNABLE).replace("0.5", "1.1"),
    "helper's local": TUNABLE + "def f(a):\n    W = a + 1\n    return W\n\n\n"
    + _text("return f(pod.gang) * W"),
    "what is given stays": "def f(node, a):\n    for i in range(node.gpu_count):\n        a += 1\n"
    "    return a\n\n\n" + _text("n = 0\nm = f(node, n)\nreturn 100 * n + m"),
}  # fmt: skip


@pytest.mark.parametrize("text", SHADOWS.values(), ids=SHADOWS)
def test_a_name_is_what_python_finds_under_it(text):
    assert tried(text, _states()).wrong == ""


def test_a_text_that_gives_the_name_of_a_constant_away_shares_no_machine_code():
    shared = [name for name, text in SHADOWS.items() if Parted.of(text).values]
    assert shared == ["read by a constant", "exponent", "whole exponent", "base"]


@pytest.mark.parametrize("draw", [draw_program, draw_sober])
def test_drawn_programs_score_as_in_python(draw):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # tuples indexed by fractional numbers
        found = [tried(draw(n), STATES, is_compiling=False) for n in range(30_000, 30_150)]
    assert [each.wrong for each in found if each.wrong] == []
    assert any(each.is_interpreted for each in found)


def _chain(count):
    arms = "".join(f"    elif pod.gang == {i}:\n        return {i}\n" for i in range(count))
    return f"def score(pod, node):\n    if pod.gang < 0:\n        return 7\n{arms}    return 1\n"


def test_a_chain_of_elif_is_read_or_refused():
    assert not isinstance(read_candidate(_chain(40)), Verdict)
    assert len(read_candidate(_chain(40)).fingerprint) == 64
    refused = read_candidate(_chain(400))
    assert isinstance(refused, Verdict)
    assert "goes on with elif more than 64 times" in refused.reason


MANY_IFS = _text(
    "n = 0\n" + "".join(
        f"if pod.gang > {i}:\n    if node.rack > {i}:\n        return {i}\n    n += {i}\n"
        for i in range(16)
    ) + "return n"
)  # fmt: skip
DOUBLED = "def f0(a):\n    return a + 1 / (1 + a * a)\n" + "".join(
    f"def f{i + 1}(a):\n    return f{i}(a) - f{i}(a + {i}) * 0.5\n" for i in range(24)
) + _text("return f24(node.gpu_count)")  # fmt: skip
OF_RECORDS = "def f0(node):\n    return node.gpu_count\n" + "".join(
    f"def f{i + 1}(node):\n    return f{i}(node) + f{i}(node) * 2\n" for i in range(24)
) + _text("return f24(node)")  # fmt: skip
GROWING = "def f(a):\n" + "".join("    a = a + a * a\n" for _ in range(40)) + (
    "    return a\n" + _text("return f(node.gpu_count) if pod.gang else 0"))  # fmt: skip


@pytest.mark.parametrize("text", [MANY_IFS, DOUBLED, OF_RECORDS, GROWING])
def test_reading_ends_soon_whatever_is_written(text):
    assert not isinstance(read_candidate(text), Verdict)
    for read in (parse, parse_inlined):
        with pytest.raises(PolicyError):
            read(text)
    assert tunable_text(text) == text


def test_what_would_compile_for_minutes_runs_as_it_is_written():
    lines = "n = 0\n" + "".join(f"if pod.gang > {i}:\n    n += {i}\n" for i in range(600))
    long = policy_of(read_source(_text(f"{lines}return n"), "p"), "p")
    assert long.not_compiled == "line 1: has more than 6,000 parts"
    loops = "n = 0\n" + "".join("    " * i + f"for i{i} in range(9):\n" for i in range(8))
    counted, called = (f"{loops}{' ' * 32}n += {each}\nreturn n" for each in ("1", "f()"))
    helper = _text(counted).replace("score(pod, node)", "f()")
    deep = policy_of(read_source(helper + _text(called), "p"), "p")
    assert deep.not_compiled.endswith("nests more than 12 loops")


def test_many_ifs_are_judged_as_they_are_written():
    outcome = tried(MANY_IFS, _states(), is_compiling=False)
    assert (outcome.is_candidate, outcome.is_interpreted, outcome.wrong) == (True, False, "")


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("A = (1,) * 60000000", "computes a constant with a tuple"),
        ("B = (1,)\nA = B * 60000000", "computes a constant with a tuple"),
        ("A = 9 ** 64", "an integer beyond 2**53"),
        ("B = 64\nA = B ** (B ** 8)", "raises to a power beyond 64"),
        ("A = 1 / 0", "computes a constant that fails: division by zero"),
        ("A = (-8) ** 0.5", "raises a negative number to a fractional power"),
        ("A = B\nB = 1", "uses B before it is set"),
        ("A, B = 1, 2, 3", "does not unpack into `(A, B)`"),
    ],
)
def test_constants_that_cost_much_or_fail_are_refused_unread(head, told):
    found = read_candidate(_text("return pod.gang", head=f"{head}\n\n\n"))
    assert isinstance(found, Verdict)
    assert told in found.reason


def test_constants_are_computed_as_python_does():
    head = "A = 1.1 ** 3\nB, C = 2, -A\nD = E = B ** 3 // -3\nF = (A, D, not B)\n\n\n"
    text = _text("return A * pod.cpu_milli + B * C + D - E + F[1]", head=head)
    assert not isinstance(read_candidate(text), Verdict)
    assert tried(text, _states()).wrong == ""


def test_a_chained_assignment_computes_once_in_every_policy_file():
    text = _text("a = node.cpu_milli_left\na = b = -a\nreturn b")
    policy = policy_of(read_source(text, "policy.py"), "policy")
    for pod, node, _ in STATES.views():
        assert policy.function(pod, node) == -node.cpu_milli_left
