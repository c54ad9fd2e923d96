"""Takes the nodes in turn, each time the next one that fits.

The classic rule, and a baseline of SelSched (mirocody/SelSched).
"""


class Policy:
    """Remembers whose turn it is."""

    def __init__(self, seed):  # noqa: ARG002 - nothing is left to chance
        self.turn = 0

    def choose(self, pod, nodes, feasible):  # noqa: ARG002 - only the order counts
        """Gives the first feasible node from the one whose turn it is."""
        ahead = feasible[self.turn :].argmax() if self.turn < len(feasible) else 0
        node = int(self.turn + ahead)
        if node >= len(feasible) or not feasible[node]:
            node = int(feasible.argmax())
        self.turn = node + 1
        return node
