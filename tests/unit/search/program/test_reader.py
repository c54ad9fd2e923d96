import pytest

from podium.errors import PolicyError
from podium.evaluation.cases import Case
from podium.policies import load, policy_of
from podium.policies.source import read_source
from podium.search.generators.genetic.seeds import BUILTIN
from podium.search.program.interpreter import interpreted
from podium.search.program.program import Guard, Term
from podium.search.program.reader import parse, parse_inlined
from podium.search.program.writer import write
from podium.sim.execution import execute
from support.bred import policy, score, views
from support.views import node, pod


def _body(text):
    lines = "\n".join(f"    {line}" for line in text.strip().splitlines())
    return parse(f"GPU_MILLI = 1000\n\n\ndef score(pod, node):\n{lines}\n")


def _score(text, the_pod, the_node):
    return score(policy(_body(text)), the_pod, the_node, -1)


@pytest.mark.parametrize("title", BUILTIN)
def test_a_built_in_policy_scores_the_same_once_read_and_written(title):
    original = load(title.replace("_", "-"))
    copy = policy(parse(original.source.text))
    for pod_seen, node_seen, gpu in views(200):
        assert score(copy, pod_seen, node_seen, gpu) == score(original, pod_seen, node_seen, gpu)


@pytest.mark.parametrize(
    "title", ["balanced", "compact", "funsearch-4800", "funsearch-4901", "worst-fit", "random"]
)
def test_functions_of_a_policy_are_written_into_place_to_the_bit(title):
    original = load(title)
    text = write(parse_inlined(original.source.text))
    assert text.count("def ") == 1
    copy = policy_of(read_source(text, "copy.py"), title)
    for pod_seen, node_seen, gpu in views(200):
        assert score(copy, pod_seen, node_seen, gpu) == score(original, pod_seen, node_seen, gpu)
    case = Case(nodes=12, pods=200, seed=1000)
    assert execute(case.plan(copy)).digest == execute(case.plan(original)).digest


WORTH = """
def worth(milli):
    \"\"\"Values a free part.\"\"\"
    if milli < SMALL:
        return 0
    half = milli / 2
    return half if milli < 500 else capped(milli)


def capped(milli):
    return min(milli, 900)


def free(node):
    total = 0
    for slot in range(node.gpu_count):
        total += worth(node.gpu_milli_left[slot])
    return total


SMALL = 200


def score(pod, node):
    return worth(pod.gpu_milli) - free(node)
"""


def test_functions_of_numbers_are_kept_and_those_of_records_written_into_place():
    program = parse(WORTH)
    assert [each.name for each in program.functions] == ["capped", "worth"]
    assert program.functions[1].summary == "Values a free part."
    text = write(program)
    assert text.count("def ") == 3
    assert parse(text) == program
    original, copy = policy_of(read_source(WORTH, "worth.py"), "worth"), policy(program)
    fast = interpreted(program)
    table = fast.prepare(None)
    for pod_seen, node_seen, gpu in views(200):
        expected = score(original, pod_seen, node_seen, gpu)
        assert score(copy, pod_seen, node_seen, gpu) == expected
        assert fast.score_pair(pod_seen, node_seen, gpu, table) == expected


def test_a_parameter_with_the_name_of_a_constant_is_another():
    program = parse(
        "MILLI = 1000\n\n\ndef part(MILLI):\n    return MILLI / 2\n\n\n"
        "def score(pod, node):\n    return part(pod.gpu_milli) + MILLI\n"
    )
    assert program.functions[0].parameters == ("MILLI_2",)
    assert score(policy(program), pod(gpus=1, milli=500), node(gpus=(1000,)), -1) == 1250


def _inlined(helper, body):
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return parse_inlined(f"{helper}\n\n\ndef score(pod, node):\n{lines}\n")


def test_a_function_that_returns_early_becomes_a_choice_that_fails_no_more_than_it_did():
    helper = (
        "def part(a, b):\n    if b == 0:\n        return 7\n    half = b / 2\n    return a / half"
    )
    found = policy(_inlined(helper, "return part(pod.cpu_milli, node.gpu_count)"))
    assert score(found, pod(cpu=10), node(), -1) == 7
    assert score(found, pod(cpu=10), node(gpus=(1000,)), -1) == 20


def test_a_function_that_is_called_in_one_case_only_is_computed_in_that_case_only():
    helper = "def part(a):\n    whole = 1 / a\n    return whole + 1"
    for body in (
        "return 5 if node.gpu_count == 0 else part(node.gpu_count)",
        "if node.gpu_count == 0:\n    x = 5\nelse:\n    x = part(node.gpu_count)\nreturn x",
        "x = 5\nif node.gpu_count > 0 and part(node.gpu_count) > 0:\n"
        "    x = part(node.gpu_count)\nreturn x",
    ):
        found = policy(_inlined(helper, body))
        assert score(found, pod(), node(), -1) == 5
        assert score(found, pod(), node(gpus=(1000, 1000)), -1) == 1.5


def test_functions_call_each_other_and_name_records_as_they_like():
    helper = (
        "def free(machine):\n    n = 0\n    for slot in range(machine.gpu_count):\n"
        "        n += machine.gpu_milli_left[slot]\n    return n\n\n\n"
        "def both(node, pod):\n    return free(node) + free(node) * pod.gpu_count"
    )
    found = policy(_inlined(helper, "n = 3\nreturn n + both(node, pod)"))
    assert score(found, pod(gpus=1), node(gpus=(1000, 500)), -1) == 3003


@pytest.mark.parametrize(
    ("helper", "call"),
    [
        ("def f(a):\n    return f(a)", "f(1)"),
        ("def f(a):\n    return g(a)\n\n\ndef g(a):\n    return f(a)", "f(1)"),
        ("def f(a):\n    return a, a", "f(1)[0]"),
        ("def f(a):\n    return a", "f(a=1)"),
        ("def f(a, b):\n    return a", "f(1)"),
        ("def f(a):\n    a += 1", "f(1)"),
        (
            "def f(node):\n    n = 0\n    for slot in range(node.gpu_count):\n        n += 1\n"
            "    return n",
            "0 if pod.gpu_count == 0 else f(node)",
        ),
    ],
)
def test_functions_that_no_program_can_hold_are_refused(helper, call):
    with pytest.raises(PolicyError, match="cannot be bred"):
        _inlined(helper, f"return {call}")


def test_constants_keep_their_bounds_and_settings_their_text():
    program = parse(
        "from podium.policies import tunable\n\n"
        'TIES = "random"\nHALF = 1 / 2\nWEIGHT = tunable(0.5, low=0.0, high=2.0)\n\n\n'
        "def score(pod, node):\n    return WEIGHT * HALF * node.gpu_count\n"
    )
    half, weight = program.constants
    assert (half.value, half.bounds) == (0.5, None)
    assert (weight.value, weight.bounds) == (0.5, (0.0, 2.0))
    assert program.settings == (("TIES", "random"),)
    assert parse(write(program)) == program


def test_a_name_that_is_given_twice_becomes_two():
    program = _body("total = pod.cpu_milli\ntotal += 5\ntotal *= 2\nreturn total")
    assert [term.name for term in program.block.statements] == ["total", "total_2", "total_3"]
    assert score(policy(program), pod(cpu=10), node(), -1) == 30


def test_an_if_without_a_return_becomes_a_choice():
    text = "bonus = 1\nif pod.gpu_count == 0:\n    bonus = 7\nelse:\n    bonus += 2\nreturn bonus"
    assert _score(text, pod(), node()) == 7
    assert _score(text, pod(gpus=1), node(gpus=(1000,))) == 3


def test_returns_in_branches_become_guards():
    text = """
if pod.gpu_count == 0:
    return 1
elif pod.gpu_milli < 1000:
    half = node.gpu_count / 2
    return half
else:
    extra = 5
return extra + node.gpu_count
"""
    program = _body(text)
    assert any(isinstance(statement, Guard) for statement in program.block.statements)
    assert _score(text, pod(), node(gpus=(1000,))) == 1
    assert _score(text, pod(gpus=1, milli=500), node(gpus=(1000,))) == 0.5
    assert _score(text, pod(gpus=1), node(gpus=(1000,))) == 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n = 0\nfor slot in range(node.gpu_count):\n    n += node.gpu_milli_left[slot]", 1500),
        ("n = 0\nfor slot in range(8):\n    if node.gpu_milli_left[slot] == 0:\n        n += 1", 6),
        ("n = 5\nfor left in node.gpu_milli_left:\n    n = max(n, left)", 1000),
        (
            "n = 9999\nfor slot in range(node.gpu_count):\n    left = node.gpu_milli_left[slot]\n"
            "    if left < n:\n        n = left",
            500,
        ),
        (
            "n = 0\nfor slot in range(node.gpu_count):\n    left = node.gpu_milli_left[slot]\n"
            "    if left == 1000:\n        continue\n    n -= left",
            -500,
        ),
        (
            "n = 0\nfor slot in range(node.gpu_count):\n    left = node.gpu_milli_left[slot]\n"
            "    if left == 1000:\n        n += 1\n    else:\n        n += 10",
            11,
        ),
        ("n = node.gpu_count\nfor slot in range(node.gpu_count):\n    n += 1", 4),
        ("n = 0\nfor slot in range(node.gpu_count):\n    n += node.gpu_milli_left[slot] > 700", 1),
    ],
)
def test_loops_over_slots_become_reductions(text, expected):
    seen = node(gpus=(1000, 500))
    assert _score(f"{text}\nreturn n", pod(), seen) == expected
    program = _body(f"{text}\nreturn n")
    assert parse(write(program)) == program


def test_a_loop_keeps_the_name_of_what_it_adds_up():
    program = _body("n = 0\nfor slot in range(node.gpu_count):\n    n += 1\nreturn n")
    (term,) = program.block.statements
    assert isinstance(term, Term)
    assert (term.name, term.expression.head) == ("n", "sum")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("while True:\n    pass", "this statement"),
        ("return [1][0]", "cannot be bred"),
        ("for slot in range(3):\n    pass\nreturn 0", "a loop over range(3)"),
        ("n = 1\nfor slot in range(node.gpu_count):\n    n *= 2\nreturn n", "multiplies"),
        ("return unknown", 'the unknown name "unknown"'),
        ("return pod.colour", '"pod.colour"'),
        ("total = 1", "an end without a return"),
        ("return pod.gpu_count & 1", "pod.gpu_count & 1"),
        ("return sorted(node.gpu_count)", "cannot be bred"),
        (
            "n = 0\nfor slot in range(node.gpu_count):\n    n += n\nreturn n",
            "reads what it changes",
        ),
    ],
)
def test_what_no_program_can_say_is_refused_with_its_line(text, said):
    with pytest.raises(PolicyError) as caught:
        _body(text)
    assert said in str(caught.value)
    assert caught.value.where.startswith("policy.py")


def test_policies_with_a_table_or_a_choice_of_their_own_are_refused():
    for title in ("fgd", "round-robin"):
        with pytest.raises(PolicyError, match="cannot be bred"):
            parse(load(title).source.text)


def test_text_that_is_not_python_is_refused():
    with pytest.raises(PolicyError, match="not Python"):
        parse("def score(")
