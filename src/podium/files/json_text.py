"""Reads one JSON value from a text; whatever is wrong with it is one kind of error."""

from __future__ import annotations

import json
from typing import Any

MAX_DEPTH = 100
"""Nesting beyond which a value is refused; Kubernetes objects stay below 30."""

TOO_DEEP = "it is nested too deeply"
TOO_LONG = "a number has too many digits"
_NESTING = (dict, list)


class JsonError(ValueError):
    """The text is not JSON that can be read."""

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(problem)
        self.line = line


def parse_value(text: str) -> Any:
    """Reads a JSON value.

    Raises:
        JsonError: the text is no JSON, is nested too deeply, or holds a number of thousands of
            digits.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonError(error.msg, error.lineno) from error
    except RecursionError as error:
        raise JsonError(TOO_DEEP) from error
    except ValueError as error:
        raise JsonError(TOO_LONG) from error
    if is_too_deep(value):
        raise JsonError(TOO_DEEP)
    return value


def is_too_deep(value: Any) -> bool:
    """Returns whether lists and objects are nested more than they may be."""
    level = [value] if type(value) in _NESTING else []
    for _ in range(MAX_DEPTH):
        children = (part.values() if type(part) is dict else part for part in level)
        level = [each for group in children for each in group if type(each) in _NESTING]
        if not level:
            return False
    return True
