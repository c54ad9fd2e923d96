"""Measures environments; how fast they are is the business of podium bench."""

from podium.rl.environment import speed


def test_every_figure_is_measured(monkeypatch):
    monkeypatch.setattr(speed, "STEPS", 10)
    monkeypatch.setattr(speed, "SEEDS", range(1000, 1002))
    monkeypatch.setattr(speed, "ENVIRONMENTS", 2)
    found = speed.measure(1)
    assert min(found.bare, found.replay, found.rounds, found.rounds_all_rewards) > 0
    assert found.nodes_1213 > 0
