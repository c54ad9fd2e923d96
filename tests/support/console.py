"""Collects the fenced blocks of Markdown pages and runs the consoles as a reader would.

A block with a title is a file that the reader saves:

    ```python title="my_policy.py"

A block of the language `console` is a session in the folder of these files. A line that starts
with `$` is a command (a here-document and a trailing backslash go on), the lines below it are
its standard output. Three dots on a line of their own stand for any lines, within a line for
any text, and a last line such as `[exit 2]` for an exit code other than 0. A block of the
language `console openb` needs the original OpenB files.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"```(?P<info>.*)")
_TITLE = re.compile(r'title="(?P<name>[^"/]+)"')
_HERE = re.compile(r"<<'?(?P<word>\w+)'?")
_EXIT = re.compile(r"\[exit (?P<code>\d+)\]")


@dataclass(frozen=True, slots=True)
class Block:
    """Holds one fenced block: what stands behind the fence, its lines, and where they begin."""

    info: str
    lines: tuple[str, ...]
    first_line: int

    @property
    def title(self):
        """Names the file that the block is, or nothing."""
        match = _TITLE.search(self.info)
        return match["name"] if match else ""


@dataclass(frozen=True, slots=True)
class Step:
    """Holds one command, what it should print, and how it should end."""

    line: int
    command: str
    expected: tuple[str, ...]
    exit_code: int


def read_blocks(text):
    """Lists the fenced blocks of a page."""
    blocks, lines = [], text.splitlines()
    number = 0
    while number < len(lines):
        fence = _FENCE.fullmatch(lines[number])
        number += 1
        if fence is None:
            continue
        end = lines.index("```", number)
        blocks.append(Block(fence["info"].strip(), tuple(lines[number:end]), number + 1))
        number = end + 1
    return blocks


def read_steps(block):
    """Takes a console apart."""
    steps, rows = [], list(enumerate(block.lines, block.first_line))
    while rows:
        line, text = rows.pop(0)
        if not text.startswith("$ "):
            raise ValueError(f"line {line}: a console begins with a command: {text}")
        command = _whole_command(text[2:], rows)
        expected = []
        while rows and not rows[0][1].startswith("$ "):
            expected.append(rows.pop(0)[1].rstrip())
        ending = _EXIT.fullmatch(expected[-1]) if expected else None
        shown = expected[:-1] if ending else expected
        steps.append(Step(line, command, tuple(shown), int(ending["code"]) if ending else 0))
    return steps


def _whole_command(text, rows):
    lines = [text]
    while lines[-1].endswith("\\"):
        lines.append(rows.pop(0)[1])
    here = _HERE.search(text)
    while here and lines[-1] != here["word"]:
        lines.append(rows.pop(0)[1])
    return "\n".join(lines)


def matches(expected, printed):
    """Tells whether output is as shown, three dots standing for anything."""
    pattern = "".join(_line_pattern(line) for line in expected)
    lines = [line.rstrip() for line in printed.splitlines()]
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def _line_pattern(line):
    if line.strip() == "...":
        return r"(?:[^\n]*\n)*"
    return "[^\n]*".join(re.escape(part) for part in line.split("...")) + "\n"


def run_page(page: Path, folder: Path, environment, language="console"):
    """Runs the consoles of one language of a page, in order; lists what is not as shown."""
    problems = []
    for block in read_blocks(page.read_text(encoding="utf-8")):
        if block.title:
            text = "".join(f"{line}\n" for line in block.lines)
            (folder / block.title).write_text(text, encoding="utf-8")
        elif block.info == language:
            for step in read_steps(block):
                problems += _run_step(step, page, folder, environment)
    return problems


def _run_step(step, page, folder, environment):
    done = subprocess.run(
        ["bash", "-c", step.command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == step.exit_code and matches(step.expected, done.stdout):
        return []
    shown = "\n".join(step.expected)
    return [
        f"{page.name}, line {step.line}: $ {step.command}\n"
        f"--- shown, [exit {step.exit_code}]\n{shown}\n"
        f"--- printed, [exit {done.returncode}]\n{done.stdout}"
        f"--- standard error\n{done.stderr}"
    ]
