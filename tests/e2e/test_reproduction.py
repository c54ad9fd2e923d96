"""Repeats every published experiment for which orders are at hand, with the real binary."""

import json
import os

import pytest

from support.binary import PODIUM, run

ORIGINALS = os.environ.get("PODIUM_TRACES")

pytestmark = [pytest.mark.deep, pytest.mark.openb]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    if not ORIGINALS:
        pytest.skip("PODIUM_TRACES does not name a folder with the original OpenB files")
    folder = tmp_path_factory.mktemp("reproduce")
    command = [*PODIUM, "reproduce", "fgd", "--json"]
    result = run(command, folder, PODIUM_TRACES=ORIGINALS)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_every_deterministic_figure_is_as_published_to_the_printed_digit(rows):
    judged = [row for row in rows if row["policy"] != "random"]
    assert len(judged) == 255
    assert len({row["trace"] for row in judged}) == 17
    assert [row for row in judged if row["ours"] != row["published"]] == []


def test_random_comes_close_on_the_average(rows):
    drawn = [row for row in rows if row["policy"] == "random"]
    assert len(drawn) == 51
    differences = [row["ours"]["alloc_130"] - row["published"]["alloc_130"] for row in drawn]
    assert abs(sum(differences) / len(differences)) < 0.2
