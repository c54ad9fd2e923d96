"""What a run tells a chooser that asks for it: the pods behind, holds, rounds and demand."""

from __future__ import annotations

import itertools

import numpy as np

from podium.model.workload import gpu_demand
from podium.policies import HOLD, ClusterPolicy
from podium.sim import Inflation, Replay, Rounds, Setup, simulate
from podium.sim.protocols import Holding
from podium.traces import LoadOptions, load_trace


class Curious:
    """Holds every third offer, and notes what it is told."""

    look_ahead = 3

    def __init__(self, notes):
        self._notes, self._offers = notes, 0

    def observe(self, situation):
        self._told = situation

    def choose(self, pod, _nodes, feasible):
        self._offers += 1
        self._notes.append((pod, self._told))
        is_held = self._offers % 3 == 0 and self._told.may_hold
        return HOLD if is_held else int(feasible.argmax())


def told(protocol, nodes=6, pods=60):
    trace = load_trace("openb", LoadOptions(seed=1000, nodes=nodes, pods=pods))
    notes = []
    policy = ClusterPolicy("curious", lambda _seed: Curious(notes), may_hold=True)
    result = simulate(trace.cluster, trace.workload, policy, protocol, Setup(seed=1000))
    return trace.workload, result, notes


def test_the_pods_behind_are_those_that_are_offered_next():
    workload, _, notes = told(Rounds(3, Holding(max_holds=2)), nodes=40)  # there is room for all
    first_round = [each for each in notes if each[1].round == 0]
    assert len(first_round) == len(workload)
    for (_, situation), following in itertools.pairwise(first_round):
        assert tuple(situation.ahead[0].item()) == tuple(following[0])
    assert [len(situation.ahead) for _, situation in first_round[-4:]] == [3, 2, 1, 0]


def test_rounds_tell_where_they_stand():
    workload, result, notes = told(Rounds(4, Holding(max_holds=2)))
    pods, asked = len(workload), int(gpu_demand(workload.pods).sum())
    for _, situation in notes:
        assert (situation.max_rounds, situation.num_pods, situation.to_come) == (4, pods, 0)
        assert situation.gpu_milli_asked == asked
        assert situation.may_hold == (situation.holds < 2)
        assert 0 <= situation.waiting <= pods
    assert {situation.round for _, situation in notes} >= {0, 1}
    assert (
        sorted({situation.holds for _, situation in notes}) == [0, 1, 2][: result.holds.max() + 1]
    )


def test_demand_grows_with_arrivals():
    for protocol in (Inflation(1.2), Replay(20.0)):
        workload, _, notes = told(protocol)
        asked = [situation.gpu_milli_asked for _, situation in notes]
        assert asked == sorted(asked)
        assert asked[0] < asked[-1]
        assert all(situation.max_rounds == 0 for _, situation in notes)
        assert notes[0][1].to_come > notes[-1][1].to_come
        assert len(workload)


def test_those_who_ask_for_nothing_are_told_nothing():
    class Plain:
        def choose(self, _pod, _nodes, feasible):
            return int(feasible.argmax())

    trace = load_trace("openb", LoadOptions(seed=1000, nodes=4, pods=20))
    policy = ClusterPolicy("plain", lambda _seed: Plain())
    result = simulate(trace.cluster, trace.workload, policy, Rounds(), Setup(seed=1000))
    same = simulate(trace.cluster, trace.workload, "first-fit", Rounds(), Setup(seed=1000))
    assert np.array_equal(result.node, same.node)
