import math

import numpy as np
import pytest

from podium.errors import PolicyError
from podium.policies import HOLD, from_function, load, policy_of
from podium.policies.abi import CALLBACK, python_callback
from podium.policies.language.native_arithmetic import NATIVE
from podium.policies.source import read_source
from support.views import node, node_record, pod, pod_record

TABLE = np.array([[1.0, 2.0], [3.0, 4.0]])
POD = np.array([pod_record(pod(3, 5, gpus=2))])
NODES = {
    slots: np.array([node_record(node((7, 11), gpus=(1, 2), slots=slots))]) for slots in (8, 16)
}


def called(native, slots=8, gpu=-1, table=TABLE):
    columns = table.shape[1] if table.ndim == 2 else 1
    where = (POD.ctypes.data, NODES[slots].ctypes.data, gpu, table.ctypes.data, len(table), columns)
    return CALLBACK(native.address)(*where)


def two(pod, node):
    return pod.cpu_milli * node.cpu_milli_left


def three(pod, node, gpu):
    return pod.cpu_milli + node.gpu_milli_left[gpu]


def with_table(pod, node, table):  # noqa: ARG001
    return table[1, 0] + pod.memory_mib


def with_all(pod, node, gpu, table):
    return table[0, gpu] * node.gpu_count + pod.gpu_count


@pytest.mark.parametrize("slots", [8, 16])
@pytest.mark.parametrize(
    ("function", "expected"), [(two, 21), (three, 5), (with_table, 8), (with_all, 6)]
)
def test_each_form_gets_its_arguments(function, expected, slots):
    native = from_function(function).native(2, slots)
    assert called(native, slots, gpu=1) == expected


def test_a_table_of_one_dimension_is_indexed_by_one_number():
    def score(pod, node, table):  # noqa: ARG001
        return table[2]

    assert called(from_function(score).native(1, 8), table=np.array([5.0, 6.0, 7.0])) == 7


def test_a_failure_is_not_a_number():
    def score(pod, node):
        return pod.cpu_milli // (node.cpu_milli_left - 7)

    assert math.isnan(called(from_function(score).native(1, 8)))


def test_a_refusal_is_minus_infinity():
    def score(pod, node):  # noqa: ARG001
        return HOLD

    assert called(from_function(score).native(1, 8)) == -math.inf


def test_a_policy_that_cannot_be_compiled_is_told_why():
    def score(pod, node):  # noqa: ARG001
        return len({"a": pod}.items().__class__.__name__)

    with pytest.raises(PolicyError, match="cannot be compiled") as raised:
        from_function(score).native(1, 8)
    assert "python tier" in raised.value.hint


def test_a_table_cannot_be_written_to(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "def prepare(shapes):\n    return [1.0]\n\n\n"
        "def score(pod, node, table):\n    return table[0]\n"
    )
    policy = load(str(path))
    table = policy.table(None)
    assert not table.flags.writeable


def test_a_python_function_can_be_called_like_a_compiled_one():
    native = python_callback(lambda pod, node, gpu: float(pod + node + gpu))
    assert CALLBACK(native.address)(1, 2, 3, 0, 0, 0) == 6.0


def test_an_operation_is_compiled_once_whatever_numbers_are_written_beside_it():
    lines = "".join(f"    n = n * {number} + n\n" for number in range(2, 6))
    text = f"def score(pod, node):\n    n = pod.cpu_milli\n{lines}    return n\n"
    policy_of(read_source(text, "p"), "p").native(1, 8)
    given = {str(each) for name in ("add", "multiply") for each in NATIVE[name].signatures}
    assert given == {"(int64, int64)"}
