"""Gives every contract of stores both databases."""

import pytest

from podium.store import open_store
from support.postgres import postgres_server
from support.stored import RUN, bred, judged

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def databases():
    """Starts PostgreSQL once for all tests of a process."""
    with postgres_server() as databases:
        yield databases


@pytest.fixture(params=DATABASES)
def url(request, tmp_path):
    """Addresses a database that does not exist yet, or is empty."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'new' / 'podium.db'}"
        return
    with request.getfixturevalue("databases").lent() as address:
        yield address


@pytest.fixture
def store(url):
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def filled(store):
    """Gives a store with a run of five candidates, two of them judged."""
    store.runs.create(RUN)
    store.candidates.propose([bred(number) for number in range(5)])
    store.candidates.judge([judged(bred(1), 1.0), judged(bred(3), 3.0)])
    return store
