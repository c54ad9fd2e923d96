import os
import subprocess
import sys

import pytest

from podium.errors import InputError, MissingError, UsageError
from podium.store import RunRecord, open_store
from podium.store.run_folder import RunFolder, create_run

STATE = "state.json"
HOLDER = """
import sys, time
from pathlib import Path
from podium.store.run_folder import RunFolder
RunFolder(Path(sys.argv[1])).lock()
print("locked", flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path):
    """Is a folder that nothing is in yet."""
    return RunFolder(tmp_path / "runs" / "ab12")


@pytest.fixture
def store(tmp_path):
    """Is an empty store."""
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        yield store


def test_what_is_written_is_read(folder):
    folder.write("plan.json", {"seed": 7, "name": "é"})
    assert folder.read("plan.json") == {"seed": 7, "name": "é"}
    folder.write_bytes("weights.npz", b"\x00\xff")
    assert (folder.path / "weights.npz").read_bytes() == b"\x00\xff"
    assert {path.name for path in folder.path.iterdir()} == {"plan.json", "weights.npz"}


def test_what_json_does_not_know_leaves_the_file_as_it_was(folder):
    folder.write(STATE, {"batches": 3})
    with pytest.raises(ValueError, match="JSON"):
        folder.write(STATE, {"batches": float("nan")})
    assert folder.read(STATE) == {"batches": 3}


def test_a_missing_file_is_told_with_what_to_do(folder):
    assert not folder.has("plan.json")
    with pytest.raises(MissingError, match=r"no plan\.json") as error:
        folder.read("plan.json")
    assert str(folder.path) in str(error.value.where)


@pytest.mark.parametrize("text", ["", "{", "[1]", '"words"'])
def test_a_broken_file_is_told(folder, text):
    folder.write_text(STATE, text)
    with pytest.raises(InputError, match="corrupt run file"):
        folder.read(STATE)


def test_a_file_is_blamed_for_what_it_holds(folder):
    for mistake in (KeyError("x"), TypeError("x"), AttributeError("x")):
        with pytest.raises(InputError, match="corrupt run file") as caught, folder.reading(STATE):
            raise mistake
        assert caught.value.where == str(folder.path / STATE)


def test_a_file_that_is_nested_without_end_is_told(folder):
    folder.write_text(STATE, '{"generators":' + "[" * 99_999)
    with pytest.raises(InputError, match="nested too deeply"):
        folder.read(STATE)


@pytest.mark.parametrize("other", [0, 2, "1", None])
def test_a_file_of_another_version_is_refused(folder, other):
    folder.write(STATE, {"version": other, "step": 9})
    with pytest.raises(UsageError, match=r"state\.json has version .*, .* reads version 1"):
        folder.read(STATE)
    folder.write(STATE, {"version": 2, "step": 9})
    assert folder.read(STATE, version=2)["step"] == 9


def test_two_cannot_work_on_one_run(folder):
    assert not folder.is_locked
    folder.lock()
    other = RunFolder(folder.path)
    assert other.is_locked
    with pytest.raises(UsageError, match="another process is working on this run"):
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


def test_a_new_run_is_entered_with_its_first_files(folder, store):
    record = RunRecord("ab12", "training", "first", 0.0, folder=str(folder.path))
    create_run(store, record, folder, {"plan.json": {"steps": 5}})
    assert folder.read("plan.json") == {"steps": 5}
    assert store.runs.get("ab12") == record
    with pytest.raises(UsageError, match="the run ab12 already exists"):
        create_run(store, record, folder, {})
    assert folder.read("plan.json") == {"steps": 5}


def test_a_run_that_cannot_be_entered_leaves_no_folder(folder, store):
    record = RunRecord("ab12", "training", "first", 0.0)
    store.runs.create(record)
    with pytest.raises(UsageError, match="already in the store"):
        create_run(store, record, folder, {"plan.json": {}})
    assert not folder.path.exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        RunFolder(tmp_path / "file" / "ab12").create()


def test_a_link_is_replaced_and_what_it_points_to_stays(folder, tmp_path):
    folder.create()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (folder.path / STATE).symlink_to(victim)
    folder.write(STATE, {"batches": 3})
    assert victim.read_text() == "mine"
    assert not (folder.path / STATE).is_symlink()
    assert folder.read(STATE) == {"batches": 3}


def test_a_link_is_not_read(folder, tmp_path):
    folder.create()
    for target in ("there", "not there"):
        (tmp_path / "there").write_text("{}")
        (folder.path / target).symlink_to(tmp_path / target)
        with pytest.raises(InputError, match="corrupt run file: it is not a regular file"):
            folder.read(target)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_lock_is_neither_made_elsewhere_nor_waited_for(folder, tmp_path, kind):
    folder.create()
    lock = folder.path / "lock"
    if kind == "link":
        lock.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(lock)
        os.mkfifo(folder.path / STATE)
        with pytest.raises(InputError, match="corrupt run file: it is not a regular file"):
            folder.read(STATE)
    else:
        lock.mkdir()
    assert not folder.is_locked
    with pytest.raises(InputError, match="corrupt run file: it is not a regular file"):
        folder.lock()
    folder.lock_if_used()
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_nobody_worked_in_gets_no_lock(folder):
    folder.create()
    folder.lock_if_used()
    assert not folder.has("lock")
    folder.lock()
    with pytest.raises(UsageError, match="another process is working on this run"):
        RunFolder(folder.path).lock_if_used()
