from podium.search.genetic import seeds, write
from podium.search.size import complexity_of

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
