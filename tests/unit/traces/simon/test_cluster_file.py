import pytest
import yaml

from podium.errors import InputError
from podium.model import Cluster, NodeSpec, PodSpec, TypicalPods, Workload
from podium.traces import Experiment, Trace, load_trace
from podium.traces.kubernetes.writer import write_manifests
from support.traces import small_trace

TYPICAL = {
    "isInvolvedCpuPods": True,
    "podPopularityThreshold": 95,
    "podIncreaseStep": 1,
    "gpuResWeight": 0,
}
OWN_ORDER = "the seed draws Podium's own order of pods, not that of the Go program"


@pytest.fixture
def load(tmp_path):
    """Loads a Config beside a folder with the small trace."""
    (tmp_path / "data").mkdir()
    write_manifests(small_trace(), tmp_path / "data" / "all.yaml")

    def load_config(custom=None, *, cluster=None, **spec):
        custom = {"typicalPodsConfig": TYPICAL} | (custom or {})
        config = {
            "apiVersion": "simon/v1alpha1",
            "kind": "Config",
            "metadata": {"name": "test"},
            "spec": {"cluster": cluster or {"customConfig": "data"}, "customConfig": custom} | spec,
        }
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        return load_trace(str(tmp_path / "config.yaml"))

    return load_config


def test_the_manifests_that_a_config_names_are_loaded(load):
    trace = load()
    assert trace.cluster.names == ("a", "b", "c")
    assert trace.workload.names == ("p0", "p1", "p2")
    assert trace.experiment == Experiment(None, None, False)
    assert trace.notes == ()


def test_the_tuning_ratio_and_its_seed_are_the_experiment(load):
    trace = load({"shufflePod": True, "workloadTuningConfig": {"ratio": 1.3, "seed": 1000}})
    assert trace.experiment == Experiment(1.3, 1000, True)
    assert trace.notes == (OWN_ORDER,)


@pytest.mark.parametrize(
    "custom",
    [
        {"workloadTuningConfig": {"ratio": 0, "seed": 7}},
        {"workloadTuningConfig": {"ratio": -1, "seed": 7}},
        {"workloadInflationConfig": {"ratio": 1, "seed": 7}},
        {"workloadTuningConfig": {"seed": 7}, "workloadInflationConfig": {"ratio": 0.5, "seed": 8}},
    ],
)
def test_ratios_that_switch_a_setting_off_leave_the_pods_as_they_are(load, custom):
    assert load(custom).experiment == Experiment(None, 7, False)


def test_inflation_stands_for_a_share_of_gpu_demand(load):
    trace = load({"workloadInflationConfig": {"ratio": 2, "seed": 5}})
    assert trace.experiment == Experiment(2 * 2500 / 10_000, 5, False)
    assert "2 times the pods are run as the share" in trace.notes[0]


def test_inflation_ends_at_the_capacity_of_the_cluster(load):
    trace = load({"workloadInflationConfig": {"ratio": 100, "seed": 5}})
    assert trace.experiment.ratio == 1.0


def test_inflation_beside_tuning_is_named_as_not_honoured(load):
    custom = {"workloadInflationConfig": {"ratio": 2}, "workloadTuningConfig": {"ratio": 1.3}}
    trace = load(custom | {"shufflePod": True})
    assert trace.experiment.ratio == 1.3
    assert trace.notes == (
        "spec.customConfig.workloadInflationConfig is not honoured beside workloadTuningConfig",
    )


def test_an_order_of_pods_that_is_not_kept_is_named(load):
    unshuffled = load({"shufflePod": False, "workloadTuningConfig": {"ratio": 1.3}})
    assert any("shufflePod is false" in note for note in unshuffled.notes)
    unchanged = load({"shufflePod": True})
    assert any("shufflePod is not honoured" in note for note in unchanged.notes)


def test_typical_pods_settings_reach_the_workload(load):
    settings = TYPICAL | {"isInvolvedCpuPods": False, "gpuResWeight": 0.5, "podIncreaseStep": 3}
    trace = load({"typicalPodsConfig": settings})
    assert trace.workload.typical == TypicalPods(False, 95, 3, 0.5)


def test_absent_typical_pods_settings_are_those_of_the_simulator(load):
    trace = load({"typicalPodsConfig": None})
    assert trace.workload.typical == TypicalPods(False, 60, 10, 0.0)
    assert trace.notes == (
        "spec.customConfig.typicalPodsConfig is absent: "
        "GPU pods only, 60 %, step 10, as in the simulator",
    )


def test_more_pods_follow_those_of_the_cluster(load, tmp_path):
    more = Trace("more", None, Workload.of([PodSpec("extra", 1, 1)]))
    write_manifests(more, tmp_path / "more.yaml")
    trace = load({"newWorkloadConfig": "more.yaml"})
    assert trace.workload.names == ("p0", "p1", "p2", "extra")
    assert trace.notes == ("newWorkloadConfig: its 1 pods follow those of the cluster",)


def test_more_pods_may_be_all_there_are(load, tmp_path):
    nodes = Trace("nodes", Cluster.of([NodeSpec("n", 1, 1)]), None)
    write_manifests(nodes, tmp_path / "nodes.yaml")
    trace = load({"newWorkloadConfig": "data"}, cluster={"customConfig": "nodes.yaml"})
    assert trace.workload.names == ("p0", "p1", "p2")


def test_more_pods_without_pods_are_an_input_error(load, tmp_path):
    nodes = Trace("nodes", Cluster.of([NodeSpec("n", 1, 1)]), None)
    write_manifests(nodes, tmp_path / "nodes.yaml")
    with pytest.raises(InputError, match="no Pod was found"):
        load({"newWorkloadConfig": "nodes.yaml"})


@pytest.mark.parametrize(
    ("custom", "spec", "note"),
    [
        ({"descheduleConfig": {"ratio": 0.1}}, {}, "customConfig.descheduleConfig is not honoured"),
        ({"exportConfig": {"prefix": "x"}}, {}, "customConfig.exportConfig.prefix is not honoured"),
        ({"colour": 1}, {}, "customConfig.colour is not known: not honoured"),
        (
            {"typicalPodsConfig": TYPICAL | {"isConsideredGpuResWeight": False}},
            {},
            "customConfig.typicalPodsConfig.isConsideredGpuResWeight is not known",
        ),
        (
            {"workloadTuningConfig": {"speed": 1}},
            {},
            "customConfig.workloadTuningConfig.speed is not known",
        ),
        ({}, {"appList": [{"name": "a", "path": "b"}]}, "appList is not honoured"),
        ({}, {"newNode": "example/newnode"}, "newNode is not honoured"),
        ({}, {"extra": 1}, "extra is not known: not honoured"),
        (
            {},
            {"cluster": {"customConfig": "data", "kubeConfig": "k"}},
            "cluster.kubeConfig is not honoured",
        ),
    ],
)
def test_what_is_not_honoured_is_named(load, custom, spec, note):
    (found,) = load(custom, **spec).notes
    assert found.startswith(f"spec.{note}")


@pytest.mark.parametrize(
    ("custom", "spec"),
    [
        ({"descheduleConfig": {"ratio": 0}}, {}),
        ({"exportConfig": {"prefix": ""}}, {}),
        ({"exportConfig": None, "descheduleConfig": None}, {}),
        ({}, {"appList": None, "newNode": ""}),
    ],
)
def test_settings_that_are_off_need_no_note(load, custom, spec):
    assert load(custom, **spec).notes == ()


def test_the_current_folder_is_searched_after_that_of_the_config(load, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "far").mkdir(parents=True)
    write_manifests(small_trace(), elsewhere / "far" / "all.yaml")
    monkeypatch.chdir(elsewhere)
    assert load(cluster={"customConfig": "far"}).cluster.names == ("a", "b", "c")


def test_a_config_for_a_live_cluster_says_what_to_do(load):
    with pytest.raises(InputError, match="kubectl get nodes,pods") as caught:
        load(cluster={"kubeConfig": "~/.kube/config"})
    assert "spec.cluster.kubeConfig" in caught.value.where


@pytest.mark.parametrize(
    ("custom", "cluster", "message"),
    [
        ({}, {"customConfig": "nowhere"}, 'there is no file or folder "nowhere"'),
        ({"newWorkloadConfig": "nowhere"}, None, 'there is no file or folder "nowhere"'),
        ({}, {"customConfig": ""}, "a folder of manifests is needed"),
        ({}, "text", "a mapping is expected"),
        ({"shufflePod": "maybe"}, None, "true or false"),
        ({"workloadTuningConfig": {"ratio": "much"}}, None, "a quantity"),
        ({"workloadTuningConfig": {"seed": -1}}, None, "a whole number"),
        ({"workloadTuningConfig": []}, None, "a mapping is expected"),
        (
            {"typicalPodsConfig": {"podPopularityThreshold": 101}},
            None,
            "a whole number from 0 to 100",
        ),
    ],
)
def test_a_bad_config_is_an_input_error(load, custom, cluster, message):
    with pytest.raises(InputError) as caught:
        load(custom, cluster=cluster)
    assert message in caught.value.message
    assert "config.yaml" in caught.value.where
