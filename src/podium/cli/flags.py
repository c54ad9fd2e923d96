"""Shares blocks of options between verbs: one parameter stands for all fields of a dataclass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints


def with_blocks(verb: Callable[..., None]) -> Callable[..., None]:
    """Replaces each parameter of a verb that is a dataclass by one option per field."""
    hints = get_type_hints(verb, include_extras=True)
    blocks: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = [
        each
        for parameter in inspect.signature(verb).parameters.values()
        for each in _expanded(parameter, hints, blocks)
    ]

    @functools.wraps(verb)
    def called(**values: Any) -> None:
        for name, block in blocks.items():
            values[name] = block(**{each.name: values.pop(each.name) for each in fields(block)})
        verb(**values)

    signature = inspect.Signature([each.replace(kind=each.KEYWORD_ONLY) for each in parameters])
    called.__signature__ = signature  # type: ignore[attr-defined]  # what typer reads
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def _expanded(
    parameter: inspect.Parameter, hints: dict[str, Any], blocks: dict[str, Any]
) -> list[inspect.Parameter]:
    block = blocks.get(parameter.name)
    if block is None:
        return [parameter.replace(annotation=hints[parameter.name])]
    own = get_type_hints(block, include_extras=True)
    return [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, annotation=own[each.name],
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
        )
        for each in fields(block)
    ]  # fmt: skip
