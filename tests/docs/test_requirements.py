import re
import subprocess
import sys
import tarfile
import tomllib

import pytest

from support.binary import clean_environment
from support.pages import ROOT

FOLDER = ROOT / "requirements"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = {name: given for name, given in PROJECT["optional-dependencies"].items() if name != "all"}
DEV = PYPROJECT["dependency-groups"]["dev"]
FILES = sorted(path.name for path in FOLDER.glob("*.txt"))
ENTRY = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9.-]*)(?:\[[a-z0-9,-]+\])?==(?P<version>[\w.+!]+)"
    r"(?: ; (?P<marker>[^\\\n]+?))?(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)"
)


def entries(name):
    """Reads a file of locked versions; every line must belong to an entry with hashes."""
    text = (FOLDER / name).read_text(encoding="utf-8").rstrip("\n")
    found = [ENTRY.fullmatch(each) for each in re.split(r"\n(?=\S)", text)]
    assert all(found), [each for each in re.split(r"\n(?=\S)", text) if not ENTRY.fullmatch(each)]
    return {(each["name"], each["marker"]): each["version"] for each in found}


def names(requirements):
    """Gives the names of requirements as they are locked."""
    found = [re.match(r"[\w.-]+", requirement)[0] for requirement in requirements]
    return {re.sub(r"[-_.]+", "-", name).lower() for name in found}


def locked(name):
    return {each for each, _ in entries(name)}


def test_there_is_a_file_for_podium_the_tools_all_and_every_extra():
    assert sorted(f"{name}.txt" for name in ("all", "base", "dev", *EXTRAS)) == FILES


@pytest.mark.parametrize("name", FILES)
def test_every_version_is_locked_with_hashes(name):
    assert entries(name)


@pytest.mark.parametrize("name", FILES)
def test_the_files_name_no_index_and_no_host(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert not re.search(r"://|@|index|\bhost\b|find-links|^-", text, re.MULTILINE)


def test_whatever_is_required_is_locked():
    build = PYPROJECT["build-system"]["requires"]
    assert names([*PROJECT["dependencies"], *build, "editables"]) <= locked("base.txt")
    assert names([*PROJECT["dependencies"], *build, "editables", *DEV]) <= locked("dev.txt")
    for extra, given in EXTRAS.items():
        assert names(given) <= locked(f"{extra}.txt") | locked("base.txt"), extra
        assert names(given) <= locked("all.txt"), extra


@pytest.mark.parametrize("name", FILES)
def test_the_files_agree_on_every_version(name):
    everything = entries("all.txt")
    versions = {(each, version) for (each, _), version in everything.items()}
    assert {(each, version) for (each, _), version in entries(name).items()} <= versions


def test_an_extra_adds_to_podium_what_that_lacks():
    for extra in EXTRAS:
        assert not locked(f"{extra}.txt") & locked("base.txt"), extra


def test_what_runs_here_is_what_is_locked():
    from importlib.metadata import version

    found = entries("base.txt")
    assert found["numpy", None] == version("numpy")
    assert found["numba", None] == version("numba")


def test_make_installs_by_hash_and_upgrades_nothing():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = [line for line in text.splitlines() if "$(PIP)" in line and "install" in line]
    assert len(installs) == 2
    assert "--require-hashes --only-binary :all:" in installs[0]
    assert "--no-index --no-deps --no-build-isolation" in installs[1]
    assert "--upgrade" not in text


def test_a_package_that_was_tampered_with_is_refused(tmp_path):
    text = (FOLDER / "base.txt").read_text(encoding="utf-8")
    wheel = tmp_path / f"mdurl-{entries('base.txt')['mdurl', None]}-py3-none-any.whl"
    wheel.write_bytes(b"not what was locked")
    (entry,) = [each for each in re.split(r"\n(?=\S)", text) if each.startswith("mdurl==")]
    (tmp_path / "one.txt").write_text(f"{entry}\n")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-index", "--find-links", str(tmp_path),
         "--require-hashes", "--no-deps", "--target", str(tmp_path / "there"),
         "-r", str(tmp_path / "one.txt")],
        env=clean_environment(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """Builds the source distribution."""
    pytest.importorskip("hatchling", reason="the build back end is not installed")
    folder = tmp_path_factory.mktemp("sdist")
    program = "import sys; from hatchling.build import build_sdist; build_sdist(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        cwd=ROOT, env=clean_environment(folder), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_the_source_distribution_holds_what_sets_it_up(sdist):
    wanted = {"Makefile", "SECURITY.md", "CONTRIBUTING.md", "tools/lock_requirements.py"}
    wanted |= {f"requirements/{path.name}" for path in FOLDER.iterdir()}
    wanted |= {"Dockerfile", "charts/podium/Chart.yaml", "charts/podium/templates/_helpers.tpl"}
    assert wanted <= sdist
