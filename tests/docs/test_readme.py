import os
import re
import sys
from pathlib import Path

import pytest

from support.binary import clean_environment
from support.console import read_blocks, run_page
from support.pages import PAGES, README, ROOT, anchors, links

# Read before any test cleans its environment.
ORIGINALS = os.environ.get("PODIUM_TRACES")
TWO_COMMANDS = ("make demo", "make test")
LONG = ("extender", "online", "policies", "search", "simulate", "start")
"""Pages whose consoles search for policies or take long."""


def pages_with(language):
    """Lists the pages that hold blocks of a language, as parameters of a test."""
    return [
        pytest.param(page, id=page.stem, marks=[pytest.mark.deep] * (page.stem in LONG))
        for page in PAGES
        if any(block.info == language for block in read_blocks(page.read_text(encoding="utf-8")))
    ]


def reader_environment(folder, **environ):
    """Gives the environment of a reader who has just installed Podium."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return clean_environment(folder, PATH=programs, COLUMNS="80", **environ)


@pytest.mark.parametrize("page", pages_with("console"))
def test_consoles_print_what_the_page_shows(page, tmp_path):
    problems = run_page(page, tmp_path, reader_environment(tmp_path))
    assert not problems, "\n\n".join(problems)


@pytest.mark.deep
@pytest.mark.openb
@pytest.mark.parametrize("page", pages_with("console openb"))
def test_consoles_on_the_original_traces_print_what_the_page_shows(page, tmp_path):
    if not ORIGINALS:
        pytest.skip("PODIUM_TRACES does not name a folder with the original OpenB files")
    environment = reader_environment(tmp_path, PODIUM_TRACES=ORIGINALS)
    problems = run_page(page, tmp_path, environment, "console openb")
    assert not problems, "\n\n".join(problems)


def test_the_two_commands_of_the_readme_exist():
    text = README.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in TWO_COMMANDS:
        assert command in text
        assert re.search(rf"^{command.removeprefix('make ')}:", makefile, re.MULTILINE)


def test_the_checks_of_a_clean_clone_run_what_the_readme_says_and_what_takes_long():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    commands = {line.partition(" || ")[0] for line in lines}
    assert {"make lint", "make test", "make test-deep", "make e2e"} <= commands


def test_every_test_is_either_of_every_day_or_deep():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"^\t\$\(TESTS\) (.*)$", makefile, re.MULTILINE) == [
        '-m "not deep"', "-m deep",
    ]  # fmt: skip


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_links_lead_somewhere(page):
    for target in links(page):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        linked = page if not path else page.parent / path
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_pages_name_no_folder_of_the_machine_they_were_written_on(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.~])/(?:root|home|work|tmp|Users)\b", text)
