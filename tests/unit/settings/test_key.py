import dataclasses
from pathlib import Path

import pytest

from podium import settings
from podium.settings import MASK, Settings, default_settings, keys, sections, shown
from podium.settings.about import about
from podium.settings.key import keys_of, masked
from podium.settings.value import EXPECTED


def test_the_settings_are_their_sections_and_the_origins():
    names = {item.name for item in dataclasses.fields(Settings)}
    assert names == set(sections()) | {"origins"}


@pytest.mark.parametrize("section", sections())
def test_a_section_is_frozen_and_names_no_word_that_an_environment_name_would_split(section):
    cls = sections()[section]
    assert cls.__dataclass_params__.frozen
    assert "_" not in section


@pytest.mark.parametrize("key", keys().values(), ids=keys())
def test_a_key_has_a_known_type_a_purpose_and_its_own_names(key):
    assert key.kind in EXPECTED
    assert key.about.help
    others = [other for other in keys().values() if other is not key]
    assert not set(key.env_names) & {name for other in others for name in other.env_names}


def test_an_optional_path_is_a_path():
    assert keys()["traces.folder"].kind is Path


def test_flags_are_named_after_the_key_unless_said_otherwise():
    assert keys()["simulate.hold_limit"].flag == "--hold-limit"
    assert keys()["traces.folder"].flag == "--traces"


def test_every_setting_is_shown_with_value_and_origin():
    rows = shown(default_settings())
    assert [row.path for row in rows] == list(keys())
    assert next(row.value for row in rows if row.path == "simulate.protocol") == "replay"
    assert {row.origin for row in rows} == {"default"}


def test_the_room_exports_what_it_promises():
    assert set(settings.__all__) <= set(dir(settings))


@dataclasses.dataclass(frozen=True, slots=True)
class Vault:
    key: str | None = dataclasses.field(default=None, metadata=about("a key", is_secret=True))


def test_a_secret_is_shown_masked_once_it_is_set():
    (key,) = keys_of("vault", Vault)
    assert key.env_names == ("PODIUM_VAULT_KEY",)
    assert masked(key, "hunter2") == MASK
    assert masked(key, None) is None


def test_what_is_no_secret_is_shown_as_it_is():
    assert masked(keys()["simulate.policy"], "fgd") == "fgd"
