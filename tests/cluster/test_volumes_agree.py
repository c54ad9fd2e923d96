"""Podium and the real kube-scheduler agree on where volumes let pods run, in drawn clusters."""

import json

import pytest
import yaml

from podium.model.constraints import VolumeRule
from podium.sim.feasible import moment_before, present_plan
from podium.sim.refusal import refusal_at
from podium.traces import load_trace
from support.present import feasible_nodes
from support.volume_worlds import draw_volume_world

WORLDS = 150


@pytest.fixture
def dumped(tmp_path):
    """Reads some objects as the dump of a live cluster."""

    def read(objects):
        items = []
        for each in objects:
            metadata = {**each["metadata"], "uid": each["metadata"]["name"]}
            items.append({**each, "metadata": metadata})
        file = tmp_path / "dump.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return load_trace(str(file))

    return read


@pytest.mark.parametrize("seed", range(WORLDS))
def test_volumes_let_pods_run_on_the_same_nodes(oracle, dumped, seed):
    world = draw_volume_world(seed)
    verdicts = oracle.verdicts(world.pending, world.cluster)
    trace = dumped([*world.cluster, *world.pending])
    for asked, verdict in zip(world.pending, verdicts, strict=True):
        answer = feasible_nodes(trace, asked["metadata"]["name"])
        text = message(trace, asked)
        assert answer == verdict.nodes, told(world, asked, verdict, answer, text)
        if not answer:
            assert all(each in verdict.message for each in reasons(text)), (text, verdict.message)


def message(trace, asked):
    plan = present_plan(trace.cluster, trace.workload)
    pod = plan.arrivals.names.index(asked["metadata"]["name"])
    return refusal_at(moment_before(plan), pod).message


def reasons(text):
    """Finds what a message says; kube-scheduler also counts the node of the sentinel."""
    said = text.partition("available: ")[2].split(", ")
    return {part.partition(" ")[2] if part[0].isdigit() else part for part in said}


def told(world, asked, verdict, answer, text):
    """Writes a world down so that it can be looked at, with both answers."""
    objects = yaml.safe_dump_all([*world.cluster, asked], sort_keys=False)
    kube = f"# kube-scheduler {sorted(verdict.nodes)} {verdict.message}"
    return "\n".join((objects, kube, f"# Podium {sorted(answer)} {text}"))


def test_every_rule_is_drawn(dumped):
    worlds = [draw_volume_world(seed) for seed in range(WORLDS)]
    traces = [dumped([*world.cluster, *world.pending]) for world in worlds]
    given = [each for trace in traces for each in trace.workload.constraints]
    rules = [rule for each in given for rule in each.volumes]
    assert sum(bool(each.sole_claims) for each in given) > 50
    assert sum(len(rule.claims) > 1 for rule in rules) > 20
    assert all(isinstance(rule, VolumeRule) for rule in rules)
    for text in ("node affinity", "volumes to bind", "volume zone", "unbound immediate",
                 "not found", "non-existent", "waiting for ephemeral"):  # fmt: skip
        assert sum(text in rule.text for rule in rules) > 10, text
