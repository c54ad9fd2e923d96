from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from podium.errors import PodiumError, UsageError
from podium.experiments import promote
from podium.experiments.promote import PromotionRequest
from podium.settings import load_settings
from support.searches import PLAN_OF_TESTS


@pytest.mark.parametrize("name", ["../../x", "a/b", "a\\b", ".hidden"])
def test_a_policy_is_not_written_outside_of_its_folder_by_its_name(name):
    with pytest.raises(UsageError, match="is not a name for a policy"):
        PromotionRequest("ab12", name=name)


def test_a_plain_name_is_taken():
    assert PromotionRequest("ab12", name="usable-gpu").name == "usable-gpu"


@pytest.fixture
def begun(monkeypatch):
    """Holds a run whose controls were never run, and fails where they would be."""
    searched = SimpleNamespace(plan=PLAN_OF_TESTS, store=None, record=None)
    monkeypatch.setattr(promote, "_opened", lambda *_: nullcontext(searched))
    monkeypatch.setattr(promote, "nominees_of", lambda *_: [])
    monkeypatch.setattr(promote, "controls_of", lambda *_: pytest.fail("the controls were run"))
    return load_settings({}, environ={})


@pytest.mark.parametrize("work", [promote.promote, promote.control])
@pytest.mark.parametrize(
    ("trace", "problem"),
    [
        ("openb:16", "no held-out case measures allocation_130"),
        ("openb:cpu250", "unknown held-out trace"),
        ("pods.csv", "has no nodes"),
    ],
)
def test_a_trace_that_cannot_decide_is_refused_before_controls_are_run(
    begun, work, trace, problem, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli", "p,1000,1024,1,500"]
    (tmp_path / "pods.csv").write_text("\n".join(rows))
    with pytest.raises(PodiumError, match=problem) as refused:
        work(begun, PromotionRequest("ab12", traces=(trace,), seeds=1))
    assert refused.value.where == "flag --trace"


def test_an_incumbent_that_does_not_exist_is_refused_before_controls_are_run(begun):
    with pytest.raises(UsageError, match='unknown policy "nobody"') as refused:
        promote.promote(begun, PromotionRequest("ab12", incumbent="nobody"))
    assert refused.value.where == "flag --incumbent"
