"""GPU allocation (percent) when 130 % of the GPUs were asked for, less 2 points for each point by
which the mean at 100 % is more than half a point below that of fgd; over n runs, a half of 1 / n.

The rule `--fitness inflation`, as an objective: podium search run --objective inflation.py
"""

CASES = ("inflation",)

TOLERANCE, PENALTY = 0.5, 2.0


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def objective(run):
    return combine([run])


def combine(runs):
    floor = mean(run.fgd.allocation_100 for run in runs) - TOLERANCE / len(runs)
    shortfall = max(0.0, floor - mean(run.allocation_100 for run in runs))
    return mean(run.allocation_130 for run in runs) - PENALTY * shortfall
