import json

from podium.search.generators.generator import UNANSWERED
from podium.search.run.progress import Progress, Tally, Validated
from support.members import SMALL, folded, random_batches
from support.stored import bred, judged

COST = {"usd": 0.5, "tokens_in": 10, "tokens_out": 5, "calls": 1, "evaluations": 3}


def records():
    """Gives three judged candidates and one that is not."""
    return [
        judged(bred(0), cost=COST),
        judged(bred(1), accepted=False, gate="race", cost={**COST, "usd": None}),
        judged(bred(2), accepted=False, gate="syntax", cost={"calls": 1}),
        bred(3),
    ]


def test_a_tally_counts_whatever_the_order():
    tally = Tally.of(records())
    assert tally == Tally.of(records()[::-1])
    assert (tally.candidates, tally.judged, tally.accepted) == (4, 3, 1)
    assert (tally.evaluations, tally.usd, tally.tokens, tally.calls) == (6, 0.5, 30, 3)
    assert tally.unpriced == 2
    assert tally.refused == {"race": 1, "syntax": 1}
    assert sum(tally.sources.values()) == 4


def test_calls_without_an_answer_are_not_counted_as_bad_syntax():
    row = judged(bred(0), accepted=False, gate="syntax", reason=f"{UNANSWERED}: time-out")
    assert Tally.of([row, records()[2]]).refused == {"no answer": 1, "syntax": 1}


def test_a_tally_taken_on_the_way_is_that_of_the_end():
    tally = Tally()
    for record in records():
        tally.count_proposal(record)
    for record in records()[:3]:
        tally.count_judgement(record)
    assert tally == Tally.of(records())


def test_a_moment_is_told_in_json():
    archive = folded(random_batches(3), SMALL)
    told = Progress("run", 12.34567, 5.0, Tally.of(records()), archive, 91.0).summary()
    assert json.loads(json.dumps(told, allow_nan=False))["seconds"] == 12.346
    assert told["best"] == archive.best.number
    assert told["fitness_fgd"] == 91.0
    assert told["fitness_start"] == archive.start <= told["fitness"]
    assert told["validated"] is None
    assert [each["island"] for each in told["islands"]] == [0, 1, 2]
    assert told["islands"][0]["family"] == "all"
    assert len(told["transfers"]) <= 50


def test_a_moment_before_anything_was_found_is_told_too():
    empty = Progress("run", 0.0, 0.0, Tally(), folded([], SMALL), 0.0)
    told = empty.summary()
    assert (told["best"], told["fitness"], told["complexity"]) == (None, None, None)
    assert json.dumps(told, allow_nan=False)


def test_what_was_validated_is_told_beside_fgd():
    archive = folded([], SMALL)
    told = Progress("run", 0.0, 0.0, Tally(), archive, 0.0, Validated(4, 95.0, 94.0)).summary()
    keys = ("validated", "validation_fitness", "validation_fitness_fgd")
    assert tuple(told[key] for key in keys) == (4, 95.0, 94.0)
