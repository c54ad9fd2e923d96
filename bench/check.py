"""Checks speed against references measured in the same run, so that any machine can judge.

    python bench/check.py

Absolute targets are `podium bench`'s business; here a figure must beat its reference by a ratio
that holds on slow and fast machines alike.
"""

from __future__ import annotations

import json
import subprocess
import sys

LEAST_RATIO = {
    "decisions_16_nodes": 4.0,  # compiled over plain Python with a memo
    "decisions_1213_nodes": 8.0,  # cached over scanned
    "decisions_1213_nodes_constrained": 0.5,  # constraints on half of the pods over none
    "decisions_1213_nodes_dense": 4.0,
    "decisions_10k_nodes": 40.0,
    "decisions_100k_nodes": 300.0,
    "replay_16_nodes": 3.0,
    "steps_64_environments": 0.5,  # actions given from outside over an actor compiled in
    "observed_64_environments": 0.3,  # observations and rewards over records alone
    "observed_64_environments_rounds": 0.2,  # short episodes, each begun anew
    "fgd_inflation_1213_nodes": 8.0,
    "kube_default_4k_nodes": 0.05,  # random ties over none
    "new_python_policy_replay": 1.0,  # running a new policy must not cost more than compiling it
    "threads_2_speedup": 0.8,  # of what a bare loop gains on the same two cores
    "score_1213_nodes_fed_gpu": 20.0,  # one compiled call over a loop in plain Python
    "score_1213_nodes_fgd": 60.0,
    "search_evaluations": 2.5,  # gates, sandbox and all, over the cases alone in plain Python
}
MOST_PERCENT = {
    "search_overhead": 40.0,  # a share of the same run, with room for slow pipes
}


def main() -> int:
    """Runs the benchmark and prints every ratio with its bound."""
    command = [sys.executable, "-m", "podium", "bench", "--json"]
    for name in (*LEAST_RATIO, *MOST_PERCENT):
        command += ["--only", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        return done.returncode
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    failed = 0
    for name, least in LEAST_RATIO.items():
        ratio = rows[name]["ratio"]
        is_met = ratio >= least
        failed += not is_met
        print(f"{'ok  ' if is_met else 'FAIL'}  {name:<28} {ratio:10.2f} x, at least {least:g} x")
    for name, most in MOST_PERCENT.items():
        value = rows[name]["value"]
        failed += value > most
        verdict = "ok  " if value <= most else "FAIL"
        print(f"{verdict}  {name:<28} {value:10.2f} %, at most {most:g} %")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
