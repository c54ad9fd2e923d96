import pytest

from podium.search.run.executor import local_executor
from support.searches import LIMITS, TRAINING


@pytest.fixture(scope="module")
def executor():
    """Judges on two workers."""
    executor = local_executor(TRAINING, "inflation", 2, LIMITS)
    yield executor
    executor.close()
