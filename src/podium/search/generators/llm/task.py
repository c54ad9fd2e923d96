"""Describes to a language model what a candidate is, from the very lists that the gates read."""

from __future__ import annotations

import math

from podium.model.records import GPU_MILLI, Node, Pod
from podium.search.candidate import vocabulary
from podium.search.candidate.gates import FORMS

MEANINGS = {
    "pod.cpu_milli": "CPU that it asks for; 1000 is one core",
    "pod.memory_mib": "memory that it asks for",
    "pod.gpu_count": "number of GPUs that it asks for, 0 to 16",
    "pod.gpu_milli": f"part of each GPU, 1 to {GPU_MILLI}; below {GPU_MILLI} only if gpu_count is "
    "1 (a shared GPU); 0 if gpu_count is 0",
    "pod.gpu_models": "bit mask of the GPU models that it accepts; -1 is any",
    "pod.priority": "a higher number is served first",
    "pod.gang": "a number shared by pods of one group; 0 is none",
    "node.cpu_milli_left": "free CPU, before the pod is placed",
    "node.cpu_milli_total": "all CPU of the node",
    "node.memory_mib_left": "free memory, before the pod is placed",
    "node.memory_mib_total": "all memory of the node",
    "node.gpu_count": "number of GPUs, 0 to 16",
    "node.gpu_model": "a small number for the GPU model, -1 on a node without GPUs",
    "node.rack": "a small number for the rack, -1 if unknown",
    "node.gpu_classes": "what runs on the node: bit 0 is set by pods with a part of a GPU, bit k "
    "by pods with k whole GPUs",
    "node.gpu_milli_left": f"free part of the GPU in each slot, {GPU_MILLI} is a whole GPU; read "
    "one slot, or loop over range(node.gpu_count)",
}
"""What each field of the records means."""

_FORMS = {
    ("pod", "node"): "called once for each node on which the pod fits",
    ("pod", "node", "gpu"): "for a pod with a part of a GPU it is called once for each slot that "
    "fits, and gpu is the slot; for any other pod once a node, and gpu is -1",
}

EXAMPLE = '''"""Fills nodes up, and GPUs before CPUs."""

from podium.policies import tunable

W_CPU = tunable(0.25, 0.0, 2.0)  # weight of the CPU that stays free


def score(pod, node, gpu):
    free = 0
    for slot in range(node.gpu_count):
        free += node.gpu_milli_left[slot]
    left = node.gpu_milli_left[gpu] if gpu >= 0 else 0
    return -free / 1000 - left / 1000 - W_CPU * node.cpu_milli_left / 1000
'''

_RULES = """\
- At the top: a docstring whose first line says what the policy prefers, `import math`, \
`{imports}`, constants (numbers, tuples of numbers, tunable), and functions. `score` may call \
functions of your own; none calls itself.
- In functions: arithmetic, comparisons, and/or/not, if, conditional expressions, assignments to \
names, `for` over range(...) or node.{gpu_list}, `while` with a comparison, tuples.
- Built-in functions: {builtins}. Of math: {functions}, and the numbers {numbers}.
- Not allowed: other imports, strings, lists, dictionaries, comprehensions, lambdas, classes, \
decorators, try, with, global, keyword arguments, names with leading underscores, new meanings for \
the names {reserved}.
- Limits: {size:,} bytes, loops nested {loops} deep, ranges up to {longest:,}, exponents up to \
{exponent}, integers up to 2**{bits}.
- Division by zero fails: guard every divisor that may be 0 (gpu_count, free resources)."""


def task_values(*, may_hold: bool) -> dict[str, str]:
    """Returns what a task consists of, by placeholder.

    Holding pods back is offered only where the parents do it.
    """
    forms = [f"- score({', '.join(form)}): {_FORMS[form]}" for form in FORMS]
    return {
        "forms": "\n".join(forms), "holding": _holding(may_hold), "fields": _fields(),
        "rules": _rules(), "example": EXAMPLE.rstrip(),
    }  # fmt: skip


def _holding(may_hold: bool) -> str:
    if may_hold:
        return "Return HOLD to refuse a node: a pod that every node is refused to waits."
    return "Place whatever fits: do not use HOLD, and never return an infinite number."


def _fields() -> str:
    names = [f"pod.{name}" for name in Pod._fields] + [f"node.{name}" for name in Node._fields]
    return "\n".join(f"- {name}: {MEANINGS[name]}" for name in names)


def _rules() -> str:
    imports = ", ".join(
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in vocabulary.IMPORTS.items()
    )
    return _RULES.format(
        imports=imports, gpu_list=vocabulary.GPU_LIST, builtins=_listed(vocabulary.BUILTINS),
        functions=_listed(vocabulary.MATH_FUNCTIONS), numbers=_listed(vocabulary.MATH_NUMBERS),
        reserved=_listed(vocabulary.RESERVED), size=vocabulary.LONGEST_BYTES,
        loops=vocabulary.DEEPEST_LOOPS, longest=vocabulary.LONGEST_RANGE,
        exponent=vocabulary.LARGEST_EXPONENT, bits=int(math.log2(vocabulary.LARGEST_INTEGER)),
    )  # fmt: skip


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
