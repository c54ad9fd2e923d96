import pytest

from podium.search.program.reader import parse_inlined
from podium.search.promotion.ablation import ablate
from podium.search.promotion.card import Provenance, summary_of

TEXT = '''"""Any."""

from podium.policies import HOLD

W = 0.25


def twice(a):
    return 2 * a


def score(pod, node, gpu):
    free = 0
    for slot in range(node.gpu_count):
        if node.gpu_milli_left[slot] > 0:
            free += node.gpu_milli_left[slot]
    if pod.gang > 3:
        return HOLD
    spare = twice(node.cpu_milli_left)
    return W * free - spare / max(1, free) + 7
'''


@pytest.fixture(scope="module")
def parts():
    def score(text):
        # Every part is worth what its name says: no cut can hide behind another.
        worth = {"gang": 1.0, "W * free": 2.0, "2 * node": 4.0, "> 0": 0.5, "free +=": 8.0}
        return sum(value for name, value in worth.items() if name in text)

    return {part.code: part for part in ablate(parse_inlined(TEXT), score)}


def test_every_term_guard_and_quantity_is_listed(parts):
    assert {code: part.kind for code, part in parts.items()} == {
        "free": "quantity",
        "spare": "quantity",
        "if left > 0": "guard",
        "if pod.gang > 3": "guard",
        "W * free": "term",
        "-spare / max(1, free)": "term",
    }


def test_what_is_lost_is_what_the_score_says(parts):
    assert parts["if pod.gang > 3"].loss == 1.0
    assert parts["if left > 0"].loss == 0.5
    assert parts["W * free"].loss == 2.0
    assert parts["-spare / max(1, free)"].loss == 4.0
    assert parts["spare"].loss == 4.0
    assert parts["free"].loss >= 8.0


def test_only_what_has_a_known_meaning_gets_a_note(parts):
    program = parse_inlined(TEXT.replace("if node.gpu_milli_left[slot] > 0", "if 1 > 0"))
    notes = {part.code: part.note for part in ablate(program, lambda _text: 1.0)}
    assert {part.note for part in parts.values()} == {""}
    assert notes["free"] == "" or notes["free"] == "Free GPU milli of the node."
    (part,) = ablate(
        parse_inlined("def score(pod, node):\n    wanted = pod.gpu_count * pod.gpu_milli\n"
                      "    return 1 - wanted\n"),
        lambda _text: 1.0,
    )[:1]  # fmt: skip
    assert (part.code, part.note) == ("wanted", "GPU milli that the pod takes.")


def test_a_part_without_which_there_is_no_program_has_no_figure():
    program = parse_inlined("def score(pod, node):\n    return pod.gang\n")
    (part,) = ablate(program, lambda _text: -1e400, 5.0)
    assert part.loss is None
    assert "loss" not in part.as_object()


def test_a_summary_is_in_the_words_of_a_person_where_they_say_something():
    assert summary_of("Packs. \n\nMore.") == "Packs."
    assert summary_of("Fills GPUs") == "Fills GPUs."
    for nothing in ("Scores a pod on a node.", ""):
        expected = "Scores a pod on a node by a formula that a search found."
        assert summary_of(nothing, "found") == expected
        assert "of people" in summary_of(nothing, "tuned")


def test_what_is_unknown_is_left_out():
    assert Provenance(run="ab", evaluations=0).as_object() == {"run": "ab", "evaluations": 0}
