"""Makes policies that nobody has compiled before, to measure what a new one costs."""

from __future__ import annotations

from podium.policies import Policy, policy_of
from podium.policies.source import read_source

_TEXT = '''
"""Likes nodes by a formula nobody has used before."""


def score(pod, node):
    left = 0
    tightest = 1000
    for slot in range(node.gpu_count):
        milli = node.gpu_milli_left[slot]
        left += milli
        if pod.gpu_milli <= milli < tightest:
            tightest = milli
    cpu = (node.cpu_milli_left - pod.cpu_milli) / node.cpu_milli_total
    memory = (node.memory_mib_left - pod.memory_mib) / node.memory_mib_total
    balance = cpu - memory if cpu > memory else memory - cpu
    return {number} - cpu - 0.5 * balance - tightest / 1000 - left / 8000
'''


def fresh_policy(number: int) -> Policy:
    """Makes a policy that only the number tells from the others."""
    text = _TEXT.replace("{number}", str(number))
    return policy_of(read_source(text, "fresh.py"), "fresh")
