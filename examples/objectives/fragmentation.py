"""100 less the fragmentation (percent of all GPUs) after each arrival under inflation.

The rule `--fitness fragmentation`, as an objective.
"""

CASES = ("inflation",)


def objective(run):
    return 100.0 - run.fragmentation
