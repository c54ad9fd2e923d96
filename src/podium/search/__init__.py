"""Finds policies: candidates, who writes them, what they are worth, and who survives.

The package is also the function `podium.search(evaluations=300)`, since both have one name: called,
it searches as `podium search run` does, and `help(podium.search)` describes that function too.
"""

from __future__ import annotations

import importlib
import sys
import types
import typing

_TEXT = __doc__


class _CallableRoom(types.ModuleType):
    """Makes the package callable as the function of the same name, and describes it as that."""

    def __call__(self, *given: typing.Any, **named: typing.Any) -> typing.Any:
        """Searches for a policy."""
        return _function()(*given, **named)

    @property
    def __signature__(self) -> typing.Any:
        return importlib.import_module("inspect").signature(_function())

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        function = _function()
        return f"{_TEXT}\npodium.search{self.__signature__}\n\n    {function.__doc__}"


def _function() -> typing.Any:
    # By name, since the functions of users stand above this room.
    return importlib.import_module("podium.experiments.face").search


sys.modules[__name__].__class__ = _CallableRoom
