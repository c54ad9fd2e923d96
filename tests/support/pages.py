"""Finds the pages of the documentation, their headings and their links."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = (README, *sorted(DOCS.glob("*.md")))

_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)|(?:src|srcset)=\"(?P<image>[^\"]+)\"")


def prose(page):
    """Gives the lines of a page that stand outside fenced blocks."""
    is_fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            is_fenced = not is_fenced
        elif not is_fenced:
            yield line


def headings(page):
    """Lists the headings of a page, without marks of code."""
    return [line.lstrip("#").strip().replace("`", "") for line in prose(page) if line[:1] == "#"]


def anchors(page):
    """Lists the names under which headings can be linked, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings(page)}


def links(page):
    """Lists the targets of the links and pictures of a page."""
    text = "\n".join(prose(page))
    return [match["target"] or match["image"] for match in _LINK.finditer(text)]


def first_cells(page):
    """Lists the first cell of every row of every table, without marks of code."""
    rows = [line for line in prose(page) if line.startswith("|")]
    return [row.split("|")[1].strip().replace("`", "") for row in rows]
