import io
import json
import math
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cli.figures import count, percent
from podium.cli.render import Log, Rhythm, Screen, print_json
from podium.experiments.plain import plain
from podium.settings import Display

PLAIN_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip
ROWS = [("fgd", 1213, percent(0.5)), ("best-fit", 16, percent(0.125))]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _able_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")


def drawn(titles, rows):
    with redirect_stdout(Terminal()) as stream:
        Screen(Display()).table(titles, rows)
    return stream.getvalue()


def progress_shown(display, total=2):
    screen = Screen(display)
    with redirect_stderr(Terminal()) as stream, screen.progress("working", total) as advance:
        advance(2)
    return stream.getvalue()


def test_a_table_is_plain_aligned_text_off_a_terminal(capsys):
    Screen(Display()).table(["policy", "nodes", "share"], ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "policy    nodes    share",
        "fgd       1,213  50.00 %",
        "best-fit     16  12.50 %",
    ]


def test_a_table_without_rows_shows_its_titles(capsys):
    Screen(Display()).table(["policy", "nodes"], [])
    assert capsys.readouterr().out == "policy  nodes\n"


def test_a_table_is_drawn_on_a_terminal():
    text = drawn(["policy", "nodes", "share"], ROWS)
    assert "──" in text
    assert "1,213" in text
    assert "\x1b[" in text


def drawn_lines(monkeypatch, columns, titles, rows):
    monkeypatch.setenv("COLUMNS", str(columns))
    return [
        re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in drawn(titles, rows).splitlines()
    ]


def test_a_narrow_terminal_breaks_words_apart_and_cuts_nothing_off(monkeypatch):
    rows = [("a-name-of-a-policy", count(123_456_789), "some words that need more room than this")]
    lines = drawn_lines(monkeypatch, 40, ["policy", "decisions", "summary"], rows)
    assert lines[2].startswith("a-name-of-a-policy  123,456,789  some")
    assert " ".join(line[33:] for line in lines[2:]).split() == rows[0][2].split()


def test_a_table_that_is_wider_than_the_terminal_is_drawn_whole(monkeypatch):
    rows = [(f"policy-{i}", *(count(10**8 + i) for _ in range(5))) for i in range(2)]
    titles = ["policy", *(f"column {i}" for i in range(5))]
    lines = drawn_lines(monkeypatch, 30, titles, rows)
    assert len(lines) == 4
    assert lines[2].split() == ["policy-0", *["100,000,000"] * 5]


def test_brackets_in_titles_are_no_markup():
    assert "[bold]x[/bold]" in drawn(["[bold]x[/bold]"], [(1,)])


def test_brackets_in_a_drawn_table_are_no_markup():
    assert "[bold]x[/bold]" in drawn(["shape"], [("[bold]x[/bold]",)])


def test_a_table_is_drawn_off_a_terminal_when_colour_is_asked_for(capsys):
    Screen(Display(color="always")).table(["policy"], [("fgd",)])
    assert "\x1b[" in capsys.readouterr().out


def test_fields_are_aligned(capsys):
    Screen(Display()).fields({"nodes": 1213, "gpu share": percent(1.0)})
    assert capsys.readouterr().out.splitlines() == ["nodes      1,213", "gpu share  100.00 %"]


def test_words_go_to_standard_error_and_can_be_silenced(capsys):
    Screen(Display()).note("by the way")
    Screen(Display(quiet=True)).note("unheard")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "by the way\n")


def test_progress_is_silent_off_a_terminal(capsys):
    with Screen(Display()).progress("working", 2) as advance:
        advance()
        advance(1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("display", [Display(progress=False), Display(quiet=True)])
def test_progress_is_silent_when_it_is_switched_off(display):
    assert progress_shown(display) == ""


@pytest.mark.parametrize("total", [2, None])
def test_progress_shows_its_label_on_a_terminal(total):
    assert "working" in progress_shown(Display(), total)


@given(PLAIN_JSON)
def test_plain_values_stay_as_they_are(value):
    assert plain(value) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_numbers_that_json_does_not_know_become_null(value):
    assert plain({"wait_mean_s": [value]}) == {"wait_mean_s": [None]}


@dataclass(frozen=True)
class Point:
    path: Path
    sizes: tuple[int, ...]


def test_values_are_reduced_to_what_json_knows():
    value = {"point": Point(Path("a/b"), (1, 2)), "array": np.arange(3), "count": np.int64(4)}
    assert plain(value) == {
        "point": {"path": "a/b", "sizes": [1, 2]},
        "array": [0, 1, 2],
        "count": 4,
    }


def test_json_keeps_the_order_and_the_full_precision(capsys):
    print_json({"b": 0.1 + 0.2, "a": "ü"})
    text = capsys.readouterr().out
    assert list(json.loads(text)) == ["b", "a"]
    assert "0.30000000000000004" in text
    assert "ü" in text


def test_a_log_hears_of_progress_now_and_then(capsys):
    now = iter([0.0, 10.0, 31.0, 40.0, 62.0])
    log = Log(Screen(Display()), "working", 200, rhythm=Rhythm(clock=lambda: next(now)))
    for steps in (1, 40, 9, 50):
        log(steps)
    assert capsys.readouterr().err == "working: 41 of 200\nworking: 100 of 200\n"


def test_a_cell_of_megabytes_is_cut(capsys):
    Screen(Display()).table(["name"], [("n" * 2_000_000,), ("o" * 1000,)])
    _, long, whole = capsys.readouterr().out.splitlines()
    assert (long, whole) == ("n" * 1000 + "...", "o" * 1000)
