import os
import pickle
import subprocess
import sys

import pytest

from podium.policies import load
from podium.policies.jit import cache_folder, compiled, fingerprints, stamp_of

SCRIPT = """
from podium.policies import load
print(load("best-fit").native(1, 8).owner[0].cache_hits)
"""


def hits_elsewhere(folder):
    """Compiles in another process; gives 1 if the machine code was read from disk."""
    environment = {**os.environ, "PODIUM_COMPILE_CACHE": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def hits(slots=8):
    return load("best-fit").native(1, slots).owner[0].cache_hits


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_COMPILE_CACHE", str(tmp_path))
    return tmp_path


def test_machine_code_is_read_back_in_another_process(tmp_path):
    assert hits_elsewhere(tmp_path) == 0
    assert hits_elsewhere(tmp_path) == 1


def test_a_file_of_the_working_folder_does_not_choose_where_code_is_read(tmp_path, monkeypatch):
    chosen = "cache_locator_classes: UserProvidedCacheLocator\ncache_dir: chosen\n"
    (tmp_path / ".numba_config.yaml").write_text(chosen)
    monkeypatch.chdir(tmp_path)
    assert (hits_elsewhere(tmp_path / "own"), hits_elsewhere(tmp_path / "own")) == (0, 1)
    assert not (tmp_path / "chosen").exists()


@pytest.mark.usefixtures("folder")
def test_both_record_sizes_are_kept_side_by_side():
    assert [hits(slots) for slots in (8, 16, 8, 16)] == [0, 0, 1, 1]


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("content", [b"", b"not a pickle", b"\x80\x04"])
def test_a_damaged_file_costs_one_compilation(folder, suffix, content):
    assert hits() == 0
    for path in folder.rglob(f"*{suffix}"):
        path.write_bytes(content)
    assert hits() == 0
    assert hits() == 1


def test_a_folder_that_cannot_be_made_costs_the_cache_alone(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PODIUM_COMPILE_CACHE", str(tmp_path / "file" / "folder"))
    assert cache_folder() is None


@pytest.mark.parametrize("which", ["folder", "stamp"])
def test_a_folder_that_others_can_write_is_never_read(folder, which, caplog):
    assert hits() == 0
    spoiled = folder if which == "folder" else next(folder.iterdir())
    spoiled.chmod(0o777)
    for path in folder.rglob("*.nbi"):
        path.write_bytes(pickle.dumps(Trap(folder / "sprung")))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert hits() == 0
    assert not (folder / "sprung").exists()
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert f"{spoiled} can be written to by others" in caplog.text
    assert hits() == 1  # in a folder of this process alone


def test_the_cache_is_made_for_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_COMPILE_CACHE", str(tmp_path / "made"))
    assert cache_folder() == tmp_path / "made"
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give folders away")
def test_a_folder_of_somebody_else_is_not_used(folder):
    os.chown(folder, 65534, 65534)
    assert cache_folder() not in (folder, None)


def test_the_cache_lies_where_the_user_keeps_caches(tmp_path, monkeypatch):
    monkeypatch.delenv("PODIUM_COMPILE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "podium" / "compiled"


def test_stamps_tell_texts_apart():
    assert stamp_of(["ab", "c"]) != stamp_of(["a", "bc"])
    assert stamp_of(["ab"]) == stamp_of(["ab"])


SCALE = 3


def scaled(x):
    return SCALE * x


def shifted(x, by=1):
    return scaled(x) + by


def test_a_function_is_compiled_with_the_functions_it_calls():
    assert compiled(shifted)(5) == 16
    assert compiled(shifted)(5, 2) == 17


def factorial(n):
    return n * factorial(n - 1) if n > 1 else 1


def test_a_function_that_calls_itself_is_compiled():
    assert compiled(factorial)(5) == 120


def fresh(text, name="f", **names):
    exec(text, names)
    return names[name]


def test_a_fingerprint_covers_code_constants_and_called_functions():
    text = "def g(x):\n    return A * x\ndef f(x):\n    return g(x) + {}"
    one = fingerprints([fresh(text.format(1), A=2)])
    assert one == fingerprints([fresh(text.format(1), A=2)])
    assert one != fingerprints([fresh(text.format(2), A=2)])
    assert one != fingerprints([fresh(text.format(1), A=3)])
    assert one != fingerprints([fresh(text.replace("A * x", "A - x").format(1), A=2)])
    assert len(one) == 2


def test_a_fingerprint_covers_what_a_function_inside_refers_to():
    text = "def f(x):\n    return sum([A * y for y in range(x)])"
    assert fingerprints([fresh(text, A=2)]) != fingerprints([fresh(text, A=3)])
