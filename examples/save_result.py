"""Simulates, keeps the result in one file, and looks into it later.

python examples/save_result.py
"""

import tempfile
from pathlib import Path

import podium


def main() -> None:
    """Prints what a result that was read back still knows."""
    result = podium.simulate(policy="fgd", trace="openb", protocol="inflation", seed=3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fgd.podium"
        result.save(path)
        again = podium.Result.load(path)
    print(again)
    print(f"same decisions: {again.digest == result.digest}")
    print(f"GPUs allocated: {again.metrics.gpu_allocation:.2%}")
    print(again.to_frame().filter(reason="no node had room").height, "pods found no room")


if __name__ == "__main__":
    main()
