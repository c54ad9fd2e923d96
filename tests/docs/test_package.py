import ast
import doctest
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest

import podium
from support.binary import clean_environment
from support.pages import ROOT

SOURCE = ROOT / "src" / "podium"
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
NO_BACK_END = "No matching distribution found for hatchling"


def modules():
    """Lists every module of Podium by name."""
    return [found.name for found in pkgutil.walk_packages(podium.__path__, "podium.")]


def test_project_package_and_changelog_name_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(\d[^\]]*)\]", changelog, re.MULTILINE)
    assert project["version"] == podium.__version__ == newest[1]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_exports_exactly_its_public_names(room):
    tree = ast.parse((SOURCE / room / "__init__.py").read_text(encoding="utf-8"))
    imported = [alias.asname or alias.name for node in tree.body
                if isinstance(node, ast.ImportFrom) for alias in node.names]  # fmt: skip
    module = importlib.import_module(f"podium.{room}")
    assert sorted(getattr(module, "__all__", [])) == sorted(set(imported) - {"annotations"})


@pytest.mark.parametrize("room", ROOMS)
def test_the_public_names_of_a_room_fit_on_a_page(room):
    assert len((SOURCE / room / "__init__.py").read_text(encoding="utf-8").splitlines()) <= 40


def test_the_examples_in_docstrings_are_true():
    attempted = 0
    for name in modules():
        if name.endswith("__main__"):
            continue
        results = doctest.testmod(importlib.import_module(name), raise_on_error=False)
        assert results.failed == 0, name
        attempted += results.attempted
    assert attempted > 10


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Builds the wheel; without the build back end, pip downloads it."""
    folder = tmp_path_factory.mktemp("wheel")
    is_here = importlib.util.find_spec("hatchling") is not None
    options = ["--no-deps", "--quiet", "--wheel-dir", str(folder)]
    options += ["--no-build-isolation"] if is_here else []
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(ROOT)],
        env=clean_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    if NO_BACK_END in done.stderr:
        pytest.skip("the build back end hatchling is not installed and cannot be downloaded")
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = {name for name in wheel.namelist() if not name.endswith("/")}
    package = {
        str(path.relative_to(SOURCE.parent))
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    others = {name for name in names if ".dist-info/" not in name}
    assert others == package


@pytest.mark.parametrize(
    "name",
    [
        "podium/py.typed",
        "podium/traces/data/openb.json",
        "podium/traces/data/openb_files.json",
        "podium/policies/builtin/fgd.py",
    ],
)
def test_the_wheel_holds_what_is_no_module(wheel, name):
    assert name in wheel.namelist()


def test_the_wheel_says_what_it_is(wheel):
    (metadata,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    text = wheel.read(metadata).decode()
    assert "\nName: podium-scheduler\n" in text
    assert f"\nVersion: {podium.__version__}\n" in text
    assert "\nLicense-Expression: Apache-2.0\n" in text


def test_the_wheel_brings_the_command(wheel):
    (entries,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "podium = podium.__main__:main" in wheel.read(entries).decode()
