"""Finds policies: candidates, who writes them, what they are worth, and who survives.

The package is also the function `podium.search(evaluations=300)`, since both have one name: called,
it searches as `podium search run` does.
"""

from __future__ import annotations

import importlib
import sys
import types
import typing


class _CallableRoom(types.ModuleType):
    """Makes the package callable as the function of the same name."""

    def __call__(self, **options: typing.Any) -> typing.Any:
        """Searches for a policy; help(podium.experiments.face.search) lists the options."""
        # By name, since the functions of users stand above this room.
        return importlib.import_module("podium.experiments.face").search(**options)


sys.modules[__name__].__class__ = _CallableRoom
