import gzip
import random
import stat
from pathlib import Path

import pytest

from podium.errors import InputError, UsageError
from podium.files.text_file import format_suffix, reading, writing

PACKED = gzip.compress(b"text" * 999, mtime=0)


def read(path):
    with reading(path) as stream:
        return stream.read()


def read_line(path):
    with reading(path) as stream:
        return stream.readline()


def write_half(path):
    with writing(path) as stream:
        stream.write("half")
        stream.write(str(1 / 0))


def test_the_suffix_of_the_format_ignores_compression_and_case():
    assert format_suffix(Path("a.b.CSV.GZ")) == ".csv"
    assert format_suffix(Path("a.yaml")) == ".yaml"
    assert format_suffix(Path("a")) == ""


@pytest.mark.parametrize("name", ["plain.txt", "packed.txt.gz"])
def test_what_is_written_is_read_back(tmp_path, name):
    with writing(tmp_path / name) as stream:
        stream.write("ü\r\nline")
    assert read(tmp_path / name) == "ü\r\nline"


def test_the_same_text_gives_the_same_compressed_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        with writing(tmp_path / name) as stream:
            stream.write("text")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text"


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "bom.csv"
    path.write_bytes(b"\xef\xbb\xbfname")
    assert read(path) == "name"


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_a_file_that_could_not_be_finished_is_not_there(tmp_path, name):
    (tmp_path / name).write_bytes(b"before")
    with pytest.raises(ZeroDivisionError):
        write_half(tmp_path / name)
    assert (tmp_path / name).read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_written_file_has_ordinary_permissions(tmp_path):
    (tmp_path / "other").touch()
    with writing(tmp_path / "out.txt") as stream:
        stream.write("x")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_folder_that_does_not_exist_cannot_be_written_to(tmp_path):
    with (
        pytest.raises(UsageError, match="cannot be written") as caught,
        writing(tmp_path / "no/out"),
    ):
        pass
    assert "folder that exists" in caught.value.hint


def test_text_that_is_not_utf8_is_named_with_its_line(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes(b"one\ntwo \xfc\n")
    with pytest.raises(InputError, match="line 2: byte 5 of the line is not UTF-8") as caught:
        read(path)
    assert caught.value.hint == "save it as UTF-8"


def test_a_compressed_file_under_a_plain_name_is_recognised(tmp_path):
    path = tmp_path / "nodes.csv"
    path.write_bytes(gzip.compress(b"text", mtime=0))
    with pytest.raises(InputError) as caught:
        read(path)
    assert "let its name end in .gz" in caught.value.hint


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(b"text" * 999, mtime=0)[:-12],
        gzip.compress(b"text" * 999, mtime=0)[:20],
        b"plain text",
        b"\x1f\x8b",
    ],
)
def test_damaged_gzip_data_is_an_input_error(tmp_path, content):
    path = tmp_path / "nodes.csv.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="gzip data cannot be read"):
        read(path)


def test_bad_text_in_a_cut_gzip_file_is_an_input_error(tmp_path):
    path = tmp_path / "nodes.csv.gz"
    noise = random.Random(1).randbytes(100_000).replace(b"\n", b"")
    path.write_bytes(gzip.compress(noise, mtime=0)[:-12])
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_line(path)


def test_a_file_that_is_not_there_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "none")
