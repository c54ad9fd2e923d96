"""Runs the FunSearch simulator's own events and metrics: a compatibility mode, to compare with.

Source: github.com/ttanv/funsearch-kubernetes-simulator at f113ab6, written anew from a
description of its behaviour. Nothing else in Podium follows these rules, and the headline
figures mislead:

- Every failed attempt counts as an event, and use is a plain mean over events, so a policy
  that makes pods wait samples the full cluster more often and scores higher for it.
- A pod with a part of a GPU takes a whole one from the node's count: sharing is off in effect.
- A pod retries one second after a deletion that stands first in the heap's array, which need
  not be the earliest, and a pod that fails while nothing runs is dropped.
- Fragmentation is sampled at failures only and averaged over a number of failures that differs
  from policy to policy. The models in `gpu_spec` are not enforced.

The result carries waiting times and time-weighted use of the same run beside those figures.
One departure: a score that picks a node which cannot take the pod ends the run with an error,
where the original went on with negative resources.
"""

from podium.sim.funsearch.metrics import FunsearchResult
from podium.sim.funsearch.policy_run import FunsearchCase, run_policy
from podium.sim.funsearch.scores import FUNSEARCH_POLICIES
from podium.sim.funsearch.simulation import run_funsearch

__all__ = [
    "FUNSEARCH_POLICIES", "FunsearchCase", "FunsearchResult", "run_funsearch", "run_policy",
]  # fmt: skip
