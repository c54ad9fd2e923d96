from types import SimpleNamespace

import pytest

from podium.cli.render import Rhythm, Screen
from podium.cli.search.display import _logging, facts_of_summary
from podium.search.run.plan import Budget
from podium.search.run.progress import Progress, Tally
from podium.settings import Display

SUMMARY = {
    "evaluations": 10, "candidates": 12, "accepted": 5, "refused": {}, "seconds": 1.5, "best": 7,
    "fitness": 95.5, "fitness_fgd": 95.0, "fitness_start": 94.5, "complexity": 30,
    "validated": None, "validation_fitness": None, "validation_fitness_fgd": None,
    "usd": 0.0, "tokens": 0, "calls": 0, "unpriced_calls": 0,
}  # fmt: skip


def facts(**changes):
    """Tells a moment of a run."""
    return facts_of_summary({**SUMMARY, **changes})


def test_a_run_that_asks_nobody_says_nothing_of_money():
    assert not {"spend", "price"} & facts().keys()


@pytest.mark.parametrize(
    ("spent", "told"),
    [
        ({"usd": 0.25, "tokens": 12_000, "calls": 4}, "0.2500 USD, 12,000 tokens, 4 calls"),
        ({"usd": 0.0, "tokens": 12_000, "calls": 4}, "0.0000 USD, 12,000 tokens, 4 calls"),
        (
            {"tokens": 12_000, "calls": 4, "unpriced_calls": 4},
            "12,000 tokens at unknown cost, 4 calls",
        ),
        (
            {"usd": 0.25, "tokens": 12_000, "calls": 4, "unpriced_calls": 1},
            "at least 0.2500 USD, 12,000 tokens, 4 calls",
        ),
        ({"calls": 4, "unpriced_calls": 4}, "4 calls"),
    ],
)
def test_a_price_that_nobody_knows_is_not_called_nothing(spent, told):
    assert facts(**spent)["spend"] == told


def test_money_is_set_beside_what_was_gained():
    spent = {"usd": 0.5, "tokens": 10, "calls": 1}
    assert facts(**spent)["price"] == ("0.5000 USD per point gained (+1.000 over the start)")
    for start in (95.5, None):
        assert facts(**spent, fitness_start=start)["price"].startswith("no gain yet")


def test_a_log_gets_a_line_now_and_then(capsys):
    now = iter([0.0, 29.0, 31.0, 32.0])
    archive = SimpleNamespace(best=None, islands=[], batches=2, start=None, transfers=[])
    progress = Progress("k3v9", 12.0, 2.5, Tally(evaluations=40), archive, 90.0)
    watch = _logging(Screen(Display()), Budget(100), Rhythm(clock=lambda: next(now)))
    for _ in range(3):
        watch(progress)
    told = "run k3v9: 40%, 40 evaluations at 2.5/s, best none yet, 24 s left\n"
    assert capsys.readouterr().err == told
