import gzip

import pytest

from podium.errors import InputError
from podium.model import NodeSpec, PodSpec
from podium.traces.openb.csv_file import read_csv
from podium.traces.rejects import Rejects
from support.traces import originals

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
CPU = ", line 2, column cpu_milli"
END = ", line 2, column deletion_time"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"


@pytest.fixture
def read(tmp_path):
    def read_text(text, *, is_skipping=False, name="list.csv"):
        path = tmp_path / name
        data = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return read_csv(path, Rejects(is_skipping))

    return read_text


def test_a_header_with_sn_is_a_node_list(read):
    trace = read(NODES + "a,96000,393216,8,G2\nb,64000,262144,0,\n")
    assert trace.workload is None
    assert trace.cluster.specs() == [
        NodeSpec("a", 96000, 393216, 8, "G2"), NodeSpec("b", 64000, 262144),
    ]  # fmt: skip
    assert trace.notes == ()


def test_a_header_with_name_is_a_pod_list(read):
    trace = read(PODS + "p,12000,16384,1,460,T4|G2,10,70\n")
    assert trace.cluster is None
    assert trace.workload.specs() == [
        PodSpec("p", 12000, 16384, 1, 460, "T4|G2", arrival_s=10.0, duration_s=60.0)
    ]


def test_columns_are_found_by_name_in_any_order(read):
    trace = read("gpu,sn,model,memory_mib,cpu_milli\n2,a,T4,100,5\n")
    assert trace.cluster.specs() == [NodeSpec("a", 5, 100, 2, "T4")]


def test_a_pod_list_may_end_after_five_columns(read):
    trace = read("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,8,1000\n")
    assert trace.workload.specs() == [PodSpec("p", 1, 2, 8, 1000)]
    assert not trace.workload.has_times


def test_without_gpu_milli_gpus_are_whole(read):
    trace = read("name,cpu_milli,memory_mib,num_gpu\np,1,2,2\nq,1,2,0\n")
    assert [pod.gpu_milli for pod in trace.workload.specs()] == [1000, 0]


def test_racks_labels_and_groups_have_columns_of_their_own(read):
    trace = read('sn,cpu_milli,memory_mib,gpu,rack,labels\na,1,2,0,r1,"{""zone"": ""z""}"\n')
    assert trace.cluster.specs() == [NodeSpec("a", 1, 2, rack="r1", labels={"zone": "z"})]
    trace = read("name,cpu_milli,memory_mib,num_gpu,priority,gang,job_type\np,1,2,0,-5,g,train\n")
    assert trace.workload.specs() == [PodSpec("p", 1, 2, priority=-5, gang="g", job_type="train")]


def test_compressed_lists_read_alike(read):
    text = NODES + "a,1,2,0,\n"
    assert read(text, name="list.csv.gz").cluster.specs() == read(text).cluster.specs()


def test_windows_line_ends_byte_order_marks_and_empty_lines_do_not_matter(read):
    trace = read(b"\xef\xbb\xbf" + (NODES + "\na,1,2,0,\n\n").replace("\n", "\r\n").encode())
    assert trace.cluster.names == ("a",)


def test_numbers_with_a_zero_fraction_are_whole(read):
    assert read(NODES + "a,96000.0,2.,0,\n").cluster.specs() == [NodeSpec("a", 96000, 2)]


def test_columns_without_a_meaning_are_noted(read):
    trace = read("sn,cpu_milli,memory_mib,gpu,colour\na,1,2,0,red\n")
    assert trace.notes == ("column colour is not used",)


def test_times_that_only_some_pods_have_are_noted(read):
    trace = read(PODS + "p,1,2,0,0,,5,6\nq,1,2,0,0,,,\n")
    assert trace.notes == (
        "arrivals are not used: 1 of 2 pods have none",
        "durations are not used: 1 of 2 pods have none",
    )


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("", "", "the file is empty"),
        ("\n", ", line 1", "the header lacks name, cpu_milli"),
        ("a,b,c\n1,2,3\n", ", line 1", "the header lacks name, cpu_milli, memory_mib, num_gpu"),
        ("sn,cpu_milli\na,1\n", ", line 1", "the header lacks memory_mib, gpu"),
        ("sn,sn,cpu_milli,memory_mib,gpu\n", ", line 1", "the header names sn twice"),
        (NODES, "", "the list holds no nodes"),
        (PODS, "", "the list holds no pods"),
        (NODES + "a,1,2,0\n", ", line 2", "5 cells are expected, not 4"),
        (NODES + "a,-1,2,0,\n", CPU, "0 to 2147483647 is expected, not -1"),
        (NODES + "a,nan,2,0,\n", CPU, 'a whole number is expected, not "nan"'),
        (NODES + "a,1.5,2,0,\n", CPU, "a whole number"),
        (NODES + "a,1e3,2,0,\n", CPU, "a whole number"),
        (NODES + "a,,2,0,\n", CPU, "a whole number"),
        (NODES + "a,9999999999,2,0,\n", CPU, "0 to 2147483647"),
        (NODES + f"a,{'9' * 5000},2,0,\n", CPU, "a whole number"),
        (NODES + "a,1,2,17,X\n", ", line 2, column gpu", "0 to 16 are supported"),
        (NODES + "a,1,2,1,X|Y\n", ", line 2, column model", "one model"),
        (NODES + ",1,2,0,\n", ", line 2, column sn", "name is empty"),
        (NODES + "a,1,2,0,\n\na,1,2,0,\n", ", line 4, column sn", 'another node is named "a"'),
        (PODS + "p,1,2,1,0,,0,1\n", ", line 2, column gpu_milli", "1 to 1000 per GPU"),
        (PODS + "p,1,2,2,5000,,0,1\n", ", line 2, column gpu_milli", "5000"),
        (PODS + "p,1,2,0,500,,0,1\n", ", line 2, column gpu_milli", "without a GPU"),
        (PODS + "p,1,2,99,1000,,0,1\n", ", line 2, column num_gpu", "0 to 16"),
        (PODS + ",1,2,0,0,,0,1\n", ", line 2, column name", "the pod has no name"),
        (PODS + "p,1,2,0,0,,nan,1\n", ", line 2, column creation_time", "seconds of at least 0"),
        (PODS + "p,1,2,0,0,,soon,1\n", ", line 2, column creation_time", "seconds of at least 0"),
        ('sn,"cpu', ", line 1", "is not valid CSV"),
        (PODS + "p,1,2,0,0,,-1,1\n", ", line 2, column creation_time", "seconds of at least 0"),
        (PODS + "p,1,2,0,0,,0,1e999\n", END, "seconds of at least 0"),
        (PODS + "p,1,2,0,0,,9,5\n", END, "5 is before the creation_time 9"),
        (PODS + 'p,1,"2,0\n', ", line 2", "is not valid CSV"),
        (b"sn,\xff\n", ", line 1", "not UTF-8 text"),
    ],
)  # fmt: skip
def test_a_bad_list_is_an_input_error_with_its_place(read, tmp_path, text, where, message):
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in caught.value.message
    assert caught.value.where == f"{tmp_path / 'list.csv'}{where}"
    assert caught.value.hint


@pytest.mark.parametrize("labels", ["text", "[]", '"{""a"": 1}"', "[" * 2000])
def test_labels_are_expected_to_be_an_object_of_texts(read, labels):
    with pytest.raises(InputError, match="a JSON object of texts"):
        read(f"sn,cpu_milli,memory_mib,gpu,labels\na,1,2,0,{labels}\n")


def test_bad_rows_can_be_skipped_and_are_listed(read, tmp_path):
    rows = "a,1,2,0,\nb,x,2,0,\na,3,4,0,\nc,1\nd,5,6,0,\n"
    trace = read(NODES + rows, is_skipping=True)
    assert trace.cluster.names == ("a", "d")
    path = tmp_path / "list.csv"
    assert trace.notes == (
        f'left out: {path}, line 3, column cpu_milli: a whole number is expected, not "x"',
        f'left out: {path}, line 4, column sn: another node is named "a"',
        f"left out: {path}, line 5: 5 cells are expected, not 2",
    )


def test_nothing_is_left_when_every_row_is_bad(read):
    with pytest.raises(InputError, match="holds no nodes"):
        read(NODES + "a,x,2,0,\n", is_skipping=True)


@pytest.mark.openb
def test_the_original_default_list_reads_as_published():
    trace = read_csv(originals() / "openb_pod_list_default.csv", Rejects())
    assert len(trace.workload) == 8152
    assert trace.workload.gpu_milli_total == 6_086_800
    assert len(trace.workload.shapes()) == 151
    assert trace.workload.duration_s.mean() == pytest.approx(25839.36, abs=0.01)
    assert trace.notes == ()


@pytest.mark.openb
def test_all_original_lists_can_be_read():
    files = sorted(originals().glob("openb_*_list_*.csv"))
    assert len(files) >= 26
    for path in files:
        trace = read_csv(path, Rejects())
        assert trace.notes == ()
        assert trace.workload is None or trace.workload.has_times == ("multigpu" not in path.name)
