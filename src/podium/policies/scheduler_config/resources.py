"""Writes out what a plugin's resources, weights and shape mean for nodes and pods."""

from __future__ import annotations

from itertools import pairwise

from podium.policies.scheduler_config.section import Section

RESOURCES = {"cpu": "cpu", "memory": "memory", "nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu"}
"""Resources of a configuration that nodes and pods have here."""

RESOURCE_ARGUMENTS = {"cpu": "cpu_milli", "memory": "memory_mib", "gpu": "gpu_count"}
"""The field of a pod that tells whether it asks for a resource."""

_CAPACITY = {
    "cpu": "node.cpu_milli_total",
    "memory": "node.memory_mib_total",
    "gpu": "gpu_capacity(pod, node)",
}
LARGEST_RESOURCE_WEIGHT = 100

Weights = dict[str, int]
"""Weights of cpu, memory and gpu, in the order of the configuration."""


def listed_weights(arguments: Section) -> tuple[Weights, tuple[str, ...]]:
    """Reads `resources`; also lists those that no node has here."""
    weights: Weights = {}
    left_out: list[str] = []
    listed = arguments.sections("resources")
    for resource in listed:
        name = resource.only(("name", "weight")).text("name")
        weight = resource.number("weight", 0, LARGEST_RESOURCE_WEIGHT, 1) or 1
        if name not in RESOURCES:
            left_out.append(f'the resource "{name}" does not exist here and is left out')
        elif RESOURCES[name] in weights:
            raise resource.error(f'the resource "{name}" is listed twice')
        else:
            weights[RESOURCES[name]] = weight
    return (weights if listed else {"cpu": 1, "memory": 1}), tuple(left_out)


def weighted(function: str, weights: Weights) -> str:
    """Writes the call of an average by weight."""
    numbers = ", ".join(str(weights.get(key, 0)) for key in ("cpu", "memory", "gpu"))
    return f"{function}(pod, node, {numbers})"


def ratio_lines(weights: Weights) -> tuple[str, tuple[str, ...]]:
    """Writes RequestedToCapacityRatio over the resources, and lists the functions it uses."""
    lines = [
        "def requested_to_capacity_ratio(pod, node):",
        '    """Averages what the shape makes of each resource, where it is not 0."""',
        "    points = weights = 0",
    ]
    used = ["rounded_average"]
    for key, weight in weights.items():
        lines += [
            f"    capacity = {_CAPACITY[key]}",
            "    if capacity > 0:",
            f"        value = shape(utilization({key}_requested(pod, node), capacity))",
            f"        points += {weight} * value",
            f"        weights += {weight} if value > 0 else 0",
        ]
        used += ["utilization", f"{key}_requested", *(["gpu_capacity"] if key == "gpu" else [])]
    lines += ["    return rounded_average(points, weights)"]
    return "\n".join(lines), tuple(dict.fromkeys(used))


def broken_line(arguments: Section) -> str:
    """Writes the shape as a function of the utilisation in percent."""
    points = [
        (point.number("utilization", 0, 100, 0), 10 * point.number("score", 0, 10, 0))
        for point in (each.only(("utilization", "score")) for each in arguments.sections("shape"))
    ]
    if not points:
        raise arguments.error("RequestedToCapacityRatio needs at least one point", key="shape")
    if any(a[0] >= b[0] for a, b in pairwise(points)):
        raise arguments.error("the points are not in rising order of utilization", key="shape")
    lines = [
        "def shape(percent):",
        f'    """Follows the line through {", ".join(f"{x}:{y}" for x, y in points)}."""',
        f"    if percent <= {points[0][0]}:",
        f"        return {points[0][1]}",
    ]
    for low, high in pairwise(points):
        lines += [f"    if percent <= {high[0]}:", f"        return {_between(low, high)}"]
    return "\n".join([*lines, f"    return {points[-1][1]}"])


def _between(low: tuple[int, int], high: tuple[int, int]) -> str:
    # Go cuts towards zero; // on a falling line would round away from it.
    rise, run = high[1] - low[1], high[0] - low[0]
    sign = "+" if rise >= 0 else "-"
    return f"{low[1]} {sign} {abs(rise)} * (percent - {low[0]}) // {run}"
