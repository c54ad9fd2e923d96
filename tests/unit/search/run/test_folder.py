import subprocess
import sys

import pytest

from podium.errors import InputError, MissingError, UsageError
from podium.search.run.folder import STATE, RunFolder

HOLDER = """
import sys, time
from pathlib import Path
from podium.search.run.folder import RunFolder
RunFolder(Path(sys.argv[1])).lock()
print("locked", flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path):
    """Is a folder that nothing is in yet."""
    return RunFolder(tmp_path / "run")


def test_what_is_written_is_read(folder):
    folder.write("plan.json", {"seed": 7, "name": "é"})
    assert folder.read("plan.json") == {"seed": 7, "name": "é"}
    assert [path.name for path in folder.path.iterdir()] == ["plan.json"]


def test_a_new_run_has_no_state(folder):
    assert folder.state() == {}
    folder.write(STATE, {"batches": 3})
    assert folder.state() == {"batches": 3}


def test_what_json_does_not_know_leaves_the_file_as_it_was(folder):
    folder.write(STATE, {"batches": 3})
    with pytest.raises(ValueError, match="JSON"):
        folder.write(STATE, {"batches": float("nan")})
    assert folder.state() == {"batches": 3}


def test_a_missing_file_is_told_with_what_to_do(folder):
    with pytest.raises(MissingError, match=r"no plan\.json") as error:
        folder.read("plan.json")
    assert str(folder.path) in str(error.value.where)


@pytest.mark.parametrize("text", ["", "{", "[1]", '"words"'])
def test_a_broken_file_is_told(folder, text):
    folder.write_text(STATE, text)
    with pytest.raises(InputError, match="not as a run wrote it"):
        folder.state()


@pytest.mark.parametrize("batches", ['"x"', "-1", "1e3", "true", str(10**12), "[[]]"])
def test_a_state_with_batches_that_cannot_be_is_told(folder, batches):
    folder.write_text(STATE, f'{{"batches": {batches}}}')
    with pytest.raises(InputError, match="not as a run wrote it: batches is"):
        folder.state()


def test_a_state_is_blamed_for_what_it_holds(folder):
    for mistake in (KeyError("x"), TypeError("x"), AttributeError("x")):
        with pytest.raises(InputError, match="not as a run wrote it"), folder.reading_state():
            raise mistake


def test_a_file_that_is_nested_without_end_is_told(folder):
    folder.write_text(STATE, '{"generators":' + "[" * 99_999)
    with pytest.raises(InputError, match="nested too deeply"):
        folder.state()


def test_two_cannot_work_on_one_run(folder):
    assert not folder.is_locked
    folder.lock()
    other = RunFolder(folder.path)
    assert other.is_locked
    with pytest.raises(UsageError, match="another process works on this run"):
        other.lock()
    folder.unlock()
    other.lock()
    assert folder.is_locked
    other.unlock()
    other.unlock()


def test_a_killed_process_holds_nothing(folder):
    command = [sys.executable, "-c", HOLDER, str(folder.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        assert folder.is_locked
        holder.kill()
        holder.wait()
    assert not folder.is_locked
