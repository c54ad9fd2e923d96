"""Names the quantities that packing is made of, so that programs draw and share them.

An ingredient is a term that a program gets as soon as it refers to it, with the constants that
it is made of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from podium.model.records import GPU_MILLI
from podium.search.program.expression import Expression, apply, field, name, number, reduction
from podium.search.program.program import Constant, Function, Program, Term

_LEFT = field("left")
_POD_GPU = field("pod.gpu_milli")
_WHOLE = number(GPU_MILLI)
_FITS = apply(">=", _LEFT, _POD_GPU)
_IS_FREE = apply("==", _LEFT, _WHOLE)
_IS_PARTLY = apply("and", apply("<", number(0), _LEFT), apply("<", _LEFT, _WHOLE))
_HAS_GPU = apply(">=", field("gpu"), number(0))
_HERE = field("node.gpu_milli_left[gpu]")


CONSTANTS = {
    "CPUS_PER_GPU": Constant("CPUS_PER_GPU", 10.0, (2.0, 60.0)),
    "SMALL_GPU_MILLI": Constant("SMALL_GPU_MILLI", 100.0, (0.0, 1000.0)),
}
"""What ingredients are made of."""

CONSTANT_NOTES = {
    "CPUS_PER_GPU": "CPU milli that a pod usually takes with each GPU milli.",
    "SMALL_GPU_MILLI": "GPU milli below which a free part of a GPU is of no use to other pods.",
}

_SMALL = name("SMALL_GPU_MILLI")


def _stranded(gpu_milli: Expression, cpu_milli: Expression) -> Expression:
    # The fragmentation of FGD with one typical pod, which lacks nothing but CPU.
    usable = apply("/", cpu_milli, name("CPUS_PER_GPU"))
    return apply("max", number(0), apply("-", gpu_milli, usable))


def _per(quantity: Expression, gpu_milli: Expression) -> Expression:
    return apply("/", quantity, apply("max", number(1), gpu_milli))


_DESCRIBED: tuple[tuple[str, Expression, str], ...] = (
    ("gpu_milli_free", reduction("sum", _LEFT), "Free GPU milli of the node."),
    ("gpus_free", reduction("sum", number(1), _IS_FREE), "GPUs that nobody uses."),
    ("gpus_shared", reduction("sum", number(1), _IS_PARTLY), "GPUs in use, with room for more."),
    ("gpus_fitting", reduction("sum", number(1), _FITS), "GPUs on which the pod fits."),
    (
        "tightest_gpu_milli",
        reduction("smallest", _LEFT, _FITS, GPU_MILLI),
        "Free part of the fullest GPU on which the pod fits.",
    ),
    (
        "shared_gpu_milli",
        reduction("sum", _LEFT, _IS_PARTLY),
        "Free parts of GPUs in use.",
    ),
    (
        "too_small_gpu_milli",
        reduction("sum", _LEFT, apply("<", _LEFT, _POD_GPU)),
        "Free parts too small for this pod.",
    ),
    (
        "gpu_milli_wanted",
        apply("*", field("pod.gpu_count"), _POD_GPU),
        "GPU milli that the pod takes.",
    ),
    (
        "gpu_milli_after",
        apply("-", name("gpu_milli_free"), name("gpu_milli_wanted")),
        "Free GPU milli once the pod is here.",
    ),
    (
        "cpu_milli_after",
        apply("-", field("node.cpu_milli_left"), field("pod.cpu_milli")),
        "Free CPU once the pod is here.",
    ),
    (
        "memory_mib_after",
        apply("-", field("node.memory_mib_left"), field("pod.memory_mib")),
        "Free memory once the pod is here.",
    ),
    (
        "gpu_milli_behind",
        apply("-", name("tightest_gpu_milli"), _POD_GPU),
        "What the pod leaves behind on its GPU.",
    ),
    (
        "cpu_per_gpu_before",
        _per(field("node.cpu_milli_left"), name("gpu_milli_free")),
        "Free CPU for each free GPU milli, before the pod.",
    ),
    (
        "cpu_per_gpu_after",
        _per(name("cpu_milli_after"), name("gpu_milli_after")),
        "Free CPU for each free GPU milli, once the pod is here.",
    ),
    (
        "cpu_per_gpu_wanted",
        _per(field("pod.cpu_milli"), name("gpu_milli_wanted")),
        "CPU that the pod takes with each GPU milli.",
    ),
    (
        "cpu_per_gpu_total",
        _per(field("node.cpu_milli_total"), apply("*", _WHOLE, field("node.gpu_count"))),
        "CPU that the node has for each GPU milli.",
    ),
    (
        "memory_per_gpu_after",
        _per(name("memory_mib_after"), name("gpu_milli_after")),
        "Free memory for each free GPU milli, once the pod is here.",
    ),
    (
        "memory_per_gpu_wanted",
        _per(field("pod.memory_mib"), name("gpu_milli_wanted")),
        "Memory that the pod takes with each GPU milli.",
    ),
    (
        "stranded_gpu_milli_before",
        _stranded(name("gpu_milli_free"), field("node.cpu_milli_left")),
        "Free GPU that lacks CPU, if pods take what is usual.",
    ),
    (
        "stranded_gpu_milli_after",
        _stranded(name("gpu_milli_after"), name("cpu_milli_after")),
        "Free GPU that lacks CPU once the pod is here.",
    ),
    (
        "stranded_gpu_milli_more",
        apply("-", name("stranded_gpu_milli_after"), name("stranded_gpu_milli_before")),
        "GPU that loses its CPU to the pod, less the GPU without CPU that the pod takes.",
    ),
    (
        "gpu_milli_used",
        apply("-", apply("*", _WHOLE, field("node.gpu_count")), name("gpu_milli_free")),
        "GPU milli of the node in use.",
    ),
    (
        "is_share",
        apply("and", apply("<", number(0), _POD_GPU), apply("<", _POD_GPU, _WHOLE)),
        "The pod takes a part of one GPU.",
    ),
    (
        "lost_gpu_milli",
        apply(
            "if",
            apply("and", name("is_share"), apply("<", name("gpu_milli_behind"), _SMALL)),
            name("gpu_milli_behind"),
            number(0),
        ),
        "What a share pod leaves behind on its GPU that is too small for others.",
    ),
    (
        "usable_gpu_milli_before",
        reduction("sum", _LEFT, apply(">=", _LEFT, _SMALL)),
        "Free parts of GPUs that are not too small.",
    ),
    (
        "gpu_milli_spent",
        apply("+", name("gpu_milli_wanted"), name("lost_gpu_milli")),
        "GPU milli that the pod takes, or leaves too small.",
    ),
    (
        "usable_gpu_milli_taken",
        apply(
            "if",
            apply(">=", name("tightest_gpu_milli"), _SMALL),
            name("gpu_milli_spent"),
            number(0),
        ),
        "Of that, what was not too small before.",
    ),
    (
        "usable_gpu_milli_after",
        apply("-", name("usable_gpu_milli_before"), name("usable_gpu_milli_taken")),
        "Free parts of GPUs that are not too small, once the pod is here.",
    ),
    (
        "starved_gpu_milli_before",
        _stranded(name("usable_gpu_milli_before"), field("node.cpu_milli_left")),
        "Usable GPU that lacks CPU, if pods take what is usual.",
    ),
    (
        "starved_gpu_milli_after",
        _stranded(name("usable_gpu_milli_after"), name("cpu_milli_after")),
        "Usable GPU that lacks CPU once the pod is here.",
    ),
    (
        "starved_gpu_milli_more",
        apply("-", name("starved_gpu_milli_after"), name("starved_gpu_milli_before")),
        "Usable GPU that loses its CPU to the pod, less that without CPU that the pod takes.",
    ),
    (
        "gpu_milli_here",
        apply("if", _HAS_GPU, _HERE, _WHOLE),
        "Free part of the GPU in question; whole-GPU pods take free ones.",
    ),
    (
        "gpu_milli_behind_here",
        apply("if", _HAS_GPU, apply("-", _HERE, _POD_GPU), number(0)),
        "What a share pod leaves behind on the GPU in question.",
    ),
)

HERE = "gpu_milli_here"
GPU_INGREDIENTS = frozenset([HERE, "gpu_milli_behind_here"])
"""Known only to score(pod, node, gpu)."""


INGREDIENTS = {title: expression for title, expression, _ in _DESCRIBED}
"""The definition of each, in an order in which each needs only earlier ones."""

NOTES = {expression: note for _, expression, note in _DESCRIBED}
"""What to say about a term with such a definition."""


WORTH = "Values a free part of a GPU, in steps: by what can still be placed on it."
STARVED = Function(
    "starved",
    ("gpu_milli", "cpu_milli", "cpus_per_gpu"),
    apply(
        "max",
        number(0),
        apply("-", name("gpu_milli"), apply("/", name("cpu_milli"), name("cpus_per_gpu"))),
    ),
    "Returns the free GPU that lacks CPU, for pods that take so much CPU with each GPU.",
)
"""What breeding says of functions that it makes."""


def with_known_words(program: Program) -> Program:
    """Keeps only what is said of functions here: the claims of a candidate are no evidence."""
    functions = tuple(
        each if each.summary in (WORTH, STARVED.summary) else replace(each, summary="")
        for each in program.functions
    )
    return replace(program, functions=functions)


def needed(wanted: set[str]) -> list[Term]:
    """Lists the ingredients among some names, and those that they need, in order."""
    waiting = [each for each in wanted if each in INGREDIENTS]
    found: set[str] = set()
    while waiting:
        title = waiting.pop()
        if title not in found:
            found.add(title)
            waiting += [each for each in INGREDIENTS[title].names if each in INGREDIENTS]
    return [Term(title, INGREDIENTS[title]) for title in INGREDIENTS if title in found]


def genuine(given: Iterable[Term]) -> dict[str, Term]:
    """Finds the terms that are ingredients in name and in all that they refer to."""
    listed = list(given)
    definitions = {term.name: term for term in listed if term.name in INGREDIENTS}
    constants = CONSTANTS.keys() - {term.name for term in listed}
    found: dict[str, Term] = {}
    for title, expression in INGREDIENTS.items():
        term = definitions.get(title)
        is_same = term is not None and term.expression == expression
        if is_same and expression.names <= found.keys() | constants:
            found[title] = definitions[title]
    return found
