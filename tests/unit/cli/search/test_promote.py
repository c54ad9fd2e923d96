import pytest

from podium.cli.render import Screen
from podium.cli.search.control import show_controls
from podium.cli.search.promote import _show_tables
from podium.errors import InputError
from podium.evaluation.paired import Difference
from podium.evaluation.validation import Group, GroupResults
from podium.experiments.promote import provenance_of
from podium.search.promotion.control import Comparison, Control
from podium.search.run.folder import PLAN, RunFolder
from podium.settings import Display
from podium.store import CandidateRecord, RunRecord, open_store
from support.searches import PLAN_OF_TESTS


def row(protocol, means, key, *gain):
    group = Group("openb", protocol, is_perturbed=False)
    return GroupResults(group, False, 20, means, {"fgd": {key: Difference(*gain)}})


PACKED = row("inflation", {"allocation_100": 91.0, "allocation_130": 94.5}, "allocation_130",
             0.62, 0.5, 0.7)  # fmt: skip
QUEUED = row("replay", {"wait_p95_s": 2125.62, "wait_mean_s": 544.25}, "wait_mean_s",
             173.37, 100.0, 250.0)  # fmt: skip


def test_waits_stand_in_a_table_of_their_own_and_plus_is_better_in_both(capsys):
    _show_tables(Screen(Display()), [PACKED, QUEUED])
    packed, queued = capsys.readouterr().out.strip().split("\n\n")
    assert packed.splitlines() == [
        "held-out case  seen  at 100 %  at 130 %              over fgd",
        "openb          no       91.00     94.50  +0.62 [+0.50, +0.70]",
    ]
    assert queued.splitlines() == [
        "held-out case  seen  p95 wait (s)  mean wait (s)        shorter than fgd (s)",
        "openb replay   no        2,125.62         544.25  -173.37 [-250.00, -100.00]",
    ]


def test_one_protocol_makes_one_table(capsys):
    _show_tables(Screen(Display()), [QUEUED])
    assert "at 100 %" not in capsys.readouterr().out


def test_the_controls_stand_beside_the_winner_and_plus_is_better(capsys):
    tuned = Control("tuned", "", "typical", ("ab", "cd"), 883, 93.9441)
    drawn = Control("random", "", "candidate 7", ("ef",), 900, 93.5)
    lead, early = Difference(-0.0635, -0.0797, -0.0472), Difference(0.5, 0.25, 0.75)
    beside = [
        Comparison(tuned, "allocation_130", 93.9466, 94.0101, lead, 0.002, early),
        Comparison(drawn, "allocation_130", 93.9466, 93.6253, early, 0.25),
    ]
    show_controls(Screen(Display()), beside, "mine")
    shown = capsys.readouterr()
    title, mine, *lines = shown.out.strip().splitlines()
    assert title.split("  ")[0] == "policy"
    assert mine.split() == ["mine", "93.95"]
    assert lines[0].split() == [
        "tuned", "seed", "typical", "883", "93.944", "94.01", "-0.06", "[-0.08,", "-0.05]",
        "0.0020", "+0.50", "[+0.25,", "+0.75]", "ab", "cd",
    ]  # fmt: skip
    assert lines[1].split()[-3:] == ["0.2500", "-", "ef"]
    assert "GPU allocation at 130 % arrived load (percent)" in shown.err


@pytest.fixture
def kept(tmp_path):
    """Keeps one run with two candidates, the second bred of the first."""
    folder = RunFolder(tmp_path / "one")
    folder.write(PLAN, PLAN_OF_TESTS.as_object())
    text = "def score(pod, node):\n    return 1.0\n"
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        store.runs.create(RunRecord("one", "search", "a run", 0.0, folder=str(folder.path)))
        store.candidates.propose(
            [
                CandidateRecord("one", 1, kind="seed", source="best-fit", text=text),
                CandidateRecord("one", 2, source="genetic", text=text, parents=(1,)),
            ]
        )
        yield store


def provenance(kept, number):
    """Says where a candidate of the run was found."""
    record = kept.runs.get("one")
    return provenance_of(kept, record, PLAN_OF_TESTS, kept.candidates.get("one", number))


def changed(kept, statement):
    """Changes rows as somebody might who can write to the store."""
    with kept.engine.begin() as connection:
        connection.exec_driver_sql(statement)


def test_ancestors_in_a_circle_are_counted_once(kept):
    assert provenance(kept, 2).ancestry == 1
    changed(kept, "UPDATE candidates SET parents = '[2]' WHERE number = 1")
    assert provenance(kept, 2).ancestry == 2
    changed(kept, "UPDATE candidates SET parents = '[2]' WHERE number = 2")
    assert provenance(kept, 2).ancestry == 1


def test_a_candidate_that_comes_from_its_own_run_is_a_corrupt_record(kept):
    changed(kept, "UPDATE candidates SET source = 'one-1' WHERE number = 1")
    with pytest.raises(InputError, match="claims to come from its own run"):
        provenance(kept, 1)


@pytest.mark.parametrize("summary", ['{"evaluations": "x"}', '{"seconds": [1]}', '{"usd": -1}'])
def test_figures_that_are_no_numbers_are_a_corrupt_record(kept, summary):
    changed(kept, f"UPDATE runs SET summary = '{summary}'")
    with pytest.raises(InputError, match="the record of run one is corrupt"):
        provenance(kept, 2)


AIMED = row("funsearch", {"fitness": 41.5}, "fitness", 1.25, 0.75, 1.75)


def test_what_the_search_was_for_stands_before_allocation(capsys):
    _show_tables(Screen(Display()), [PACKED, AIMED])
    aimed, packed = capsys.readouterr().out.strip().split("\n\n")
    assert aimed.splitlines() == [
        "held-out case    seen  fitness              over fgd",
        "openb funsearch  no      41.50  +1.25 [+0.75, +1.75]",
    ]
    assert "at 130 %" in packed
