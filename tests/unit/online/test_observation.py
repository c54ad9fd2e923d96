import math

import pytest

from podium.errors import UsageError
from podium.online import Observation, Request
from podium.online.observation import feature_vector


@pytest.mark.parametrize("runtime_s", [0.0, -1.0, math.nan, math.inf, 1e-9, 1e300])
def test_a_run_time_that_is_none_is_refused(runtime_s):
    with pytest.raises(UsageError, match="is out of range") as caught:
        Observation("j", "g", runtime_s)
    assert caught.value.where == "measured_runtime_s"


def test_names_are_not_empty():
    for make in (
        lambda: Observation("", "g", 1.0),
        lambda: Observation("j", "", 1.0),
        lambda: Observation("j", "g", 1.0, {}, ("",)),
        lambda: Request("", ("g",)),
        lambda: Request("j", ("g", "")),
    ):
        with pytest.raises(UsageError, match="a name is empty"):
            make()


def test_a_request_without_candidates_is_refused():
    with pytest.raises(UsageError, match="no GPU type to choose from"):
        Request("j", ())


def test_features_are_logarithms_and_those_not_given_are_none():
    found = feature_vector(("a", "b"), {"b": math.e - 1.0, "tenant": 3.0})
    assert found == (None, pytest.approx(1.0))


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_feature_that_is_no_size_is_refused(value):
    with pytest.raises(UsageError, match="is not a valid size"):
        feature_vector(("a",), {"a": value})
