"""Under replay, 100 w / (w + v), once with the mean and once with the 95th percentile of how long
pods wait, where v is that of the policy, w that of fgd, and both are taken 60 s longer: 50 is as
good as fgd; plus the points by which fragmentation while pods arrive is below that of fgd.

The rule `--fitness waiting`, as an objective. Cases count alike: their mean is taken.
"""

CASES = ("replay",)

PATIENCE_S = 60.0


def share(own_s, fgd_s):
    return 100.0 * (fgd_s + PATIENCE_S) / (fgd_s + own_s + 2 * PATIENCE_S)


def objective(run):
    waiting = share(run.wait_mean_s, run.fgd.wait_mean_s) / 2
    waiting += share(run.wait_p95_s, run.fgd.wait_p95_s) / 2
    return waiting + run.fgd.fragmentation_arriving - run.fragmentation_arriving
