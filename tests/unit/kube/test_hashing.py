"""Hashed names still fit together, and nothing that is placed differs."""

import json
import stat

import numpy as np
import pytest

from podium.errors import InputError, UsageError
from podium.kube.hashing import Hasher, kept_salt, salt_file
from podium.kube.objects import is_mark, without_strange_marks
from podium.traces import load_trace
from podium.traces.kubernetes import keys
from support.kubelike import claim, gpu_node, gpu_pod, group, live, resource_slice, write_dump
from support.random_worlds import draw_world
from support.volume_worlds import draw_volume_world

HASHER = Hasher(b"salt")


def texts(value):
    """Lists all texts in a value, keys included."""
    if isinstance(value, dict):
        return [*value, *(text for part in value.values() for text in texts(part))]
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


def loaded(folder, objects):
    folder.mkdir()
    return load_trace(str(write_dump(folder, objects)))


@pytest.mark.parametrize("draw", [draw_world, draw_volume_world])
@pytest.mark.parametrize("seed", range(40))
def test_a_hashed_cluster_is_the_same_cluster(seed, draw, tmp_path):
    world = draw(seed)
    objects = [*world.cluster, *world.pending]
    plain = loaded(tmp_path / "plain", objects)
    hashed = loaded(tmp_path / "hashed", [HASHER.object(each) for each in objects])
    assert np.array_equal(plain.cluster.nodes, hashed.cluster.nodes)
    one, other = (trace.workload.on(trace.cluster) for trace in (plain, hashed))
    assert np.array_equal(one.pods, other.pods)
    assert np.array_equal(one.class_of, other.class_of)
    if one.tables is not None:
        assert np.array_equal(one.tables.admits, other.tables.admits)
        assert [c.rules for c in one.tables.classes] == [c.rules for c in other.tables.classes]


def test_no_name_is_left(tmp_path):
    del tmp_path
    pod = live(gpu_pod("secret-pod", 1, schedulingGroup={"podGroupName": "secret-group"},
                       nodeSelector={"team": "secret-team"},
                       resourceClaims=[{"name": "g", "resourceClaimName": "secret-claim"}],
                       tolerations=[{"key": "for", "value": "secret-team"}]),
               "secret-uid", "secret-node")  # fmt: skip
    pod["metadata"] |= {
        "namespace": "secret-space",
        "labels": {"app": "secret-app"},
        "ownerReferences": [{"kind": "Job", "name": "secret-job", "controller": True}],
        "annotations": {"scheduling.k8s.io/group-name": "secret-group"},
    }
    objects = [
        gpu_node("secret-node", labels={"team": "secret-team"}), pod, group("secret-group", 2),
        claim("secret-claim", "secret-node", ["gpu-0"]), resource_slice("secret-node", 1),
    ]  # fmt: skip
    hashed = [HASHER.object(each) for each in objects]
    assert [text for text in texts(hashed) if "secret" in text] == []
    assert hashed[1]["spec"]["nodeName"] == hashed[0]["metadata"]["name"]
    assert hashed[0]["metadata"]["labels"]["nvidia.com/gpu.product"] == "A100"


def test_numbers_at_the_end_tell_runs_apart():
    one, other = HASHER.name("nightly-28401"), HASHER.name("nightly-28402")
    assert (one[-6:], one[:-6]) == ("-28401", other[:-6])
    assert HASHER.name("system-node-critical") == "system-node-critical"
    assert HASHER.name("a") != Hasher(b"other").name("a")


def test_marks_that_podium_reads_are_kept_and_others_are_not():
    read = {
        *keys.DEVICE_ANNOTATIONS, *keys.GANG_MINIMUMS, keys.HAMI_REGISTER, keys.VOLCANO_REGISTER,
        keys.GPU_CARD_MODEL, keys.CREATION_TIME, keys.DELETION_TIME, keys.ARRIVAL_S,
        keys.DURATION_S, keys.JOB_TYPE, keys.KUEUE_TOPOLOGY, keys.KAI_TOPOLOGY, keys.KUEUE_SLICES,
        keys.GPU_REPLICAS, f"{keys.LWS}/size", keys.JOB_INDEX, "kubernetes.io/config.mirror",
        *(name for names in keys.GANG_KEYS.values() for name in names),
    }  # fmt: skip
    assert [key for key in read if not is_mark(key)] == []
    private = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"env": "secret"}),
               "vault.hashicorp.com/token": "x", "notnvidia.com/x": "y"}  # fmt: skip
    value = {"metadata": {"annotations": {**private, "nvidia.com/use-gputype": "A100"}}}
    kept = without_strange_marks(value)["metadata"]["annotations"]
    assert kept == {"nvidia.com/use-gputype": "A100"}


def test_the_salt_of_a_recording_is_kept_for_its_owner_alone(tmp_path):
    recording = tmp_path / "cluster.jsonl"
    salt = kept_salt(recording)
    recording.write_text("{}\n")
    assert kept_salt(recording) == salt
    assert len(salt) == 32
    assert salt_file(recording).name == "cluster.jsonl.salt"
    assert stat.S_IMODE(salt_file(recording).stat().st_mode) == 0o600
    assert kept_salt(tmp_path / "other.jsonl") != salt


def test_a_recording_whose_salt_is_gone_cannot_go_on(tmp_path):
    recording = tmp_path / "cluster.jsonl"
    recording.write_text("{}\n")
    with pytest.raises(UsageError, match="their salt is not there"):
        kept_salt(recording)
    assert not salt_file(recording).exists()
    for text in ("garbage", "", "abcd", "\xff"):
        salt_file(recording).write_text(text)
        with pytest.raises(InputError, match="it holds no salt"):
            kept_salt(recording)
    with pytest.raises(InputError, match="cannot be used"):
        kept_salt(tmp_path / "none" / "cluster.jsonl")


def test_salts_are_told_apart_without_being_told():
    one, other = Hasher(b"one"), Hasher(b"other")
    assert one.mark == Hasher(b"one").mark != other.mark
    assert one.mark not in one.name("name")
