import pytest

from podium.errors import UsageError
from podium.evaluation.splits import BY_SEED, BY_TIME, Split, check_unseen, read_split


@pytest.mark.parametrize(
    ("text", "split"),
    [("seed", BY_SEED), ("time", BY_TIME), ("time:0.3", BY_TIME), ("time:0.25", Split(0.25))],
)
def test_a_split_is_read_as_it_is_written(text, split):
    assert read_split(text) == split
    assert read_split(str(split)) == split


@pytest.mark.parametrize("text", ["", "seeds", "time:", "time:0", "time:1", "time:x", "seed:0.3"])
def test_what_is_no_split_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="held out") as caught:
        read_split(text)
    assert "time:0.3" in caught.value.hint


@pytest.mark.parametrize("seed", [42, 51, 1000, 1899, 1900, 2019, 10_000, 12_047])
def test_trainings_are_not_compared_on_what_they_may_know(seed):
    with pytest.raises(UsageError, match=f"seed {seed} is") as caught:
        check_unseen([3000, seed])
    assert "from 3000 to 9999" in caught.value.hint


def test_trainings_are_compared_on_unseen_seeds():
    check_unseen(range(3000, 10_000))
    check_unseen([0, 12_048])
