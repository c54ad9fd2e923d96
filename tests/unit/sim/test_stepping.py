import threading

import numpy as np
import pytest

from podium.errors import UsageError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Constraints
from podium.policies import HOLD, load
from podium.sim import Holding, Inflation, Order, Replay, Rounds, Setup, simulate
from podium.sim.stepping import HOLD_ACTION, Episode, VectorEnvironment, stepped_plan
from support.agreement import same_result
from support.instances import random_cluster, random_workload

LISTED = Setup(ranks="listed")
CLUSTER = Cluster.of([NodeSpec("plain", 4000, 900), NodeSpec("gpus", 4000, 900, 2, "A")])
WORKLOAD = Workload.of(
    [
        PodSpec("cpu", 100, 1, arrival_s=0, duration_s=5),
        PodSpec("share", 100, 1, 1, 500, arrival_s=1, duration_s=5),
        PodSpec("huge", 9000, 1, arrival_s=2, duration_s=5),
        PodSpec("whole", 100, 1, 2, 1000, arrival_s=3, duration_s=5),
    ]
)
PROTOCOLS = [Replay(), Rounds(), Inflation(order=Order(np.arange(4)))]
RANDOM = np.random.default_rng(3)
MANY_NODES, MANY_PODS = random_cluster(9, RANDOM), random_workload(200, RANDOM)


def episode(protocol=None):
    return Episode.of(CLUSTER, WORKLOAD, protocol, LISTED)


def many(count, protocol=None):
    plans = [stepped_plan(MANY_NODES, MANY_PODS, protocol, Setup(seed)) for seed in range(count)]
    return VectorEnvironment(plans)


def finish(together):
    while not together.step(together.observation.feasible.argmax(axis=1)).all():
        pass


def test_an_offer_shows_the_pod_and_where_it_fits():
    run = episode()
    assert (run.offer.name, run.offer.feasible.tolist()) == ("cpu", [True, True])
    offer = run.apply(0)
    assert (offer.name, offer.clock_s, offer.may_hold) == ("share", 1.0, True)
    assert offer.feasible.tolist() == [False, True]
    assert offer.pod.gpu_milli == 500
    assert offer.nodes["cpu_milli_left"].tolist() == [3900, 4000]
    assert run.node_name(1) == "gpus"


def test_a_pod_that_fits_nowhere_is_not_offered():
    run = episode(Rounds())
    names = []
    while run.offer is not None:
        names.append(run.offer.name)
        run.apply(int(run.offer.feasible.argmax()))
    assert names == ["cpu", "share"]
    assert [each.reason != "" for each in run.result().placements()] == [False, False, True, True]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda each: each.name)
def test_taking_the_first_node_that_fits_is_first_fit(protocol):
    run = Episode.of(CLUSTER, WORKLOAD, protocol, Setup(7))
    while run.offer is not None:
        run.apply(int(run.offer.feasible.argmax()))
    expected = simulate(CLUSTER, WORKLOAD, load("first-fit"), protocol, Setup(7))
    assert same_result(run.result(), expected)
    assert run.result().decisions == expected.decisions


def test_a_gpu_can_be_chosen_for_a_share():
    run = episode()
    run.apply(0)
    run.apply(1, slot=1)
    while run.offer is not None:
        run.apply(int(run.offer.feasible.argmax()))
    assert run.result().slots.tolist()[1] == 0b10


def test_who_may_no_longer_be_held_goes_to_the_first_node_that_fits():
    run = episode(Replay(holding=Holding(max_holds=1)))
    while run.offer is not None:
        run.hold()
    result = run.result()
    assert result.node.tolist() == [0, 1, -1, 1]
    assert result.holds.tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("node", "slot", "message"),
    [
        (0, -1, 'the pod does not fit node 0 ("plain")'),
        (2, -1, "2 is neither a node nor HOLD_ACTION"),
        (-2, -1, "-2 is neither a node nor HOLD_ACTION"),
        (1, 2, "the pod does not fit GPU 2 of node 1"),
        (1, 99, "the pod does not fit GPU 99 of node 1"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused_and_changes_nothing(node, slot, message):
    run = episode()
    run.apply(0)
    with pytest.raises(UsageError) as caught:
        run.apply(node, slot)
    assert caught.value.message == message
    assert caught.value.where == 'environment 0, pod "share"'
    assert run.offer.name == "share"
    assert run.apply(1).name == "whole"


def test_a_pod_is_held_when_that_is_asked_for_and_not_by_minus_one():
    run = episode()
    with pytest.raises(UsageError, match="-1 is not the number of a node") as caught:
        run.apply(-1)
    assert caught.value.where == 'environment 0, pod "cpu"'
    assert caught.value.hint.endswith("hold() holds the pod back")
    assert run.apply(HOLD).name == "share"
    other = episode()
    assert other.hold().name == "share"


@pytest.mark.parametrize("node", [1.0, None, "1", True, np.array([1]), np.nan])
def test_what_is_no_number_of_a_node_is_refused(node):
    run = episode()
    with pytest.raises(UsageError, match="is not the number of a node"):
        run.apply(node)
    with pytest.raises(UsageError, match="there is no node"):
        run.node_name(node)
    assert run.apply(np.int64(0)).name == "share"


@pytest.mark.parametrize("slot", [-2, 0.0, "x"])
def test_what_is_no_number_of_a_gpu_is_refused(slot):
    with pytest.raises(UsageError, match="is not the number of a GPU"):
        episode().apply(0, slot)


@pytest.mark.parametrize("number", [9, -1, "x", 0.0])
def test_an_environment_that_is_not_there_is_told(number):
    together = VectorEnvironment([stepped_plan(CLUSTER, WORKLOAD)])
    for ask in (together.reset, together.result, together.offered):
        with pytest.raises(UsageError, match="there is no environment") as caught:
            ask(number)
        assert caught.value.hint == "give a whole number from 0 to 0"


def test_what_is_no_plan_is_told():
    plan = stepped_plan(CLUSTER, WORKLOAD)
    for wrong in (3, [3], [plan, CLUSTER]):
        with pytest.raises(UsageError, match="is not a plan"):
            VectorEnvironment(wrong)
    with pytest.raises(UsageError, match="one plan is no list of plans"):
        VectorEnvironment(plan)
    with pytest.raises(UsageError, match="int is not a plan"):
        VectorEnvironment([plan]).reset(0, 3)


def test_what_an_offer_shows_can_be_scored():
    run = episode()
    run.apply(0)
    offer, policy = run.offer, load("fgd")
    session = policy.session(WORKLOAD.shapes())
    scores = session.scores(offer.pod, offer.nodes).scores
    assert scores.tolist() == session.scores(WORKLOAD.pods[1], offer.nodes.copy()).scores.tolist()
    assert np.isfinite(scores).tolist() == offer.feasible.tolist() == [False, True]
    assert session.scores(offer.pod, offer.nodes[1]).scores.tolist() == [scores[1]]
    assert session.scores(offer.pod, [offer.node(1)]).scores.tolist() == [scores[1]]
    assert offer.node(1).gpu_milli_left[:2] == (1000, 1000)
    with pytest.raises(UsageError, match="there is no node 2"):
        offer.node(2)


def test_one_refused_action_stops_all_environments():
    together = VectorEnvironment([stepped_plan(CLUSTER, WORKLOAD, setup=LISTED)] * 3)
    together.step(np.array([0, 0, 0]))
    before = together.observation.nodes.copy()
    with pytest.raises(UsageError, match='environment 2, pod "share"'):
        together.step(np.array([1, HOLD_ACTION, 0]))
    assert together.observation.nodes.tobytes() == before.tobytes()
    assert together.observation.clock_s.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("actions", [[0, 0], [0.0], [[0]]])
def test_actions_of_another_size_or_kind_are_refused(actions):
    together = VectorEnvironment([stepped_plan(CLUSTER, WORKLOAD)])
    with pytest.raises(UsageError, match="actions are") as caught:
        together.step(np.array(actions))
    assert "each of the 1 environments" in caught.value.hint


def test_what_is_observed_cannot_be_written():
    shown = episode().offer
    for array in (shown.nodes, shown.feasible):
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            array.flags.writeable = True


def test_there_is_no_result_before_the_end_and_no_decision_after_it():
    run = episode(Rounds())
    with pytest.raises(UsageError, match="still to be decided"):
        run.result()
    while run.offer is not None:
        run.apply(int(run.offer.feasible.argmax()))
    with pytest.raises(UsageError, match="the run is over"):
        run.apply(0)


@pytest.mark.parametrize("protocol", [Replay(), Rounds(), Inflation()], ids=lambda each: each.name)
def test_a_run_that_is_begun_again_goes_as_before(protocol):
    together = many(3, protocol)
    finish(together)
    first = [together.result(i) for i in range(3)]
    digests = [each.digest for each in first]
    together.reset()
    for _ in range(7):
        together.step(np.full(3, HOLD_ACTION))
    together.reset(1)
    together.reset()
    finish(together)
    assert [together.result(i).digest for i in range(3)] == digests
    # A result is not overwritten by what comes after it.
    assert [each.digest for each in first] == digests


def test_an_environment_can_be_given_another_plan():
    together = many(2)
    small = stepped_plan(CLUSTER, WORKLOAD, Rounds(), LISTED)
    shown = together.reset(0, small)
    assert shown.nodes[0]["cpu_milli_total"].tolist() == [4000, 4000] + [0] * 7
    finish(together)
    expected = simulate(CLUSTER, WORKLOAD, load("first-fit"), Rounds(), LISTED)
    assert same_result(together.result(0), expected)
    assert same_result(
        together.result(1), simulate(MANY_NODES, MANY_PODS, load("first-fit"), None, Setup(1))
    )


@pytest.mark.deep
def test_an_environment_of_plain_runs_can_be_given_one_with_constraints():
    labelled = Cluster.of(
        [NodeSpec("hdd", 4000, 900, labels={"disk": "hdd"}), NodeSpec("ssd", 4000, 900)]
    )
    picky = PodSpec("picky", 100, 1, constraints=Constraints(node_labels=(("disk", "hdd"),)))
    together = many(2)
    shown = together.reset(1, stepped_plan(labelled, Workload.of([picky]), Rounds(), LISTED))
    assert shown.feasible[1].tolist() == [True] + [False] * 8
    together.reset(1, stepped_plan(CLUSTER, WORKLOAD, Rounds(), LISTED))
    assert shown.feasible[1].tolist() == [True, True] + [False] * 7
    finish(together)
    expected = simulate(MANY_NODES, MANY_PODS, load("first-fit"), None, Setup(0))
    assert same_result(together.result(0), expected)


def test_a_plan_that_has_no_room_is_refused():
    together = VectorEnvironment([stepped_plan(CLUSTER, WORKLOAD)])
    with pytest.raises(UsageError, match="9 nodes, there is room for 2"):
        together.reset(0, stepped_plan(MANY_NODES, MANY_PODS))
    wide = Cluster.of([NodeSpec("wide", 4000, 900, 16, "A")])
    with pytest.raises(UsageError, match="up to 8 and of more GPUs"):
        VectorEnvironment([stepped_plan(CLUSTER, WORKLOAD), stepped_plan(wide, WORKLOAD)])
    with pytest.raises(UsageError, match="no plan to step"):
        VectorEnvironment([])


def test_environments_of_different_size_stand_side_by_side():
    plans = [stepped_plan(CLUSTER, WORKLOAD), stepped_plan(MANY_NODES, MANY_PODS)]
    together = VectorEnvironment(plans)
    assert together.observation.nodes.shape == (2, 9)
    assert not together.observation.feasible[0, 2:].any()
    with pytest.raises(UsageError, match="2 is neither a node"):
        together.step(np.array([2, HOLD_ACTION]))


def test_who_is_done_fits_nothing_and_is_left_alone():
    together = VectorEnvironment(
        [stepped_plan(CLUSTER, WORKLOAD, Rounds()), stepped_plan(MANY_NODES, MANY_PODS)]
    )
    while not together.step(together.observation.feasible.argmax(axis=1))[0]:
        pass
    assert not together.observation.feasible[0].any()
    digest = together.result(0).digest
    together.step(np.array([99, together.observation.feasible[1].argmax()]))
    assert together.result(0).digest == digest


def test_batches_can_be_stepped_in_threads():
    batches = [many(4) for _ in range(2)]
    threads = [threading.Thread(target=finish, args=(batch,)) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one, other = ([batch.result(i).digest for i in range(4)] for batch in batches)
    assert one == other


def test_a_stepped_run_has_no_policy_to_ask():
    with pytest.raises(UsageError, match="a stepped run has no policy"):
        simulate(CLUSTER, WORKLOAD, stepped_plan(CLUSTER, WORKLOAD).policy)
