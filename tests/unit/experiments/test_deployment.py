import shutil
from dataclasses import replace

import pytest

from podium.errors import UsageError
from podium.experiments.deployment import (
    Unvalidated,
    active_policy,
    packed,
    shadow_policies,
    warnings_of,
)
from podium.policies import load
from podium.policies.registry import _TRAINED
from podium.search.candidate.gates import read_candidate
from podium.search.run.promoted import Decision, keep_decisions
from podium.store import open_store
from support.found import FOUND, found_run
from support.stored import RUN, bred

OWN = FOUND.replace("7", "8")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Is the folder of a run that nobody promoted."""
    return found_run(tmp_path / "runs", monkeypatch)


def active(reference, **changes):
    return active_policy(
        reference, "--policy", "--unvalidated", **{"is_unvalidated": False, **changes}
    )


@pytest.mark.usefixtures("run")
def test_a_run_that_was_not_promoted_does_not_score():
    with pytest.raises(Unvalidated, match="run:ab12 is not validated: it was not promo") as refused:
        active("run:ab12")
    assert refused.value.exit_code == 1
    assert refused.value.where == "--policy"
    assert refused.value.hint == (
        "podium search promote ab12 validates it, or shadow it; --unvalidated takes it all the same"
    )


def test_it_scores_where_somebody_says_so_and_after_its_promotion(run):
    assert active("run:ab12", is_unvalidated=True).validation.word == "no"
    keep_decisions(run, [Decision.on(FOUND, ["it gains 0.9"], FOUND)])
    assert active("run:ab12").validation.word == "yes"


def test_what_people_wrote_is_their_own_matter(tmp_path):
    (tmp_path / "mine.py").write_text(FOUND)
    assert active(str(tmp_path / "mine.py")).validation.word == "unknown"


@pytest.mark.usefixtures("run")
def test_what_is_not_validated_may_be_a_shadow_and_is_named():
    shadows = shadow_policies(["run:ab12", "best-fit"], "--shadow", load("fgd"))
    assert [each.name for each in shadows] == ["run:ab12", "best-fit"]
    assert warnings_of(shadows) == ["run:ab12 is not validated: it was not promoted"]


@pytest.mark.usefixtures("run")
def test_what_a_run_wrote_is_known_again_wherever_it_was_copied_to(tmp_path):
    for copy in (FOUND, FOUND.rstrip(), f"# mine\n{FOUND}", f'"""Mine."""\n\n{FOUND}'):
        (tmp_path / "mine.py").write_text(copy)
        with pytest.raises(Unvalidated, match="run:ab12 wrote what it computes") as refused:
            active(str(tmp_path / "mine.py"))
        assert "name run:ab12" in refused.value.hint
    (tmp_path / "mine.py").write_text(OWN)
    assert active(str(tmp_path / "mine.py")).validation.word == "unknown"


@pytest.mark.parametrize(("kind", "word"), [("bred", "no"), ("tuned", "no"), ("seed", "unknown")])
def test_every_candidate_of_a_run_is_known_again_but_what_people_gave_it(
    kind, word, tmp_path, monkeypatch
):
    monkeypatch.setenv("PODIUM_STORE_URL", str(tmp_path / "podium.db"))
    fingerprint = read_candidate(FOUND).fingerprint
    with open_store(str(tmp_path / "podium.db")) as store:
        store.runs.create(RUN)
        store.candidates.propose([replace(bred(0), kind=kind, fingerprint=fingerprint)])
    (tmp_path / "mine.py").write_text(f"# mine\n{FOUND}")
    assert active(str(tmp_path / "mine.py"), is_unvalidated=True).validation.word == word


def test_policies_that_metrics_could_not_tell_apart_are_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(FOUND)
    first, second = (str(tmp_path / folder / "mine.py") for folder in ("a", "b"))
    with pytest.raises(UsageError, match="2 policies are called mine") as refused:
        shadow_policies([second], "--shadow", active(first))
    assert refused.value.where == "--shadow"


@pytest.mark.parametrize("name", ["keep-room", "Keep_Room", "fed-gpu", "mlp", "binpack"])
def test_no_file_passes_for_a_policy_that_ships(name, tmp_path):
    file = tmp_path / f"{name}.py"
    file.write_text(OWN)
    with pytest.raises(UsageError, match="ships with Podium, and this is another"):
        active(str(file), is_unvalidated=True)
    with pytest.raises(UsageError, match="ships with Podium, and this is another"):
        shadow_policies([str(file)], "--shadow", load("fgd"))


def test_a_copy_of_a_policy_that_ships_keeps_its_name(tmp_path):
    file = tmp_path / "keep-room.py"
    file.write_text(load("keep-room").source.text)
    assert active(str(file)).name == "keep-room"


@pytest.mark.parametrize("name", ["fgd", "fed-gpu", "mlp", "binpack"])
def test_what_ships_needs_no_file(name):
    assert packed(load(name), name).size_bytes == 0


def test_weights_are_packed_with_their_card(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_SEARCH_FOLDER", str(tmp_path))
    (tmp_path / "cd34").mkdir()
    card = (_TRAINED / "mlp.json").read_text().replace('"name": "mlp"', '"name": "learned"')
    (tmp_path / "cd34" / "best.json").write_text(card)
    shutil.copy(_TRAINED / "mlp.npz", tmp_path / "cd34" / "best.npz")
    policy = active("run:cd34")
    (name,) = packed(policy, "run:cd34").weights
    assert name.startswith("run-cd34-")
    file = tmp_path / "cd34" / "best.npz"
    held = packed(load(str(file)), str(file))
    assert held.reference == "/etc/podium/policy/learned.npz"
    assert held.weights == {"learned.npz": file.read_bytes()}


def test_a_configuration_of_kube_scheduler_is_packed_as_the_python_that_it_means(tmp_path):
    file = tmp_path / "scheduler.yaml"
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    file.write_text(head)
    held = packed(active(str(file)), str(file))
    assert held.reference == "/etc/podium/policy/scheduler.py"
    assert "least_allocated" in held.texts["scheduler.py"]
