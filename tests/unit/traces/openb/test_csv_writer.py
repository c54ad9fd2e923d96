from dataclasses import replace

from podium.files.text_file import writing
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.traces.openb import csv_writer
from support.traces import small_trace


def write_nodes(cluster, path):
    with writing(path) as stream:
        csv_writer.write_nodes(cluster, stream)


def write_pods(workload, path):
    with writing(path) as stream:
        csv_writer.write_pods(workload, stream)


def test_nodes_are_written_in_the_columns_of_openb(tmp_path):
    write_nodes(Cluster.of([NodeSpec("a", 1, 2, 8, "G2"), NodeSpec("b", 3, 4)]), tmp_path / "n.csv")
    assert (tmp_path / "n.csv").read_text() == (
        "sn,cpu_milli,memory_mib,gpu,model\na,1,2,8,G2\nb,3,4,0,\n"
    )


def test_further_columns_appear_only_where_they_say_something(tmp_path):
    write_nodes(small_trace().cluster, tmp_path / "n.csv")
    write_pods(small_trace().workload, tmp_path / "p.csv")
    assert (tmp_path / "n.csv").read_text().splitlines()[0].endswith(",model,rack,labels")
    assert (tmp_path / "p.csv").read_text() == (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,"
        "priority,gang,job_type\n"
        "p0,4000,8192,1,500,,0,100,0,,\n"
        "p1,8000,0,2,1000,G2|P100|P100,5,65,7,g,train\n"
        "p2,1000,100,0,0,,9,10,0,,\n"
    )


def test_a_duration_is_written_where_an_end_would_round_it(tmp_path):
    pod = PodSpec("p", 1, 2, arrival_s=1e9 + 0.1, duration_s=0.3)
    write_pods(Workload.of([pod]), tmp_path / "p.csv")
    header, row = (tmp_path / "p.csv").read_text().splitlines()
    assert header.endswith("creation_time,duration_s")
    assert row.endswith(",1000000000.1,0.3")


def test_times_that_are_not_known_have_no_column(tmp_path):
    write_pods(Workload.of([PodSpec("p", 1, 2)]), tmp_path / "p.csv")
    assert "time" not in (tmp_path / "p.csv").read_text()
    only_duration = replace(PodSpec("p", 1, 2), duration_s=5.0)
    write_pods(Workload.of([only_duration]), tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().splitlines()[0].endswith("gpu_spec,duration_s")
