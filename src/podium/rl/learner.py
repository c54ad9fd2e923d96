"""What the training loop asks of every learner, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from podium.errors import InputError
from podium.policies.weights import finite_array

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A policy as it was learned: what becomes NAME.npz and the card NAME.json."""

    network: str  # a key of `podium.policies.weights.NETWORKS`
    arrays: Arrays
    facts: Mapping[str, Any] = field(default_factory=dict)  # JSON: merged into the card


class Learner(Protocol):
    """Learns in iterations, and can be continued by another process as if nothing had happened."""

    def iterate(self) -> Mapping[str, float]:
        """Does one iteration; returns its figures by name.

        "steps" counts the decisions that were made and "episodes" the episodes that ended (1 where
        it is left out); "reward" and "gpu_allocation" are shown while training runs.
        """

    def trained(self) -> Trained:
        """Returns the policy as it is now."""

    def state(self) -> Arrays:
        """Returns all that an exact continuation needs: weights, optimiser, randomness, counts."""

    def restore(self, state: Arrays) -> None:
        """Takes up a state that another learner of the same configuration returned."""


def like(known: Any, state: Arrays, name: str) -> npt.NDArray[Any]:
    """Returns an array of a state, which must have the shape and the type of a known one.

    Raises:
        InputError: it is missing, or something else.
    """
    return finite_array(state, name, known.shape, known.dtype, where="the state of the learner")


def count_of(state: Arrays, name: str) -> int:
    """Returns a count of a state: a whole number, by itself or alone in an array.

    Raises:
        InputError: it is missing, or something else.
    """
    shape = state[name].shape if name in state and state[name].size == 1 else ()
    found = int(finite_array(state, name, shape, np.int64, "the state of the learner").item())
    if found < 0:
        raise InputError(f"{name} is {found}", where="the state of the learner")
    return found


def random_state(generator: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Writes the state of a generator as bytes, to be part of a learner's state."""
    import json

    return np.frombuffer(json.dumps(generator.bit_generator.state).encode(), np.uint8).copy()


def restored_generator(state: npt.NDArray[np.uint8]) -> np.random.Generator:
    """Makes the generator whose state was written by `random_state`."""
    import json

    generator = np.random.default_rng(0)
    generator.bit_generator.state = json.loads(state.tobytes())
    return generator
