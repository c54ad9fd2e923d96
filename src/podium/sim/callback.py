"""Calls policies written in plain Python from the compiled core."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.records import Node, Pod, pod_view
from podium.policies import HOLD, PairPolicy
from podium.policies.session import Chooser
from podium.policies.source import number_of
from podium.sim.situation import Situations


class PairCallback:
    """Scores (shape, node) pairs; keeps the exception that a policy raised."""

    def __init__(
        self, policy: PairPolicy, nodes: npt.NDArray[Any], shapes: npt.NDArray[Any], table: Any
    ) -> None:
        self.error: BaseException | None = None
        self.table = table
        self._nodes_at = nodes.ctypes.data
        self._bytes = nodes.view(np.uint8).data
        self._node = struct.Struct(f"<{nodes.dtype.itemsize // 4}i")
        self._pods = {
            shapes.ctypes.data + i * shapes.dtype.itemsize: pod_view(shape)
            for i, shape in enumerate(shapes)
        }
        self._call = _direct_call(policy)

    def __call__(self, pod: int, node: int, gpu: int) -> float:
        """Gives the policy's score, NaN when it raised."""
        try:
            values = self._node.unpack_from(self._bytes, node - self._nodes_at)
            view = Node._make((*values[:8], values[8:]))
            score = self._call(self._pods[pod], view, gpu, self.table)
            return score if type(score) is float else number_of(score)
        except BaseException as error:  # noqa: BLE001 - ctypes cannot carry it; the engine raises it
            self.error = error
            return math.nan

    def stop(self, frame: FrameType | None) -> None:
        """Ends the run: at once where the policy is at work in a frame, or at the next call."""
        self._call = _interrupt
        _interrupt_below(PairCallback.__call__.__code__, frame)


def _interrupt(*_arguments: object) -> float:
    raise KeyboardInterrupt


def _interrupt_below(catching: CodeType, frame: FrameType | None) -> None:
    caller = frame.f_back if frame else None
    while caller is not None:
        if caller.f_code is catching:
            raise KeyboardInterrupt
        caller = caller.f_back


def _direct_call(policy: PairPolicy) -> Any:
    function = policy.function
    calls: dict[tuple[str, ...], Any] = {
        ("pod", "node"): lambda pod, node, _gpu, _table: function(pod, node),
        ("pod", "node", "gpu"): lambda pod, node, gpu, _table: function(pod, node, gpu),
        ("pod", "node", "table"): lambda pod, node, _gpu, table: function(pod, node, table),
    }
    return calls.get(policy.form, function)


class ClusterCallback:
    """Asks a chooser for a node; keeps the exception that it raised."""

    def __init__(
        self, chooser: Chooser, nodes: npt.NDArray[Any], shapes: npt.NDArray[Any],
        feasible: npt.NDArray[np.bool_], situations: Situations | None = None,
    ) -> None:  # fmt: skip
        self.error: BaseException | None = None
        self.choice: object = None
        self.chooser: Any = chooser
        self._situations = situations
        self._choose: Callable[..., float] = chooser.choose
        self._nodes = _read_only(nodes)
        self._feasible = _read_only(feasible)
        self._pods: list[Pod] = [pod_view(shape) for shape in shapes]

    def __call__(self, shape: int, _node: int, _gpu: int) -> float:
        """Gives the index of the chosen node, HOLD, or NaN when the chooser raised."""
        try:
            if self._situations is not None:
                self.chooser.observe(self._situations.now(self.chooser.look_ahead))
            choice = self._choose(self._pods[shape], self._nodes, self._feasible)
            self.choice = choice
            return HOLD if choice == HOLD else float(choice)
        except BaseException as error:  # noqa: BLE001 - ctypes cannot carry it; the engine raises it
            self.error = error
            return math.nan

    def stop(self, frame: FrameType | None) -> None:
        """Ends the run: at once where the chooser is at work in a frame, or at the next call."""
        self._choose = _interrupt
        _interrupt_below(ClusterCallback.__call__.__code__, frame)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # NumPy lets whoever has a view of writeable memory make the view writeable again.
    shown = memoryview(array.view(np.uint8).data).toreadonly()
    return np.frombuffer(shown, array.dtype)
