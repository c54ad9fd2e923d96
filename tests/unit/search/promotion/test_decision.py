import numpy as np
import pytest

from podium.errors import UsageError
from podium.evaluation.cases import Case
from podium.evaluation.validation import Group, ValidationResults
from podium.search.promotion.decision import Rule, decide

SEEDS = range(2000, 2020)
CASES = tuple(
    Case(trace, seed=seed, is_perturbed=is_perturbed)
    for trace in ("openb", "other")
    for is_perturbed in (False, True)
    for seed in SEEDS
)


def sheet_of(gains, cases=CASES, holders=()):
    """Makes a sheet; a gain is a function of the case and a generator."""
    random = np.random.default_rng(11)
    usual = 90 + random.normal(size=len(cases))
    values = {"fgd": tuple(figures(each, each) for each in usual)}
    for name, gain in gains.items():
        found = [gain(case, random) for case in cases]
        rows = zip(usual, found, strict=True)
        values[name] = tuple(figures(u + at_130, u + at_100) for u, (at_130, at_100) in rows)
    held = {name: ((0, 500), (3, 500)) + ((0, 500),) * (len(cases) - 2) for name in holders}
    return ValidationResults(cases, values, held)


def figures(at_130, at_100):
    return {"allocation_130": float(at_130), "allocation_100": float(at_100), "fragmentation": 5.0}


def judged(gains, rule=None, holding=()):
    holds = {name: name in holding for name in gains}
    return {
        found.name: found
        for found in decide(
            sheet_of(gains), holds, rule or Rule(), np.random.default_rng(0), ("fgd",)
        )
    }


def steady(at_130, at_100=0.0):
    return lambda _case, random: (at_130 + 0.2 * random.normal(), at_100)


def test_a_steady_gain_is_promoted_and_told():
    found = judged({"good": steady(0.9)})["good"]
    assert found.accepted
    assert found.gain.low > 0.8
    assert found.p_value < 0.001
    assert "+0.9" in found.reasons[0]
    assert found.perturbed is not None
    assert found.perturbed.low > 0.7


@pytest.mark.parametrize("may_hold", [False, True])
def test_who_held_on_a_held_out_case_is_refused_or_reported_apart(may_hold):
    sheet = sheet_of({"good": steady(0.9), "sly": steady(0.9)}, holders=["sly"])
    names = {"good": False, "sly": False}  # neither says that it holds
    rule = Rule(may_hold=may_hold)
    good, sly = decide(sheet, names, rule, np.random.default_rng(0), ("fgd",))
    assert (good.accepted, good.may_hold, good.held) == (True, False, (0, 0))
    assert (sly.accepted, sly.may_hold) == (may_hold, True)
    assert sly.holds == f"3 of {500 * len(CASES):,} decisions"
    if not may_hold:
        assert "at 3 of 500 decisions on openb inflation seed 2001" in sly.reasons[0]


def test_no_gain_is_refused():
    found = judged({"same": steady(0.0)})["same"]
    assert not found.accepted
    assert "not surely above 0" in found.reasons[0]


def test_a_policy_equal_to_the_incumbent_is_refused():
    assert not judged({"twin": lambda *_: (0.0, 0.0)})["twin"].accepted


def test_a_loss_is_not_taken_for_a_gain():
    assert not judged({"bad": steady(-2.0)})["bad"].accepted


def test_a_trace_that_loses_at_100_percent_is_named():
    def gain(case, _random):
        return 2.0, (-0.6 if case.trace == "other" else 0.0)

    found = judged({"greedy": gain})["greedy"]
    assert found.reasons == (
        "it loses 0.60 points to fgd at 100 % arrived load on other; 0.5 at most",
    )


def test_a_policy_that_wins_where_it_was_trained_alone_is_refused():
    def gain(case, random):
        return (3.0 if case.trace == "openb" else -0.5) + 0.1 * random.normal(), 0.0

    rule = Rule(trained=frozenset(["openb"]))
    found = judged({"overfit": gain}, rule)["overfit"]
    assert found.gain.low > 0
    assert [reason for reason in found.reasons if "not trained on" in reason]
    assert not found.accepted


def test_a_policy_that_loses_on_perturbed_clusters_is_refused():
    def gain(case, random):
        return (-0.2 if case.is_perturbed else 3.0) + 0.1 * random.normal(), 0.0

    found = judged({"brittle": gain})["brittle"]
    assert found.gain.low > 0
    assert "perturbed clusters" in found.reasons[0]
    assert not found.accepted


def test_a_gain_on_perturbed_clusters_does_not_make_up_for_none_on_the_others():
    def gain(case, random):
        return (5.0 if case.is_perturbed else 0.0) + 0.1 * random.normal(), 0.0

    found = judged({"odd": gain})["odd"]
    assert not found.accepted
    assert found.gain.mean == pytest.approx(0.0, abs=0.1)
    assert found.perturbed.mean == pytest.approx(5.0, abs=0.1)


def test_without_perturbed_clusters_nothing_is_promoted():
    cases = tuple(case for case in CASES if not case.is_perturbed)
    sheet = sheet_of({"good": steady(2.0)}, cases)
    (found,) = decide(sheet, {"good": False}, Rule(), np.random.default_rng(0))
    assert "no perturbed clusters" in found.reasons[0]


def test_policies_that_hold_are_judged_at_130_percent_alone():
    found = judged({"patient": steady(3.0, -9.0)}, holding=["patient"])["patient"]
    assert found.accepted
    assert found.may_hold
    (row,) = [row for row in found.table if row.group == Group("openb", "inflation", False)]
    assert row.differences["fgd"]["allocation_100"].mean == pytest.approx(-9.0)


def test_policies_that_hold_do_not_count_among_those_that_do_not():
    alone = judged({"good": steady(0.9)})["good"]
    others = {f"patient-{i}": steady(0.0) for i in range(30)}
    beside = judged({"good": steady(0.9), **others}, holding=others)["good"]
    assert beside.p_value == alone.p_value


def test_the_more_ask_the_more_is_asked_of_each():
    def gain(_case, random):
        return 0.05 + 0.2 * random.normal(), 0.0

    alone = judged({"modest": gain})["modest"]
    crowd = {f"candidate-{i}": steady(0.0) for i in range(40)}
    among = judged({"modest": gain, **crowd})["modest"]
    assert among.p_value > alone.p_value
    assert among.gain.low < alone.gain.low
    assert among.gain.mean == alone.gain.mean


def test_luck_promotes_hardly_anything():
    accepted = 0
    for round_number in range(12):
        random = np.random.default_rng(round_number)
        noise = {f"c{i}": lambda _case, _random, r=random: (r.normal(), 0.0) for i in range(5)}
        accepted += any(found.accepted for found in judged(noise).values())
    assert accepted <= 1


def test_five_seeds_are_too_few():
    cases = tuple(case for case in CASES if case.seed < 2005)
    sheet = sheet_of({"good": steady(2.0)}, cases)
    (found,) = decide(sheet, {"good": False}, Rule(), np.random.default_rng(0))
    assert "5 seeds are too few" in found.reasons[0]


def test_where_less_is_better_less_wins():
    cases = tuple(
        Case("openb:16", protocol="replay", seed=seed, is_perturbed=is_perturbed)
        for is_perturbed in (False, True)
        for seed in SEEDS
    )
    random = np.random.default_rng(4)
    usual = 100 + random.normal(size=len(cases))
    values = {
        "fgd": tuple({"wait_mean_s": w} for w in usual),
        "quick": tuple({"wait_mean_s": w - 9 + random.normal()} for w in usual),
        "slow": tuple({"wait_mean_s": w + 9 + random.normal()} for w in usual),
    }
    rule = Rule(figure="wait_mean_s")
    names = {"quick": False, "slow": False}
    quick, slow = decide(ValidationResults(cases, values), names, rule, np.random.default_rng(0))
    assert quick.accepted
    assert not slow.accepted


AIMED = Rule(figure="fitness", aim="the objective aim.py", trained=frozenset(["openb"]))


def aimed(gain, allocation):
    """Makes a sheet on which a candidate gains fitness, and something else in allocation."""
    sheet = sheet_of({"new": steady(allocation, allocation)})
    random = np.random.default_rng(5)
    with_fitness = {
        name: tuple(
            {**row, "fitness": 50.0 + (gain + 0.2 * random.normal() if name == "new" else 0.0)}
            for row in rows
        )
        for name, rows in sheet.values.items()
    }
    return ValidationResults(CASES, with_fitness)


@pytest.mark.parametrize(("gain", "allocation", "accepted"), [(1, -5, True), (-1, 5, False)])
def test_who_was_searched_by_a_fitness_is_judged_by_it_and_told_so(gain, allocation, accepted):
    sheet = aimed(gain, allocation)
    (found,) = decide(sheet, {"new": False}, AIMED, np.random.default_rng(0), ("fgd",))
    assert found.accepted is accepted
    assert "its mean gain over fgd by the objective aim.py on held-out cases is" in found.reasons[0]
    assert found.gain.mean == pytest.approx(gain, abs=0.2)
    assert found.table[0].differences["fgd"]["allocation_130"].mean * allocation > 0


def test_held_out_cases_that_do_not_count_for_the_fitness_decide_nothing():
    with pytest.raises(UsageError, match="no held-out case measures what the search was for, the"):
        decide(sheet_of({"new": steady(1)}), {"new": False}, AIMED, np.random.default_rng(0))


def test_figures_that_nothing_is_judged_by_are_refused():
    with pytest.raises(UsageError, match="cannot be judged by"):
        Rule(figure="placed_100_share")
    with pytest.raises(UsageError, match="no held-out case"):
        judged({"any": steady(1.0)}, Rule(figure="wait_mean_s"))


def test_decisions_are_the_same_every_time():
    gains = {"good": steady(0.9), "same": steady(0.0)}
    assert judged(gains) == judged(gains)
