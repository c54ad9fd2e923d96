import gzip
import re
import sys
import tomllib
from dataclasses import replace

import pytest

from podium.cli import checks
from podium.cli.checks import (
    CHECKS,
    check_compiler,
    check_extras,
    check_machine,
    check_sandbox,
    check_traces,
    memory_bytes,
)
from podium.errors import install_line
from podium.search.sandbox import worker as process
from podium.settings import default_settings
from podium.traces.openb.files import openb_index
from support.pages import ROOT


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_check_finds_something_and_advises_where_it_is_amiss(check):
    found = list(check(default_settings()))
    assert found
    assert all(finding.hint for finding in found if finding.status in ("warning", "broken"))


def test_an_extra_that_is_not_installed_comes_with_its_install_line(monkeypatch):
    requirements = [
        "numpy>=2",
        "hypothesis>=6; extra == 'here'",
        "no-such-thing>=1; extra == 'gone'",
        "no-such-thing>=1; extra == 'all'",
    ]
    monkeypatch.setattr(checks.metadata, "requires", lambda _: requirements)
    here, gone = check_extras(default_settings())
    assert (here.check, here.status) == ("extra here", "ok")
    assert (gone.check, gone.status) == ("extra gone", "note")
    assert gone.hint == install_line("gone")


def test_every_extra_is_used():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    extras = {name: given for name, given in project["optional-dependencies"].items()
              if name != "all"}  # fmt: skip
    unused = {
        name for name, given in extras.items() if not any(_uses(source, one) for one in given)
    }
    assert not unused


def _uses(source, requirement):
    module = re.split(r"[^\w-]", requirement)[0].replace("-", "_")
    return re.search(rf"(?:import|from|find_spec\(.|load_module\(.) ?{module}\b", source)


def test_a_compiler_that_cannot_be_imported_is_broken(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    (finding,) = check_compiler(default_settings())
    assert finding.status == "broken"
    assert "numba" in finding.hint


def test_a_tree_that_was_never_installed_is_told_so(monkeypatch):
    monkeypatch.setattr(checks, "DISTRIBUTION", "no-such-distribution")
    (finding,) = check_extras(default_settings())
    assert (finding.status, finding.hint) == ("warning", "pip install .")


def test_a_container_limit_below_the_machine_counts(tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text("1048576\n")
    assert memory_bytes(limit) == 1048576


@pytest.mark.parametrize("content", ["max\n", None])
def test_without_a_container_limit_the_machine_counts(tmp_path, content):
    limit = tmp_path / "memory.max"
    if content:
        limit.write_text(content)
    assert memory_bytes(limit) > 1 << 20


def test_little_memory_is_a_warning(monkeypatch):
    monkeypatch.setattr(checks, "memory_bytes", lambda: 1 << 20)
    memory = list(check_machine(default_settings()))[1]
    assert (memory.status, memory.detail) == ("warning", "1 MiB")


def with_folder(folder):
    settings = default_settings()
    return replace(settings, traces=replace(settings.traces, folder=folder))


def test_a_folder_of_traces_that_is_not_there_is_broken(tmp_path):
    (finding,) = check_traces(with_folder(tmp_path / "none"))
    assert finding.status == "broken"


def test_original_traces_that_are_missing_or_changed_are_named(tmp_path):
    first, *others = openb_index().files
    (tmp_path / f"{first.file_name}.gz").write_bytes(gzip.compress(b"not as published"))
    missing, changed = check_traces(with_folder(tmp_path))
    assert (missing.status, changed.status) == ("warning", "warning")
    assert f"lacks {len(others)} files: {others[0].file_name}" in missing.detail
    assert first.file_name in changed.detail


@pytest.mark.openb
def test_the_original_traces_are_as_published(openb_folder):
    (finding,) = check_traces(with_folder(openb_folder))
    assert finding.status == "ok"


def test_a_sandbox_that_does_not_start_is_advised_on_by_more_than_this_check(monkeypatch):
    monkeypatch.setattr(process, "_BOOT", "import os; os._exit(7)")
    (found,) = check_sandbox(default_settings())
    assert (found.status, "exit 7" in found.detail) == ("broken", True)
    assert "doctor" not in found.hint
