"""Splits the cases of a test into those of every day and those of `make test-deep`."""

import pytest


def with_deep(everyday, deep):
    """Lists all cases; the latter run with the tests that take long."""
    return [*everyday, *(pytest.param(each, marks=pytest.mark.deep) for each in deep)]


def every(step, cases):
    """Takes every so many cases for every day; the others are deep."""
    cases = list(cases)
    return with_deep(cases[::step], [case for i, case in enumerate(cases) if i % step])
