"""Candidates that ask for promotion: one that is good, with things in it that do nothing."""

GOOD = '''"""Keeps free CPU and free GPU alike, in whole steps, on nodes with few GPUs."""


def score(pod, node):
    gpu_milli_free = 0
    for slot in range(node.gpu_count):
        gpu_milli_free += node.gpu_milli_left[slot]
    gpu_milli_after = gpu_milli_free - pod.gpu_count * pod.gpu_milli
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    gpu_ratio = gpu_milli_after / max(1, 1000 * node.gpu_count)
    cpu_ratio = cpu_milli_after / max(1, node.cpu_milli_total)
    return -int(10 * abs(gpu_ratio - cpu_ratio)) - 0.5 * node.gpu_count
'''

PADDED = '''"""Keeps free CPU and free GPU alike, in whole steps, on nodes with few GPUs."""

from podium.policies import tunable

W_BALANCE = tunable(10.000321, 0, 20)
W_NOTHING = tunable(0.000000001, 0, 1)


def nothing(memory_mib):
    return min(0.5, memory_mib / 1e12)


def score(pod, node):
    gpu_milli_free = 0
    padding = 0.0
    for slot in range(node.gpu_count):
        gpu_milli_free += node.gpu_milli_left[slot]
        padding += W_NOTHING * slot
    gpu_milli_after = gpu_milli_free - pod.gpu_count * pod.gpu_milli
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    gpu_ratio = gpu_milli_after / max(1, 1000 * node.gpu_count)
    cpu_ratio = cpu_milli_after / max(1, node.cpu_milli_total)
    if pod.gpu_count > 100 or pod.cpu_milli < -5:
        return 7.25
    balance = -int(W_BALANCE * abs(gpu_ratio - cpu_ratio)) * 1.00001
    return balance - 0.5 * node.gpu_count + padding + W_NOTHING * nothing(pod.memory_mib)
'''

BRITTLE = '''"""Packs well on the nodes that it knows, and strands GPUs on all others."""


def score(pod, node):
    gpu_milli_free = 0
    for slot in range(node.gpu_count):
        gpu_milli_free += node.gpu_milli_left[slot]
    gpu_milli_after = gpu_milli_free - pod.gpu_count * pod.gpu_milli
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    gpu_ratio = gpu_milli_after / max(1, 1000 * node.gpu_count)
    cpu_ratio = cpu_milli_after / max(1, node.cpu_milli_total)
    cpus = node.cpu_milli_total // 1000
    if 64 < cpus < 96 or 104 < cpus < 128 or cpus > 128:
        return 100 + abs(gpu_ratio - cpu_ratio)
    return -int(10 * abs(gpu_ratio - cpu_ratio)) - 0.5 * node.gpu_count
'''
