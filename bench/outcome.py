"""Measures what it costs to follow a cluster's outcome: one look, one scrape, one pod in a twin.

    python bench/outcome.py [--nodes 1500 5000] [--pods 20000] [--policy fgd] [--json]

Nodes have 8 GPUs; the pods are drawn from the OpenB trace, and those that fit are bound. Then more
pods come, each while another ends, and a twin of the policy places them. A piece is what runs
without a pause between two answers. All times are those of the processor.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any

from extender import bound, node, pods
from kube_cache import resident_mb
from prometheus_client import CollectorRegistry, generate_latest

from podium.kube import LiveState
from podium.kube.pod import Unreadable
from podium.policies import load
from podium.service.extender.outcome import CLUSTER, Outcome
from podium.service.extender.window import LiveWindow
from podium.service.http.logs import Log
from podium.settings import Extender

CHURN_PODS = 500
WAITING_PODS = 1000


def main() -> None:
    """Measures each size and prints what it costs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1500, 5000])
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--policy", default="fgd")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = {size: measured(size, given.pods, given.policy) for size in given.nodes}
    if given.json:
        print(json.dumps(rows))
        return
    for size, row in rows.items():
        print(f"{size:,} nodes, {given.pods:,} pods, {WAITING_PODS:,} of them waiting")
        for name, value in row.items():
            print(f"  {name:28} {value:>10.3f}")


def measured(nodes: int, count: int, policy: str) -> dict[str, float]:
    """Measures one size of cluster."""
    state, recent = LiveState(), LiveWindow(2000)
    state.replace("Node", (node(number) for number in range(nodes)))
    bodies = pods(seed=0)
    listed = list(itertools.islice(bodies, count))
    for number, body in enumerate(listed):
        is_bound = number >= WAITING_PODS
        state.apply("Pod", "ADDED", bound(body, f"node-{number % nodes:05}") if is_bound else body)
        request = state.request(body)
        if not isinstance(request, Unreadable):
            recent.add(request)
    log = Log(io.StringIO())
    outcome = Outcome(state, recent, Extender(shadow=policy), log.logger)
    outcome.follow()
    pieces(outcome)  # the state is worked out
    alone = pieces(outcome)
    taken = load(policy)
    outcome.prepare([taken, taken], recent.shapes(state.gpu_kinds), state.nodes.dtype)
    before_mb = resident_mb()
    begin = pieces(outcome)
    twin_mb = resident_mb() - before_mb
    idle = pieces(outcome)
    churn(state, listed[WAITING_PODS:], bodies)
    busy = pieces(outcome)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(outcome)
    log.close()
    return {
        "look_ms": sum(alone),
        "look_with_twin_ms": sum(idle),
        "scrape_ms": once(lambda: generate_latest(registry)),
        "twin_begins_ms": sum(begin),
        "twin_begins_longest_piece_ms": max(begin),
        "twin_mb": twin_mb,
        "twin_pod_ms": (sum(busy) - sum(idle)) / CHURN_PODS,
        "piece_p50_ms": statistics.median(busy),
        "piece_longest_ms": max(busy),
        "waiting_in_twin": float(waiting(outcome)),
    }


def churn(state: LiveState, old: list[dict[str, Any]], new: Iterator[dict[str, Any]]) -> None:
    """Lets pods end while as many come."""
    for gone, body in zip(old[:CHURN_PODS], new, strict=False):
        state.apply("Pod", "DELETED", gone)
        state.apply("Pod", "ADDED", body)
        state.index  # noqa: B018 - as the extender looks when a pod is bound


def pieces(outcome: Outcome) -> list[float]:
    """Looks once, and times each piece in milliseconds."""
    found, before = list[float](), time.process_time()
    for _ in outcome.advance():
        now = time.process_time()
        found.append(1000 * (now - before))
        before = now
    return [*found, 1000 * (time.process_time() - before)]


def once(work: Any) -> float:
    """Times some work in milliseconds."""
    before = time.process_time()
    work()
    return 1000 * (time.process_time() - before)


def waiting(outcome: Outcome) -> int:
    """Counts the pods that wait in the twin."""
    (twin,) = (each for each in outcome.accounts if each.scheduler != CLUSTER)
    return sum(each.pods for each in twin.waiting.values())


if __name__ == "__main__":
    main()
