"""For policies that may hold pods: GPU allocation (percent) when 130 % of the GPUs were asked for,
less 0.3 points for each point by which the mean at 100 % is below 93, and less 0.1 for each percent
of the CPU-only pods that fgd places and the policy does not.

The rule `--fitness holding:93`, as an objective.
"""

CASES = ("holding",)
MAY_HOLD = True

FLOOR, PENALTY, STARVING = 93.0, 0.3, 0.1


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def objective(run):
    return combine([run])


def combine(runs):
    shortfall = max(0.0, FLOOR - mean(run.allocation_100 for run in runs))
    starved = mean(run.fgd.cpu_only_placed for run in runs)
    starved = max(0.0, starved - mean(run.cpu_only_placed for run in runs))
    return mean(run.allocation_130 for run in runs) - PENALTY * shortfall - STARVING * starved
