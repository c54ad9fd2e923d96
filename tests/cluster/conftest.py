"""Gives tests of this folder a real control plane, and shows its logs where one fails."""

import pytest

from support.control_plane import ProgramsMissingError, control_plane, find_programs
from support.feasibility import feasibility_oracle

PLANE = pytest.StashKey()


def pytest_collection_modifyitems(items):
    missing = missing_programs()
    for item in items:
        if {"plane", "programs"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.cluster)
            if missing:
                item.add_marker(pytest.mark.skip(missing))


def missing_programs():
    """Says why no control plane can run here, if so."""
    try:
        find_programs()
    except ProgramsMissingError as missing:
        return str(missing)
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    plane = item.config.stash.get(PLANE, None)
    if report.failed and plane is not None:
        report.sections += [(f"log of {name}", text) for name, text in plane.log_tails().items()]
    return report


@pytest.fixture(scope="session")
def programs():
    """Names the folder of the programs."""
    return find_programs()


@pytest.fixture(scope="session")
def plane(request, programs):
    """Starts etcd and kube-apiserver once for all tests of a process."""
    with control_plane(programs) as started:
        request.config.stash[PLANE] = started
        yield started
        del request.config.stash[PLANE]


@pytest.fixture
def api(plane):
    """Asks the API server; leaves neither pods nor nodes behind."""
    plane.api.forget_connections()  # those that a long test left idle may have been dropped
    yield plane.api
    plane.api.clear()


@pytest.fixture(scope="module")
def oracle(plane):
    """Asks the real scheduler about feasible nodes."""
    with feasibility_oracle(plane) as oracle:
        yield oracle
