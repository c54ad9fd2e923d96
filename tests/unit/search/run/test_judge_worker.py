"""Asks a worker without its executor: what it tells is what goes over the network."""

import pytest

from podium.compute.worker import FACTS, HostedWorker, as_object, error_of
from podium.errors import MissingError
from podium.evaluation.cases import Case, TrainingSet
from podium.search.run.executor import judge_spec
from podium.search.sandbox import worker as process
from podium.search.sandbox.limits import Limits
from support.confined import IS_FILTERED
from support.forgery import imposter

TRAINING = TrainingSet((Case(nodes=8, pods=60),))


@pytest.fixture
def judged():
    """Starts judges, as actors do, and ends them."""

    def start(**limits):
        spec = judge_spec(TRAINING, "inflation", Limits(**limits))
        judges.append(HostedWorker(as_object(spec)))
        return judges[-1].get_ready()

    judges = []
    yield start
    for each in judges:
        each.close()


@pytest.mark.skipif(not IS_FILTERED, reason="a wall is missing here")
def test_an_actor_tells_that_all_walls_stand(judged):
    assert judged()[FACTS]["missing_walls"] == []


def test_a_machine_without_walls_is_refused_unless_that_is_asked_for(judged, monkeypatch):
    script = imposter(walls=["audit"]).replace("{", "{{").replace("}", "}}")
    monkeypatch.setattr(process, "_BOOT", script)
    told = judged()
    assert isinstance(error_of(told), MissingError)
    assert "cannot be confined" in error_of(told).message
    assert "system calls" in judged(allows_unconfined=True)[FACTS]["missing_walls"]
