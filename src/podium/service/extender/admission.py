"""Knows which nodes admit which pods by their taints and labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from podium.model.cluster import NodeSpec
from podium.model.constraints import Constraints

MOST_CONSTRAINTS = 1000
"""Different constraints of pods whose nodes are remembered; beyond it, all are forgotten."""

Flags = npt.NDArray[np.bool_]


class Admission:
    """Remembers for each constraint which nodes meet it, until those nodes change."""

    def __init__(self) -> None:
        self._specs: list[NodeSpec | None] = []
        self._flags: dict[Constraints, Flags] = {}

    def see(self, specs: Sequence[NodeSpec | None]) -> None:
        """Looks at the nodes in the order of their records, None is a gap."""
        if specs == self._specs:
            return
        if len(specs) != len(self._specs):
            self._flags.clear()
        else:
            pairs = enumerate(zip(specs, self._specs, strict=True))
            for at in [at for at, (new, old) in pairs if new is not old]:
                for pods, flags in self._flags.items():
                    flags[at] = _is_admitted(pods, specs[at])
        self._specs = list(specs)

    def flags(self, pods: Constraints) -> Flags:
        """Tells for each node seen whether its taints and labels admit such pods."""
        found = self._flags.get(pods)
        if found is None:
            if len(self._flags) >= MOST_CONSTRAINTS:
                self._flags.clear()
            found = np.array([_is_admitted(pods, node) for node in self._specs], bool)
            self._flags[pods] = found
        return found


def _is_admitted(pods: Constraints, node: NodeSpec | None) -> bool:
    if node is None:
        return False
    return pods.tolerates(node.taints) and pods.selects_node(node.name, node.labels)
