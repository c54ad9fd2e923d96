"""Keeps free GPU worth something: not in parts too small, and with CPU beside it.

Written by hand to show what bred programs can say: a worth of free parts in steps, of the GPU that
the pod goes to, and two levels of CPU for each GPU. Its constants were tuned by CMA-ES on six
traces of OpenB with 200 nodes each; the second level was chosen at full size with seed 1400.
"""

from podium.policies import tunable

STEP_GPU_MILLI = tunable(213.6, 0.0, 1000.0)
CPUS_PER_GPU = tunable(10.61, 1.0, 60.0)
CPUS_PER_GPU_2 = tunable(7.0, 1.0, 60.0)
WEIGHT = tunable(0.5714, 0.01, 3.0)
WEIGHT_2 = tunable(0.5, 0.01, 3.0)
STEPS = tunable(11.31, 0.5, 60.0)
FINE = tunable(0.1477, 0.01, 4.0)
BEHIND = tunable(0.7004, 0.01, 2.0)


def worth(gpu_milli):
    """Values a free part of a GPU, in steps: by what can still be placed on it."""
    if gpu_milli < STEP_GPU_MILLI:
        return 0
    return gpu_milli


def starved(gpu_milli, cpu_milli, cpus_per_gpu):
    """Returns the free GPU that lacks CPU, for pods that take so much CPU with each GPU."""
    return max(0, gpu_milli - cpu_milli / cpus_per_gpu)


def score(pod, node, gpu):
    """Scores a pod on a node; the highest score wins."""
    worth_before = 0
    for slot in range(node.gpu_count):
        worth_before += worth(node.gpu_milli_left[slot])
    here = node.gpu_milli_left[gpu] if gpu >= 0 else 1000
    behind = here - pod.gpu_milli
    worth_taken = pod.gpu_count * (worth(here) - worth(behind))
    worth_after = worth_before - worth_taken
    cpu_before = node.cpu_milli_left
    cpu_after = cpu_before - pod.cpu_milli
    more = starved(worth_after, cpu_after, CPUS_PER_GPU) - starved(
        worth_before, cpu_before, CPUS_PER_GPU
    )
    more_2 = starved(worth_after, cpu_after, CPUS_PER_GPU_2) - starved(
        worth_before, cpu_before, CPUS_PER_GPU_2
    )
    wasted = worth_taken - pod.gpu_count * pod.gpu_milli
    loss = (wasted + WEIGHT * more + WEIGHT_2 * more_2) / 1000
    return -int(STEPS * loss) - FINE * loss - BEHIND * pod.gpu_count * behind / 1000
