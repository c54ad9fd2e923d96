import os

import pytest

from podium.traces import LoadOptions, load_trace
from podium.traces.kubernetes import documents

NODE = "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: %d, memory: 1Gi}}\n---\n"
PODS = "".join(
    f"kind: Pod\nmetadata: {{name: p{number}}}\n"
    "spec: {containers: [{resources: {requests: {cpu: 1}}}]}\n---\n"
    for number in range(900)
)


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "dump.yaml"
    path.write_text(NODE % 4 + PODS)
    assert path.stat().st_size > 1 << 16
    return path


def test_a_dump_is_read_once_for_all_seeds(dump):
    drawn = [
        load_trace(str(dump), LoadOptions(seed=seed, duration="exponential:1h")) for seed in (1, 2)
    ]
    assert drawn[0].of_nodes is drawn[1].of_nodes
    assert drawn[0].workload.duration_s.tolist() != drawn[1].workload.duration_s.tolist()
    again = load_trace(str(dump), LoadOptions(seed=1, duration="exponential:1h"))
    assert again.workload.duration_s.tolist() == drawn[0].workload.duration_s.tolist()
    assert again.notes == drawn[0].notes


def test_a_dump_that_has_changed_is_read_again(dump):
    assert load_trace(str(dump)).cluster.cpu_milli_total == 4000
    dump.write_text(NODE % 8 + PODS)
    os.utime(dump, (1, 1))
    assert load_trace(str(dump)).cluster.cpu_milli_total == 8000


def test_other_nodes_are_no_reason_to_take_what_was_read(dump, tmp_path):
    pair = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for cpu, path in enumerate(pair, 1):
        path.write_text(NODE % cpu)
    found = [load_trace(str(dump), LoadOptions(on=load_trace(str(path)))) for path in pair]
    assert [trace.cluster.cpu_milli_total for trace in found] == [1000, 2000]


@pytest.mark.parametrize("name", ["long.yaml", "long.json"])
def test_long_files_say_how_far_they_are(tmp_path, monkeypatch, name):
    monkeypatch.setattr(documents, "LONG_BYTES", 1 << 16)
    path, told = tmp_path / name, []
    status = '{"allocatable": {"cpu": 1, "memory": 1}}'
    item = f'{{"kind": "Node", "metadata": {{"name": "n"}}, "status": {status}}}'
    path.write_text('{"kind": "List", "items": [\n' + item + " " * (5 << 20) + "]}")
    load_trace(str(path), LoadOptions(follow=lambda *each: told.append(each)))
    assert told[0] == (name, 0, 5)
    assert told[-1] == (name, 5, 5)
