"""Tells whether a job type goes against the trend: its pairs differ more than those of others.

Where that is so, what is known of other job types says little about GPU types that it never tried.

And whether it takes far longer or shorter than all others: then it must be the job type, for GPU
types do not differ as much, though nobody else may have used the one where it ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from podium.online.columns import Columns
from podium.online.evidence import Gram, beside_variance, own_places, weighted_products
from podium.online.forecast import Known
from podium.online.noise import Noise
from podium.online.spread import JOBS, PAIRS, Spreads, integrated

Array = NDArray[np.float64]

DOUBT = 0.5
"""How far the logarithm of a job type's spread may be from that of all."""

JOB_DOUBT = 1.0
"""The same of the spread that the job type itself is taken from."""


def own_pair_spread(
    gram: Gram, noise: Noise, columns: Columns, neighbours: Sequence[str], known: Known
) -> float:
    """Returns the spread of a job type's pairs: that of all, or a larger one if it must be."""
    common = known.spreads.pair
    if len(gram.gpus) < 2:
        return common
    spreads, variances, expected = _compared(common)
    weighted = weighted_products(gram, noise)
    usual, doubt = known.on_gpus(gram.gpus)
    if gram.layout.size == 2:  # runs alone without features
        own = weighted[:, 1, 1]
        target = weighted[:, 0, 1] - own * usual
    else:
        left = _above(weighted, gram, columns, neighbours, known)
        own, target = left[:, 1, 1], left[:, 0, 1]
    fits = _fits(own, target, variances + doubt, known.spreads.job)
    return spreads[int((fits + expected).argmax())]


def own_job_spread(gram: Gram, noise: Noise, spreads: Spreads) -> float:
    """Returns the spread that a job type is taken from: that of all, or a larger one if it must be.

    So the tails of job types are heavy, and those of GPU types are not.
    """
    common = spreads.job
    if spreads.usual is None or common >= JOBS[-1]:
        return common
    products = weighted_products(gram, noise)
    target, weight = products[:, 0, 1], np.maximum(products[:, 1, 1], 1e-9)
    trust = 1.0 / (spreads.gpu**2 + spreads.pair**2 + 1.0 / weight)
    whole = float(np.add.reduce(trust))
    apart = float(trust @ (target / weight)) / whole - spreads.usual
    compared, expected = _compared_jobs(common)
    variance = compared**2 + 1.0 / whole
    fits = -0.5 * apart**2 / variance - 0.5 * np.log(variance) + expected
    return float(compared[int(fits.argmax())])


@cache
def _compared_jobs(common: float) -> tuple[Array, Array]:
    spreads = np.array([common, *(each for each in JOBS if each > common)])
    return spreads, -0.5 * (np.log(spreads / common) / JOB_DOUBT) ** 2


@cache
def _compared(common: float) -> tuple[list[float], Array, Array]:
    """Returns the spreads that are compared, their squares, and what is expected of them."""
    spreads = np.array([common, *(each for each in PAIRS if each > common)])
    expected = -0.5 * (np.log(spreads / common) / DOUBT) ** 2
    return spreads.tolist(), spreads[:, None] ** 2, expected


def _above(
    weighted: Array, gram: Gram, columns: Columns, neighbours: Sequence[str], known: Known
) -> Array:
    """Returns the products of run times, above what shared effects explain, with one another.

    Their squares are left out, as no spread changes them.
    """
    # Effects that do not exist have the place -1, and are zero.
    effects = np.append(known.mean, 0.0)[columns.index(neighbours, gram.gpus)]
    count, head = columns.first_gpu + len(neighbours), 1 + len(columns.features)
    by_gpu = np.tile(effects[:count], (len(gram.gpus), 1))
    by_gpu[:, :head] += effects[count:].reshape(-1, head)
    explained = (weighted[:, 1:, 1:] @ by_gpu[:, :, None])[:, :, 0]
    aims = weighted[:, 1:, 0] - explained
    kept = own_places(weighted.shape[1] - 1, len(neighbours))
    left = np.zeros((len(by_gpu), 1 + len(kept), 1 + len(kept)))
    left[:, 0, 1:] = left[:, 1:, 0] = aims[:, kept]
    left[:, 1:, 1:] = weighted[:, 1 + kept[:, None], 1 + kept]
    return left if len(kept) == 1 else integrated(left, 2, beside_variance(known.prior))


def _fits(own: Array, target: Array, variance: Array, job_spread: float) -> Array:
    """Returns the log likelihood for each row of variances of pairs, up to a constant."""
    share = variance / (1.0 + variance * own)
    rest = 1.0 - share * own
    weight = np.add.reduce(rest * own, axis=1)
    aim = np.add.reduce(rest * target, axis=1)
    found: Array = (
        0.5 * np.add.reduce(share * target**2 - np.log1p(variance * own), axis=1)
        + 0.5 * aim**2 / (weight + job_spread**-2)
        - 0.5 * np.log1p(job_spread**2 * weight)
    )
    return found
