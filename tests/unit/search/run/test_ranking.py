import pytest

from podium.experiments.listener import Listener
from podium.experiments.search import warn_of_ranking
from podium.search.judging.panel import Ranking
from podium.search.run import loop
from podium.search.run.folder import RANKING
from support.searches import Sittings

LIKE = Ranking(0.83, 24, ("openb:default",))


class Heard(Listener):
    """Keeps the warnings."""

    def __init__(self):
        self.warnings = []

    def warn(self, text):
        self.warnings.append(text)


def test_how_well_a_training_set_ranks_is_measured_once_in_a_run(executor, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(loop, "rank_training", lambda *given: asked.append(given) or LIKE)
    kept = Sittings(tmp_path, executor)
    first, again = kept.search(), kept.search()
    assert first.rank(2) == again.rank(2) == LIKE
    ((training, fitness, jobs),) = asked
    assert (training, fitness.name, jobs) == (kept.plan.training, kept.plan.fitness, 2)
    assert (kept.folder.path / RANKING).is_file()
    assert again.progress().summary()["ranking"] == LIKE.as_object()


def test_a_search_that_nobody_asked_says_nothing_of_it(executor, tmp_path):
    assert "ranking" not in Sittings(tmp_path, executor).search().progress().summary()


@pytest.mark.parametrize(
    ("correlation", "is_told"), [(-0.4, True), (0.29, True), (0.3, False), (None, False)]
)
def test_a_training_set_that_ranks_badly_is_warned_of(correlation, is_told):
    heard = Heard()
    warn_of_ranking(heard, Ranking(correlation, 24, ()))
    assert bool(heard.warnings) == is_told
    assert all("--nodes" in each for each in heard.warnings)
