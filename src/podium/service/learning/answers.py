"""Writes the answers to requests for scores.

Between two observations the agent answers most requests with the same candidates, and those are
nearly all of an answer: what was written before is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pydantic_core import to_json

from podium.online import Answer
from podium.service.learning.selector import Selection

MOST_ANSWERS, LONGEST_ANSWER = 1000, 2**14
"""Answers that are remembered, and bytes of each; longer ones seldom come again."""


class _Written(NamedTuple):
    answer: Answer  # kept, so that no other one has its identity
    selected: Selection
    text: bytes

    def is_for(self, answer: Answer, selected: Selection) -> bool:
        known = self.answer
        return (
            known.candidates is answer.candidates
            and known.chosen is answer.chosen
            and known.decision_type == answer.decision_type
            and known.avoid_co_locate_with == answer.avoid_co_locate_with
            and self.selected is selected
        )


class AnswerWriter:
    """Writes answers as JSON."""

    def __init__(self) -> None:
        self._written: dict[tuple[int, int], _Written] = {}

    def write(
        self,
        answer: Answer,
        selected: Selection,
        priority_score: float,
        features: tuple[Sequence[str], Sequence[str]],
    ) -> bytes:
        """Writes an answer; features are those that are ignored, and those that are missing."""
        ignored, missing = features
        first = to_json({"priority_score": priority_score})
        last = to_json({"ignored_features": ignored, "missing_features": missing})
        return b"%b,%b,%b" % (first[:-1], self._middle(answer, selected), last[1:])

    def _middle(self, answer: Answer, selected: Selection) -> bytes:
        key = id(answer.candidates), id(answer.chosen)
        known = self._written.get(key)
        if known is not None and known.is_for(answer, selected):
            return known.text
        middle = {
            "gpu_selector": selected.fields,
            "selector_on_nodes": selected.is_on_nodes,
            **answer.as_object(),
        }
        text = to_json(middle)[1:-1]
        if len(text) <= LONGEST_ANSWER:
            if len(self._written) >= MOST_ANSWERS:
                self._written.clear()
            self._written[key] = _Written(answer, selected, text)
        return text
