"""Searches for a policy, offline, and sets what it found beside two that ship.

python examples/search_policy.py
"""

import podium


def main() -> None:
    """Prints the ranking on a cluster that the search never saw."""
    found = podium.search(evaluations=100, seed=1000)
    print(f"{found.ending}; better than fgd: {found.fitness > found.summary['fitness_fgd']}")
    ranked = podium.compare(
        [found.best, "fgd", "worst-fit"], "openb", protocol="inflation", seeds=2
    )
    for row in ranked.ranking.rows:
        print(f"{row.rank}  {row.policy:<12} {row.mean:.2%}")


if __name__ == "__main__":
    main()
