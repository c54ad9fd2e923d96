import json
from pathlib import Path

import pytest

from podium.cli.main import app
from podium.traces.openb.files import CITATION


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["traces", *map(str, arguments)])


@pytest.fixture
def trace(run):
    """Writes a small trace as two CSV files."""
    run("generate", "small.csv", "--nodes", 3, "--pods", 5)
    return "small-pods.csv"


def test_the_list_names_embedded_and_original_traces(run):
    result = run("list")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["trace", "origin", "present", "nodes", "pods", "summary"]
    assert ["openb", "embedded", "yes"] in [line[:3] for line in lines]
    assert ["openb:default", "csv", "no"] in [line[:3] for line in lines]


def test_the_list_is_data_too(run):
    listed = json.loads(run("list", "--json").stdout)
    assert listed[0]["name"] == "openb"
    assert listed[0].keys() == {"name", "origin", "is_present", "nodes", "pods", "summary"}


@pytest.mark.parametrize("origin", ["flag", "fetched"])
def test_the_list_sees_files_in_the_folder_that_is_set_and_in_the_one_that_was_fetched(
    run, monkeypatch, origin
):
    folder = Path("here")
    folder.mkdir()
    (folder / "openb_pod_list_default.csv").write_text("")
    if origin == "fetched":
        monkeypatch.setenv("PODIUM_TRACES_CACHE", "here")
    arguments = ["--traces", "here"] if origin == "flag" else []
    listed = json.loads(run("list", "--json", *arguments).stdout)
    present = [info["name"] for info in listed if info["origin"] == "csv" and info["is_present"]]
    assert present == ["openb:default"]


def test_info_describes_nodes_pods_and_demand(run):
    result = run("info", "openb:16")
    assert result.exit_code == 0
    assert "nodes   16" in result.stdout
    assert "GPUs    64" in result.stdout
    assert "share" in result.stdout
    assert "between arrivals" in result.stdout
    assert "total demand / capacity" in result.stdout


def test_info_as_data_holds_the_same(run):
    described = json.loads(run("info", "openb:16", "--json").stdout)
    assert described["cluster"]["gpus"] == 64
    assert described["workload"]["pods"] == 8152


def test_info_takes_the_nodes_from_another_file(run, trace):
    assert "cluster" not in json.loads(run("info", trace, "--json").stdout)
    described = json.loads(run("info", trace, "--cluster", "small-nodes.csv", "--json").stdout)
    assert described["cluster"]["nodes"] == 3


def test_pods_do_not_do_for_a_cluster(run, trace):
    result = run("info", trace, "--cluster", trace)
    assert result.exit_code == 2
    assert f"at:  --cluster {trace}" in result.stderr


def test_the_seed_of_the_settings_draws_the_embedded_trace(run, monkeypatch):
    first = run("info", "openb", "--seed", 7, "--json").stdout
    monkeypatch.setenv("PODIUM_SIMULATE_SEED", "7")
    assert run("info", "openb", "--json").stdout == first
    assert run("info", "openb", "--seed", 8, "--json").stdout != first


def test_notes_about_a_trace_go_to_standard_error(run, trace):
    Path(trace).write_text(Path(trace).read_text() + "bad,-1,1,0,0,,0,1\n")
    result = run("info", trace, "--skip-bad")
    assert result.exit_code == 0
    assert "note: left out: " in result.stderr
    assert "left out" not in result.stdout


def test_a_config_of_the_published_simulator_shows_its_experiment(run):
    Path("cluster").mkdir()
    run("generate", "cluster/all.yaml", "--nodes", 2, "--pods", 3)
    Path("config.yaml").write_text(
        "apiVersion: simon/v1alpha1\nkind: Config\nspec:\n  cluster:\n    customConfig: cluster\n"
        "  customConfig:\n    workloadInflationConfig: {ratio: 1.3, seed: 42}\n"
    )
    result = run("info", "config.yaml")
    assert result.exit_code == 0, result.stderr
    experiment = json.loads(run("info", "config.yaml", "--json").stdout)["experiment"]
    assert experiment["seed"] == 42
    assert f"ratio     {experiment['ratio']:.4g}\nseed      42\n" in result.stdout


def test_a_sound_trace_passes_its_check(run):
    result = run("check", "openb")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "openb: no problems found\n"


def test_a_check_lists_bad_rows_and_says_no(run, trace):
    Path(trace).write_text(Path(trace).read_text() + "bad,-1,1,0,0,,0,1\n")
    result = run("check", trace, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["is_sound"] is False
    assert "line 7" in found["findings"][0]
    assert run("check", trace).stdout.splitlines() == found["findings"]


def test_a_check_says_why_an_odd_node_was_left_out(run):
    lacking = "kind: Node\nmetadata: {name: odd}\nstatus: {allocatable: {cpu: 8}}\n"
    Path("odd.yaml").write_text(lacking)
    result = run("check", "odd.yaml")
    assert result.exit_code == 1
    assert 'node "odd": the node does not say how much memory it has' in result.stdout


def test_a_file_that_is_no_trace_at_all_fails_its_check(run):
    Path("empty.csv").write_text("")
    result = run("check", "empty.csv")
    assert result.exit_code == 1
    assert result.stdout.startswith("empty.csv")


def test_a_check_shows_notes_which_do_not_count(run):
    node = "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 8, memory: 8Gi}}\n"
    Path("dump.yaml").write_text(f"{node}---\nkind: ResourceQuota\n")
    result = run("check", "dump.yaml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "note: ResourceQuota is not honoured: 1 object" in result.stderr
    answer = json.loads(run("check", "dump.yaml", "--json").stdout)
    assert answer["notes"] == ["ResourceQuota is not honoured: 1 object"]
    assert answer["is_sound"] is True


def test_a_dump_can_be_piped_in(runner):
    node = "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 8, memory: 8Gi}}\n"
    result = runner.invoke(app, ["traces", "info", "-", "--json"], input=node)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["cluster"]["nodes"] == 1


def test_what_a_format_has_no_place_for_is_noted(run):
    Path("dump.yaml").write_text(
        "kind: Node\nmetadata: {name: n}\nspec: {unschedulable: true}\n"
        "status: {allocatable: {cpu: 8, memory: 8Gi}}\n---\n"
        "kind: Pod\nmetadata: {name: p, labels: {scheduling.x-k8s.io/pod-group: g}}\n"
        "spec: {nodeName: n, nodeSelector: {disk: ssd}, containers: [{}]}\n---\n"
        "kind: PodGroup\napiVersion: scheduling.x-k8s.io/v1alpha1\nmetadata: {name: g}\n"
        "spec: {minMember: 2}\n"
    )
    said = run("convert", "dump.yaml", "dump.csv").stderr
    assert "CSV has no place for taints: 1 node" in said
    assert "CSV has no place for the nodes they run on: 1 pod" in said
    assert "CSV has no place for constraints: 1 pod" in said
    assert "CSV has no place for rules of gangs: 1 gang" in said
    assert "no place for" not in run("convert", "dump.yaml", "again.yaml").stderr


def test_a_check_of_nothing_is_a_mistake_of_the_command_line(run):
    assert run("check", "nowhere.csv").exit_code == 2


@pytest.mark.parametrize(
    ("target", "files"),
    [
        ("drawn.csv", ["drawn-nodes.csv", "drawn-pods.csv"]),
        ("drawn.yaml", ["drawn.yaml"]),
        ("drawn.json.gz", ["drawn.json.gz"]),
    ],
)
def test_a_drawn_trace_is_written_in_the_format_of_its_name(run, target, files):
    result = run("generate", target, "--nodes", 3, "--pods", 5, "--seed", 1)
    assert result.stdout.splitlines() == files
    assert result.stderr == "3 nodes, 5 pods\n"
    assert all(Path(file).is_file() for file in files)


def test_the_same_seed_draws_the_same_files(run):
    run("generate", "a.yaml", "--nodes", 3, "--pods", 5, "--seed", 1)
    run("generate", "b.yaml", "--nodes", 3, "--pods", 5, "--seed", 1)
    assert Path("a.yaml").read_bytes() == Path("b.yaml").read_bytes()


def test_an_unknown_format_is_refused(run):
    assert run("generate", "drawn.xml").exit_code == 2


def test_conversion_there_and_back_loses_nothing(run, trace):
    assert run("convert", trace, "all.yaml", "--cluster", "small-nodes.csv").exit_code == 0
    assert run("convert", "all.yaml", "back.csv").stdout.split() == [
        "back-nodes.csv",
        "back-pods.csv",
    ]
    before, after = (
        json.loads(run("info", name, "--json").stdout)["cluster"]
        for name in ("small-nodes.csv", "back-nodes.csv")
    )
    assert after == before
    assert Path("back-pods.csv").read_text() == Path("small-pods.csv").read_text()


def test_conversion_stops_at_a_bad_row_unless_told_to_leave_it_out(run, trace):
    Path(trace).write_text(Path(trace).read_text() + "bad,-1,1,0,0,,0,1\n")
    stopped = run("convert", trace, "out.yaml")
    assert stopped.exit_code == 2
    assert "line 7" in stopped.stderr
    assert not Path("out.yaml").exists()
    assert "note: left out: " in run("convert", trace, "out.yaml", "--skip-bad").stderr


def test_topology_labels_racks_that_reach_the_model(run):
    run("generate", "plain.yaml", "--nodes", 5, "--pods", 1)
    result = run("topology", "--servers-per-rack", 2, "plain.yaml", "racks.yaml")
    assert result.stdout == "racks.yaml\n"
    assert result.stderr == "5 nodes in 3 racks\n"
    assert json.loads(run("info", "racks.yaml", "--json").stdout)["cluster"]["racks"] == 3


def test_topology_needs_a_rack_that_holds_something(run):
    assert run("topology", "--servers-per-rack", 0, "a.yaml", "b.yaml").exit_code == 2


def test_only_known_collections_can_be_fetched(run):
    result = run("fetch", "openbb")
    assert result.exit_code == 2
    assert "did you mean openb" in result.stderr


@pytest.mark.openb
def test_a_fetch_into_a_complete_folder_downloads_nothing(run, openb_folder):
    result = run("fetch", "openb", "--traces", openb_folder)
    assert (result.exit_code, result.stdout) == (0, f"{openb_folder}\n")
    assert CITATION in result.stderr
