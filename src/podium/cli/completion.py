"""Offers the shell what may follow an option: names of policies and runs, and fixed words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from podium.errors import PodiumError

Offer = Callable[[str], list[str]]
"""Lists what begins as somebody has typed; the shell offers files where that is nothing."""


def words(*known: str) -> Offer:
    """Offers fixed words."""
    return lambda incomplete: _beginning(known, incomplete)


def policies(incomplete: str) -> list[str]:
    """Offers the policies that ship."""
    from podium.policies import catalogue

    return _beginning((each.name for each in catalogue()), incomplete)


def runs(incomplete: str) -> list[str]:
    """Offers the ids of runs in the store that the settings name."""
    from podium.experiments.runs import open_runs
    from podium.settings import load_settings

    try:
        with open_runs(load_settings()) as store:
            return _beginning([each.id for each in store.runs.all()], incomplete)
    except PodiumError:  # the command itself says what is wrong
        return []


def _beginning(known: Iterable[str], incomplete: str) -> list[str]:
    return [each for each in known if each.startswith(incomplete)]
