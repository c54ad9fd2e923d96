import pytest

from podium.settings import default_settings, keys, load_settings, shown, without_password


@pytest.mark.parametrize(
    ("url", "printed"),
    [
        ("sqlite:////data/podium.db", "sqlite:////data/podium.db"),
        ("postgresql://db/podium", "postgresql://db/podium"),
        ("postgresql://ada@db/podium", "postgresql://ada@db/podium"),
        ("postgresql://ada:p@ss:1@db/podium", "postgresql://ada:********@db/podium"),
        ("postgresql://ada:pa/ss?#@db/podium", "postgresql://ada:********@db/podium"),
        ("postgresql://ada@work:secret@db/podium", "postgresql://ada@work:********@db/podium"),
        ("postgresql://:secret@db/podium", "postgresql://:********@db/podium"),
        ("postgresql://ada:secret@db:5432/podium", "postgresql://ada:********@db:5432/podium"),
        ("postgresql://db:5432/podium", "postgresql://db:5432/podium"),
        ("postgresql://db/p?user=ada&password=x", "postgresql://db/p?user=ada&password=********"),
    ],
)
def test_an_address_is_printed_without_its_password(url, printed):
    assert without_password(url) == printed


def test_the_store_is_shown_without_its_password(tmp_path):
    settings = load_settings(
        environ={"PODIUM_STORE_URL": "postgresql://ada:secret@db/podium"}, folder=tmp_path
    )
    assert settings.store.url == "postgresql://ada:secret@db/podium"
    (row,) = [row for row in shown(settings) if row.path == "store.url"]
    assert row.value == "postgresql://ada:********@db/podium"


def test_the_store_lies_in_the_users_data_folder(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert default_settings().store.url == "sqlite:////somewhere/podium/podium.db"
    assert keys()["store.url"].flag == "--store"
