import os
from pathlib import Path

import pytest

from podium.errors import InputError, UsageError
from podium.reports.tables import checked_target

SUFFIXES = (".csv", ".json")


@pytest.mark.parametrize("name", ["rows.csv", "ROWS.CSV", "a.b.csv"])
def test_the_suffix_names_the_format(tmp_path, name):
    assert checked_target(tmp_path / name, SUFFIXES) == ".csv"


def test_a_file_that_is_there_may_be_written_over(tmp_path):
    (tmp_path / "rows.json").write_text("old")
    assert checked_target(tmp_path / "rows.json", SUFFIXES) == ".json"
    assert (tmp_path / "rows.json").read_text() == "old"


@pytest.mark.parametrize(("name", "shown"), [("rows.txt", ".txt"), ("rows", "rows")])
def test_another_suffix_is_refused_with_those_that_can_be_written(tmp_path, name, shown):
    with pytest.raises(UsageError, match=f'"{shown}"') as caught:
        checked_target(tmp_path / name, SUFFIXES)
    assert caught.value.where == str(tmp_path / name)
    assert caught.value.hint == "name a file that ends in .csv or .json"


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="folder does not exist") as caught:
        checked_target(tmp_path / "none" / "rows.csv", SUFFIXES)
    assert str(tmp_path / "none") in caught.value.hint


def test_a_folder_in_place_of_the_file_is_refused(tmp_path):
    (tmp_path / "rows.csv").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        checked_target(tmp_path / "rows.csv", SUFFIXES)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="cannot be written"):
            checked_target(tmp_path / "rows.csv", SUFFIXES)
    finally:
        tmp_path.chmod(0o700)


def test_a_bare_name_lies_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert checked_target(Path("rows.csv"), SUFFIXES) == ".csv"
