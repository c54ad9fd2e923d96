import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from podium.cli.main import app
from podium.cli.render import Screen
from podium.cli.search.display import _panel
from podium.cli.terminal import Visible, guarding, json_text, on_one_line, unguarded, visible
from podium.settings import Display
from podium.store import open_store
from support.binary import PODIUM, clean_environment
from support.hostile_text import ESCAPES, LINE_ENDS, hostile_texts
from support.stored import RUN, bred, judged

HOSTILE = "n" + "".join(ESCAPES) + LINE_ENDS.replace("\r", "") + "[red]x[/red]\ud800"
MARKED = "gpu[bold red]x[/][link=http://x]y[/link]"
STYLES = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")
"""What rich writes: colours, and the places of the cursor."""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def acted_upon(text):
    """Finds what a terminal would act upon."""
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
            and c not in "\n\t"]  # fmt: skip


@given(hostile_texts)
def test_what_is_visible_moves_nothing_and_stays_so(text):
    assert acted_upon(visible(text)) == []
    assert visible(visible(text)) == visible(text)
    assert "\n" not in on_one_line(text)
    assert acted_upon(on_one_line(text)) == []


def test_words_of_other_languages_stay_as_they_are():
    assert visible("Füllt Knoten\tauf 🙂\n日本\u00a0語") == "Füllt Knoten\tauf 🙂\n日本\u00a0語"


@given(hostile_texts)
def test_json_reads_back_as_it_was_and_moves_nothing(text):
    written = json_text({"name": text, text: ["ü", 1.5]}, indent=2)
    assert json.loads(written) == {"name": text, text: ["ü", 1.5]}
    assert acted_upon(written) == []
    assert "ü" in written


def test_json_is_ascii_where_the_output_takes_nothing_else():
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), "ascii")):
        assert json_text("ü") == '"\\u00fc"'


def test_streams_are_guarded_for_as_long_as_the_block_lasts():
    with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()) as errors:
        with guarding():
            sys.stdout.write("\x1b[2J\n")
            sys.stderr.writelines(["\x07", "é\n"])
            unguarded(sys.stdout).write("\x1b[0m\n")
        assert sys.stdout is output
        assert not isinstance(sys.stderr, Visible)
    assert output.getvalue() == "\\x1b[2J\n\x1b[0m\n"
    assert errors.getvalue() == "\\x07é\n"


def test_a_letter_that_the_output_has_no_code_for_is_written_out():
    raw = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(raw, "ascii")):
        with guarding():
            sys.stdout.write("Füllt\n")
        sys.stdout.flush()
        assert raw.getvalue() == b"F\\xfcllt\n"


@pytest.fixture
def trace(tmp_path):
    """Writes nodes and pods with hostile names, and a column that nobody knows."""
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    _write(nodes, ["sn", "cpu_milli", "memory_mib", "gpu", "model", HOSTILE],
           [[HOSTILE, 8000, 8000, 2, HOSTILE, ""]])  # fmt: skip
    header = [
        "name",
        "cpu_milli",
        "memory_mib",
        "num_gpu",
        "creation_time",
        "duration_s",
        "gpu_spec",
    ]
    _write(pods, header, [[HOSTILE, 1000, 1000, 1, 0, 9, ""], [HOSTILE, 99000, 9, 0, 1, 0, ""]])
    return "--trace", str(pods), "--cluster", str(nodes)


def _write(path, header, rows):
    # Halves of surrogate pairs stand in JSON files alone.
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([[str(c).replace("\ud800", "").replace("\x00", "") for c in row]
                          for row in [header, *rows]])  # fmt: skip


def _manifest(path, name):
    node = {"kind": "Node", "metadata": {"name": name},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi"}}}  # fmt: skip
    pod = {"kind": "Pod", "metadata": {"name": name},
           "spec": {"containers": [{"resources": {"requests": {"cpu": "x" + name}}}]}}  # fmt: skip
    path.write_text(json.dumps({"kind": "List", "items": [node, node, pod, {"kind": name}]}))
    return str(path)


@pytest.mark.usefixtures("_warm_cache")
@pytest.mark.parametrize(
    "verb",
    [
        ["simulate", "--policy", "fgd"],
        ["simulate", "--policy", "fgd", "--json"],
        ["policies", "explain", "fgd", "--pod", "unknown"],
        ["traces", "info"],
        ["traces", "check"],
        ["traces", "check", "--json"],
    ],
    ids=" ".join,
)
def test_names_in_csv_files_are_shown(runner, trace, verb):
    given = trace[1:] if verb[0] == "traces" else trace
    result = runner.invoke(app, [*verb, *given])
    assert result.exit_code in (0, 1, 2), result.output
    assert acted_upon(result.stdout) + acted_upon(result.stderr) == []


@pytest.mark.parametrize("verb", ["info", "check"])
@pytest.mark.parametrize("is_json", [False, True])
def test_names_in_manifests_are_shown(runner, tmp_path, verb, is_json):
    path = _manifest(tmp_path / "cluster.json", HOSTILE)
    result = runner.invoke(app, ["traces", verb, path, *["--json"] * is_json])
    assert result.exit_code in (1, 2)
    told = result.stdout + result.stderr
    assert acted_upon(told) == []
    assert "x1b[2J" in told or "u001b[2J" in told


def test_an_error_that_quotes_a_cell_has_three_lines(runner, tmp_path):
    path = tmp_path / "pods\x1b[2J.csv"
    _write(path, ["name", "cpu_milli", "memory_mib", "num_gpu"], [["a", HOSTILE, 1, 0]])
    result = runner.invoke(app, ["traces", "info", str(path)])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 3 - ("  try: " not in result.stderr)
    assert "\\x1b[2J" in result.stderr
    assert acted_upon(result.stderr) == []


def test_a_configuration_with_a_hostile_name_is_shown(runner, tmp_path):
    path = tmp_path / "scheduler.json"
    profile = {"schedulerName": HOSTILE, "plugins": {"filter": {"enabled": [{"name": HOSTILE}]}}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile, profile],
    }
    path.write_text(json.dumps(document))
    result = runner.invoke(app, ["policies", "show", str(path)])
    assert result.exit_code == 0
    assert acted_upon(result.stdout) + acted_upon(result.stderr) == []
    assert len([line for line in result.stderr.splitlines() if not line.startswith("note: ")]) == 0


def test_a_policy_file_is_printed_without_what_moves_the_cursor(runner, tmp_path):
    path = tmp_path / "mine\x1b[2J.py"
    path.write_text(f"# {ESCAPES[0]}\ndef score(pod, node):\n    return 1.0\n")
    result = runner.invoke(app, ["policies", "show", str(path)])
    assert result.stdout.startswith("# \\x1b[2J\\x1b[H\n")


@pytest.mark.parametrize("verb", [["list"], ["show", "run-a"], ["list", "--json"]], ids=" ".join)
def test_names_of_runs_are_shown(runner, tmp_path, verb):
    name = HOSTILE.replace("\ud800", "").replace("\x00", "")
    hostile = replace(RUN, name=name, settings={name: name}, summary={name: name}, folder=name)
    with open_store(str(tmp_path / "data" / "podium" / "podium.db")) as opened:
        opened.runs.create(hostile)
        opened.candidates.propose([replace(bred(0), source=name)])
        opened.candidates.judge([judged(replace(bred(0), source=name), 90.5)])
    result = runner.invoke(app, ["runs", *verb])
    assert result.exit_code == 0
    assert "[2J" in result.stdout
    assert acted_upon(result.stdout) == []


def test_a_traceback_is_made_visible_too(runner):
    result = runner.invoke(app, ["--debug", "traces", "info", "no\x1b[2Jsuch.csv"])
    assert "Traceback" in result.stderr
    assert acted_upon(result.stderr) == []


def test_markup_in_cells_labels_and_facts_is_shown(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    with redirect_stdout(Terminal()) as output:
        Screen(Display(color="always")).table([MARKED], [[MARKED], [HOSTILE]])
    assert output.getvalue().count(MARKED) == 2
    assert acted_upon(STYLES.sub("", output.getvalue())) == []
    with redirect_stderr(Terminal()) as errors, Screen(Display()).progress(MARKED, 2) as advance:
        advance()
        sys.stderr.write("above\x1b[2J\n")
    assert MARKED in errors.getvalue()
    assert "above\\x1b[2J" in errors.getvalue()


def test_markup_in_the_facts_of_a_search_is_shown(monkeypatch):
    monkeypatch.setattr(
        "podium.cli.search.display.facts_of", lambda *_: {"best": MARKED + "\x1b[2J"}
    )
    monkeypatch.setattr("podium.cli.search.display.part_of", lambda *_: 0.5)
    with redirect_stderr(Terminal()) as errors:
        Screen(Display()).console(sys.stderr).print(_panel(None, None))
    assert MARKED + "\\x1b[2J" in errors.getvalue()


def test_on_a_real_terminal_colours_work_and_names_do_not(tmp_path):
    path = Path(_manifest(tmp_path / "cluster.json", "n\x1b[2J\x1b]0;t\x07"))
    ours, theirs = pty.openpty()
    environment = clean_environment(tmp_path, TERM="xterm-256color", COLUMNS="200")
    done = subprocess.Popen(
        [*PODIUM, "traces", "info", str(path)], env=environment, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    printed = b""
    while True:
        try:
            printed += os.read(ours, 4096)
        except OSError:  # Linux reports the end of a terminal as an error
            break
    os.close(ours)
    assert done.wait() == 2
    assert b"\x1b[31m" in printed  # error: in red
    assert b"\\x1b[2J\\x1b]0;t\\x07" in printed
    assert b"\x1b[2J" not in printed
    assert b"\x07" not in printed
