"""The environment as Gymnasium knows environments, for trainers that other people wrote.

import gymnasium
import podium.rl

gymnasium.make("podium/Placement-v0", trace="openb", nodes=16)
gymnasium.make_vec("podium/Placement-v0", num_envs=64, nodes=16)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import MissingExtra, UnknownName, UsageError
from podium.policies.networks.features import CONTEXT_FEATURES, NODE_FEATURES, POD_FEATURES
from podium.rl.environment.placement import Placement
from podium.rl.environment.rewards import Reward
from podium.rl.environment.world import World
from podium.sim.protocols import Inflation, Protocol, Replay, Rounds

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise MissingExtra.named("rl", "an environment of Gymnasium") from error

MASK = "action_mask"

_PROTOCOLS: dict[str, Protocol] = {
    "replay": Replay(), "inflation": Inflation(), "rounds": Rounds(),
}  # fmt: skip
_WIDEST = 1000.0  # no feature comes near it; endless bounds make checkers complain

Shown = dict[str, npt.NDArray[Any]]


def world_of(
    world: World | None, trace: str, protocol: str | Protocol, settings: Mapping[str, Any]
) -> World:
    """Makes the world of a trace, unless one is given; a protocol may be given by its name."""
    if world is not None:
        if settings:
            raise UsageError(
                f"{', '.join(settings)} beside a world", where="argument world",
                hint="a world has its settings already: give them to World.of_trace",
            )  # fmt: skip
        return world
    if isinstance(protocol, str):
        if protocol not in _PROTOCOLS:
            raise UnknownName.among("protocol", protocol, list(_PROTOCOLS))
        protocol = _PROTOCOLS[protocol]
    return World.of_trace(trace, protocol=protocol, **{"nodes": 16, **settings})


def observation_space(environment: Placement) -> Any:
    """Describes what one environment shows."""
    shapes = {
        "nodes": (environment.num_nodes, NODE_FEATURES),
        "pods": (1 + environment.look_ahead, POD_FEATURES),
        "context": (CONTEXT_FEATURES,),
    }
    return spaces.Dict(
        {name: spaces.Box(-_WIDEST, _WIDEST, shape) for name, shape in shapes.items()}
    )


def allowed(given: npt.ArrayLike, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Puts the first allowed action where a forbidden one is given.

    Trainers that know no masks try anything, and holding a pod that may not be held any longer
    places it on the first node that fits as well.
    """
    actions, most = np.asarray(given), mask.shape[1] - 1
    if actions.shape != mask.shape[:1] or actions.dtype.kind not in "iu":
        raise UsageError(
            f"actions are {actions.dtype} of shape {actions.shape}", where="argument action",
            hint=f"one whole number for each of the {len(mask)} environments is expected",
        )  # fmt: skip
    if (actions < 0).any() or (actions > most).any():
        wrong = actions[(actions < 0) | (actions > most)][0]
        raise UsageError(
            f"action {wrong} is neither a node nor {most}, which holds the pod",
            where="argument action", hint=f"a whole number from 0 to {most} is expected",
        )  # fmt: skip
    is_allowed = np.take_along_axis(mask, actions[:, None], axis=1)[:, 0]
    return np.where(is_allowed, actions, mask.argmax(axis=1))


class PlacementEnv(gymnasium.Env[Shown, np.int64]):
    """One environment: an action is a node, or the number behind the last to hold the pod."""

    metadata = {"render_modes": []}  # noqa: RUF012 - so Gymnasium declares it

    def __init__(
        self, world: World | None = None, *, trace: str = "openb",
        protocol: str | Protocol = "rounds", look_ahead: int = 4,
        reward: Reward = "gpu-allocation", max_steps: int | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        world = world_of(world, trace, protocol, settings)
        self._placement = Placement(
            world, look_ahead=look_ahead, reward=reward, max_steps=max_steps, seed=world.seeds[0]
        )
        self.observation_space = observation_space(self._placement)
        self.action_space = spaces.Discrete(self._placement.num_nodes + 1)
        self._is_under_way = False

    @property
    def placement(self) -> Placement:
        """Gives the native environment behind it."""
        return self._placement

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Shown, dict[str, Any]]:
        """Begins the next episode, or that of a seed."""
        super().reset(seed=seed, options=options)
        if seed is not None:
            self._placement.reset(seed)
        elif self._is_under_way:
            self._placement.skip()
        self._is_under_way = False
        return self._shown(), self._told()

    def step(self, action: np.int64) -> tuple[Shown, float, bool, bool, dict[str, Any]]:
        """Decides the offered pod; a forbidden action stands for the first that is allowed."""
        native = self._placement
        native.step(allowed([action], native.mask))
        is_done, is_truncated = bool(native.is_done[0]), bool(native.is_truncated[0])
        self._is_under_way = not is_done
        shown = final_of(native, 0) if is_done else self._shown()
        told = self._told()
        if is_done:
            told |= {
                "gpu_allocation": float(native.final_allocation[0]),
                MASK: np.zeros_like(told[MASK]),
            }
        return shown, float(native.reward[0]), is_done and not is_truncated, is_truncated, told

    def _shown(self) -> Shown:
        native = self._placement
        shown = {"nodes": native.nodes, "pods": native.pods, "context": native.context}
        return {name: array[0].copy() for name, array in shown.items()}

    def _told(self) -> dict[str, Any]:
        return {MASK: self._placement.mask[0].copy(), "seed": self._placement.plan(0).seed}


class PlacementVectorEnv(VectorEnv[Shown, npt.NDArray[np.int64], npt.NDArray[Any]]):
    """Many environments behind one compiled call; what is over begins anew in the same step."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(  # noqa: PLR0913 - what gymnasium.make_vec takes
        self, num_envs: int = 64, world: World | None = None, *, trace: str = "openb",
        protocol: str | Protocol = "rounds", look_ahead: int = 4,
        reward: Reward = "gpu-allocation", max_steps: int | None = None, copy: bool = True,
        **settings: Any,
    ) -> None:  # fmt: skip
        world = world_of(world, trace, protocol, settings)
        self._placement = Placement(
            world, num_envs, look_ahead=look_ahead, reward=reward, max_steps=max_steps,
            seed=world.seeds[0],
        )  # fmt: skip
        self.num_envs, self._is_copied = num_envs, copy
        self.single_observation_space = observation_space(self._placement)
        self.single_action_space = spaces.Discrete(self._placement.num_nodes + 1)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._is_under_way = False

    @property
    def placement(self) -> Placement:
        """Gives the native environment behind it."""
        return self._placement

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Shown, dict[str, Any]]:
        """Begins the next episodes, or those from a seed on; of a list the first counts."""
        first = seed[0] if isinstance(seed, list) else seed
        super().reset(seed=first, options=options)
        if first is not None:
            self._placement.reset(first)
        elif self._is_under_way:
            self._placement.skip()
        self._is_under_way = False
        return self._shown(), {MASK: self._placement.mask.copy()}

    def step(
        self, actions: npt.NDArray[np.int64]
    ) -> tuple[Shown, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Decides all offered pods; forbidden actions stand for the first that is allowed."""
        native = self._placement
        native.step(allowed(actions, native.mask))
        self._is_under_way = True
        told: dict[str, Any] = {MASK: native.mask.copy()}
        if native.is_done.any():
            told |= self._final()
        is_over = native.is_done & ~native.is_truncated
        return self._shown(), native.reward.copy(), is_over, native.is_truncated.copy(), told

    def _final(self) -> dict[str, Any]:
        native = self._placement
        last = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(native.is_done).tolist():
            last[i] = final_of(native, i)
        is_done = native.is_done.copy()
        ended = {
            "gpu_allocation": np.where(is_done, native.final_allocation, 0.0),
            "_gpu_allocation": is_done,
        }
        return {
            "final_obs": last,
            "_final_obs": is_done,
            "final_info": ended,
            "_final_info": is_done,
        }

    def _shown(self) -> Shown:
        native = self._placement
        shown = {"nodes": native.nodes, "pods": native.pods, "context": native.context}
        return {n: array.copy() for n, array in shown.items()} if self._is_copied else shown


def final_of(native: Placement, i: int) -> Shown:
    """Gives what the last episode of an environment showed at its end: nothing, if it was over."""
    if native.is_truncated[i]:
        return native.final[i]
    shown = {"nodes": native.nodes, "pods": native.pods, "context": native.context}
    return {name: np.zeros_like(array[i]) for name, array in shown.items()}
