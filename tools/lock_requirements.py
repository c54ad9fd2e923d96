"""Locks whatever `make demo`, `make test` and the extras install: versions, with hashes.

`make lock` runs it; it needs uv. Versions stay as they are unless pyproject.toml asks for others;
`--upgrade` takes the newest, `--upgrade-package NAME` the newest of one.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("requirements")
BUILD = FOLDER / "build.in"
COMPILE = (
    "uv", "pip", "compile", "pyproject.toml", str(BUILD), "--quiet", "--universal",
    "--generate-hashes", "--python-version", "3.11", "--no-annotate", "--no-header",
    "--no-emit-index-url", "--no-emit-find-links", "--no-build",
)  # fmt: skip


def main(more: list[str]) -> None:
    """Writes every file: all of it first, so that the others agree with it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    everything = compiled("all", "--all-extras", "--group", "dev", *more)
    versions = ROOT / FOLDER / "all.txt"
    base = compiled("base", "--constraints", str(versions))
    compiled("dev", "--group", "dev", "--constraints", str(versions))
    for extra in project["optional-dependencies"]:
        if extra != "all":
            both = compiled(extra, "--extra", extra, "--constraints", str(versions))
            write(extra, [entry for name, entry in both if name not in dict(base)])
    sys.stdout.write(f"locked {len(everything)} packages, {len(base)} for Podium itself\n")


def compiled(name: str, *options: str) -> list[tuple[str, str]]:
    """Resolves one set, writes its file, and gives the entries with their names."""
    path = FOLDER / f"{name}.txt"
    subprocess.run([*COMPILE, *options, "--output-file", str(path)], cwd=ROOT, check=True)
    text = (ROOT / path).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    return [(re.split(r"[=\[ ]", entry)[0], entry) for entry in entries]


def write(name: str, entries: list[str]) -> None:
    """Writes what an extra adds to Podium itself."""
    text = "".join(f"{entry}\n" for entry in entries)
    (ROOT / FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
