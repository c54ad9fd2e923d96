"""Asks an extender as kube-scheduler does, over a state that tests write themselves."""

import io
import json

from podium.kube import LiveState
from podium.policies import load
from podium.service.extender.assumed import AssumedPods
from podium.service.extender.history import History
from podium.service.extender.metrics import ExtenderMetrics
from podium.service.extender.prioritizer import Prioritizer
from podium.service.extender.scale import MOST
from podium.service.extender.scorer import Scorer
from podium.service.extender.verbs import Memory, Verbs
from podium.service.extender.window import LiveWindow
from podium.service.http.logs import Log
from podium.settings import Extender
from support.kubelike import live


class Clock:
    """Tells a time that tests set."""

    now_s = 1000.0

    def __call__(self):
        return self.now_s


def args(pod, names, **more):
    """Writes what kube-scheduler sends with nodeCacheCapable."""
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": list(names), **more}).encode()


def points(answer, names):
    """Reads the points of nodes from the answer of prioritize, which names some of them.

    Where it names those that lack points, the others are the best.
    """
    found = dict.fromkeys(names, 0) | {each["Host"]: each["Score"] for each in json.loads(answer)}
    best = MOST if min(found.values(), default=0) < 0 else 0
    return {name: best + given for name, given in found.items()}


class Asked:
    """Holds the verbs of an extender over a state."""

    def __init__(self, nodes=(), policy="best-fit", shadow=(), **settings):
        self.clock = Clock()
        self.state = LiveState()
        self.state.replace("Node", nodes)
        # Most tests are about one node that is best; those of ties say so.
        self.settings = Extender(**{"ties": "order", **settings})
        self.metrics = ExtenderMetrics()
        self.memory = Memory(History(self.settings.recent_pods), LiveWindow(2000))
        self.lines = io.StringIO()
        self.log = Log(self.lines)
        self.verbs = Verbs(
            self.settings, self.metrics, self.memory, self.log.logger, lambda run: run()
        )
        shapes = self.memory.recent.shapes()
        assumed = AssumedPods(self.settings.assume_s, self.clock)
        taken = load(policy) if isinstance(policy, str) else policy
        self.verbs.prioritizer = Prioritizer(
            self.state, assumed, self.memory.recent, Scorer(taken, shapes), self.settings
        )
        self.verbs.shadows = [Scorer(load(name), shapes) for name in shadow]
        self.state.subscribe(self.verbs.pod_moved)

    @property
    def names(self):
        return [name for name in self.state.names if name]

    def wait(self, pod, uid):
        """Lets a pod wait, as the watch shows it."""
        made = live(pod, uid)
        self.state.apply("Pod", "ADDED", made)
        return made

    def bind(self, pod, node):
        """Lets the watch show that a pod was bound."""
        made = live(pod, pod["metadata"]["uid"], node)
        self.state.apply("Pod", "MODIFIED", made)
        return made

    def prioritize(self, pod, names=None):
        """Gives the points of nodes."""
        asked = self.names if names is None else names
        return points(self.verbs.prioritize(args(pod, asked)), asked)

    def best(self, pod, names=None):
        """Gives the node with the most points, which no other may have."""
        found = self.prioritize(pod, names)
        most = max(found.values())
        (best,) = [name for name, given in found.items() if given == most]
        return best

    def filter(self, pod, names=None):
        """Gives the nodes that stay and the others with reasons."""
        sent = args(pod, self.names if names is None else names)
        found = json.loads(self.verbs.filter(sent))
        return found["NodeNames"], found["FailedNodes"]

    def logged(self):
        """Lists what was logged."""
        self.log.close()
        return [json.loads(line) for line in self.lines.getvalue().splitlines()]

    def counted(self, name):
        """Reads figures of one name, by their labels."""
        return {
            tuple(sample.labels.values()): sample.value
            for each in self.metrics.collectors({})
            for family in each.collect()
            for sample in family.samples
            if sample.name == f"podium_extender_{name}"
        }
