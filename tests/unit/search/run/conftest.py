import pytest

from podium.search.run.executor import LocalExecutor
from support.searches import LIMITS, TRAINING


@pytest.fixture(scope="module")
def executor():
    """Judges on two workers."""
    executor = LocalExecutor(TRAINING, "inflation", 2, LIMITS)
    yield executor
    executor.close()
