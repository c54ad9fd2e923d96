"""Says how traces are loaded: from which folder, by which seed, and how a dump is meant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from podium.errors import UsageError
from podium.experiments.places import place_of, traces_folder

if TYPE_CHECKING:
    from podium.settings import Settings
    from podium.traces import LoadOptions
    from podium.traces.kubernetes.state import State

DUMP_KEYS = ("state", "duration", "topology")
"""What says how the dump of a cluster is meant: flags, arguments, and keys of [simulate]."""


def load_options(
    settings: Settings,
    *,
    seed: int | None = None,
    nodes: int | None = None,
    pods: int | None = None,
    is_skipping_bad: bool = False,
    wanted: tuple[str, ...] = (),
) -> LoadOptions:
    """Builds the options of every trace that is loaded; what they cannot mean is refused."""
    from podium.traces import LoadOptions

    return LoadOptions(
        traces_folder(settings),
        settings.simulate.seed if seed is None else seed,
        nodes,
        pods,
        is_skipping_bad,
        _state(settings),
        _duration(settings),
        _topology(settings),
        wanted,
    )


def _state(settings: Settings) -> State | None:
    from podium.traces.kubernetes.state import STATES

    return next((each for each in STATES if each == settings.simulate.state), None)


def _duration(settings: Settings) -> str | None:
    from podium.traces.kubernetes.run_times import parse_run_time

    text = settings.simulate.duration
    if text is not None:
        with _placed(settings, "simulate.duration"):
            parse_run_time(text)
    return text


def _topology(settings: Settings) -> tuple[str, ...]:
    from podium.traces.kubernetes.domains import chosen_domains

    if settings.simulate.topology is None:
        return ()
    keys = tuple(key.strip() for key in settings.simulate.topology.split(","))
    with _placed(settings, "simulate.topology"):
        if not any(keys):
            raise UsageError("no topology is named", hint="give aws, or the key of a label")
        chosen_domains(keys)
    return keys


@contextmanager
def _placed(settings: Settings, path: str) -> Iterator[None]:
    """Lets an error name the flag, variable or file that the value came from."""
    try:
        yield
    except UsageError as error:
        error.where = place_of(settings, path)
        raise
