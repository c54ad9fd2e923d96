from __future__ import annotations

import json
from dataclasses import replace

from podium.online import Agent, Observation, Request
from podium.service.learning.answers import LONGEST_ANSWER, MOST_ANSWERS, AnswerWriter
from podium.service.learning.selector import Selection

HERE = Selection({"nodeSelector": {"gpu": "fast"}}, is_on_nodes=True)
THERE = Selection({"nodeSelector": {"gpu": "slow"}}, is_on_nodes=None)


def test_what_was_written_before_is_sent_again_only_where_it_is_the_same() -> None:
    agent, writer = Agent(), AnswerWriter()
    request = Request("job", ("fast", "slow"))
    for runtime_s in (10.0, 30.0):
        agent.observe(Observation("job", "fast", runtime_s))
        answer = agent.score(request)
        others = [each for each in answer.candidates if each is not answer.chosen]
        for given in (answer, replace(answer, chosen=others[0]), replace(answer, decision_type="")):
            for selected in (HERE, THERE, HERE):
                found = json.loads(writer.write(given, selected, 12.5, (["a"], [])))
                assert list(found)[:2] == ["priority_score", "gpu_selector"]
                assert found == {
                    "priority_score": 12.5,
                    "gpu_selector": selected.fields,
                    "selector_on_nodes": selected.is_on_nodes,
                    **given.as_object() | {"candidates": found["candidates"]},
                    "ignored_features": ["a"],
                    "missing_features": [],
                }
                assert found["candidates"] == [each.as_object() for each in given.candidates]


def test_no_more_answers_are_remembered_than_there_is_room_for() -> None:
    agent, writer = Agent(), AnswerWriter()
    for number in range(MOST_ANSWERS + 10):
        answer = agent.score(Request(f"job {number}", ("fast",)))
        assert json.loads(writer.write(answer, HERE, 1.0, ([], [])))["chosen_gpu_type"] == "fast"
    assert len(writer._written) <= MOST_ANSWERS


def test_a_long_answer_is_not_remembered() -> None:
    answer, writer = Agent().score(Request("job", ("fast",))), AnswerWriter()
    avoided = ("x" * 250,) * (LONGEST_ANSWER // 250)
    found = writer.write(replace(answer, avoid_co_locate_with=avoided), HERE, 1.0, ([], []))
    assert len(json.loads(found)["avoid_co_locate_with"]) == len(avoided)
    assert not writer._written
