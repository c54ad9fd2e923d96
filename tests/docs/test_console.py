import os

import pytest

from support.console import matches, read_blocks, read_steps, run_page

PAGE = """\
Save this as `greeting.txt`:

```text title="greeting.txt"
good morning
```

```console
$ cat greeting.txt
good morning
$ cat > name.txt <<'EOF'
Ada
EOF
$ cat greeting.txt \\
    name.txt
...
Ada
$ exit 3
[exit 3]
```

```sh
never run
```
"""


@pytest.fixture
def page(tmp_path):
    def write(text):
        path = tmp_path / "page.md"
        path.write_text(text)
        return path

    return write


def test_a_true_page_passes(page, tmp_path):
    assert run_page(page(PAGE), tmp_path, dict(os.environ)) == []


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("$ cat greeting.txt\ngood", "$ cat greeting.txt\nGood", 8),
        ("Ada\n$ exit", "Bob\n$ exit", 13),
        ("[exit 3]", "[exit 2]", 17),
        ("[exit 3]\n", "", 17),
        ("...\nAda", "Ada", 13),
    ],
)
def test_a_page_that_shows_something_else_fails_and_names_the_line(page, tmp_path, old, new, line):
    assert old in PAGE
    problems = run_page(page(PAGE.replace(old, new)), tmp_path, dict(os.environ))
    assert [problem.split(":")[0] for problem in problems] == [f"page.md, line {line}"]


def test_a_block_of_another_language_is_left_alone(page, tmp_path):
    text = "```console openb\n$ echo one\ntwo\n```\n"
    assert run_page(page(text), tmp_path, dict(os.environ)) == []
    assert len(run_page(page(text), tmp_path, dict(os.environ), "console openb")) == 1


def test_a_console_that_begins_with_output_is_a_mistake():
    (block,) = read_blocks("```console\nhello\n$ echo hello\n```\n")
    with pytest.raises(ValueError, match="line 2: a console begins with a command"):
        read_steps(block)


@pytest.mark.parametrize(
    ("expected", "printed", "is_match"),
    [
        ([], "", True),
        ([], "something\n", False),
        (["a ... c"], "a b c\n", True),
        (["a ... c"], "a\nb c\n", False),
        (["a", "...", "d"], "a\nb\nc\nd\n", True),
        (["a", "...", "d"], "a\nd\n", True),
        (["a", "..."], "b\n", False),
        (["1 + 1 (2)"], "1 + 1 (2)\n", True),
        (["a"], "a   \n", True),
    ],
)
def test_three_dots_stand_for_text_or_for_lines(expected, printed, is_match):
    assert matches(expected, printed) is is_match
