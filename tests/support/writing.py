"""Writes proposals for small searches, by a function that each test gives."""

from dataclasses import replace

from podium.search.generators.generator import Cost, Proposal
from support.searches import PLAN_OF_TESTS, Sittings

BAD = "def score(pod, node):\n    return pod.name\n"
GOOD = "def score(pod, node):\n    return -node.cpu_milli_left - {}\n"


class Writing:
    """Writes what a function says; remembers what it was asked for and what it heard."""

    can_repair = True

    def __init__(self, write, name="command"):
        self.name, self.write = name, write
        self.asked, self.heard, self.restored = [], [], []

    def propose(self, request):
        """Answers."""
        self.asked.append(request)
        found = self.write(request)
        return Proposal(found, self.name, cost=Cost(calls=1)) if isinstance(found, str) else found

    def learn(self, source, gain, cost):
        """Hears."""
        self.heard.append((source, gain, cost))

    def state(self):
        """Counts."""
        return {"asked": len(self.asked)}

    def restore(self, state):
        """Remembers."""
        self.restored.append(state)

    def close(self):
        """Holds nothing."""


def written_by(generator, path, executor, **others):
    """Has a run written by one generator."""
    plan = replace(PLAN_OF_TESTS, generators=((generator.name, 1.0),), **others)
    return Sittings(path, executor, plan, lambda: {generator.name: generator})


def unlike(request):
    """Writes a text like no other."""
    return GOOD.format(request.seed[1] * 10 + len(request.seed))
