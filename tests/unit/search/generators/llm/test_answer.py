import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.search.candidate.gates import Candidate, read_candidate
from podium.search.generators.llm.answer import read_answer, read_body
from support.chat_server import POLICY, fenced

OTHER = POLICY.replace("cpu_milli_left / 1000", "memory_mib_left")

GOOD = {
    "as asked": fenced(),
    "other language tags": fenced(info="py"),
    "no language tag": fenced(info=""),
    "tildes": fenced(fence="~~~"),
    "long fences": fenced(fence="`````"),
    "fence never closed": fenced().rstrip("`\n"),
    "closed by another fence": fenced().rstrip("`\n") + "\n~~~\nI hope this helps!",
    "fence never closed, prose after": fenced().rstrip("`\n") + "\n\nThis fills nodes, up to 90 %.",
    "no fence": "Thought: fill nodes up\n\n" + POLICY,
    "no fence, prose after": f"Thought: fill nodes up\n{POLICY}\nThis fills nodes up, as you see.",
    "windows line ends": fenced().replace("\n", "\r\n"),
    "indented in a list": "1. Thought: fill nodes up\n" + fenced(POLICY)
    .split("\n\n", 1)[1].replace("\n", "\n   ").replace("```python", "   ```python", 1),
    "a parent shown first": f"The parent was\n```python\n{OTHER}```\n" + fenced(),
    "an example of use after it": fenced() + "\nCall it so:\n```python\nscore(pod, node)\n```\n",
    "a shell line first": "```bash\npip install x\n```\n" + fenced(),
    "thinking first": f"<think>Perhaps\n```python\n{OTHER}```\n</think>\n" + fenced(),
    "a JSON object": json.dumps({"thought": "fill nodes up", "code": POLICY}),
    "a JSON object with a fence": json.dumps({"thought": "fill nodes up", "code": fenced()}),
}  # fmt: skip


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_a_program_is_found_however_it_is_wrapped(text):
    answer = read_answer(text)
    assert answer.problem == ""
    found = read_candidate(answer.text)
    assert isinstance(found, Candidate)
    assert found.fingerprint == read_candidate(POLICY).fingerprint


@pytest.mark.parametrize(
    "name", ["as asked", "tildes", "no fence", "windows line ends", "a JSON object"]
)
def test_the_thought_is_found_beside_the_program(name):
    assert read_answer(GOOD[name]).thought == "fill nodes up"


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("**Thought:** pack *tightly*\n```\n" + POLICY + "```", "pack *tightly"),
        ("Pack tightly.\n\nMore.\n```\n" + POLICY + "```", "Pack tightly."),
        (POLICY, "Prefers nodes with little CPU left."),
        ("Thought: " + "long " * 200 + "\n```\n" + POLICY + "```", ("long " * 59 + "lo...")),
    ],
)
def test_a_thought_is_one_short_line(text, thought):
    assert read_answer(text).thought == thought


@pytest.mark.parametrize(
    "text",
    ["I cannot help with that.", "", "```\n```", "```text\nno code\n```", "<think>def score("],
)
def test_prose_is_no_program(text):
    answer = read_answer(text)
    assert answer.text == ""
    assert "holds no program" in answer.problem


def test_a_program_with_a_mistake_is_left_to_the_gates():
    text = "```python\ndef score(pod, node):\n    return (1\n```"
    assert read_answer(text).text == "def score(pod, node):\n    return (1\n"
    assert "def priority" in read_answer("```python\ndef priority(pod):\n    return 1\n```").text


def test_an_answer_cut_off_within_the_program_is_a_problem():
    cut = fenced()[:-30]  # what is left is Python, and another program
    assert "cut off" in read_answer(cut, is_cut=True).problem
    assert "cut off" in read_answer(cut.replace("```python\n", ""), is_cut=True).problem
    assert "cut off" in read_answer("Thought: I would", is_cut=True).problem


def test_an_answer_cut_off_after_the_program_is_used():
    answer = read_answer(fenced() + "\nThis pol", is_cut=True)
    assert (answer.text, answer.problem) == (POLICY, "")


def body(content, finish="stop", **more):
    return {"choices": [{"message": {"content": content, **more}, "finish_reason": finish}]}


def test_an_answer_in_parts_is_put_together():
    parts = [{"type": "text", "text": fenced()[:40]}, {"type": "text", "text": fenced()[40:]}]
    assert read_body(body(parts)).text == POLICY


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (None, "no choices"),
        ([], "no choices"),
        ({}, "no choices"),
        ({"choices": []}, "no choices"),
        ({"choices": "none"}, "no choices"),
        ({"choices": [None]}, "no choices"),
        ({"choices": [{"message": None}]}, "empty"),
        (body(None), "empty (stop)"),
        (body(17), "empty"),
        (body("  ", "length"), "the limit on its length"),
        (body(None, refusal="I will not."), "refused: I will not."),
        (body(fenced(), "content_filter"), "content filter"),
    ],
)
def test_an_answer_of_the_wrong_shape_is_a_problem(given, problem):
    assert problem in read_body(given).problem
    assert read_body(given).text == ""


def test_what_no_file_can_hold_is_replaced():
    answer = read_answer(fenced(POLICY.replace("little", "l\ud800\0")))
    assert answer.text.encode() == POLICY.replace("little", "l?").encode()


@given(st.text(), st.booleans())
def test_any_text_is_read_without_an_error(text, is_cut):
    for given_text in (text, f"```{text}\ndef score(pod, node):\n{text}", f"def score({text}"):
        answer = read_answer(given_text, is_cut)
        assert bool(answer.text) != bool(answer.problem)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(
                        st.sampled_from(["choices", "message", "content", "text", "refusal"]),
                        inner)))  # fmt: skip
def test_any_body_is_read_without_an_error(given_body):
    answer = read_body(given_body)
    assert bool(answer.text) != bool(answer.problem)


def reasoned(field, text, content="", finish="stop"):
    message = {"role": "assistant", "content": content, field: text}
    return {"choices": [{"message": message, "finish_reason": finish}]}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("content", ["", None, "Here it is.", "<think>so</think>"])
def test_a_program_among_what_a_model_thought_is_found_where_there_is_no_other(field, content):
    found = read_body(reasoned(field, "I would pack.\n" + fenced(), content))
    assert (found.text, found.problem) == (POLICY, "")
    own = fenced(POLICY.replace("1000", "2000"))
    assert read_body(reasoned(field, fenced(), own)).text == POLICY.replace("1000", "2000")


def test_a_program_that_was_thought_out_before_the_answer_was_cut_is_used():
    assert read_body(reasoned("reasoning", fenced() + "But wait", finish="length")).text == POLICY
    half = read_body(reasoned("reasoning", fenced()[:-40], finish="length"))
    assert half.text == ""
    assert "--max-tokens" in half.problem


def test_a_program_within_think_tags_alone_is_found():
    assert read_answer(f"<think>{fenced()}</think>").text == POLICY
    other = fenced(POLICY.replace("1000", "2000"))
    assert read_answer(f"<think>{other}</think>{fenced()}").text == POLICY


@pytest.mark.parametrize("key", ["code", "program", "policy"])
@pytest.mark.parametrize("info", ["json", ""])
def test_a_fenced_object_is_read(key, info):
    written = json.dumps({"thought": "fill nodes up", key: POLICY}, indent=2)
    found = read_answer(f"Sure:\n```{info}\n{written}\n```\nThat is all.")
    assert (found.text, found.thought) == (POLICY, "fill nodes up")
    assert read_answer('```json\n{"thought": "none"}\n```').text == ""
