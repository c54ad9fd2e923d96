"""Settles the protocol and the seed from settings and what a trace brings along."""

import pytest

from podium.errors import UsageError
from podium.experiments.protocol import Choice
from podium.settings import load_settings
from podium.sim import Inflation, Replay, Rounds
from podium.traces.trace import Experiment


def choice(tmp_path, experiment=None, **flags):
    given = {f"simulate.{name}": value for name, value in flags.items()}
    return Choice(load_settings(given, environ={}, folder=tmp_path), experiment, None)


def test_rounds_are_as_many_as_asked_for(tmp_path):
    protocol = choice(tmp_path, protocol="rounds", max_rounds=3, max_holds=7).protocol(0)
    assert isinstance(protocol, Rounds)
    assert (protocol.max_rounds, protocol.holding.max_holds) == (3, 7)


def test_a_replay_takes_the_load(tmp_path):
    assert choice(tmp_path, load=2.5).protocol(0) == Replay(2.5)


def test_preemption_is_a_setting_of_replay_and_rounds(tmp_path):
    assert choice(tmp_path, preemption=True).protocol(0) == Replay(preemption=True)
    rounds = choice(tmp_path, protocol="rounds", preemption=True).protocol(0)
    assert rounds == Rounds(preemption=True)
    with pytest.raises(UsageError, match="cannot be used with inflation") as caught:
        choice(tmp_path, protocol="inflation", preemption=True).protocol(0)
    assert caught.value.where == "flag --preemption, [simulate] preemption"


def test_an_experiment_brings_its_ratio_and_seed_unless_flags_say_otherwise(tmp_path):
    experiment = Experiment(ratio=1.2, seed=233, is_shuffled=True)
    free = choice(tmp_path, experiment)
    assert free.protocol(0) == Inflation(1.2)
    assert free.seed() == 233
    bound = choice(tmp_path, experiment, ratio=1.1, seed=5)
    assert bound.protocol(0) == Inflation(1.1)
    assert bound.seed() == 5


@pytest.mark.parametrize(
    ("flags", "flag"), [({"max_rounds": 2}, "--max-rounds"), ({"ratio": 1.1}, "--ratio")]
)
def test_flags_that_change_nothing_are_named(tmp_path, flags, flag):
    chosen = choice(tmp_path, **flags)
    assert list(chosen.unused(chosen.protocol(0))) == [f"{flag} has no effect with replay"]
