"""Turns the weights of a trained network into a policy: plain arrays, evaluated with NumPy.

The card beside the weights names the network that they belong to. Serving a policy never needs
what trained it.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import InputError, MissingError
from podium.files.draft import drafted
from podium.files.excerpt import excerpt
from podium.policies.policy import Policy

NETWORK = "network"
"""The key of a card that names the network."""

LARGEST_BYTES = 256 << 20
"""Bytes of a file of weights, packed or unpacked."""

MOST_ARRAYS = 10_000
LARGEST_WEIGHT = 1e6
"""Weights of nets are far below it; beyond it sums of their products are no numbers any more."""

_KINDS = {"f": "f", "i": "iu"}
"""The kinds of arrays that are taken for one of floats, and for one of whole numbers."""

TRAIN_AGAIN = "train the policy again with this release, or restore both files"


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The arrays of a network, and the card that says what they are."""

    name: str
    arrays: Mapping[str, npt.NDArray[Any]]
    card: Mapping[str, Any]

    def whole_number(self, key: str, least: int, most: int, default: int | None = None) -> int:
        """Returns a whole number of the card.

        Raises:
            InputError: it is something else, or out of its range.
        """
        found = self.card.get(key, default)
        if type(found) is not int or not least <= found <= most:
            hint = f"a whole number from {least:,} to {most:,} is expected"
            raise InputError(f"{key} is {excerpt(found)}", where=f"card of {self.name}", hint=hint)
        return found


def finite_array(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, shape: tuple[int, ...], dtype: npt.DTypeLike,
    where: str,
) -> npt.NDArray[Any]:  # fmt: skip
    """Returns an array of this shape as numbers of this type.

    Raises:
        InputError: it is not there, has another shape, or holds something else.
    """
    found, wanted = arrays.get(name), np.dtype(dtype)
    if found is None or found.shape != shape:
        has = "is missing" if found is None else f"has the shape {found.shape}, not {shape}"
        raise InputError(f"the array {name} {has}", where=where, hint=TRAIN_AGAIN)
    if found.dtype.kind not in _KINDS[wanted.kind]:
        message = f"the array {name} holds {found.dtype}, not {wanted}"
        raise InputError(message, where=where, hint=TRAIN_AGAIN)
    with np.errstate(over="ignore"):  # too large for the type: infinite, and told below
        taken = found.astype(wanted, copy=False)
    is_kept = np.isfinite(taken) if wanted.kind == "f" else taken == found
    if not is_kept.all():
        message = f"a number of the array {name} is not a finite number of the type {wanted}"
        raise InputError(message, where=where, hint=TRAIN_AGAIN)
    return taken


def net_array(
    weights: Weights, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    """Returns an array of a net: numbers of this type that can be reckoned with.

    Raises:
        InputError: as `finite_array`, or a number is absurdly large.
    """
    found = finite_array(weights.arrays, name, shape, dtype, weights.name)
    if found.size and np.abs(found).max() > LARGEST_WEIGHT:
        message = f"a number of the array {name} is beyond {LARGEST_WEIGHT:,.0f}"
        raise InputError(message, where=weights.name, hint=TRAIN_AGAIN)
    return found


def _of(module: str) -> Callable[[Weights], Policy]:
    """Makes policies by a module of `podium.policies.networks`, which is imported when needed."""

    def make(weights: Weights) -> Policy:
        policy: Policy = import_module(f"podium.policies.networks.{module}").make(weights)
        return policy

    return make


NETWORKS: dict[str, Callable[[Weights], Policy]] = {
    "mlp": _of("mlp"),
    "q-table": _of("qtable"),
    "attention": _of("attention"),
}
"""Makes a policy of weights, by the name of the network."""


def load_network(path: Path, name: str, card: Mapping[str, Any], content: bytes) -> Policy:
    """Builds the policy that a card and its weights describe."""
    network = card[NETWORK]
    if not isinstance(network, str):
        raise InputError.at(
            path.with_suffix(".json"), f"{excerpt(network)} is not the name of a network",
            column=NETWORK,
        )  # fmt: skip
    if network not in NETWORKS:
        raise MissingError(
            f"this release of Podium cannot run the network {excerpt(network)}",
            where=str(path),
            hint="install a newer Podium, in the way in which this one was installed",
        )
    return NETWORKS[network](Weights(name, unpacked(path, content, LARGEST_BYTES), card))


def write_weights(
    path: Path, network: str, arrays: Mapping[str, npt.NDArray[Any]], card: Mapping[str, Any]
) -> None:
    """Writes weights and, beside them, the card with their network and digest."""
    stream = io.BytesIO()
    named: Any = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    np.savez_compressed(stream, **named)
    content = stream.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    told = {**card, NETWORK: network, "sha256": digest}
    with drafted(path) as draft:
        draft.write_bytes(content)
    with drafted(path.with_suffix(".json")) as draft:
        draft.write_text(json.dumps(told, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def unpacked(path: Path, content: bytes, most_bytes: int) -> dict[str, npt.NDArray[Any]]:
    """Unpacks the arrays of a file, of no more bytes than that.

    Raises:
        InputError: they are more, or cannot be read.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            sizes = [each.file_size for each in packed.infolist()]
    except Exception as error:
        raise InputError.at(path, f"not weights that NumPy can read: {error}") from error
    # A few kilobytes may hold gigabytes; no more comes out of an archive than it says here.
    if sum(sizes) > most_bytes or len(sizes) > MOST_ARRAYS:
        message = f"holds {len(sizes):,} arrays of {sum(sizes):,} bytes when unpacked"
        hint = f"weights are up to {MOST_ARRAYS:,} arrays of {most_bytes:,} bytes in all"
        raise InputError.at(path, message, hint=hint)
    try:
        # Pickled objects would be programs, and weights come from anywhere.
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            found = {key: archive[key] for key in archive.files}
    except Exception as error:
        raise InputError.at(path, f"not weights that NumPy can read: {error}") from error
    for key in (key for key, each in found.items() if not isinstance(each, np.ndarray)):
        raise InputError.at(path, f"not weights that NumPy can read: {excerpt(key)} is no array")
    return found
