"""Turns the cells of one job type into what they say about the effects that all jobs share.

The model of log run time, for job type j on GPU type g with features x:

    y = level + w·x + gpu[g] + job[j] + pair[j, g] + noise[j]

All effects are Gaussian; the spread of the pair effects is learned too (`PairSpread`), the others
are fixed. The runs in a cell split exactly into their mean, which knows the pair effect, and their
scatter, which knows only w and the noise. Pair and job effects are integrated out in closed form,
so that a job type of any number of runs becomes one small matrix over the shared effects (level,
w, gpu): its evidence. Evidence adds up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.online.cell import Cell
from podium.online.parameters import Prior

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
FADED = 1e-9
"""A cell that weighs less has been forgotten."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a job type shows about the shared effects, and what remains about itself."""

    precision: Matrix
    shift: Vector  # the precision times the estimate
    job_precision: float
    job_mean: float  # of the job effect, where all shared effects are zero
    job_slope: Vector  # how it falls with the shared effects
    shares: Vector  # how far the pair's own mean is believed, by GPU type; the last is a new one
    means: Vector  # of the pair's log run time, above the prior level
    designs: Matrix  # which shared effects that mean contains
    center: list[float]  # mean features
    comparable: tuple[bool, ...]  # features that may be compared with those of its runs

    @classmethod
    def none(cls, prior: Prior, width: int, features: int) -> Evidence:
        """Returns the evidence of a job type that was never seen."""
        places = width - features
        zeros, precision = np.zeros(width), prior.job_spread**-2
        return cls(
            np.zeros((width, width)), zeros, precision, 0.0, zeros,
            np.zeros(places), np.zeros(places), np.zeros((places, width)),
            [0.0] * features, (True,) * features,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rows:
    """The cells of one job type as the rows of a regression."""

    gpus: list[int]
    weights: Vector
    means: Vector  # of log run time, above the prior level
    features: Matrix
    design: Matrix
    scatter: Matrix
    noise_variance: float
    comparable: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """What rows tell about the shared effects, for several spreads of pairs at once."""

    strength: Matrix  # by spread and row
    job_precision: Vector
    pull: Matrix
    target: Vector
    precision: NDArray[np.float64]
    shift: Matrix
    fit: Vector  # log likelihood where all shared effects are zero, up to a constant

    @classmethod
    def of(cls, rows: Rows, prior: Prior, spreads: Vector) -> Shared:
        """Integrates the pair effects and the job effect out."""
        strength = 1.0 / (spreads[:, None] ** 2 + rows.noise_variance / rows.weights)
        job_precision = prior.job_spread**-2 + strength.sum(axis=1)
        pull, target = strength @ rows.design, strength @ rows.means
        precision = (rows.design.T * strength[:, None, :]) @ rows.design
        precision -= pull[:, :, None] * (pull / job_precision[:, None])[:, None, :]
        shift = (strength * rows.means) @ rows.design - pull * (target / job_precision)[:, None]
        inner = slice(1, rows.features.shape[1] + 1)
        precision[:, inner, inner] += rows.scatter[1:, 1:] / rows.noise_variance
        shift[:, inner] += rows.scatter[1:, 0] / rows.noise_variance
        squares = strength @ rows.means**2 - target**2 / job_precision
        fit = 0.5 * (np.log(strength).sum(axis=1) - np.log(job_precision) - squares)
        return cls(strength, job_precision, pull, target, precision, shift, fit)


def evidence_of(rows: Rows, prior: Prior, width: int, pair_spread: float) -> Evidence:
    """Sums up what the rows of a job type say, where pairs differ as far as the spread says."""
    shared = Shared.of(rows, prior, np.array([pair_spread]))
    job_precision = float(shared.job_precision[0])
    places = width - rows.features.shape[1]
    shares, means, designs = np.zeros(places), np.zeros(places), np.zeros((places, width))
    shares[rows.gpus] = shared.strength[0] * pair_spread**2
    means[rows.gpus] = rows.means
    designs[rows.gpus] = rows.design
    center = rows.weights @ rows.features / max(float(rows.weights.sum()), FADED)
    return Evidence(
        shared.precision[0], shared.shift[0], job_precision,
        float(shared.target[0]) / job_precision, shared.pull[0] / job_precision,
        shares, means, designs, center.tolist(), rows.comparable,
    )  # fmt: skip


def rows_of(cells: Mapping[int, Cell], prior: Prior, width: int, level: float) -> Rows:
    """Lays out the cells of a job type; keys are indices of GPU types."""
    features = next(iter(cells.values())).given.size
    kept = {gpu: cell for gpu, cell in cells.items() if cell.weight > FADED}
    scatter = np.zeros((features + 1, features + 1))
    given = np.zeros(features)
    for cell in kept.values():
        scatter += cell.scatter
        given += cell.given
    means = np.array([cell.mean for cell in kept.values()]).reshape(-1, features + 1)
    design = np.zeros((len(kept), width))
    design[:, 0] = 1.0
    design[:, 1 : features + 1] = means[:, 1:]
    design[np.arange(len(kept)), [features + 1 + gpu for gpu in kept]] = 1.0
    freedom = sum(max(cell.weight - 1.0, 0.0) for cell in kept.values())
    return Rows(
        list(kept), np.array([cell.weight for cell in kept.values()]), means[:, 0] - level,
        means[:, 1:], design, scatter, noise_variance(scatter, freedom, prior),
        tuple((given > FADED).tolist()),
    )  # fmt: skip


def noise_variance(scatter: Matrix, freedom: float, prior: Prior) -> float:
    """Estimates the variance of log run time of a job type from the scatter inside its cells.

    The prior is a scaled inverse chi-squared: it counts as some observations with the prior's
    variance. What features explain is no noise.
    """
    variance = prior.noise**2
    inner, cross = scatter[1:, 1:], scatter[1:, 0]
    explained = 0.0
    if cross.any():
        ridge = np.eye(len(cross)) * (variance / prior.feature_spread**2)
        explained = float(cross @ np.linalg.solve(inner + ridge, cross))
    squares = max(float(scatter[0, 0]) - explained, 0.0)
    return (prior.noise_weight * variance + squares) / (prior.noise_weight + freedom)
