"""Turns the weights of a trained network into a policy: plain arrays, evaluated with NumPy.

The card beside the weights names the network that they belong to. Serving a policy never needs
what trained it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import DISTRIBUTION, InputError, MissingError
from podium.files.excerpt import excerpt
from podium.policies.policy import Policy

NETWORK = "network"
"""The key of a card that names the network."""

LARGEST_BYTES = 256 << 20
"""Bytes of a file of weights."""


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The arrays of a network, and the card that says what they are."""

    name: str
    arrays: Mapping[str, npt.NDArray[Any]]
    card: Mapping[str, Any]


NETWORKS: dict[str, Callable[[Weights], Policy]] = {}
"""Makes a policy of weights, by the name of the network."""


def load_network(path: Path, name: str, card: Mapping[str, Any], content: bytes) -> Policy:
    """Builds the policy that a card and its weights describe."""
    network = card[NETWORK]
    if network not in NETWORKS:
        raise MissingError(
            f"this release of Podium cannot run the network {excerpt(network)}",
            where=str(path),
            hint=f"pip install --upgrade {DISTRIBUTION}",
        )
    return NETWORKS[network](Weights(name, _arrays(path, content), card))


def _arrays(path: Path, content: bytes) -> dict[str, npt.NDArray[Any]]:
    try:
        # Pickled objects would be programs, and weights come from anywhere.
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except Exception as error:
        raise InputError.at(path, f"not weights that NumPy can read: {error}") from error
