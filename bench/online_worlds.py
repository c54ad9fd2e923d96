"""Draws families of worlds in which rules for placing jobs are compared; see `online.py`.

A world hides how long each job takes on each GPU type. All of its jobs are drawn beforehand, with
their luck on every GPU type, so that every rule meets the same jobs and regret can be paired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
Beside = tuple[tuple[int, ...], ...]
"""The job types beside one job, by GPU type."""

RUNTIME_S = 600.0
"""Of a typical job on a typical GPU type."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What kind of world is drawn; spreads are of log run time."""

    title: str
    job_types: int = 10
    gpu_types: int = 5
    decisions: int = 1000
    in_flight: int = 0  # 0: a run is observed before the next decision
    noise: tuple[float, ...] = (0.2,)  # of job types, in turn
    gpu_spread: float = 0.5
    pair_spread: float = 0.3
    zipf: float = 0.0  # exponent of how often job types come; 0: all alike
    clusters: int = 0  # of job types that prefer the same GPU types
    newcomer: str = ""  # of the last job type, from the middle on: "usual" or "odd"
    drift: bool = False
    beside: float = 0.0  # share of runs with neighbours
    beside_by_gpu: bool = False  # whether each GPU type has neighbours of its own
    failing: bool = False  # whether a job type fails on the GPU type that is its best
    wrong_unit: float = 0.0  # share of runs that are told in thousandths
    missing: float = 0.0  # share of runs whose feature is not told
    features: str = ""  # "slope": longer with the feature; "order": another GPU type is best


@dataclass(frozen=True, slots=True)
class World:
    """The jobs of a world in their order, and what is hidden from those who place them."""

    plan: Plan
    job_type: Whole
    expected_s: Array  # by job and GPU type; with neighbours, and what a failure costs
    observed_s: Array  # the same with luck, as it will be told
    fails: NDArray[np.bool_]
    beside: tuple[Beside, ...]
    features: tuple[Mapping[str, float], ...]

    @property
    def best_s(self) -> Array:
        """Returns the expected run time where a job is best placed."""
        return np.asarray(self.expected_s.min(axis=1))

    def __len__(self) -> int:
        return len(self.job_type)


_PLAIN = Plan("as Podium's own: effects of job, GPU type and pair")
_BUSY = replace(_PLAIN, decisions=2000, in_flight=50)
FAMILIES: dict[str, Plan] = {
    "mixed": _PLAIN,
    "additive": replace(_PLAIN, title="no effects of pairs", pair_spread=0.0),
    "independent": replace(
        _PLAIN, title="nothing but effects of pairs", gpu_spread=0.0, pair_spread=0.7
    ),
    "clustered": replace(
        _PLAIN, title="three kinds of job types", job_types=12, clusters=3,
        gpu_spread=0.7, pair_spread=0.1,
    ),
    "noise50": replace(_PLAIN, title="50 % noise", noise=(0.5,)),
    "hetnoise": replace(_PLAIN, title="5, 20 or 60 % noise", noise=(0.05, 0.2, 0.6)),
    "drift": replace(
        _PLAIN, title="a GPU type takes twice as long from job 500 on", decisions=2000, drift=True
    ),
    "late": replace(_PLAIN, title="a new job type from job 500 on", newcomer="usual"),
    "late_odd": replace(_PLAIN, title="the same, and it goes against the trend", newcomer="odd"),
    "gpu3": replace(_PLAIN, title="3 GPU types", gpu_types=3),
    "gpu20": replace(_PLAIN, title="20 GPU types", gpu_types=20),
    "zipf": replace(_PLAIN, title="30 job types, some of them rare", job_types=30, zipf=1.2),
    "delay50": replace(_BUSY, title="50 jobs in flight"),
    "delay50_noise": replace(_BUSY, title="50 jobs in flight, 50 % noise", noise=(0.5,)),
    **{
        f"beside{share}": replace(
            _PLAIN, title=f"{share} % of runs have 1 to 3 neighbours", beside=share / 100
        )
        for share in (0, 20, 50, 90, 100)
    },
    "beside_by_gpu": replace(
        _PLAIN, title="neighbours that differ from GPU type to GPU type", beside=0.7,
        beside_by_gpu=True,
    ),
    "failing": replace(_PLAIN, title="a job type fails where it should run best", failing=True),
    "wrong_unit": replace(_PLAIN, title="1 % of run times in thousandths", wrong_unit=0.01),
    "missing": replace(
        _PLAIN, title="a feature that matters is given for 70 % of runs", missing=0.3,
        features="slope",
    ),
    "feature_order": replace(
        _PLAIN, title="which GPU type is best depends on a feature", job_types=3, gpu_types=3,
        features="order",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Draw:
    """What is drawn of a world, step by step."""

    rng: np.random.Generator
    plan: Plan
    job_type: Whole
    expected_s: Array
    beside: tuple[Beside, ...] = ()
    features: tuple[Mapping[str, float], ...] = field(default=())


def draw(plan: Plan, seed: int) -> World:
    """Draws the world of a seed."""
    rng = np.random.default_rng([seed, 16])
    table = _run_times(plan, rng)
    job_type = _job_types(plan, rng)
    made = _Draw(rng, plan, job_type, table[job_type])
    for step in (_with_drift, _with_features, _with_neighbours):
        made = step(made)
    return _finished(made)


def _run_times(plan: Plan, rng: np.random.Generator) -> Array:
    shape = (plan.job_types, plan.gpu_types)
    job = rng.normal(0.0, 1.0, (plan.job_types, 1))
    if plan.clusters:
        centers = rng.normal(0.0, plan.gpu_spread, (plan.clusters, plan.gpu_types))
        gpu = centers[rng.integers(plan.clusters, size=plan.job_types)]
    else:
        gpu = np.broadcast_to(rng.normal(0.0, plan.gpu_spread, plan.gpu_types), shape)
    log_s = np.log(RUNTIME_S) + job + gpu + rng.normal(0.0, plan.pair_spread, shape)
    if plan.newcomer == "odd":
        trend = log_s[:-1].mean(axis=0)
        own = np.sort(log_s[-1])
        log_s[-1, np.argsort(-trend)] = own  # fastest where the others are slowest
    return np.asarray(np.exp(log_s))


def _job_types(plan: Plan, rng: np.random.Generator) -> Whole:
    kinds = plan.job_types - bool(plan.newcomer)
    weight = 1.0 / np.arange(1, kinds + 1) ** plan.zipf
    drawn = rng.choice(kinds, size=plan.decisions, p=weight / weight.sum())
    if plan.newcomer:
        is_new = rng.random(plan.decisions) < 0.1
        drawn = np.where(is_new & (np.arange(plan.decisions) >= 500), kinds, drawn)
    return np.asarray(drawn, dtype=np.intp)


def _with_drift(made: _Draw) -> _Draw:
    if not made.plan.drift:
        return made
    popular = np.bincount(made.expected_s.argmin(axis=1)).argmax()
    expected_s = made.expected_s.copy()
    expected_s[500:, popular] *= 2.0
    return replace(made, expected_s=expected_s)


def _with_features(made: _Draw) -> _Draw:
    plan, rng = made.plan, made.rng
    if not plan.features:
        return replace(made, features=({},) * len(made.job_type))
    if plan.features == "order":
        batch = rng.choice([8.0, 2000.0], size=len(made.job_type))
        fixed, each = np.array([10.0, 25.0, 40.0]), np.array([0.10, 0.02, 0.05])
        own = rng.uniform(0.5, 2.0, plan.job_types)[made.job_type]
        expected_s = own[:, None] * (fixed + each * batch[:, None])
    else:
        batch = np.exp(rng.normal(4.0, 1.0, len(made.job_type)))
        expected_s = made.expected_s * ((1.0 + batch) / np.e**4)[:, None] ** 0.8
    is_told = rng.random(len(batch)) >= plan.missing
    told = tuple(
        {"batch_size": float(size)} if is_known else {}
        for size, is_known in zip(batch, is_told, strict=True)
    )
    return replace(made, expected_s=expected_s, features=told)


def _with_neighbours(made: _Draw) -> _Draw:
    plan, rng = made.plan, made.rng
    kinds, gpus, jobs = plan.job_types, plan.gpu_types, len(made.job_type)
    slow = np.where(rng.random((kinds, kinds)) < 0.5, rng.uniform(0.1, 0.8, (kinds, kinds)), 0.0)
    factor = np.ones((jobs, gpus))
    beside = []
    for number, job_type in enumerate(made.job_type.tolist()):
        lists = tuple(_neighbours(plan, rng) for _ in range(gpus if plan.beside_by_gpu else 1))
        row: Beside = lists if plan.beside_by_gpu else lists * gpus
        beside.append(row)
        factor[number] = [np.prod([1.0 + slow[job_type, each] for each in one]) for one in row]
    return replace(made, expected_s=made.expected_s * factor, beside=tuple(beside))


def _neighbours(plan: Plan, rng: np.random.Generator) -> tuple[int, ...]:
    if rng.random() >= plan.beside:
        return ()
    return tuple(rng.integers(plan.job_types, size=rng.integers(1, 4)).tolist())


def _finished(made: _Draw) -> World:
    plan, rng = made.plan, made.rng
    noise = np.resize(plan.noise, plan.job_types)[made.job_type][:, None]
    luck = np.exp(rng.normal(0.0, 1.0, made.expected_s.shape) * noise - 0.5 * noise**2)
    observed_s = made.expected_s * luck
    is_wrong = rng.random(len(luck)) < plan.wrong_unit
    observed_s[is_wrong] *= 1000.0
    fails = np.zeros(luck.shape, dtype=bool)
    expected_s = made.expected_s
    if plan.failing:
        is_of_type = made.job_type == 0
        best = int(expected_s[is_of_type][0].argmin())
        fails[is_of_type, best] = True
        observed_s[fails] *= 0.5  # it breaks half-way
        # What failed has to run again elsewhere, so that half a run is lost.
        elsewhere = np.delete(expected_s, best, axis=1).min(axis=1)
        expected_s = np.where(fails, 0.5 * expected_s + elsewhere[:, None], expected_s)
    return World(plan, made.job_type, expected_s, observed_s, fails, made.beside, made.features)
