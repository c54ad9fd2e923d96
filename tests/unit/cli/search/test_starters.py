import pytest

from podium.cli.search.starters import read_starter
from podium.errors import InputError


def test_a_policy_file_is_named_after_itself(tmp_path):
    (tmp_path / "mine.py").write_text("def score(pod, node):\n    return 1.0\n")
    assert read_starter(tmp_path / "mine.py") == ("mine", "def score(pod, node):\n    return 1.0\n")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_is_no_text_is_told_with_its_place(tmp_path, content):
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read|is not UTF-8") as caught:
        read_starter(path)
    assert str(path) in caught.value.where
