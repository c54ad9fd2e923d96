import gc
from importlib.util import find_spec

import pytest

from podium.errors import MissingExtra, install_line
from podium.service import extra, importing, need_extra


def test_what_is_installed_is_not_asked_for():
    assert all(map(find_spec, extra.MODULES))
    need_extra()  # raises where one is away


def test_a_dependency_that_is_away_is_named_with_the_line_to_install_it(monkeypatch):
    monkeypatch.setattr(extra, "MODULES", ("fastapi", "podium_no_such_module"))
    with pytest.raises(MissingExtra) as caught:
        need_extra()
    assert caught.value.hint == install_line("serve")


def test_garbage_is_looked_for_again_once_all_is_imported():
    with importing():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.unfreeze()
