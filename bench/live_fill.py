"""Lets a real kube-scheduler fill drawn clusters: by its defaults, packing, and with Podium.

    KUBEBUILDER_ASSETS=FOLDER python bench/live_fill.py [--seeds 2100-2119] [--renamed] [POLICY]

Nodes and pods are those of bench/drawn_clusters.py, with whole GPUs only, since kube-scheduler
counts no others. Prints the GPUs allocated in percent by each, on the real control plane and as
simulated, and paired differences at the end. `--renamed` gives every node another name, in another
order.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from drawn_clusters import FAMILIES, Family, draw, interval

from podium.experiments.case import named_policy
from podium.experiments.kube_try import tried
from podium.experiments.try_plan import ARMS, TryPlan
from podium.experiments.try_runs import TryListener
from podium.kube.local.programs import find_programs
from podium.model import Cluster
from podium.settings import Extender

MAX_PODS = 260


def plan_of(family: Family, seed: int, reference: str, *, is_renamed: bool) -> TryPlan | None:
    """Draws what is tried; None where there are more pods than there is time for."""
    cluster, workload = draw(family, seed)
    specs, nodes = workload.specs(), cluster.specs()
    pods = tuple(pod for pod in specs if not pod.node)
    if len(pods) > MAX_PODS:
        return None
    names = {node.name: node.name for node in nodes}
    if is_renamed:
        order = np.random.default_rng(seed).permutation(len(nodes))
        names = {nodes[place].name: f"n{i:03}" for i, place in enumerate(order)}
        nodes = [replace(nodes[place], name=f"n{i:03}") for i, place in enumerate(order)]
    agents = tuple(replace(pod, node=names[pod.node]) for pod in specs if pod.node)
    policy = named_policy(reference, "argument POLICY")
    drawn = Cluster.of(nodes)
    return TryPlan(family.name, seed, drawn, pods, policy, reference, running=agents)


def main() -> None:
    """Prints a row for each workload, and the differences over all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("policy", nargs="?", default=Extender().policy)
    parser.add_argument("--seeds", default="2100-2119")
    parser.add_argument("--renamed", action="store_true")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    whole = [replace(each, parts=0.0) for each in FAMILIES if not each.has_ends]
    rows = []
    print("| workload | " + " | ".join(f"{arm} | simulated" for arm in ARMS) + " |")
    print("|---|" + "---|" * 2 * len(ARMS))
    for seed in range(int(first), int(last or first) + 1):
        family = whole[seed % len(whole)]
        plan = plan_of(family, seed, given.policy, is_renamed=given.renamed)
        if plan is None:
            continue
        with tried(plan, find_programs(), TryListener()) as outcome:
            both = [
                100 * tally.gpus_allocated / plan.cluster.gpu_total
                for arm in ARMS
                for tally in (outcome.real[arm], outcome.forecasts[arm].listed)
            ]
        rows.append(both)
        print(
            f"| {family.name} {seed} | " + " | ".join(f"{x:.1f}" for x in both) + " |", flush=True
        )
    table = np.array(rows)
    for number, arm in enumerate(ARMS):
        real, simulated = table[:, 2 * number], table[:, 2 * number + 1]
        over = table[:, 2 * number] - table[:, 2]
        print(
            f"{arm}: real - simulated {interval(real - simulated)}; over packing {interval(over)}"
        )


if __name__ == "__main__":
    main()
