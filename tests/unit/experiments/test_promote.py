import pytest

from podium.errors import UsageError
from podium.experiments.promote import PromotionRequest


@pytest.mark.parametrize("name", ["../../x", "a/b", "a\\b", ".hidden"])
def test_a_policy_is_not_written_outside_of_its_folder_by_its_name(name):
    with pytest.raises(UsageError, match="is not a name for a policy"):
        PromotionRequest("ab12", name=name)


def test_a_plain_name_is_taken():
    assert PromotionRequest("ab12", name="usable-gpu").name == "usable-gpu"
