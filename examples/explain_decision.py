"""Asks why a pod went where it went, on a trace that is loaded once.

python examples/explain_decision.py
"""

import podium


def main() -> None:
    """Prints who could have taken the first pod that arrived."""
    trace = podium.load_trace("openb", seed=3, nodes=40, pods=200)
    result = podium.simulate("best-fit", trace, protocol="inflation", seed=3)
    found = podium.explain(result, result.plan.arrivals.names[0])
    print(f"{found.pod} went to {found.node}; {found.feasible} nodes could take it")
    for candidate in found.candidates:
        print(f"  {candidate.node}  {candidate.score:g}")


if __name__ == "__main__":
    main()
