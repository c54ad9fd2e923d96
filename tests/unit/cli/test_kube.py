"""Snapshots and recordings are begun only with what they can use, and say what they lack."""

import asyncio

import pytest

from podium.cli import kube
from podium.cli.main import app


class Screen:
    """Notes what is told."""

    def __init__(self):
        self.told = []

    def note(self, text):
        self.told.append(text)


class Watch:
    """Has the next problems each time it is asked, and then none any more."""

    def __init__(self, *problems):
        self.rounds, self.is_over = [*problems], asyncio.Event()

    def problems(self):
        if not self.rounds:
            self.is_over.set()
            return []
        return self.rounds.pop(0)


def test_an_outage_is_told_once_where_it_lasts_and_once_when_it_is_over(monkeypatch):
    monkeypatch.setattr(kube, "SAID_S", 0.001)
    screen = Screen()

    async def whole():
        watch = Watch(["short"], [], ["bad"], ["bad"], ["worse"], [], ["short"], [])
        telling = asyncio.create_task(kube._tell_outages(screen, watch))
        await watch.is_over.wait()
        telling.cancel()

    asyncio.run(whole())
    assert screen.told == [
        "note: the cluster is not heard, and asked again: bad",
        "the cluster is heard again",
    ]


@pytest.mark.parametrize("period", ["nonsense", "exponential:2h", "-5", "0"])
def test_a_recording_for_no_time_is_not_begun(runner, tmp_path, period):
    target = tmp_path / "cluster.jsonl"
    done = runner.invoke(app, ["kube", "record", str(target), f"--for={period}"])
    assert done.exit_code == 2
    assert f'"{period}" is not a time' in done.stderr
    assert "give 90m, 2h or seconds" in done.stderr
    assert not target.exists()
