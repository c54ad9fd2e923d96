import sys
from pathlib import Path

import pytest

from podium.errors import MissingExtra, UsageError
from podium.store.address import file_of, label_of, read_address


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("runs.db", "runs.db"),
        ("folder/my runs.db", "folder/my runs.db"),
        ("/data/runs.db", "/data/runs.db"),
        ("sqlite:///runs.db", "runs.db"),
        ("sqlite:////data/runs.db", "/data/runs.db"),
        ("sqlite+pysqlite:///runs.db", "runs.db"),
        ("SQLite:///runs.db", "runs.db"),
        ("~/runs.db", str(Path.home() / "runs.db")),
        ("sqlite:///~/runs.db", str(Path.home() / "runs.db")),
    ],
)
def test_a_path_or_a_url_names_a_file(text, file):
    url = read_address(text)
    assert url.drivername == "sqlite+pysqlite"
    assert file_of(url) == Path(file)
    assert label_of(url) == file


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "PostgreSQL"])
def test_an_address_of_postgresql_uses_psycopg(scheme):
    url = read_address(f"{scheme}://ada:p%40ss@db:5433/podium?sslmode=require")
    assert url.drivername == "postgresql+psycopg"
    assert (url.username, url.password, url.host, url.port) == ("ada", "p@ss", "db", 5433)
    assert (url.database, url.query["sslmode"]) == ("podium", "require")
    assert file_of(url) is None


def test_a_label_hides_the_password():
    label = label_of(read_address("postgres://ada:secret@db/podium?password=secret"))
    assert label == "postgresql://ada:********@db/podium?password=********"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the address of the store is empty"),
        ("  ", "the address of the store is empty"),
        ("mysql://ada:secret@db/podium", '"mysql" is not a supported database'),
        ("postgresql+psycopg2://db/podium", '"postgresql\\+psycopg2" is not a supported database'),
        ("sqlit:///runs.db", '"sqlit" is not a supported database'),
        ("sqlite://", "a store in memory would be lost"),
        ("sqlite:///:memory:", "a store in memory would be lost"),
        (":memory:", "a store in memory would be lost"),
        ("sqlite://runs.db", "neither a host nor options"),
        ("sqlite:///runs.db?mode=ro", "neither a host nor options"),
        ("postgresql://ada:secret@db:port/podium", "this is not a valid address"),
    ],
)
def test_what_is_no_address_is_refused_with_advice(text, message):
    with pytest.raises(UsageError, match=message) as caught:
        read_address(text)
    assert caught.value.hint
    assert "secret" not in str(caught.value)


def test_a_misspelt_scheme_gets_a_suggestion():
    with pytest.raises(UsageError) as caught:
        read_address("postgressql://db/podium")
    assert caught.value.hint.startswith("did you mean postgresql")


def test_postgresql_without_its_driver_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match="a store in PostgreSQL needs the extra 'postgres'"):
        read_address("postgresql://db/podium")
