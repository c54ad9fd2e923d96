import gzip
import os
import threading
from pathlib import Path

import pytest

from podium.errors import InputError
from podium.files.bounded import EXPANSION, FREE_BYTES
from podium.files.text_file import read_bytes, read_text, reading


def read(path, **bounds):
    with reading(path, **bounds) as stream:
        return stream.read()


def lines(path, **bounds):
    with reading(path, **bounds) as stream:
        return list(stream)


def gather(path, seen):
    with reading(path) as stream:
        seen.extend(stream)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_a_line_is_refused_when_it_is_too_long(tmp_path, end):
    path = tmp_path / "a.txt"
    path.write_bytes((("x" * 999 + end) * 300).encode())
    assert sum(map(len, lines(path, longest_line=2000))) == 300 * (999 + len(end))
    with pytest.raises(InputError, match="a line is longer than 500 B"):
        lines(path, longest_line=500)


def test_a_file_is_refused_when_it_is_too_large(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x" * 100_000)
    assert len(read_text(path, 100_000)) == len(read_bytes(path, 100_000)) == 100_000
    for reader in (read_text, read_bytes):
        with pytest.raises(InputError, match=r"larger than 99,999 B"):
            reader(path, 99_999)


def test_gzip_data_that_grows_beyond_measure_is_refused_before_it_is_out(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"x\n" * (50 << 20)))
    seen = []
    with pytest.raises(InputError, match=f"grows more than {EXPANSION} times") as caught:
        gather(path, seen)
    assert len(seen) < 2 * FREE_BYTES
    assert "gunzip" in caught.value.hint


def test_gzip_data_that_grows_as_dumps_of_clusters_do_is_read(tmp_path):
    path = tmp_path / "a.txt.gz"
    text = "".join(f'    "name": "pod-{i:06}",\n{"    x: y" * 40}\n' for i in range(20_000))
    path.write_bytes(gzip.compress(text.encode()))
    assert 40 < len(text) / path.stat().st_size < EXPANSION
    assert read(path) == text


def test_zeros_are_no_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntw\0o\n")
    with pytest.raises(InputError, match="line 2: byte 3 of the line is 0"):
        read(path)


def test_a_device_without_end_is_refused():
    with pytest.raises(InputError, match="not UTF-8 text"):
        read(Path("/dev/zero"))
    with pytest.raises(InputError, match="larger than 1,000 B"):
        read_bytes(Path("/dev/zero"), 1000)


def test_a_pipe_that_nobody_writes_to_is_empty_and_one_that_is_written_to_is_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert read(path) == ""
    # Both ends are open before the text is written, as with <(command).
    handle = os.open(path, os.O_RDWR)

    def write():
        os.write(handle, b"from a pipe\n")
        os.close(handle)

    timer = threading.Timer(0.2, write)
    timer.start()
    assert read(path) == "from a pipe\n"
    timer.join()


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InputError, match="Is a directory"):
        read(tmp_path)
