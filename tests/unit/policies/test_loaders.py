import hashlib
import io
import json

import numpy as np
import pytest

from podium.errors import InputError, MissingError, PolicyError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import ClusterPolicy, load
from podium.policies.weights import NETWORKS
from podium.sim import Rounds, simulate

TEXT = '"""Fills the fullest node."""\n\n\ndef score(pod, node):\n    return -node.cpu_milli_left\n'


def digest(content):
    return hashlib.sha256(content).hexdigest()


def write_card(folder, **changes):
    """Writes a promoted policy and its card as a promotion does."""
    (folder / "found_12.py").write_text(TEXT)
    card = {
        "name": "found-12", "summary": "Fills the fullest node.", "sha256": digest(TEXT.encode()),
        "provenance": {"run": "ab12"},
    }  # fmt: skip
    path = folder / "found_12.json"
    path.write_text(json.dumps({**card, **changes}))
    return path


def test_a_card_loads_the_policy_that_it_describes(tmp_path):
    policy = load(str(write_card(tmp_path)))
    assert (policy.name, policy.origin, policy.source.text) == ("found-12", "file", TEXT)


def test_the_card_of_a_shipped_policy_loads_it():
    from podium.policies import registry

    folder = registry._FOLDERS["discovered"]
    for path in folder.glob("*.json"):
        assert load(str(path)).name == path.stem.replace("_", "-")


def test_a_policy_that_was_changed_after_its_validation_is_refused_by_its_card(tmp_path):
    path = write_card(tmp_path)
    changed = tmp_path / "found_12.py"
    changed.write_text(TEXT.replace("-node", "node"))
    with pytest.raises(PolicyError, match="changed after it was validated") as raised:
        load(str(path))
    assert raised.value.where == str(changed)
    assert load(str(changed)).name == "found_12"


def test_a_policy_that_its_card_does_not_vouch_for_is_not_run_first(tmp_path):
    path = write_card(tmp_path)
    (tmp_path / "found_12.py").write_text(f"{TEXT}\n\nraise SystemExit\n")
    with pytest.raises(PolicyError, match="changed after it was validated"):
        load(str(path))


@pytest.mark.parametrize("wanted", [None, 7, ["a"]])
def test_a_card_without_a_digest_runs_nothing(tmp_path, wanted):
    path = write_card(tmp_path, sha256=wanted)
    (tmp_path / "found_12.py").write_text(f"{TEXT}\n\nraise SystemExit\n")
    with pytest.raises(InputError, match='the card has no "sha256"') as raised:
        load(str(path))
    assert "load found_12.py itself" in raised.value.hint


@pytest.mark.parametrize("name", ["fgd", "fed-gpu", "FED_GPU", " fgd", "binpack"])
def test_a_card_cannot_take_the_name_of_a_shipped_policy(tmp_path, name):
    with pytest.raises(InputError, match="is a policy that ships with Podium"):
        load(str(write_card(tmp_path, name=name)))


def test_a_card_without_its_policy_is_told(tmp_path):
    path = write_card(tmp_path)
    (tmp_path / "found_12.py").unlink()
    with pytest.raises(InputError, match=r"not its policy found_12\.py"):
        load(str(path))


@pytest.mark.parametrize("name", [7, "", " ", ["a"], "a" * 101, "a\x1b[2J", "a\nb"])
def test_a_card_names_its_policy_by_a_text(tmp_path, name):
    with pytest.raises(InputError, match="is not a name"):
        load(str(write_card(tmp_path, name=name)))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"runs": [], "seed": 3}', "an object with the keys runs, seed"),
        ("[1, 2]", r"\[1, 2\]"),
        ("{}", "{}"),
        ('{"kind": "NodeList", "apiVersion": "v1"}', r"NodeList instead"),
        ('{"apiVersion": "kubescheduler.config.k8s.io/v1"}', "no KubeSchedulerConfiguration"),
    ],
)
def test_other_json_is_told_by_what_it_is(tmp_path, text, told):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InputError, match=told) as raised:
        load(str(path))
    assert "other.json" in raised.value.where


def test_a_file_of_another_ending_is_told(tmp_path):
    path = tmp_path / "pods.csv"
    path.write_text("name,cpu\n")
    with pytest.raises(InputError, match=r"ends in \.py"):
        load(str(path))


def write_weights(folder, **changes):
    buffer = io.BytesIO()
    np.savez(buffer, first=np.arange(3.0))
    (folder / "net.npz").write_bytes(buffer.getvalue())
    card = {"name": "net", "network": "mean", "sha256": digest(buffer.getvalue()), **changes}
    (folder / "net.json").write_text(json.dumps(card))


@pytest.fixture
def mean_network(monkeypatch):
    """Teaches this process a network, as a later release would ship one."""

    class Mean:
        def __init__(self, value):
            self.value = value

        def choose(self, pod, nodes, feasible):  # noqa: ARG002
            return int(feasible.argmax())

    def make(weights):
        return ClusterPolicy(weights.name, lambda _: Mean(weights.arrays["first"].mean()))

    monkeypatch.setitem(NETWORKS, "mean", make)


@pytest.mark.usefixtures("mean_network")
@pytest.mark.parametrize("name", ["net.npz", "net.json"])
def test_weights_and_their_card_are_one_policy(tmp_path, name):
    write_weights(tmp_path)
    policy = load(str(tmp_path / name))
    assert (policy.name, policy.start(0).value) == ("net", 1.0)


def test_a_network_that_is_not_known_asks_for_a_newer_release(tmp_path):
    write_weights(tmp_path)
    with pytest.raises(MissingError, match="cannot run the network 'mean'") as raised:
        load(str(tmp_path / "net.npz"))
    assert "install a newer Podium" in raised.value.hint


@pytest.mark.parametrize(
    ("gone", "loaded"), [("net.npz", "net.json"), ("net.json", "net.npz")], ids=str
)
def test_half_of_a_net_is_told(tmp_path, gone, loaded):
    write_weights(tmp_path)
    (tmp_path / gone).unlink()
    with pytest.raises(InputError, match="no such file beside") as raised:
        load(str(tmp_path / loaded))
    assert raised.value.where.endswith(gone)


def test_weights_that_are_not_those_of_the_card_are_refused(tmp_path):
    write_weights(tmp_path, sha256="0" * 64)
    with pytest.raises(PolicyError, match="changed after it was validated"):
        load(str(tmp_path / "net.npz"))


def test_weights_whose_card_has_no_digest_are_refused(tmp_path):
    write_weights(tmp_path, sha256=None)
    with pytest.raises(InputError, match='the card has no "sha256"'):
        load(str(tmp_path / "net.npz"))


@pytest.mark.usefixtures("mean_network")
@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 broken"])
def test_weights_that_are_no_archive_are_told(tmp_path, content):
    write_weights(tmp_path, sha256=digest(content))
    (tmp_path / "net.npz").write_bytes(content)
    with pytest.raises(InputError, match="not weights"):
        load(str(tmp_path / "net.npz"))


def test_weights_beside_the_card_of_something_else_are_told(tmp_path):
    write_weights(tmp_path)
    (tmp_path / "net.json").write_text('{"name": "net", "summary": "A program."}')
    with pytest.raises(InputError, match='names no "network"'):
        load(str(tmp_path / "net.npz"))


@pytest.mark.parametrize("network", [["l"], {}, None, 7])
def test_a_network_is_named_by_a_text(tmp_path, network):
    write_weights(tmp_path, network=network)
    with pytest.raises(InputError, match="is not the name of a network") as raised:
        load(str(tmp_path / "net.json"))
    assert "net.json" in raised.value.where


@pytest.mark.usefixtures("mean_network")
def test_weights_that_would_fill_the_memory_are_refused(tmp_path, monkeypatch):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, first=np.zeros(100_000))
    write_weights(tmp_path, sha256=digest(buffer.getvalue()))
    (tmp_path / "net.npz").write_bytes(buffer.getvalue())
    assert load(str(tmp_path / "net.npz")).name == "net"
    monkeypatch.setattr("podium.policies.weights.LARGEST_BYTES", 500_000)
    with pytest.raises(InputError, match="arrays of 800,128 bytes when unpacked"):
        load(str(tmp_path / "net.npz"))


CHOOSE = "    def choose(self, pod, nodes, feasible):\n        return int(feasible.argmax())\n"


@pytest.mark.parametrize(
    "constructor",
    [
        "",
        "    def __init__(self):\n        pass\n\n",
        "    def __init__(self, seed):\n        1 / 0\n\n",
    ],
    ids=["none", "no seed", "fails"],
)
def test_a_class_that_cannot_be_started_is_told(tmp_path, constructor):
    path = tmp_path / "mine.py"
    path.write_text(f"class Policy:\n{constructor}{CHOOSE}")
    policy = load(str(path))
    with pytest.raises(PolicyError, match="the policy could not be created: ") as raised:
        policy.session()
    assert ("__init__(self, seed)" in raised.value.hint) == ("1 / 0" not in constructor)
    with pytest.raises(PolicyError, match="the policy could not be created: "):
        simulate(
            Cluster.of([NodeSpec("n", 1, 1)]), Workload.of([PodSpec("p", 1, 1)]), policy, Rounds()
        )


@pytest.mark.parametrize("body", ["pass", "choose = 3"])
def test_a_class_that_cannot_choose_is_the_policys_error(tmp_path, body):
    path = tmp_path / "mine.py"
    path.write_text(f"class Policy:\n    {body}\n    def __init__(self, seed):\n        pass\n")
    with pytest.raises(PolicyError, match="cannot choose") as raised:
        load(str(path)).session()
    assert "choose(self, pod, nodes, feasible)" in raised.value.hint
