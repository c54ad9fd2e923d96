"""GPU allocation (percent) when 130 % of the GPUs were asked for, and a tenth of the percent of
8-GPU pods that were placed; half a minute of mean waiting costs a point.

Needs two kinds of cases, and looks at the classes of pods.
"""

CASES = ("inflation", "replay")


def objective(run):
    if run.protocol == "replay":
        return 100.0 - run.wait_mean_s / 30
    return run.allocation_130 + 0.1 * run.placed.get("8-gpu", 0.0)
