import sys

import pytest

from podium.errors import MissingError
from podium.reports.bench import process


def test_a_process_gives_what_it_printed():
    assert process.run(["-c", "print('heard')"]) == "heard\n"


def test_the_environment_reaches_the_process():
    program = "import os; print(os.environ['PODIUM_DEBUG'])"
    assert process.run(["-c", program], {"PODIUM_DEBUG": "7"}) == "7\n"


def test_a_process_that_fails_is_told_with_its_last_words():
    with pytest.raises(MissingError, match="last words"):
        process.run(["-c", "raise SystemExit('last words')"])


def test_time_is_that_of_the_whole_process():
    assert process.seconds(["-c", "import time; time.sleep(0.2)"]) >= 0.2


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_peak_memory_is_that_of_a_simulation():
    # Importing NumPy and Numba alone takes tens of megabytes.
    assert 50 < process.peak_megabytes(16) < 2000
