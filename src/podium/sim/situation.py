"""Tells a chooser that asks for it what a run knows of its queue, beside pod and nodes."""

from __future__ import annotations

import heapq

import numpy as np

from podium.model.workload import gpu_demand
from podium.policies.session import Situation
from podium.sim.kernel.waiting import NOBODY
from podium.sim.state import State


class Situations:
    """Reads the situation of the offered pod from the state of a run, offer by offer."""

    def __init__(self, state: State) -> None:
        self._state = state
        demand = gpu_demand(state.arrays["shapes"])[state.arrays["shape_of"]]
        self._asked = np.concatenate([[0], np.cumsum(demand)])

    def now(self, look_ahead: int) -> Situation:
        """Reads the situation as it is."""
        number, arrays = self._state.number, self._state.arrays
        offered, arrived, num_pods = number("offered"), number("arrived"), number("num_pods")
        holds = int(arrays["holds"][offered])
        ahead = np.array(self._ahead(offered, look_ahead), np.int64)
        return Situation(
            ahead=arrays["shapes"][arrays["shape_of"][ahead]],
            ahead_holds=arrays["holds"][ahead].astype(np.int64),
            holds=holds,
            may_hold=holds < number("max_holds") and offered != number("forced_pod"),
            round=number("round"),
            max_rounds=number("max_rounds"),
            waiting=number("waiting_pods"),
            to_come=num_pods - arrived,
            num_pods=num_pods,
            gpu_milli_asked=int(self._asked[arrived]),
        )

    def _ahead(self, offered: int, count: int) -> list[int]:
        """Lists who is offered next: of a pass under way the rest, else all who wait."""
        arrays, number = self._state.arrays, self._state.number
        if number("is_passing"):
            lines = arrays["pass_line"][: number("pass_size")]
            first, own = arrays["cursor"][lines], int(arrays["line_of"][offered])
            lines, first = np.append(lines, own), np.append(first, arrays["next_pod"][offered])
        else:
            lines = arrays["active"][: number("active_lines")]
            first = arrays["head"][lines]
        is_there = first != NOBODY
        ranks = -arrays["priority"][lines[is_there]]
        waiting = list(zip(ranks.tolist(), first[is_there].tolist(), strict=True))
        heapq.heapify(waiting)
        found: list[int] = []
        while waiting and len(found) < count:
            rank, pod = waiting[0]
            found.append(pod)
            behind = int(arrays["next_pod"][pod])
            if behind == NOBODY:
                heapq.heappop(waiting)
            else:
                heapq.heapreplace(waiting, (rank, behind))
        return found
