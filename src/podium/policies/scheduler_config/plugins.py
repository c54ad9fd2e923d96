"""Writes the score plugins of a scheduler configuration as Python, arguments and all.

Each plugin becomes a short function with its arguments as numbers in it, so that the policy made
of them can be read, compiled and checked like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podium.policies.dot_products import METHODS, NORMS
from podium.policies.mixture import Scale
from podium.policies.scheduler_config.resources import (
    RESOURCE_ARGUMENTS,
    Weights,
    broken_line,
    listed_weights,
    ratio_lines,
    weighted,
)
from podium.policies.scheduler_config.section import Section

_ARGUMENTS = ("apiVersion", "kind")
_FIT = "podium.policies.noderesources"


@dataclass(frozen=True, slots=True)
class Draft:
    """The text of one plugin's score."""

    call: str  # an expression of pod and node
    title: str  # what it does, in the words of the configuration
    imports: tuple[tuple[str, str], ...] = ()  # (module, names)
    text: str = ""  # functions that the call needs
    scale: Scale = "as-is"
    is_stock: bool = False  # a plugin of kube-scheduler itself
    notes: tuple[str, ...] = ()


Writer = Callable[[Section, str], Draft]
"""Writes a plugin from its arguments and the version of the configuration."""


def fit(arguments: Section, _version: str) -> Draft:
    """Writes NodeResourcesFit by its scoring strategy."""
    known = ("ignoredResources", "ignoredResourceGroups", "scoringStrategy", *_ARGUMENTS)
    strategy = arguments.only(known).section("scoringStrategy")
    strategy.only(("type", "resources", "requestedToCapacityRatio"))
    kind = strategy.one_of("type", _STRATEGIES, "LeastAllocated")
    notes = tuple(
        f"{key} of NodeResourcesFit is not honoured: what fits is decided by all resources"
        for key in ("ignoredResources", "ignoredResourceGroups")
        if arguments.values.get(key)
    )
    weights, left_out = listed_weights(strategy)
    shape = strategy.section("requestedToCapacityRatio").only(("shape",))
    return _STRATEGIES[kind](weights, shape, (*notes, *left_out))


def _least(weights: Weights, _shape: Section, notes: tuple[str, ...]) -> Draft:
    call = weighted("least_allocated", weights)
    imports = ((_FIT, "least_allocated"),)
    return Draft(call, f"LeastAllocated {_shown(weights)}", imports, is_stock=True, notes=notes)


def _most(weights: Weights, _shape: Section, notes: tuple[str, ...]) -> Draft:
    call = weighted("most_allocated", weights)
    imports = ((_FIT, "most_allocated"),)
    return Draft(call, f"MostAllocated {_shown(weights)}", imports, is_stock=True, notes=notes)


def _ratio(weights: Weights, shape: Section, notes: tuple[str, ...]) -> Draft:
    lines, used = ratio_lines(weights)
    return Draft(
        call="requested_to_capacity_ratio(pod, node)",
        title=f"RequestedToCapacityRatio {_shown(weights)}",
        imports=tuple((_FIT, name) for name in used),
        text=f"{lines}\n\n\n{broken_line(shape)}",
        is_stock=True,
        notes=notes,
    )


_STRATEGIES: dict[str, Callable[[Weights, Section, tuple[str, ...]], Draft]] = {
    "LeastAllocated": _least,
    "MostAllocated": _most,
    "RequestedToCapacityRatio": _ratio,
}


def least_allocated(arguments: Section, _version: str) -> Draft:
    """Writes NodeResourcesLeastAllocated, a plugin of its own until v1beta1."""
    weights, left_out = listed_weights(arguments.only(("resources", *_ARGUMENTS)))
    return _least(weights, arguments, left_out)


def most_allocated(arguments: Section, _version: str) -> Draft:
    """Writes NodeResourcesMostAllocated, a plugin of its own until v1beta1."""
    weights, left_out = listed_weights(arguments.only(("resources", *_ARGUMENTS)))
    return _most(weights, arguments, left_out)


def requested_to_capacity_ratio(arguments: Section, _version: str) -> Draft:
    """Writes RequestedToCapacityRatio, a plugin of its own until v1beta1."""
    weights, left_out = listed_weights(arguments.only(("shape", "resources", *_ARGUMENTS)))
    return _ratio(weights, arguments, left_out)


def balanced_allocation(arguments: Section, version: str) -> Draft:
    """Writes NodeResourcesBalancedAllocation over the resources it is given, in their order."""
    weights, left_out = listed_weights(arguments.only(("resources", *_ARGUMENTS)))
    title = f"balance of {', '.join(weights) or 'nothing'}"
    if not weights:
        return Draft("0", title, is_stock=True, notes=left_out)
    names = ["LEFT_OUT", "balance", *(f"{key}_share" for key in weights)]
    lines = [f"    return {_balance(weights, 1)}"]
    if version == "v1":
        names.append("balance_gained")
        lines = _gain_lines(weights)
        left_out = (*left_out, _SINCE_1_36)
    return Draft(
        call="balanced_allocation(pod, node)",
        title=title,
        imports=tuple((_FIT, name) for name in names),
        text="\n".join([*_BALANCED, *lines]),
        is_stock=True,
        notes=left_out,
    )


_BALANCED = (
    "def balanced_allocation(pod, node):",
    '    """Scores how even the used shares are."""',
)
_SINCE_1_36 = (
    "NodeResourcesBalancedAllocation scores the gain in balance, as from Kubernetes 1.36 on;"
    " apiVersion v1beta3 simulates releases before"
)


def _gain_lines(weights: Weights) -> list[str]:
    asks_nothing = " and ".join(f"pod.{RESOURCE_ARGUMENTS[key]} == 0" for key in weights)
    return [
        f"    if {asks_nothing}:",
        "        return 0",
        f"    after = {_balance(weights, 1)}",
        f"    before = {_balance(weights, 0)}",
        "    return balance_gained(after, before)",
    ]


def _balance(weights: Weights, is_placed: int) -> str:
    shares = [f"{key}_share(pod, node, {is_placed})" for key in weights]
    return f"balance({', '.join([*shares, *['LEFT_OUT'] * 3][:3])})"


def dot_product(arguments: Section, _version: str) -> Draft:
    """Writes DotProductScore by its two methods."""
    arguments.only(("dimExtMethod", "normMethod", *_ARGUMENTS))
    for key in ("dimExtMethod", "normMethod"):
        if key not in arguments.values:
            raise arguments.error(
                f"DotProductScore needs {key}", hint="published: dimExtMethod merge, normMethod max"
            )
    method = arguments.one_of("dimExtMethod", METHODS, "")
    norm = arguments.one_of("normMethod", NORMS, "")
    return Draft(
        call=f"dot_product(pod, node, {METHODS[method]}, {NORMS[norm]})",
        title=f"{method}, by {norm}",
        imports=(("podium.policies.dot_products", "dot_product"),),
    )


def _ready(module: str, scale: Scale = "as-is", name: str = "score") -> Writer:
    # Score plugins of the hkust simulator that are built-in policies as they stand.
    def write(arguments: Section, _version: str) -> Draft:
        arguments.only(("dimExtMethod", "normMethod", *_ARGUMENTS))
        imports = ((f"podium.policies.builtin.{module}", f"{name} as {module}"),)
        return Draft(f"{module}(pod, node)", "as published", imports, scale=scale)

    return write


def fgd(arguments: Section, _version: str) -> Draft:
    """Writes FGDScore; the caller fits the GPU in."""
    arguments.only(("dimExtMethod", "normMethod", *_ARGUMENTS))
    module = "podium.policies.builtin.fgd"
    imports = ((module, "prepare"), (module, "score as fgd"))
    return Draft("fgd(pod, node, gpu, table)", "as published", imports)


def random(_arguments: Section, _version: str) -> Draft:
    """Writes RandomScore: 100 for one node drawn by chance."""
    return Draft("0", "100 for any one node", scale="chance")


def _shown(weights: Weights) -> str:
    return " ".join(f"{key} x{weight}" for key, weight in weights.items()) or "of nothing"


PLUGINS: dict[str, Writer] = {
    "NodeResourcesFit": fit,
    "NodeResourcesBalancedAllocation": balanced_allocation,
    "NodeResourcesLeastAllocated": least_allocated,
    "NodeResourcesMostAllocated": most_allocated,
    "RequestedToCapacityRatio": requested_to_capacity_ratio,
    "RandomScore": random,
    "FirstFitScore": _ready("first_fit"),
    "BestFitScore": _ready("best_fit", "stretched"),
    "WorstFitScore": _ready("worst_fit", "stretched"),
    "DotProductScore": dot_product,
    "GpuClusteringScore": _ready("gpu_clustering"),
    "GpuPackingScore": _ready("gpu_packing"),
    "FGDScore": fgd,
    "Simon": _ready("simon", "stretched", "filled"),
}
"""Score plugins that have a counterpart here."""
