"""Draws what a command prints as a picture of a terminal, always the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

COLUMN, ROW, SIZE = 7.8, 18, 13
"""The width of a character, the height of a line and the size of the font, in pixels."""
MARGIN, HEAD = 20, 36
GROUND, TEXT, PROMPT, BAR = "#1b1f27", "#d7dae0", "#7ec699", "#61afef"
LIGHTS = ("#e06c75", "#e5c07b", "#98c379")
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def draw_terminal(command: str, lines: Sequence[str]) -> str:
    """Draws a command and what it prints."""
    shown = [f"$ {command}", *lines]
    width = round(2 * MARGIN + COLUMN * max(len(line) for line in shown))
    height = HEAD + ROW * len(shown) + MARGIN
    rows = [_row(line, number) for number, line in enumerate(shown) if line]
    lights = [
        f'<circle cx="{MARGIN + 18 * place}" cy="18" r="5.5" fill="{color}"/>'
        for place, color in enumerate(LIGHTS)
    ]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(command)}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{GROUND}"/>',
        *lights,
        f'<g font-family="{FONT}" font-size="{SIZE}" fill="{TEXT}" xml:space="preserve">',
        *rows,
        "</g>",
        "</svg>",
        "",
    ])  # fmt: skip


def _row(line: str, number: int) -> str:
    """Draws one line; each column stands where it stands in a terminal, whatever the font."""
    color = f' fill="{PROMPT}"' if number == 0 else ""
    y = HEAD + ROW * (number + 1)
    words = [_word(line, start, end, y) for start, end in _words(line)]
    return f"<g{color}>{''.join(words)}</g>"


def _words(line: str) -> list[tuple[int, int]]:
    """Finds the parts of a line that two spaces or more separate."""
    found, place = [], 0
    for part in line.split("  "):
        if part.strip():
            start = place + len(part) - len(part.lstrip())
            found.append((start, place + len(part.rstrip())))
        place += len(part) + 2
    return found


def _word(line: str, start: int, end: int, y: int) -> str:
    text = line[start:end]
    x = MARGIN + COLUMN * start
    if set(text) <= {"█", "·"}:
        full, all_of_it = COLUMN * text.count("█"), COLUMN * len(text)
        box = f'x="{x:.1f}" y="{y - 10}" height="9" rx="2" fill="{BAR}"'
        return (
            f'<rect {box} width="{all_of_it:.1f}" fill-opacity="0.2"/>'
            f'<rect {box} width="{full:.1f}"/>'
        )
    length = f'textLength="{COLUMN * len(text):.1f}"' if len(text) > 1 else ""
    return f'<text x="{x:.1f}" y="{y}" {length}>{escape(text)}</text>'
