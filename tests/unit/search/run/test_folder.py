import pytest

from podium.errors import InputError
from podium.search.run.folder import STATE, SearchFolder


@pytest.fixture
def folder(tmp_path):
    """Is a folder that nothing is in yet."""
    return SearchFolder(tmp_path / "run")


def test_a_new_run_has_no_state(folder):
    assert folder.state() == {}
    folder.write(STATE, {"batches": 3})
    assert folder.state() == {"batches": 3}


@pytest.mark.parametrize("text", ["", "{", "[1]", '"words"'])
def test_a_broken_state_is_told(folder, text):
    folder.write_text(STATE, text)
    with pytest.raises(InputError, match="corrupt run file"):
        folder.state()


@pytest.mark.parametrize("batches", ['"x"', "-1", "1e3", "true", str(10**12), "[[]]"])
def test_a_state_with_batches_that_cannot_be_is_told(folder, batches):
    folder.write_text(STATE, f'{{"batches": {batches}}}')
    with pytest.raises(InputError, match="corrupt run file: batches is"):
        folder.state()
