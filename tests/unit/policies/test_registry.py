import json
from pathlib import Path

import pytest

from podium.errors import InputError, UnknownName, UsageError
from podium.policies import ClusterPolicy, PairPolicy, catalogue, load, registry

SHIPPED = {
    "balanced", "best-fit", "compact", "dot-product", "fgd", "first-fit", "gpu-clustering",
    "gpu-packing", "kube-default", "kube-most-allocated", "random", "round-robin", "simon",
    "worst-fit",
}  # fmt: skip


def test_the_catalogue_lists_what_ships():
    listed = {info.name: info for info in catalogue()}
    assert set(listed) >= SHIPPED
    assert listed["fgd"].source == "podium/policies/builtin/fgd.py"
    assert listed["round-robin"].kind == "cluster"


def test_every_policy_of_the_catalogue_says_what_it_does():
    assert all(info.summary.endswith(".") for info in catalogue())


def test_no_policy_of_the_catalogue_holds_pods_back():
    assert not any(info.may_hold for info in catalogue() if info.origin == "written")


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_name_loads_the_policy(name):
    policy = load(name)
    assert (policy.name, policy.origin) == (name, "written")


def test_a_file_is_a_reference(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def score(pod, node):\n    return 1\n")
    policy = load(str(path))
    assert isinstance(policy, PairPolicy)
    assert (policy.name, policy.origin) == ("mine", "file")


def test_a_file_with_a_class_is_a_cluster_policy(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "class Policy:\n    def __init__(self, seed):\n        pass\n\n"
        "    def choose(self, pod, nodes, feasible):\n        return int(feasible.argmax())\n"
    )
    assert isinstance(load(str(path)), ClusterPolicy)


def test_a_misspelt_name_gets_suggestions():
    with pytest.raises(UnknownName, match='unknown policy "best-fitt"') as raised:
        load("best-fitt")
    assert "best-fit" in raised.value.hint


@pytest.mark.parametrize("name", ["", "qqq", "best_fit", "best-fit.txt"])
def test_a_name_that_is_not_known_lists_what_is(name):
    with pytest.raises(UnknownName) as raised:
        load(name)
    assert "best-fit" in raised.value.hint


def test_what_a_run_found_does_not_come_through_this_door():
    with pytest.raises(UsageError, match="gates of candidates"):
        load("run:ab12")


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load(str(tmp_path / "mine.py"))


def test_a_folder_and_a_file_that_is_no_text_are_told(tmp_path):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe\x00")
    for name in ("folder.py", "bytes.py"):
        with pytest.raises(InputError, match=r"cannot be read|not UTF-8 text"):
            load(str(tmp_path / name))


def test_trained_policies_are_listed_by_their_cards_and_load_by_name():
    trained = [info for info in catalogue() if info.origin == "trained"]
    assert "qtable" in [info.name for info in trained]
    for info in trained:
        policy = load(info.name)
        assert (policy.name, policy.kind, policy.origin) == (info.name, info.kind, "trained")
        assert (policy.may_hold, policy.summary) == (info.may_hold, info.summary)


def test_cards_of_trained_policies_say_how_they_were_trained():
    for path in sorted((Path(registry.__file__).parent / "trained").glob("*.json")):
        training = json.loads(path.read_text(encoding="utf-8"))["training"]
        assert training["command"].startswith("podium train ")
        assert {"seed", "data", "seconds", "validation", "iterations"} <= training.keys()


def test_a_stranger_does_not_pass_for_a_trained_policy(tmp_path):
    source = Path(registry.__file__).parent / "trained"
    for suffix in (".npz", ".json"):
        (tmp_path / f"mine{suffix}").write_bytes((source / f"qtable{suffix}").read_bytes())
    with pytest.raises(InputError, match="ships with Podium"):
        load(str(tmp_path / "mine.npz"))
