import io
import json
import os
import sys

import pytest

from podium.errors import InputError, UsageError
from podium.traces import LoadOptions, load_trace
from podium.traces.stream import is_stream

NODE = {
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}},
}
YAML = "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 4, memory: 8Gi}}\n"
CSV = "sn,cpu_milli,memory_mib,gpu\nn,4000,8192,0\n"


@pytest.fixture
def typed(monkeypatch):
    def give(text):
        stream = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", stream)

    return give


@pytest.mark.parametrize(
    "text", [YAML, "\n" + json.dumps(NODE), json.dumps([NODE]), CSV, "# dump\n---\n" + YAML]
)
def test_standard_input_is_read_in_any_format(typed, text):
    typed(text)
    trace = load_trace("-")
    assert trace.cluster.names == ("n",)
    assert (trace.name, trace.cluster.name) == ("-", "standard input")


def test_errors_and_notes_speak_of_standard_input(typed):
    typed(YAML + "---\nkind: Pod\n")
    with pytest.raises(InputError) as caught:
        load_trace("-")
    assert caught.value.where == "standard input, line 5, metadata.name"
    typed(YAML + "---\nkind: Pod\n")
    (note,) = load_trace("-", LoadOptions(is_skipping_bad=True)).notes
    assert note == "left out: standard input, line 5, metadata.name: pod: the pod has no name"


def test_two_objects_of_one_name_are_both_found_in_standard_input(typed):
    typed(f"{YAML}---\n{YAML}")
    with pytest.raises(InputError, match="same name: standard input, line 1"):
        load_trace("-")


def test_a_pipe_of_the_shell_is_read():
    reader, writer = os.pipe()
    try:
        with os.fdopen(writer, "w") as stream:
            stream.write(YAML)
        assert is_stream(f"/dev/fd/{reader}")
        for _ in range(2):  # a comparison loads its trace again
            assert load_trace(f"/dev/fd/{reader}").cluster.names == ("n",)
    finally:
        os.close(reader)


@pytest.mark.parametrize(("text", "message"), [("", "is empty"), (" \n", "is empty")])
def test_an_empty_stream_is_an_input_error(typed, text, message):
    typed(text)
    with pytest.raises(InputError, match=message) as caught:
        load_trace("-")
    assert "kubectl get nodes,pods" in caught.value.hint


def test_compressed_data_is_refused_with_advice(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(b"\x1f\x8b\x08"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stream)
    with pytest.raises(InputError) as caught:
        load_trace("-")
    assert "gunzip" in caught.value.hint


def test_a_terminal_is_not_waited_for(monkeypatch):
    _, terminal = os.openpty()
    with os.fdopen(terminal, "r") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(UsageError, match="nothing is piped"):
            load_trace("-")


def test_a_file_that_the_shell_opened_is_read_too(tmp_path):
    (tmp_path / "f").write_text(YAML)
    with (tmp_path / "f").open() as file:
        assert load_trace(f"/dev/fd/{file.fileno()}").cluster.names == ("n",)
    assert not is_stream(str(tmp_path / "f"))


def test_a_stream_that_nobody_opened_is_an_input_error():
    with pytest.raises(InputError, match="cannot be read"):
        load_trace("/dev/fd/987654")
