"""Writes a policy as a function and compares it with two that ship, over three seeds.

python examples/compare_policies.py
"""

import podium


def least_free_gpu(pod, node):  # noqa: ANN001, ANN201, ARG001, D103 - as plain as a policy file
    return -sum(node.gpu_milli_left)


def main() -> None:
    """Prints the ranking."""
    found = podium.compare(
        [least_free_gpu, "fgd", "best-fit"], trace="openb", protocol="inflation", seeds=3
    )
    for row in found.ranking.rows:
        print(f"{row.rank}  {row.policy:<15} {row.mean:.2%}  {row.low:.2%} .. {row.high:.2%}")
    print(f"measured against {found.ranking.yardstick}, seeds {found.ranking.seeds}")


if __name__ == "__main__":
    main()
