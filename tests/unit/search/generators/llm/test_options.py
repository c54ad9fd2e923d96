import pytest

from podium.errors import UsageError
from podium.search.generators.llm.options import read_parameters, read_temperatures, unusual


@pytest.mark.parametrize(("text", "found"), [("1", [1.0]), ("0, 2", [0.0, 2.0]), ("None", [])])
def test_temperatures_are_read(text, found):
    assert read_temperatures(text) == found


@pytest.mark.parametrize("text", ["", "hot", "1;2", "-1", "3", "nan", "1,"])
def test_what_is_no_temperature_is_refused(text):
    with pytest.raises(UsageError, match="not a temperature"):
        read_temperatures(text)


@pytest.mark.parametrize(
    "text",
    ['{"top_p": 0.9, "stop": ["x"]}', 'top_p = 0.9\nstop = ["x"]', "given.toml", "given.json"],
)
def test_parameters_are_a_table_or_a_file_of_one(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given.toml").write_text('top_p = 0.9\nstop = ["x"]\n')
    (tmp_path / "given.json").write_text('{"top_p": 0.9, "stop": ["x"]}')
    assert read_parameters(text) == {"top_p": 0.9, "stop": ["x"]}


@pytest.mark.parametrize("text", ["1", "{", "top_p", '{"a": NaN}', "when = 2026-11-16"])
def test_what_is_no_table_is_refused(text):
    with pytest.raises(UsageError, match="not a table"):
        read_parameters(text)


@pytest.mark.parametrize("name", ["model", "messages", "temperature", "max_tokens", "n"])
def test_what_podium_sends_itself_cannot_be_passed_on(name):
    with pytest.raises(UsageError, match=f'"{name}" cannot be passed on'):
        read_parameters(f'{{"{name}": 1}}')


def test_what_is_usual_is_left_out_of_a_plan():
    usual = {
        "temperature": [1.0], "max_tokens": 4096, "reasoning_effort": "", "timeout_s": 120.0,
        "concurrency": 8, "parameters": {},
    }  # fmt: skip
    assert unusual(usual) == {}
    assert unusual({**usual, "temperature": [], "max_tokens": 9}) == {
        "temperature": [], "max_tokens": 9,
    }  # fmt: skip
