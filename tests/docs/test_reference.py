import subprocess
import sys

from support.binary import clean_environment
from support.pages import PAGES, ROOT


def test_generated_parts_are_what_the_program_says_today(tmp_path):
    pages = [str(page.relative_to(ROOT)) for page in PAGES]
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "--diff", *pages],
        cwd=ROOT,
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"run make docs\n{done.stdout}{done.stderr}"


def test_the_makefile_generates_every_page():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "cog -r docs/*.md README.md" in makefile
