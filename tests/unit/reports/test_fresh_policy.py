from podium.policies import PairPolicy
from podium.reports.fresh_policy import fresh_policy


def test_a_fresh_policy_is_new_every_time_and_no_machine_code_is_kept():
    first, second = fresh_policy(1), fresh_policy(2)
    assert isinstance(first, PairPolicy)
    assert first.source.text != second.source.text
    assert not first.is_kept
