"""Replays the manifests of a folder and tells where each pod went, when, and how long it waited.

python examples/own_cluster.py
"""

from pathlib import Path

from podium.policies import load
from podium.sim import simulate
from podium.sim.metrics import measure
from podium.traces import load_trace

MANIFESTS = Path(__file__).parent / "manifests"


def main() -> None:
    """Prints one line per pod, and two figures of the run."""
    trace = load_trace(str(MANIFESTS))
    result = simulate(trace.cluster, trace.workload, load("best-fit"))
    for placement in result.placements():
        waited_s = (placement.start_s or 0) - placement.arrival_s
        slots = ", ".join(map(str, placement.gpu_slots))
        print(f"{placement.pod:<8}  {placement.node}, GPU {slots}; waited {waited_s:.0f} s")
    figures = measure(result)
    print(f"{figures.gpu_allocation:.1%} of the GPUs in use over {figures.makespan_s:.0f} s")


if __name__ == "__main__":
    main()
