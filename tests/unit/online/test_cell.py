from __future__ import annotations

import numpy as np
import pytest

from podium.online.cell import MOST_OTHERS, JobRuns, Sums


def test_plain_rows_add_up_to_the_bit_as_other_rows_do() -> None:
    times = np.random.default_rng(3).normal(4.0, 1.0, 200)
    arrays, numbers = Sums.empty(4), Sums.empty(4)
    for at, log_runtime in enumerate(times.tolist()):
        arrays.add(np.array([log_runtime, 0.0, 0.0, 0.0]))
        numbers.add_plain(log_runtime)
        if at % 50 == 0:
            arrays.fade(0.9)
            numbers.fade(0.9)
    assert numbers.as_object() == arrays.as_object()


@pytest.mark.parametrize("neighbours", [3, 90, 80 + MOST_OTHERS])
def test_whether_any_of_many_names_was_met_is_what_each_of_them_says(neighbours: int) -> None:
    rng, runs = np.random.default_rng(neighbours), JobRuns(0)
    names = [f"j{number}" for number in range(neighbours)]
    for at, name in enumerate(names):
        runs.add(at % 2, (1.0, (), (name,)))
    for _ in range(200):
        asked = frozenset(rng.choice([*names, "k1", "k2", "k3"], size=2).tolist())
        gpu = int(rng.integers(3))
        assert runs.met_any(gpu, asked) == any(runs.met(gpu, name) for name in asked)


def test_names_that_nobody_met_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = JobRuns(0)
    runs.add(0, (1.0, (), ("a",)))
    looked, met = [], JobRuns.met
    monkeypatch.setattr(JobRuns, "met", lambda *asked: looked.append(asked[2]) or met(*asked))
    assert runs.met_any(0, frozenset(["a", *(f"k{number}" for number in range(1000))]))
    assert looked == ["a"]
