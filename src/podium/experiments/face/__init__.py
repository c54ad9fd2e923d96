"""The functions of `import podium`: what the commands do, for notebooks and programs."""

from podium.experiments.face.learning import search, train
from podium.experiments.face.references import load_policy, load_trace
from podium.experiments.face.runs import compare, explain, fit, simulate

__all__ = [
    "compare", "explain", "fit", "load_policy", "load_trace", "search", "simulate", "train",
]  # fmt: skip
