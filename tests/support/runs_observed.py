"""Draws observations, and fits them the slow way."""

import math

import numpy as np

from podium.online import Observation
from podium.online.observation import feature_vector


def drawn(seed, count=60, jobs=3, gpus=4, with_features=False):
    """Draws observations of some pairs, with run times of any scale."""
    rng = np.random.default_rng(seed)
    job, gpu = rng.normal(3.0, 2.0, jobs), rng.normal(0.0, 0.5, gpus)
    found = []
    for _ in range(count):
        j, g = rng.integers(jobs), rng.integers(gpus)
        features = {}
        log_s = job[j] + gpu[g] + rng.normal(0.0, 0.2)
        if with_features:
            features = {"batch_size": float(rng.integers(1, 64)), "gpu_mem_gb": 10.0 + j}
            log_s += 0.5 * math.log1p(features["batch_size"])
        found.append(Observation(f"j{j}", f"g{g}", math.exp(log_s), features))
    return found


class SlowModel:
    """Fits every effect at once, as one dense Gaussian regression."""

    def __init__(self, observations, parameters, noise, pair_spread):
        self._parameters = parameters
        self._pair_spread = pair_spread
        self._names = ["level", *parameters.features]
        for each in observations:
            for name in self._effects(each.job_type, each.gpu_type):
                if name not in self._names:
                    self._names.append(name)
        spreads = np.array([self._spread(name) for name in self._names])
        precision, shift = np.diag(spreads**-2), np.zeros(len(self._names))
        for each in observations:
            row = self._row(each.job_type, each.gpu_type, each.features)
            weight = 1.0 / noise[each.job_type]
            precision += np.outer(row, row) * weight
            shift += row * (math.log(each.runtime_s) - parameters.level) * weight
        self._covariance = np.linalg.inv(precision)
        self._mean = self._covariance @ shift

    def predict(self, job_type, gpu_type, features):
        """Gives mean and variance of the log run time without noise."""
        row = self._row(job_type, gpu_type, features)
        unseen = [n for n in self._effects(job_type, gpu_type) if n not in self._names]
        extra = sum(self._spread(name) ** 2 for name in unseen)
        mean = row @ self._mean + self._parameters.level
        return mean, row @ self._covariance @ row + extra

    def _effects(self, job_type, gpu_type):
        return [("job", job_type), ("gpu", gpu_type), ("pair", job_type, gpu_type)]

    def _row(self, job_type, gpu_type, features):
        row = np.zeros(len(self._names))
        row[0] = 1.0
        vector = feature_vector(self._parameters.features, features)
        row[1 : len(vector) + 1] = [value or 0.0 for value in vector]
        for name in self._effects(job_type, gpu_type):
            if name in self._names:
                row[self._names.index(name)] = 1.0
        return row

    def _spread(self, name):
        prior = self._parameters.prior
        if name == "level":
            return prior.level_spread
        if isinstance(name, str):
            return prior.feature_spread
        kinds = {"job": prior.job_spread, "gpu": prior.gpu_spread, "pair": self._pair_spread}
        return kinds[name[0]]
