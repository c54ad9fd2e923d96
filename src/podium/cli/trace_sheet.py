"""Shows the description of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.cli.figures import Figure, decimal, duration, percent, size
from podium.cli.render import Screen
from podium.cli.watch import inform

MOST_GANGS = 10
"""As many gangs are listed as shapes are; --json lists them all."""

_CLOSED = {"tainted_nodes": "tainted", "cordoned_nodes": "cordoned"}
_TIMES = (("arrival_s", "arrival"), ("inter_arrival_s", "between arrivals"),
          ("duration_s", "duration"))  # fmt: skip


def show_description(screen: Screen, described: Mapping[str, Any]) -> None:
    """Prints what `podium.traces.info.describe` found, as tables."""
    screen.fields({"trace": described["name"], **_experiment(described.get("experiment"))})
    if "cluster" in described:
        _show_cluster(screen, described["cluster"])
    if "workload" in described:
        _show_workload(screen, described["workload"])
    if "demand" in described:
        _show_demand(screen, described["demand"])
    inform(screen, described["notes"])


def _experiment(experiment: Mapping[str, Any] | None) -> dict[str, object]:
    if experiment is None:
        return {}
    return {
        "ratio": experiment["ratio"],
        "seed": experiment["seed"],
        "shuffled": experiment["is_shuffled"],
    }


def _show_cluster(screen: Screen, cluster: Mapping[str, Any]) -> None:
    print()
    screen.fields(
        {
            "nodes": cluster["nodes"],
            "GPUs": cluster["gpus"],
            "CPUs": decimal(cluster["cpu_milli"] / 1000, 0),
            "memory": _memory(cluster["memory_mib"]),
            "racks": cluster["racks"],
            **{title: cluster[key] for key, title in _CLOSED.items() if key in cluster},
        }
    )
    is_shared = any("gpu_replicas" in kind for kind in cluster["node_types"])
    rows = [
        (kind["gpu_model"] or None, kind["gpu_count"],
         *([kind["gpu_replicas"]] if is_shared else []), decimal(kind["cpu_milli"] / 1000, 1),
         _memory(kind["memory_mib"]), kind["nodes"])
        for kind in cluster["node_types"]
    ]  # fmt: skip
    shared = ["devices a GPU"] if is_shared else []
    _table(screen, ["GPU model", "GPUs", *shared, "CPUs", "memory", "nodes"], rows)


def _show_workload(screen: Screen, workload: Mapping[str, Any]) -> None:
    print()
    screen.fields(
        {
            "pods": workload["pods"],
            **_states(workload),
            "GPUs asked": decimal(workload["gpus_asked"]),
            "with model constraint": workload["constrained_pods"],
            "gangs": workload["gangs"],
            "shapes": workload["shapes"],
            **_constraints(workload),
        }
    )
    gangs = [
        (rule["name"], rule["pods"], rule["minimum"], rule["domain"] or None)
        for rule in workload.get("gang_rules", ())
    ]
    if gangs:
        _table(screen, ["gang", "pods", "minimum", "in one"], gangs[:MOST_GANGS])
    classes = [(n, c["pods"], percent(c["gpu_share"])) for n, c in workload["classes"].items()]
    _table(screen, ["class", "pods", "GPU demand"], classes)
    shapes = [
        (decimal(s["cpu_milli"] / 1000, 2), _memory(s["memory_mib"]), s["gpu_count"],
         s["gpu_milli"], s["gpu_spec"] or None, s["pods"])
        for s in workload["top_shapes"]
    ]  # fmt: skip
    _table(screen, ["CPUs", "memory", "GPUs", "GPU milli", "GPU models", "pods"], shapes)
    times = [(label, workload.get(key)) for key, label in _TIMES]
    known = [(label, *map(duration, found.values())) for label, found in times if found]
    if known:
        columns = next(found for _, found in times if found)
        _table(screen, ["time", *columns], known)


def _states(workload: Mapping[str, Any]) -> dict[str, object]:
    """Says of a dump who runs, who waits, and who takes no part."""
    states: dict[str, int] = dict(workload.get("states", {}))
    if not states:
        return {}
    running, pending = states.pop("bound"), states.pop("pending")
    others = [f"{number:,} {name}" for name, number in states.items() if number]
    left_out = {"left out": ", ".join(others)} if others else {}
    return {"running": running, "pending": pending, **left_out}


def _constraints(workload: Mapping[str, Any]) -> dict[str, object]:
    counts = workload.get("constraints", {})
    told = [f"{name.replace('_', ' ')} {number:,}" for name, number in counts.items() if number]
    return {"pods with": ", ".join(told)} if told else {}


def _show_demand(screen: Screen, demand: Mapping[str, Any]) -> None:
    rows = [
        (f"{when} demand / capacity", *(percent(shares[key]) for key in ("gpu", "cpu", "memory")))
        for when, shares in demand.items()
    ]
    _table(screen, ["", "GPU", "CPU", "memory"], rows)


def _table(screen: Screen, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print()
    screen.table(titles, rows)


def _memory(memory_mib: int) -> Figure:
    return size(memory_mib << 20)
