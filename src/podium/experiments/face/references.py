"""Takes policies, traces and dumps as Python callers give them: by name, by file, or loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from podium.errors import UsageError
from podium.experiments import arguments
from podium.experiments.arguments import python_face
from podium.experiments.case import Inputs, loaded_already, named_policy
from podium.experiments.loading import DUMP_KEYS, load_options
from podium.model import Cluster
from podium.policies import Policy, taken_as_policy
from podium.settings import Settings, load_settings
from podium.traces import Trace
from podium.traces import load_trace as load_named
from podium.traces.kubernetes.waiting import parse_waiting

AnyPolicy = Policy | str | Path | Callable[..., float]
"""A policy by name or file, a function score(pod, node), or a loaded policy."""

AnyTrace = Trace | str | Path
"""A trace by name or file, or a loaded trace."""

_NODE_ORDERS: tuple[Literal["shuffled", "listed"], ...] = ("shuffled", "listed")


@python_face
def load_policy(reference: AnyPolicy) -> Policy:
    """Loads a policy by name, file, or `run:ID`; makes one of a function `score(pod, node)`."""
    return as_policy(reference)


@python_face
def load_trace(  # noqa: PLR0913 - the options of the commands
    reference: AnyTrace, *, seed: int = 0, nodes: int | None = None, pods: int | None = None,
    state: Literal["now", "empty", "history"] | None = None, duration: str | float | None = None,
    topology: str | Sequence[str] | None = None, skip_bad: bool = False,
) -> Trace:  # fmt: skip
    """Loads a trace by name, file or folder; the embedded ones are drawn by the seed.

    The dump of a cluster is read as `simulate` reads it, by state, duration and topology.
    """
    settings = settings_with_dump(state, duration, topology)
    first, node_count = arguments.whole("seed", seed, 0), count("nodes", nodes)
    options = load_options(
        settings, seed=first, nodes=node_count, pods=count("pods", pods), is_skipping_bad=skip_bad
    )
    if isinstance(reference, Trace):
        refuse_dump(dump_flags(state, duration, topology))
        return loaded_already(reference, options)
    return load_named(as_reference("reference", reference), options)


def as_policy(policy: AnyPolicy) -> Policy:
    """Makes a policy of a reference, a function, or what is one already."""
    if isinstance(policy, str | Path):
        return named_policy(str(policy), "argument policy")
    return taken_as_policy(policy)


def as_reference(
    name: str, value: object, what: str = "a trace",
    hint: str = "give a name, a file, or a loaded trace",
) -> str:  # fmt: skip
    """Takes the reference of a trace."""
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    raise UsageError(f"{type(value).__name__} is not {what}", where=f"argument {name}", hint=hint)


def count(name: str, value: object) -> int | None:
    """Takes how many there are to be, where somebody says so."""
    return arguments.whole_or_none(name, value, 1)


def dump_flags(state: object, duration: object, topology: object) -> dict[str, Any]:
    """Words what says how a dump is meant as flags do; a number of a duration counts seconds."""
    number = arguments.plain_number(duration)
    if isinstance(number, int | float) and not isinstance(number, bool):
        duration = f"{arguments.number_or_none('duration', number):f}".rstrip("0").rstrip(".")
    if isinstance(topology, list | tuple):
        topology = ",".join(arguments.text("topology", key, "give the keys of labels")
                            for key in topology)  # fmt: skip
    return {"state": state, "duration": duration, "topology": topology}


def settings_with_dump(
    state: object, duration: object, topology: object, **others: object
) -> Settings:
    """Loads the settings with what says how a dump is meant, and other flags of a simulation."""
    flags = dump_flags(state, duration, topology) | others
    return load_settings({f"simulate.{name}": value for name, value in flags.items()})


def refuse_dump(flags: dict[str, Any]) -> None:
    """Refuses what says how a dump is meant once it is read."""
    for name in DUMP_KEYS:
        if flags.get(name) is not None:
            raise UsageError(
                f"{name} cannot be set for a trace that is already loaded",
                where=f"argument {name}",
                hint=f"load the trace with {name}={flags[name]!r}, or name it by reference",
            )


def waiting_of(waiting: object) -> tuple[str, ...]:
    """Takes the kinds of work that are tried though they wait."""
    hint = "give gated,suspended"
    return () if waiting is None else parse_waiting(arguments.text("waiting", waiting, hint))


def inputs_of(
    orders: object,
    nodes: object,
    pods: object,
    node_order: object,
    *,
    waiting: object,
    is_skipping_bad: bool,
) -> Inputs:
    """Reads what a run takes besides the settings."""
    node_count, pod_count = count("nodes", nodes), count("pods", pods)
    order = arguments.one_of("node_order", node_order, _NODE_ORDERS)
    path = arguments.path_or_none("orders", orders)
    kinds = waiting_of(waiting)
    return Inputs(path, node_count, pod_count, is_skipping_bad, order, waiting=kinds)


def case_of(
    flags: dict[str, Any], inputs: Inputs, trace: AnyTrace | None,
    cluster: AnyTrace | Cluster | None,
) -> tuple[Settings, Inputs]:  # fmt: skip
    """Sorts what is given by reference from what is loaded already."""
    given = {f"simulate.{name}": arguments.plain_number(value) for name, value in flags.items()}
    loaded: dict[str, Any] = {}
    for name, value in (("trace", trace), ("cluster", cluster)):
        if isinstance(value, Cluster):
            value = Trace(value.name, value, None)
        if isinstance(value, Trace):
            loaded[name] = value
            if name == "trace":
                refuse_dump(flags)
        elif value is not None:
            given[f"simulate.{name}"] = as_reference(name, value)
    return load_settings(given), replace(inputs, **loaded)
