from __future__ import annotations

import numpy as np

from podium.online.cell import Sums


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
