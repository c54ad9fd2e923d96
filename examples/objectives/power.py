"""Less the watts of the GPUs that some pod has when the last one arrives under replay, averaged
over all GPUs of the cluster; half a minute of mean waiting counts as a watt.

No trace says what a GPU draws, so the file does: the rated power that its maker states, to be
replaced by readings of your own. A GPU of which a pod has a part is awake like any other.
"""

CASES = ("replay",)

WATTS = {"T4": 70, "A10": 150, "P100": 250, "V100M16": 300, "V100M32": 300}
USUAL_W = 250
"""For models that are not listed, such as G2 and G3, whose names OpenB withholds."""


def watts(run):
    return sum(percent / 100 * WATTS.get(model, USUAL_W) for model, percent in run.in_use.items())


def objective(run):
    return -watts(run) - run.wait_mean_s / 30
