"""Writes a policy as a function and compares it with two that ship, over three seeds.

python examples/compare_policies.py
"""

from podium.evaluation.comparison import compare
from podium.policies import from_function, load
from podium.reports.summary import summarise
from podium.sim import Inflation, Setup, simulate
from podium.traces import LoadOptions, load_trace

SEEDS = (1000, 1001, 1002)


def least_free_gpu(pod, node):  # noqa: ANN001, ANN201, ARG001, D103 - as plain as a policy file
    return -sum(node.gpu_milli_left)


def main() -> None:
    """Prints the ranking."""
    policies = [from_function(least_free_gpu, "least-free-gpu"), load("fgd"), load("best-fit")]
    summaries = {policy.name: [] for policy in policies}
    for seed in SEEDS:
        trace = load_trace("openb", LoadOptions(seed=seed))
        for policy in policies:
            result = simulate(
                trace.cluster, trace.workload, policy, Inflation(ratio=1.3), Setup(seed)
            )
            summaries[policy.name].append(summarise(result))
    ranking = compare(summaries, "gpu_allocation", holding=frozenset())
    for row in ranking.rows:
        print(f"{row.rank}  {row.policy:<15} {row.mean:.2%}  {row.low:.2%} .. {row.high:.2%}")
    print(f"measured against {ranking.yardstick}, seeds {ranking.seeds}")


if __name__ == "__main__":
    main()
