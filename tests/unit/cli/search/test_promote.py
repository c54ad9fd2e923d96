from podium.cli.render import Screen
from podium.cli.search.promote import _show_tables
from podium.evaluation.paired import Difference
from podium.evaluation.validation import Group, GroupResults
from podium.settings import Display


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
