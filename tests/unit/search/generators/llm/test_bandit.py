import json
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.search.generators.llm.bandit import Bandit


def chosen(bandit, models, seed=0):
    return bandit.choose(models, np.random.default_rng(seed))


def play(bandit, gains, costs, rounds=200, seed=0):
    """Lets models be chosen; each gains and costs what is given."""
    counts = dict.fromkeys(gains, 0)
    for i in range(rounds):
        model = chosen(bandit, list(gains), (seed, i))
        counts[model] += 1
        bandit.learn(model, gains[model], 1000, costs[model])
    return counts


def test_every_model_is_tried_before_one_is_tried_twice():
    bandit = Bandit(["a", "b", "c"])
    counts = play(bandit, {"a": 5.0, "b": 0.0, "c": 0.0}, dict.fromkeys("abc", 0.1), rounds=3)
    assert set(counts.values()) == {1}


def test_the_model_that_gains_is_preferred_though_it_is_dearer():
    counts = play(Bandit(["a", "b"]), {"a": 0.0, "b": 0.3}, {"a": 0.001, "b": 0.1})
    assert counts["b"] > 150


def test_among_models_that_gain_alike_the_cheaper_is_preferred():
    counts = play(Bandit(["a", "b"]), {"a": 0.3, "b": 0.3}, {"a": 0.001, "b": 0.1})
    assert counts["a"] > 130


def test_losses_and_refusals_count_as_no_gain():
    one, other = Bandit(["a"]), Bandit(["a"])
    for gain in (-50.0, None, math.nan, math.inf):
        one.learn("a", gain, 10, 0.1)
        other.learn("a", 0.0, 10, 0.1)
    assert one.state() == other.state()


def test_where_a_price_is_unknown_tokens_are_compared():
    bandit = Bandit(["a", "b"])
    for model, tokens, usd in (("a", 9000, None), ("b", 100, 0.5)) * 20:
        bandit.learn(model, 1.0, tokens, usd)
    assert chosen(bandit, ["a", "b"]) == "b"


def test_only_the_models_that_are_left_are_chosen():
    bandit = Bandit(["a", "b"])
    bandit.learn("a", 9.0, 1, 0.1)
    assert chosen(bandit, ["b"]) == "b"


HEARD = st.tuples(
    st.sampled_from("abc"), st.none() | st.floats(), st.integers(0, 10**6),
    st.none() | st.floats(0, 10),
)  # fmt: skip


@given(st.lists(HEARD, max_size=30), st.integers(0, 2**32))
def test_a_restored_bandit_chooses_as_the_one_it_was(heard, seed):
    bandit, restored = Bandit("abc"), Bandit("abc")
    for row in heard:
        bandit.learn(*row)
    restored.restore(json.loads(json.dumps(bandit.state())))
    assert chosen(bandit, "abc", seed) == chosen(restored, "abc", seed)
