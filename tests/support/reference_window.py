"""Keeps the pods that were seen so far, slowly and obviously, and prepares tables from them."""

import numpy as np

from podium.model.workload import Shapes
from podium.policies import ClusterPolicy, demand


class SlowWindow:
    """Lists (pod, record, GPU models as written), the latest last."""

    def __init__(self, world, workload, pods, *, is_warm):
        self.world = world
        self.most = demand.WINDOW_PODS
        self.listed = []
        self.new = 0
        self.typical = workload.typical
        self.specs = workload.specs()
        by_name = {spec.name: number for number, spec in enumerate(self.specs)}
        self.numbers = [by_name[pod.name] for pod in pods]
        if is_warm:
            drawn = np.random.default_rng([world.seed, 3]).integers(len(workload), size=self.most)
            self.listed = [(("before", i), pod) for i, pod in enumerate(drawn.tolist())]

    def begin(self, num_bound):
        """Takes in who runs already, and prepares the first table."""
        for index in range(num_bound):
            self.add(index)
        if self.listed:
            self.prepare()

    def add(self, index):
        """Adds a pod that is not there yet."""
        if index not in [pod for pod, _ in self.listed]:
            self.listed.append((index, self.numbers[index]))
            self.new += 1

    def offer(self, index, num_fitting):
        """Takes in a pod that is offered, and prepares the table if it is due."""
        if num_fitting > 0:
            self.add(index)
        size = min(len(self.listed), self.most)
        if num_fitting > 1 and self.new >= max(1, size // 8):
            self.prepare()

    def prepare(self):
        """Gives the policy the shapes of the latest pods."""
        self.listed = self.listed[-self.most :]
        self.new = 0
        counts = {}
        for _, number in self.listed:
            key = (self.world.records[number].tobytes(), self.specs[number].gpu_spec)
            first, count = counts.get(key, (number, 0))
            counts[key] = (first, count + 1)
        firsts = [first for first, _ in counts.values()]
        weights = np.array([float(count) for _, count in counts.values()])
        specs = tuple(self.specs[first].gpu_spec for first in firsts)
        shapes = Shapes(self.world.records[firsts], specs, weights, self.typical)
        if not isinstance(self.world.policy, ClusterPolicy):
            self.world.table = self.world.policy.table(shapes)
        elif hasattr(self.world.chooser, "refresh"):
            self.world.chooser.refresh(shapes)
