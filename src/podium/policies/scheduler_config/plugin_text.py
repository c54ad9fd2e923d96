"""Writes the policy that a set of score plugins amounts to, as the text of a policy file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from podium.errors import UsageError
from podium.policies.language.literal import documented, literal
from podium.policies.scheduler_config.plugins import Draft

FGD = "FGDScore"
GPU_METHODS = ("best", "worst", "random", FGD)
"""Values of gpuSelMethod that have a counterpart."""

_OVER_SLOTS = '''
def best_gpu(pod, node, table):
    """Gives the best score of a GPU that fits; another plugin's method then picks the GPU."""
    if not 0 < pod.gpu_milli < 1000:
        return fgd(pod, node, -1, table)
    best = 0
    for slot in range(node.gpu_count):
        if node.gpu_milli_left[slot] >= pod.gpu_milli:
            best = max(best, fgd(pod, node, slot, table))
    return best
'''


@dataclass(frozen=True, slots=True)
class Enabled:
    """Joins a plugin's name, weight and text."""

    name: str
    weight: int
    draft: Draft


def policy_text(
    enabled: Sequence[Enabled], neutral: Sequence[str], gpu_method: str, origin: str
) -> str:
    """Writes the policy's file; a pair policy unless scores depend on the other nodes."""
    has_fgd = any(plugin.name == FGD for plugin in enabled)
    if gpu_method == FGD and not has_fgd:
        raise UsageError(
            f"gpuSelMethod {FGD} picks GPUs for the score plugin {FGD} alone",
            where=origin,
            hint=f"enable {FGD}, or use gpuSelMethod best, worst or random",
        )
    if _needs_all_nodes(enabled):
        if has_fgd:
            raise UsageError(
                f"{FGD} cannot be mixed with scores that are stretched over the nodes",
                where=origin,
                hint=f"enable {FGD} without {_needing(enabled)}",
            )
        body = _cluster_body(enabled)
    else:
        body = _pair_body(enabled, gpu_method)
    settings = f"GPU_CHOICE = {literal('best' if gpu_method == FGD else gpu_method)}"
    if not _needs_all_nodes(enabled):
        settings = f"TIES = {literal(_ties(enabled))}\n{settings}"
    head = [_docstring(enabled, neutral, origin), _imports(enabled), settings]
    functions = [plugin.draft.text for plugin in enabled if plugin.draft.text]
    return "\n\n\n".join(["\n\n".join(part for part in head if part), *functions, body]) + "\n"


def _needs_all_nodes(enabled: Sequence[Enabled]) -> bool:
    scales = [plugin.draft.scale for plugin in enabled]
    if len(enabled) == 1:
        # Stretching BestFitScore, which is 0..100, keeps its order; a draw is a tie of all.
        return enabled[0].name in ("WorstFitScore", "Simon")
    return "stretched" in scales or "chance" in scales


def _needing(enabled: Sequence[Enabled]) -> str:
    return ", ".join(p.name for p in enabled if p.draft.scale != "as-is")


def _ties(enabled: Sequence[Enabled]) -> str:
    # kube-scheduler draws among the best nodes. The hkust simulator takes the first of them.
    is_drawn = len(enabled) == 1 and enabled[0].draft.scale == "chance"
    return "random" if is_drawn or all(p.draft.is_stock for p in enabled) else "rank"


def _docstring(enabled: Sequence[Enabled], neutral: Sequence[str], origin: str) -> str:
    names = " + ".join(f"{p.weight} {p.name}" for p in enabled) or "no score plugin"
    alike = f" ({', '.join(neutral)}: alike on all nodes)" if neutral else ""
    titles = [f"{p.name}: {p.draft.title}." for p in enabled]
    details = [line for title in titles for line in wrap(title, 96)]
    # The origin names a file and a scheduler: its line holds whatever the file says.
    return "\n".join(documented([f"Scores {names}{alike}.", "", f"From {origin}.", *details]))


def _imports(enabled: Sequence[Enabled]) -> str:
    names: dict[str, set[str]] = {}
    for module, name in (each for plugin in enabled for each in plugin.draft.imports):
        names.setdefault(module, set()).add(name)
    if _needs_all_nodes(enabled):
        names["podium.policies.mixture"] = {"Mixture", "Term"}
    return "\n".join(_import(module, sorted(names[module])) for module in sorted(names))


def _import(module: str, names: list[str]) -> str:
    if len(names) <= 2:
        return f"from {module} import {', '.join(names)}"
    listed = "".join(f"    {name},\n" for name in names)
    return f"from {module} import (\n{listed})"


def _pair_body(enabled: Sequence[Enabled], gpu_method: str) -> str:
    has_fgd = any(plugin.name == FGD for plugin in enabled)
    calls = {p.name: p.draft.call for p in enabled}
    arguments, helper = "pod, node", ""
    if has_fgd and gpu_method == FGD:
        arguments = "pod, node, gpu, table"
    elif has_fgd:
        arguments, helper = "pod, node, table", f"\n\n{_OVER_SLOTS.rstrip()}"
        calls[FGD] = "best_gpu(pod, node, table)"
    terms = [f"{p.weight} * {calls[p.name]}" for p in enabled] or ["0"]
    total = terms[0] if len(terms) == 1 else "(\n        " + "\n        + ".join(terms) + "\n    )"
    return (
        f"def score({arguments}):\n"
        '    """Adds up the plugins\' scores by weight."""\n'
        f"    return {total}{helper}"
    )


def _cluster_body(enabled: Sequence[Enabled]) -> str:
    functions, terms = [], []
    for index, plugin in enumerate(enabled):
        name = "None"
        if plugin.draft.scale != "chance":
            name = f"term_{index}"
            (summary,) = documented([f"Gives {plugin.name}."], "    ")
            functions.append(f"def {name}(pod, node):\n{summary}\n    return {plugin.draft.call}")
        terms.append(f"        Term({plugin.weight}, {name}, {literal(plugin.draft.scale)}),")
    chooser = (
        'class Policy(Mixture):\n    """Adds up the plugins\' scores by weight."""\n\n'
        f"    ties = {literal(_ties(enabled))}\n    terms = (\n" + "\n".join(terms) + "\n    )"
    )
    return "\n\n\n".join([*functions, chooser])
