"""Finds the device that JAX trains on. Importing this imports JAX."""

from __future__ import annotations

from typing import Any

import jax

from podium.errors import MissingError


def device_named(name: str) -> Any:
    """Returns the first device of a kind: cpu or gpu.

    Raises:
        MissingError: this machine has none.
    """
    try:
        return jax.devices(name)[0]
    except RuntimeError as error:
        raise MissingError(
            f"JAX finds no {name} on this machine", hint="train with --device cpu"
        ) from error
