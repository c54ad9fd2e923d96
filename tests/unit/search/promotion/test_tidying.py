import ast

import pytest

from podium.policies import policy_of
from podium.policies.source import read_source
from podium.search.candidate.gates import Candidate, read_candidate
from podium.search.program.writer import write
from podium.search.promotion.edits import edits, without
from podium.search.promotion.policy_file import policy_texts
from podium.search.promotion.tidying import size, tidied
from support import bred

HEAD = "def score(pod, node):\n"


def tidy(body, top=""):
    text = top + HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    return ast.unparse(tidied(ast.parse(text)))


def body_of(text):
    return "\n".join(line[4:] for line in text.split(HEAD)[1].splitlines())


def scores(text):
    policy = policy_of(read_source(text, "bred.py"), "bred")
    return [bred.score(policy, *view) for view in bred.views(60)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return 2 * 3 + 1", "return 7"),
        ("return pod.cpu_milli * 1 + 0", "return pod.cpu_milli"),
        ("return 0 - pod.cpu_milli", "return -pod.cpu_milli"),
        ("return 0 * pod.cpu_milli", "return 0"),
        ("return 1 / 0", "return 1 / 0"),
        ("return max(3, min(1, 2), 3)", "return 3"),
        ("return 4 if 1 < 2 else 5", "return 4"),
        ("return 4 if pod.gang else 4", "return 4"),
        ("return 1 if True and pod.gang > 1 else 0", "return 1 if pod.gang > 1 else 0"),
        ("if 1 > 2:\n    return 5\nreturn 6", "return 6"),
        ("if pod.gang > 1:\n    return 6\nreturn 6", "if pod.gang > 1:\n    return 6\nreturn 6"),
        ("return 1\nreturn 2", "return 1"),
        ("a = 5\nb = a\nreturn b * pod.gang", "return 5 * pod.gang"),
        ("a = 0\nfor i in range(3):\n    a += i\nreturn 1", "return 1"),
        ("a = 0\nfor i in range(3):\n    a = max(a, i)\nreturn 1", "return 1"),
        (
            "a = 0\nif pod.gang > 1:\n    b = 1\nelse:\n    a = 2\nreturn a",
            "a = 0\nif not pod.gang > 1:\n    a = 2\nreturn a",
        ),
    ],
)
def test_what_cannot_matter_goes(before, after):
    assert body_of(tidy(before)) == after


def test_what_nothing_uses_goes_from_the_top_of_the_file():
    top = (
        '"""Stays."""\nimport math\nfrom podium.policies import HOLD, tunable\n'
        "W = tunable(1, 0, 2)\nUNUSED = 5\nTIES = 'random'\n"
        "def helper(a):\n    return a\n"
    )
    text = tidy("return W * pod.gang", top)
    assert "HOLD" not in text
    assert "math" not in text
    assert "UNUSED" not in text
    assert "helper" not in text
    assert '"""Stays."""' in text
    assert "TIES" in text
    assert "tunable(1, 0, 2)" in text


def test_size_counts_neither_documentation_nor_imports():
    plain = HEAD + "    return 1\n"
    told = '"""Doc."""\nimport math\n' + HEAD + '    """Doc."""\n    return 1\n'
    assert size(ast.parse(plain)) == size(ast.parse(told)) == 3


def test_tidying_changes_no_score_of_bred_programs():
    for program in bred.brood(120)[::8]:
        text = write(program)
        assert scores(ast.unparse(tidied(ast.parse(text)))) == scores(text), text


def test_written_policies_score_as_the_programs_they_were():
    for program in bred.brood(120)[2::8]:
        text = write(program)
        for written in policy_texts(text, "Doc."):
            assert scores(written) == pytest.approx(scores(text), rel=1e-12), written
            assert isinstance(read_candidate(written), Candidate), written


BOASTING = '''"""Won. def score( of 99.9 %."""


def half(x):
    """Gains +9.99 over fgd."""
    return x / 2


def score(pod, node):
    """Gains +9.99 over fgd."""
    return {}
'''


@pytest.mark.parametrize("returned", ["half(node.cpu_milli_left)", "-node.cpu_milli_left"])
def test_the_words_of_a_candidate_are_left_out(returned):
    text = BOASTING.format(returned)
    if "half(" not in returned:
        text = text.replace(text[text.index("def half") : text.index("def score(pod")], "")
    for written in policy_texts(text, "Doc."):
        assert scores(written) == pytest.approx(scores(text), rel=1e-12)
        assert "9.9" not in written


def test_every_cut_of_bred_programs_is_python_and_most_are_smaller():
    for program in bred.brood(40)[8::16]:
        tree = ast.parse(write(program))
        before = ast.dump(tree)
        found = edits(tree)
        saved = [edit.saved for edit in found]
        assert saved == sorted(saved, reverse=True)
        assert len({edit.key for edit in found}) == len(found)
        texts = [without(tree, edit.place, edit.replacement) for edit in found]
        sizes = [size(ast.parse(text)) for text in texts]
        assert sum(each < size(tree) for each in sizes) > len(sizes) / 2
        assert ast.dump(tree) == before
