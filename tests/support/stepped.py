"""Steps a run by asking a policy at each offer, as somebody outside the core would."""

import numpy as np

from podium.model.fit import fitting_slots
from podium.model.records import GPU_MILLI, node_view
from podium.policies import HOLD, ClusterPolicy
from podium.sim.stepping import HOLD_ACTION, Episode
from support.reference_cluster import Dice

ANY_SLOT = -1


def step_through(plan):
    """Steps a plan to its end with the decisions of its own policy."""
    episode, decide = Episode(plan), decider(plan)
    while episode.offer is not None:
        node, slot = decide(episode.offer)
        if node == HOLD_ACTION:
            episode.hold()
        else:
            episode.apply(node, slot)
    return episode.result()


def decider(plan):
    """Gives what decides an offer: a function to (node, slot)."""
    if isinstance(plan.policy, ClusterPolicy):
        return _Choosing(plan)
    return _Scoring(plan)


class _Choosing:
    def __init__(self, plan):
        self.chooser = plan.policy.start(plan.seed)

    def __call__(self, offer):
        choice = self.chooser.choose(offer.pod, offer.nodes, offer.feasible)
        return (HOLD_ACTION if choice == HOLD else int(choice)), ANY_SLOT


class _Scoring:
    def __init__(self, plan):
        self.policy = plan.policy
        self.table = plan.policy.table(plan.trace.shapes())
        self.dice = Dice(plan.seed)

    def __call__(self, offer):
        scored = [self._score(offer, node) for node in np.flatnonzero(offer.feasible)]
        best = max(score for score, _, _ in scored)
        if best == HOLD and offer.may_hold:
            return HOLD_ACTION, ANY_SLOT
        equal = [(node, slot) for score, node, slot in scored if score == best]
        if self.policy.ties == "rank":
            return equal[0]
        node, slot = equal[self.dice.index_below(len(equal))]
        if self.policy.gpu_choice == "random" and self._is_share(offer):
            # One stream of chance serves ties and GPUs, and here it is ours.
            slots = _slots(offer, node)
            slot = slots[self.dice.index_below(len(slots))]
        return node, slot

    def _score(self, offer, node):
        slots = [ANY_SLOT]
        if self.policy.takes_gpu and self._is_share(offer):
            slots = _slots(offer, node)
        shown = node_view(offer.nodes[node])
        scores = [self.policy.score_pair(offer.pod, shown, slot, self.table) for slot in slots]
        best = scores.index(max(scores))
        return scores[best], int(node), slots[best]

    def _is_share(self, offer):
        return 0 < offer.pod.gpu_milli < GPU_MILLI


def _slots(offer, node):
    return fitting_slots(offer.pod._asdict(), offer.nodes[node]).tolist()
