import pytest

from podium.cli.main import app
from podium.store import RunRecord, open_store


@pytest.fixture
def complete(runner, monkeypatch):
    """Asks as the shell does; gives the words that are offered."""

    def ask(line):
        monkeypatch.setenv("_PODIUM_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        return runner.invoke(app, [], prog_name="podium").stdout.split()

    return ask


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("podium simulate --protocol ", ["replay", "inflation", "rounds"]),
        ("podium compare --demand s", ["seen"]),
        ("podium fit --state ", ["now", "empty", "history"]),
        ("podium policies show kube-p", ["kube-packing"]),
        ("podium simulate --policy worst", ["worst-fit"]),
        ("podium compare fgd my_own", []),
        ("podium runs show ", []),
    ],
)
def test_values_are_offered_by_their_beginnings(complete, line, offered):
    assert complete(line) == offered


def test_runs_are_offered_from_the_store_of_the_settings(complete, monkeypatch, tmp_path):
    monkeypatch.setenv("PODIUM_STORE_URL", str(tmp_path / "mine.db"))
    with open_store(str(tmp_path / "mine.db")) as store:
        for id in ("ab12cd34", "ff00ff00"):
            store.runs.create(RunRecord(id, "search", "mine", 0.0))
    assert complete("podium runs show ab") == ["ab12cd34"]
