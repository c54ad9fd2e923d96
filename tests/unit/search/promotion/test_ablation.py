import pytest

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
        worth = {"gang": 1.0, "W * free": 2.0, "twice(node": 4.0, "> 0": 0.5, "free +=": 8.0}
        return sum(value for name, value in worth.items() if name in text)

    return {part.code: part for part in ablate(TEXT, score)}


def test_every_term_guard_and_quantity_is_listed(parts):
    assert {code: part.kind for code, part in parts.items()} == {
        "free": "quantity",
        "spare": "quantity",
        "if node.gpu_milli_left[slot] > 0": "guard",
        "if pod.gang > 3": "guard",
        "W * free": "term",
        "-spare / max(1, free)": "term",
    }


def test_what_is_lost_is_what_the_score_says(parts):
    assert parts["if pod.gang > 3"].loss == 1.0
    assert parts["if node.gpu_milli_left[slot] > 0"].loss == 0.5
    assert parts["W * free"].loss == 2.0
    assert parts["-spare / max(1, free)"].loss == 4.0
    assert parts["spare"].loss == 4.0
    assert parts["free"].loss >= 8.0


def test_sentences_say_what_a_part_does(parts):
    assert parts["W * free"].sentence == "Raises the score with w times free."
    assert parts["-spare / max(1, free)"].sentence == (
        "Lowers the score with spare over the most of 1 and free."
    )
    assert parts["if pod.gang > 3"].sentence == "Returns hold where the pod's gang is above 3."
    assert parts["spare"].sentence == "Stands for `twice(node.cpu_milli_left)`."
    assert parts["free"].sentence == "Is worked out in steps."
    assert parts["if node.gpu_milli_left[slot] > 0"].sentence == (
        "Looks, within its loop, only where `node.gpu_milli_left[slot] > 0`."
    )


def test_a_part_without_which_there_is_no_program_has_no_figure():
    (part,) = ablate("def score(pod, node):\n    return pod.gang\n", lambda _text: -1e400, 5.0)
    assert part.loss is None
    assert "loss" not in part.as_object()


def test_a_summary_is_in_the_words_of_a_person_or_what_its_strongest_term_does(parts):
    listed = list(parts.values())
    assert summary_of("Packs. \n\nMore.", listed) == "Packs."
    assert summary_of("Fills GPUs", listed) == "Fills GPUs."
    assert summary_of("Scores a pod on a node.", listed).startswith("Lowers the score with spare")
    assert summary_of("", []) == "Scores a pod on a node by a formula that a search found."


def test_what_is_unknown_is_left_out():
    assert Provenance(run="ab", evaluations=0).as_object() == {"run": "ab", "evaluations": 0}
