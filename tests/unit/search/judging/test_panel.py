import json

import pytest

from podium.evaluation.cases import Case, TrainingSet, demo_cases
from podium.evaluation.default_cases import default_training
from podium.search.candidate.gates import read_candidate
from podium.search.candidate.verdict import Verdict
from podium.search.judging import panel as room
from podium.search.judging.fitness import fitness_named
from podium.search.judging.panel import (
    FIGURES,
    LOW,
    NO_REPLAY,
    ORIGINALS,
    SEEDS,
    TOO_LARGE,
    Panel,
    Ranking,
    correlation_of,
    full_size,
    load_panel,
    measure,
    rank_training,
)
from podium.search.program.bounds import is_sound
from podium.search.program.reader import parse
from podium.traces import save_trace
from podium.traces.catalogue import LoadOptions, load_trace
from support.traces import originals

INFLATION = fitness_named("inflation")


@pytest.fixture(scope="module")
def panel():
    """Holds the programs and what is known of them."""
    return load_panel()


def test_every_program_is_one_that_a_search_could_breed(panel):
    assert 20 <= len(panel.programs) <= 24
    assert len({each.name for each in panel.programs}) == len(panel.programs)
    for each in panel.programs:
        assert not isinstance(read_candidate(each.text), Verdict)
        assert is_sound(parse(each.text))  # so that nothing is compiled before a run


def test_figures_at_full_size_are_known_on_the_six_named_traces(panel):
    for figures in (panel.baseline, *(each.figures for each in panel.programs)):
        assert set(figures) == set(ORIGINALS.values())
        assert all(set(values) == set(FIGURES) for values in figures.values())


def test_programs_are_of_different_quality(panel):
    reached = sorted(
        sum(values["allocation_130"] for values in each.figures.values()) / len(each.figures)
        for each in panel.programs
    )
    assert len({round(each, 2) for each in reached}) >= 18
    assert reached[-1] - reached[0] > 1


@pytest.mark.deep
@pytest.mark.openb
def test_known_figures_are_what_the_original_traces_give(panel):
    cases = [Case("openb:multigpu20", seed=seed, folder=str(originals())) for seed in SEEDS]
    one = panel.programs[-1]
    (outcomes,) = measure(Panel((one,), {}), cases)
    for name in FIGURES:
        mean = sum(each.values[name] for each in outcomes) / len(outcomes)
        assert mean == pytest.approx(one.figures["openb:multigpu20"][name], abs=0.001)


@pytest.mark.deep
def test_the_default_training_set_ranks_like_full_size():
    ranking = rank_training(default_training(["inflation"]), INFLATION, 2)
    assert ranking.correlation >= 0.6
    assert set(ranking.traces) == set(ORIGINALS.values())
    assert not ranking.is_low


def test_families_are_ranked_by_the_traces_that_they_are_like():
    training = TrainingSet((Case("openb-share-only", nodes=12, pods=150),))
    assert rank_training(training, INFLATION).traces == ("openb:gpushare100",)


def test_of_a_set_in_stages_the_last_one_is_not_measured(monkeypatch):
    seen = []
    monkeypatch.setattr(room, "measure", lambda _panel, cases, _jobs: seen.extend(cases) or known())
    training = default_training(["inflation"])
    rank_training(training, INFLATION)
    assert tuple(seen) == training.cases[: training.stages[-1].first]


def known():
    """Gives what is known at full size as if it had been measured."""
    found = load_panel()
    names = list(ORIGINALS.values())
    return [
        [
            room.Outcome("inflation", each.figures[name], found.baseline[name], name)
            for name in names
        ]
        for each in found.programs
    ]


def test_a_training_set_that_is_full_size_itself_ranks_perfectly(monkeypatch):
    monkeypatch.setattr(room, "measure", lambda *_: known())
    assert rank_training(default_training(["inflation"]), INFLATION).correlation == 1.0


def own_trace(path, nodes):
    save_trace(load_trace("openb", LoadOptions(seed=3, nodes=nodes, pods=120)), path)
    return TrainingSet((Case(str(path), nodes=6),))


def test_on_an_own_trace_the_panel_is_measured_at_its_full_size(tmp_path):
    training = own_trace(tmp_path / "mine.yaml", 12)
    ranking = rank_training(training, INFLATION)
    assert ranking.traces == (str(tmp_path / "mine.yaml"),)
    assert -1 <= ranking.correlation <= 1
    (case,) = training.cases
    assert full_size(case) == Case(str(tmp_path / "mine.yaml"), seed=SEEDS[0])


def test_what_is_too_large_to_be_measured_first_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "MOST_WORK", 12)
    ranking = rank_training(own_trace(tmp_path / "mine.yaml", 12), INFLATION)
    assert (ranking.correlation, ranking.reason) == (None, TOO_LARGE)
    assert not ranking.is_low


def test_nothing_is_known_of_replays():
    ranking = rank_training(TrainingSet(demo_cases(["replay"], 1)), fitness_named("waiting"))
    assert (ranking.correlation, ranking.reason) == (None, NO_REPLAY)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 1, 2], [1, 1, 5], 1.0),
        ([1, 2, 2, 3], [1, 2, 3, 4], 0.948683298),
        ([1, 1, 1], [1, 2, 3], None),
    ],
)
def test_ranks_are_compared_and_not_values(first, second, expected):
    assert correlation_of(first, second) == expected


@pytest.mark.parametrize("correlation", [None, LOW, LOW - 0.01, 1.0])
def test_a_ranking_is_the_same_after_it_was_written_and_read(correlation):
    ranking = Ranking(correlation, 24, ("openb:default",), "" if correlation else TOO_LARGE)
    assert Ranking.from_object(json.loads(json.dumps(ranking.as_object()))) == ranking
    assert ranking.is_low == (correlation == LOW - 0.01)
