"""The programs that breeding starts from: published formulas, simple packing terms, and our own.

`fed` and `typical` were written by people here, after what the fragmentation of FGD counts; what a
search finds beginning with them is theirs as far as it is them with other constants.
"""

from __future__ import annotations

import functools
from importlib import resources

from podium.search.program.program import Program
from podium.search.program.reader import parse

BUILTIN = ("first_fit", "best_fit", "dot_product", "funsearch_best_fit", "gpu_packing")
"""Built-in policies that can be bred as they are."""

OWN = ("fed", "typical")
"""Formulas of Podium's authors, made of ingredients; the others are published, or packing terms."""

_PACKED = '''"""Fills GPUs in use before free ones.

After GpuPackingScore of hkust-adsl/kubernetes-scheduler-simulator.
"""


def score(pod, node):
    tightest_gpu_milli = 1000
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        if left >= pod.gpu_milli:
            tightest_gpu_milli = min(tightest_gpu_milli, left)
    gpu_milli_behind = tightest_gpu_milli - pod.gpu_milli
    return -(gpu_milli_behind / 1000)
'''

_CONVEX = '''"""Likes nodes that are nearly full or nearly empty once the pod is there."""


def score(pod, node):
    gpu_milli_free = 0
    for slot in range(node.gpu_count):
        gpu_milli_free += node.gpu_milli_left[slot]
    gpu_milli_wanted = pod.gpu_count * pod.gpu_milli
    gpu_milli_after = gpu_milli_free - gpu_milli_wanted
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    gpu_ratio = gpu_milli_after / max(1, 1000 * node.gpu_count)
    cpu_ratio = cpu_milli_after / max(1, node.cpu_milli_total)
    return (gpu_ratio - 0.5) ** 2 + (cpu_ratio - 0.5) ** 2
'''

_BALANCED = '''"""Keeps free CPU and free GPU alike, in whole steps: ties go to the first node."""


def score(pod, node):
    gpu_milli_free = 0
    for slot in range(node.gpu_count):
        gpu_milli_free += node.gpu_milli_left[slot]
    gpu_milli_wanted = pod.gpu_count * pod.gpu_milli
    gpu_milli_after = gpu_milli_free - gpu_milli_wanted
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    gpu_ratio = gpu_milli_after / max(1, 1000 * node.gpu_count)
    cpu_ratio = cpu_milli_after / max(1, node.cpu_milli_total)
    return -int(10 * abs(gpu_ratio - cpu_ratio))
'''

_EXACT = '''"""Looks for the GPU on which a share pod leaves nothing, or little."""


def score(pod, node, gpu):
    gpu_milli_behind_here = node.gpu_milli_left[gpu] - pod.gpu_milli if gpu >= 0 else 0
    return (1 if gpu_milli_behind_here == 0 else 0) - int(4 * (gpu_milli_behind_here / 1000))
'''

_FED = '''"""Keeps CPU beside free GPUs, in whole steps.

The fragmentation of FGD (Weng et al., USENIX ATC 2023) with a single typical pod, whose CPU
grows with its GPU: GPU without that much CPU is lost to it.
"""

from podium.policies import tunable

CPUS_PER_GPU = tunable(10.0, 2.0, 60.0)


def score(pod, node):
    gpu_milli_free = 0
    for slot in range(node.gpu_count):
        gpu_milli_free += node.gpu_milli_left[slot]
    gpu_milli_wanted = pod.gpu_count * pod.gpu_milli
    gpu_milli_after = gpu_milli_free - gpu_milli_wanted
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    stranded_gpu_milli_before = max(0, gpu_milli_free - node.cpu_milli_left / CPUS_PER_GPU)
    stranded_gpu_milli_after = max(0, gpu_milli_after - cpu_milli_after / CPUS_PER_GPU)
    stranded_gpu_milli_more = stranded_gpu_milli_after - stranded_gpu_milli_before
    return -int(4 * (stranded_gpu_milli_more / 1000))
'''

_TYPICAL = '''"""Keeps GPU usable, in whole steps: not in small parts, and with CPU beside it.

The fragmentation of FGD (Weng et al., USENIX ATC 2023) with a single typical pod, which takes a
part of a GPU and the CPU that is usual for that part.
"""

from podium.policies import tunable

CPUS_PER_GPU = tunable(10.0, 2.0, 60.0)
SMALL_GPU_MILLI = tunable(100.0, 0.0, 1000.0)


def score(pod, node):
    usable_gpu_milli_before = 0
    tightest_gpu_milli = 1000
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        if left >= SMALL_GPU_MILLI:
            usable_gpu_milli_before += left
        if left >= pod.gpu_milli:
            tightest_gpu_milli = min(tightest_gpu_milli, left)
    gpu_milli_wanted = pod.gpu_count * pod.gpu_milli
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    gpu_milli_behind = tightest_gpu_milli - pod.gpu_milli
    is_share = 0 < pod.gpu_milli < 1000
    lost_gpu_milli = gpu_milli_behind if is_share and gpu_milli_behind < SMALL_GPU_MILLI else 0
    gpu_milli_spent = gpu_milli_wanted + lost_gpu_milli
    usable_gpu_milli_taken = gpu_milli_spent if tightest_gpu_milli >= SMALL_GPU_MILLI else 0
    usable_gpu_milli_after = usable_gpu_milli_before - usable_gpu_milli_taken
    starved_gpu_milli_before = max(0, usable_gpu_milli_before - node.cpu_milli_left / CPUS_PER_GPU)
    starved_gpu_milli_after = max(0, usable_gpu_milli_after - cpu_milli_after / CPUS_PER_GPU)
    starved_gpu_milli_more = starved_gpu_milli_after - starved_gpu_milli_before
    return -int(4 * ((starved_gpu_milli_more + lost_gpu_milli) / 1000))
'''

_TEXTS = {
    "packed": _PACKED, "convex": _CONVEX, "balanced": _BALANCED, "exact": _EXACT,
    "fed": _FED, "typical": _TYPICAL,
}  # fmt: skip


@functools.cache
def seeds() -> dict[str, Program]:
    """Reads the seeds, by name."""
    folder = resources.files("podium.policies") / "builtin"
    texts = {each: (folder / f"{each}.py").read_text(encoding="utf-8") for each in BUILTIN}
    found = {title: parse(text, title) for title, text in (texts | _TEXTS).items()}
    return {title.replace("_", "-"): program for title, program in found.items()}
