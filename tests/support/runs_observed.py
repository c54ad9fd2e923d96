"""Draws observations, and fits them the slow way."""

import math

import numpy as np

from podium.online import Observation


def drawn(seed, count=60, jobs=3, gpus=4, with_features=False, missing=0.0, beside=0.0):
    """Draws observations of some pairs, with run times of any scale."""
    rng = np.random.default_rng(seed)
    job, gpu = rng.normal(3.0, 2.0, jobs), rng.normal(0.0, 0.5, gpus)
    found = []
    for _ in range(count):
        j, g = rng.integers(jobs), rng.integers(gpus)
        features, company = {}, ()
        log_s = job[j] + gpu[g] + rng.normal(0.0, 0.2)
        if with_features:
            features = {"batch_size": float(rng.integers(1, 64)), "gpu_mem_gb": 10.0 + j}
            log_s += 0.5 * math.log1p(features["batch_size"])
        if rng.random() < missing:
            del features["batch_size"]
        if rng.random() < beside:
            company = tuple(f"j{each}" for each in rng.integers(jobs + 2, size=rng.integers(1, 4)))
            log_s += 0.2 * len(company)
        found.append(Observation(f"j{j}", f"g{g}", math.exp(log_s), features, company))
    return found


class SlowModel:
    """Fits every effect at once, as one dense Gaussian regression."""

    def __init__(self, observations, parameters, model):
        self._parameters, self._model = parameters, model
        self._active = [
            name
            for name in parameters.features
            if any(name in each.features for each in observations)
        ]
        self._names = {}
        self._rows = [self._effects(*self._described(each)) for each in observations]
        for row in self._rows:
            for name in row:
                self._names.setdefault(name, len(self._names))
        design = np.array([self._dense(row)[0] for row in self._rows])
        weights = np.array([1.0 / self._noise(each, observations) for each in observations])
        above = np.array([math.log(each.runtime_s) - parameters.level for each in observations])
        spreads = np.array([self._spread(name) for name in self._names])
        precision = np.diag(spreads**-2) + (design.T * weights) @ design
        self._covariance = np.linalg.inv(precision)
        self._mean = self._covariance @ (design.T @ (weights * above))

    def predict(self, job_type, gpu_type, features, beside=()):
        """Gives mean and variance of the log run time without noise."""
        row, extra = self._dense(self._effects(job_type, gpu_type, features, beside))
        mean = row @ self._mean + self._parameters.level
        return mean, row @ self._covariance @ row + extra

    def _described(self, each):
        return each.job_type, each.gpu_type, each.features, each.colocated_job_types

    def _effects(self, job_type, gpu_type, features, beside):
        found = {("level",): 1.0, ("gpu", gpu_type): 1.0, ("job", job_type): 1.0}
        found["pair", job_type, gpu_type] = 1.0
        for name in self._active:
            if name in features:
                value = math.log1p(features[name]) - self._model.usual[name]
                found["weight", name] = found["slope", gpu_type, name] = value
            else:
                found["missing", name] = 1.0
        for other in beside:
            for name in (
                ("suffer", job_type),
                ("disturb", other),
                ("slow", job_type, other),
                ("local", job_type, other, gpu_type),
            ):
                found[name] = found.get(name, 0.0) + 1.0
        return found

    def _dense(self, effects):
        """Gives the row of the effects that were seen, and the variance of those that were not."""
        row, extra = np.zeros(len(self._names)), 0.0
        for name, value in effects.items():
            if name in self._names:
                row[self._names[name]] = value
            else:
                extra += (value * self._spread(name)) ** 2
        return row, extra

    def _noise(self, observation, observations):
        """Gives the noise of a run, which is another one where it lacks a feature."""
        usual = {
            name
            for each in observations
            if each.job_type == observation.job_type
            for name in each.features
        }
        is_partial = set(observation.features) != usual
        return self._model.noise(observation.job_type).variance[is_partial]

    def _spread(self, name):
        prior, learned = self._parameters.prior, self._model.spreads
        if name[0] == "job":
            return self._model.job_spread(name[1])
        return {
            "level": prior.level_spread,
            "weight": learned.feature,
            "missing": prior.missing_spread,
            "slope": prior.slope_spread,
            "gpu": learned.gpu,
            "pair": learned.pair,
            "suffer": prior.suffer_spread,
            "disturb": prior.disturb_spread,
            "slow": prior.slowdown_spread,
            "local": prior.local_spread,
        }[name[0]]
