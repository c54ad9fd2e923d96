import ast

import pytest

from podium.search.candidate.gates import Candidate, read_candidate
from podium.search.candidate.text import complexity_of, fingerprint
from podium.search.candidate.verdict import ALLOWLIST, NOVELTY, Verdict
from podium.search.candidate.vocabulary import MATH_FUNCTIONS, MATH_NUMBERS
from support.hostile import GOOD

LOOP = '''"""Sums."""
from podium.policies import tunable

WEIGHT = tunable(0.5, 0.0, 1.0)


def helper(slot):
    return slot + 1


def score(pod, node):
    """Adds up."""
    total = 0
    for slot in range(node.gpu_count):
        total += node.gpu_milli_left[slot] * helper(slot)
    return WEIGHT * total
'''


def test_a_good_text_becomes_a_candidate():
    found = read_candidate(LOOP)
    assert isinstance(found, Candidate)
    assert found.text == LOOP
    assert not found.may_hold


def test_a_candidate_that_may_hold_is_marked():
    text = "from podium.policies import HOLD\ndef score(pod, node):\n    return HOLD\n"
    found = read_candidate(text)
    assert isinstance(found, Candidate)
    assert found.may_hold


def test_a_known_candidate_is_not_judged_again():
    first = read_candidate(LOOP)
    assert isinstance(first, Candidate)
    again = read_candidate(LOOP.replace("Sums", "Adds"), {first.fingerprint})
    assert again == Verdict(
        False, NOVELTY, "it computes the same as a candidate that was judged before"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("total", "amount"),
        ("helper", "aid"),
        ("WEIGHT", "W"),
        ("slot", "i"),
        ("\n\n\n", "\n\n# x\n"),
    ],
)
def test_names_layout_and_comments_make_no_new_candidate(old, new):
    assert fingerprint(ast.parse(LOOP)) == fingerprint(ast.parse(LOOP.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.5", "0.6"), ("slot + 1", "slot + 2"), ("+= ", "-= "), ("gpu_count", "rack")],
)
def test_what_changes_a_score_makes_a_new_candidate(old, new):
    assert fingerprint(ast.parse(LOOP)) != fingerprint(ast.parse(LOOP.replace(old, new, 1)))


def test_annotations_make_no_new_candidate():
    annotated = LOOP.replace("def helper(slot):", "def helper(slot: int) -> int:")
    annotated = annotated.replace("total = 0", "total: int = 0")
    assert fingerprint(ast.parse(LOOP)) == fingerprint(ast.parse(annotated))


def test_many_problems_are_told_in_a_few_lines():
    lines = "\n".join(f"    x{i} = [{i}]" for i in range(9))
    found = read_candidate(f"def score(pod, node):\n{lines}\n    return 1.0\n")
    assert isinstance(found, Verdict)
    assert found.gate == ALLOWLIST
    assert found.reason.splitlines()[0] == (
        "line 2: uses a list, which a score function does not need"
    )
    assert found.reason.splitlines()[-1] == "and 4 more"


def test_the_incumbent_itself_passes_its_race_and_a_clearly_worse_one_stops_early(judge):
    incumbent = judge.judge(GOOD)
    again = judge.judge(GOOD, incumbent=incumbent.cases)
    assert again.verdict.accepted
    assert again.cases == incumbent.cases
    better = [{**case, "allocation_130": 100.0} for case in incumbent.cases]
    worse = judge.judge(GOOD, incumbent=better)
    assert (worse.verdict.accepted, worse.verdict.gate) == (False, "race")
    assert "trails the incumbent after 1 case:" in worse.verdict.reason
    assert worse.cases == incumbent.cases[:1]


def test_a_judgement_has_one_shape(judge):
    found = judge.judge(GOOD).as_object()
    assert list(found) == ["accepted", "gate", "reason", "scores", "seconds"]
    assert found["scores"]["fitness"] == found["scores"]["inflation"]
    assert found["scores"]["fgd"]["allocation_130"] > 0
    assert len(found["scores"]["cases"]) == 2
    assert found["scores"]["may_hold"] is False


def _everything():
    two = {"atan2", "copysign", "hypot", "pow"}
    calls = [
        f"math.{name}(share, 0.25)" if name in two else f"math.{name}(share)"
        for name in sorted(MATH_FUNCTIONS)
    ]
    numbers = [f"math.{name}" for name in sorted(MATH_NUMBERS - {"inf"})]
    return f"""import math

from podium.policies import HOLD, tunable

WEIGHT = tunable(0.5, 0.0, 2.0)
PAIR = (1.0, 2.0)


def helper(node, slot):
    return node.gpu_milli_left[slot] if slot >= 0 else 0


def score(pod, node, gpu):
    if pod.gpu_count == 0 and not node.gpu_count > 2 or pod.gang == 2:
        return HOLD
    total, best = 0, 0.0
    for slot in range(node.gpu_count):
        total += node.gpu_milli_left[slot] >> 1 & 3 | 4 ^ 5
    for left in node.gpu_milli_left:
        best = max(best, left % 7)
    while total > 1:
        total //= 2
        if total == 1:
            break
    share = 1 / (1 + best)
    best += abs(best) + min(total, 3) + round(best / 3) + int(best) + float(total) + (~total)
    best += round(best, 2) + pow(best, 2) + share ** 0.3 + share ** 3 + bool(best) + PAIR[total % 2]
    best += sum(node.gpu_milli_left) + max(node.gpu_milli_left) - helper(node, gpu)
    return WEIGHT * best + {" + ".join(calls)} + {" + ".join(numbers)}
"""


def test_all_that_is_allowed_runs_and_compiles_in_a_process_that_reaches_no_file(
    judge, compiling_judge
):
    plain, compiled = judge.judge(_everything()), compiling_judge.judge(_everything())
    assert plain.verdict.accepted, plain.verdict
    assert compiled.verdict.accepted, compiled.verdict
    assert plain.cases == compiled.cases
    assert plain.scores["may_hold"]


def test_a_candidate_scores_the_same_plain_and_compiled(judge, compiling_judge):
    assert judge.judge(GOOD).cases == compiling_judge.judge(GOOD).cases


def test_built_in_policies_reach_what_the_simulator_says(judge):
    from podium.evaluation.measures import measure_case
    from podium.policies import load
    from podium.sim.execution import execute

    policy = load("best-fit")
    assert policy.source is not None
    expected = [measure_case(execute(case.plan(policy))) for case in judge.training.cases]
    assert list(judge.judge(policy.source.text).cases) == expected


def test_a_text_is_read_once_and_what_is_known_is_asked_every_time():
    first = read_candidate(GOOD)
    assert read_candidate(GOOD) is first
    assert read_candidate(GOOD, {first.fingerprint}).gate == "novelty"
    assert read_candidate(GOOD) is first
    assert first.complexity == complexity_of(GOOD)
