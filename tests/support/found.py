"""Keeps what a search found, as its run does."""

from podium.search.run.folder import BEST, RunFolder

FOUND = "def score(pod, node):\n    return 7 - node.cpu_milli_left\n"


def found_run(folder, monkeypatch):
    """Gives the folder of the run ab12, which found a policy that nobody promoted."""
    monkeypatch.setenv("PODIUM_SEARCH_FOLDER", str(folder))
    run = RunFolder(folder / "ab12")
    run.create()
    run.write_text(BEST, FOUND)
    return run
