import json

import numpy as np
import pytest

from podium.errors import InputError, UnknownName, UsageError
from podium.policies import ClusterPolicy, PairPolicy, load
from podium.policies.scheduler_config import load_scheduler_config
from podium.policies.states import random_states
from support.scheduler_configs import fit, scoring, write_config
from support.views import node, node_records, pod

STATES = random_states(300, seed=5).with_slots(8)
TABLE = load("fgd").table(STATES.shapes())
NODE = node((7000, 10000), (900, 1000), gpus=(1000, 500))
POD = pod(1000, 400, gpus=1, milli=500)  # with it 40 % of CPU, 50 % of memory and of GPU are used


def loaded(folder, body="", version="v1", **options):
    return load_scheduler_config(write_config(folder, body, version), **options)


def scores(policy):
    return [policy.score_pair(*state, TABLE) for state in STATES.views()]


def assert_scores_like(policy, name, weight=1):
    assert scores(policy) == [weight * score for score in scores(load(name))]


def test_an_empty_configuration_is_the_default_scheduler(tmp_path):
    policy = loaded(tmp_path)
    assert_scores_like(policy, "kube-default")
    assert policy.ties == "random"
    for neutral in ("TaintToleration", "NodeAffinity", "PodTopologySpread", "ImageLocality"):
        assert neutral in policy.summary


def test_the_door_to_policies_takes_configurations(tmp_path):
    policy = load(str(write_config(tmp_path)))
    assert isinstance(policy, PairPolicy)
    assert policy.name == "scheduler"


def test_json_is_read_as_well(tmp_path):
    path = tmp_path / "scheduler.json"
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    path.write_text(json.dumps(document))
    assert_scores_like(load(str(path)), "kube-default")


def test_most_allocated_is_the_packing_scheduler(tmp_path):
    body = """
        profiles:
          - pluginConfig:
              - name: NodeResourcesFit
                args: {scoringStrategy: {type: MostAllocated}}
    """
    assert_scores_like(loaded(tmp_path, body), "kube-most-allocated")


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("{type: LeastAllocated}", 55),
        ("{type: LeastAllocated, resources: [{name: cpu, weight: 3}, {name: memory}]}", 57),
        ("{resources: [{name: nvidia.com/gpu, weight: 2}, {name: cpu}]}", 53),
        ("{type: MostAllocated, resources: [{name: nvidia.com/gpu}]}", 50),
        # 40 percent of CPU is 2 fifths of the way from 0 to 100.
        ("{type: RequestedToCapacityRatio, resources: [{name: cpu}], requestedToCapacityRatio:"
         " {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}", 40),
        # CPU falls from 100 at 0 percent to 30 at 80: 100 - 70 * 40 / 80 = 65. GPU at 50: 57.
        # 100 - 43.75 is cut towards 100, so 57. (3 * 57 + 65) / 4 = 59.
        ("{type: RequestedToCapacityRatio, resources: [{name: nvidia.com/gpu, weight: 3},"
         " {name: cpu}], requestedToCapacityRatio: {shape: [{utilization: 0, score: 10},"
         " {utilization: 80, score: 3}]}}", 59),
        # A resource that the shape makes nothing of does not count: memory alone is 100.
        ("{type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape:"
         " [{utilization: 40, score: 0}, {utilization: 41, score: 10}]}}", 100),
    ],
)  # fmt: skip
def test_scoring_strategies_score_as_computed_by_hand(tmp_path, strategy, expected):
    policy = loaded(tmp_path, fit(strategy))
    assert policy.score_pair(POD, NODE, -1, TABLE) == expected


def test_the_oldest_version_shapes_by_a_plugin_of_its_own(tmp_path):
    arguments = (
        "    - {name: RequestedToCapacityRatio, args: {resources: [{name: cpu}],"
        " shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}\n"
    )
    body = scoring(("RequestedToCapacityRatio", 2), arguments=arguments)
    assert loaded(tmp_path, body, "v1beta1").score_pair(POD, NODE, -1, TABLE) == 2 * 40


def test_a_balance_of_nothing_is_0(tmp_path):
    arguments = (
        "    - {name: NodeResourcesBalancedAllocation, args: {resources: [{name: a.b/c}]}}\n"
    )
    body = scoring(("NodeResourcesBalancedAllocation", 1), arguments=arguments)
    assert set(scores(loaded(tmp_path, body, "v1beta1"))) == {0.0}


def test_balance_counts_the_resources_that_are_listed(tmp_path):
    body = """
        profiles:
          - plugins:
              score:
                disabled: [{name: "*"}]
                enabled: [{name: NodeResourcesBalancedAllocation, weight: 3}]
            pluginConfig:
              - name: NodeResourcesBalancedAllocation
                args: {resources: [{name: cpu}, {name: nvidia.com/gpu}]}
    """
    # Before: CPU 0.5, GPU 0.25, balance 87. After: 0.75 and 0.5, 87. No gain: 75.
    used = node((5000, 10000), (9, 9), gpus=(1000, 500))
    wanted = pod(2500, gpus=1, milli=500)
    assert loaded(tmp_path, body).score_pair(wanted, used, -1, TABLE) == 3 * 75
    # Releases that knew the beta versions scored the balance itself.
    assert loaded(tmp_path, body, "v1beta3").score_pair(wanted, used, -1, TABLE) == 3 * 87


@pytest.mark.parametrize(
    ("plugin", "name"),
    [
        ("BestFitScore", "best-fit"),
        ("GpuPackingScore", "gpu-packing"),
        ("GpuClusteringScore", "gpu-clustering"),
        ("FirstFitScore", "first-fit"),
        ("RandomScore", "random"),
    ],
)
def test_plugins_of_the_hkust_simulator_are_the_published_policies(tmp_path, plugin, name):
    policy = loaded(tmp_path, scoring((plugin, 1000)), "v1beta1")
    assert_scores_like(policy, name, 1000)
    assert policy.ties == load(name).ties
    assert policy.notes == ()


def test_fgd_chooses_its_own_gpu_when_told_so(tmp_path):
    policy = loaded(tmp_path, scoring(("FGDScore", 1000), method="FGDScore"), "v1beta1")
    assert policy.takes_gpu
    assert_scores_like(policy, "fgd", 1000)
    assert np.array_equal(policy.table(STATES.shapes()), TABLE)


def test_fgd_scores_its_best_gpu_when_another_method_picks_it(tmp_path):
    policy = loaded(tmp_path, scoring(("FGDScore", 1), method="worst"), "v1beta1")
    fgd = load("fgd")
    share, two = pod(500, gpus=1, milli=400), node((3000, 8000), gpus=(1000, 400))
    best = max(fgd.score_pair(share, two, slot, TABLE) for slot in (0, 1))
    assert policy.score_pair(share, two, -1, TABLE) == best
    assert (policy.takes_gpu, policy.gpu_choice) == (False, "worst")
    whole = pod(500, gpus=1)
    assert policy.score_pair(whole, two, -1, TABLE) == fgd.score_pair(whole, two, -1, TABLE)


def test_dot_product_takes_its_methods_from_the_arguments(tmp_path):
    arguments = "    - {name: DotProductScore, args: {dimExtMethod: merge, normMethod: max}}\n"
    policy = loaded(tmp_path, scoring(("DotProductScore", 1), arguments=arguments), "v1beta1")
    assert_scores_like(policy, "dot-product")


def test_dot_product_without_its_methods_is_an_error_as_it_is_there(tmp_path):
    with pytest.raises(InputError, match="needs dimExtMethod"):
        loaded(tmp_path, scoring(("DotProductScore", 1)), "v1beta1")


def test_a_method_that_is_not_known_is_told_with_the_one_that_may_be_meant(tmp_path):
    arguments = "    - {name: DotProductScore, args: {dimExtMethod: merg, normMethod: max}}\n"
    with pytest.raises(InputError, match='unknown dimExtMethod "merg"') as raised:
        loaded(tmp_path, scoring(("DotProductScore", 1), arguments=arguments), "v1beta1")
    assert raised.value.hint == "did you mean merge"


@pytest.mark.parametrize("method", ["best", "worst", "random"])
def test_the_gpu_is_picked_by_the_configured_method(tmp_path, method):
    policy = loaded(tmp_path, scoring(("BestFitScore", 1), method=method), "v1beta1")
    assert policy.gpu_choice == method


def test_scores_that_are_stretched_over_the_nodes_make_a_cluster_policy(tmp_path):
    policy = loaded(tmp_path, scoring(("BestFitScore", 2), ("Simon", 1)), "v1beta1")
    assert isinstance(policy, ClusterPolicy)
    views = [
        node((8000, 8000), (90, 100)),
        node((4000, 9000), (90, 101)),
        node((2000, 100000), (90, 102)),
    ]
    found = policy.start(0).scores(pod(1000, 10), node_records(views), np.ones(3, bool))
    # Best fit: 97, 98, 99, stretched to 0, 50, 100. Simon: 14, 13, 11, stretched to 100, 66, 0.
    assert found.tolist() == [2 * 0 + 100, 2 * 50 + 66, 2 * 100 + 0]


@pytest.mark.parametrize("plugin", ["Simon", "WorstFitScore"])
def test_a_score_with_more_levels_than_its_stretched_form_is_stretched_even_alone(tmp_path, plugin):
    assert isinstance(loaded(tmp_path, scoring((plugin, 1)), "v1beta1"), ClusterPolicy)


def test_a_draw_in_a_mixture_is_made_anew_for_every_pod(tmp_path):
    policy = loaded(tmp_path, scoring(("RandomScore", 1), ("FirstFitScore", 1)), "v1beta1")
    chooser = policy.start(3)
    nodes = node_records([node((8000, 8000))] * 3)
    chosen = {chooser.choose(pod(10), nodes, np.ones(3, bool)) for _ in range(40)}
    assert chosen == {0, 1, 2}


def test_fgd_cannot_be_mixed_with_stretched_scores(tmp_path):
    with pytest.raises(UsageError, match="cannot be mixed") as raised:
        loaded(tmp_path, scoring(("FGDScore", 1), ("BestFitScore", 1)), "v1beta1")
    assert "BestFitScore" in raised.value.hint


def test_fgd_cannot_pick_gpus_for_others(tmp_path):
    with pytest.raises(UsageError, match="alone"):
        loaded(tmp_path, scoring(("BestFitScore", 1), method="FGDScore"), "v1beta1")


def test_ties_are_broken_by_chance_unless_a_plugin_of_the_hkust_simulator_is_enabled(tmp_path):
    stock = scoring(("NodeResourcesLeastAllocated", 1), ("NodeResourcesMostAllocated", 1))
    assert loaded(tmp_path, stock, "v1beta1").ties == "random"
    mixed = scoring(("NodeResourcesLeastAllocated", 1), ("GpuPackingScore", 1))
    assert loaded(tmp_path, mixed, "v1beta1").ties == "rank"


def test_no_score_plugin_at_all_likes_all_nodes_alike(tmp_path):
    policy = loaded(tmp_path, "profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}]}}}]")
    assert set(scores(policy)) == {0.0}
    assert policy.ties == "random"


def test_an_unknown_plugin_is_an_error_that_lists_the_known_ones(tmp_path):
    with pytest.raises(UsageError, match='"Mystery" is not supported') as raised:
        loaded(tmp_path, scoring(("Mystery", 5)), "v1beta1")
    assert "FGDScore" in raised.value.hint
    assert "--ignore-unknown-plugins" in raised.value.hint


def test_an_unknown_plugin_can_be_left_out_and_is_named(tmp_path):
    body = scoring(("Mystery", 5), ("GpuPackingScore", 1))
    policy = loaded(tmp_path, body, "v1beta1", ignore_unknown_plugins=True)
    assert_scores_like(policy, "gpu-packing")
    assert any("Mystery" in note for note in policy.notes)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("percentageOfNodesToScore: 40", "percentageOfNodesToScore 40 is not honoured"),
        ("profiles: [{percentageOfNodesToScore: 5}]", "percentageOfNodesToScore 5"),
        ("profiles: [{}]", "part of the nodes"),
        ("extenders: [{urlPrefix: http://localhost}]", "extenders"),
        ("profiles: [{schedulerName: a}, {schedulerName: b}]", "only the first profile, a"),
        ("profiles: [{plugins: {filter: {enabled: [{name: Mine}]}}}]", 'filter plugin "Mine"'),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy:"
            " {resources: [{name: example.com/fpga}, {name: cpu}]}}}]}]",
            '"example.com/fpga" does not exist here',
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit,"
            " args: {ignoredResources: [a/b]}}]}]",
            "ignoredResources",
        ),
    ],
)
def test_what_is_not_honoured_is_named(tmp_path, body, told):
    assert any(told in note for note in loaded(tmp_path, body).notes)


def test_all_nodes_scored_is_nothing_to_note(tmp_path):
    notes = loaded(tmp_path, "percentageOfNodesToScore: 100").notes
    assert not any("nodes" in note for note in notes)


@pytest.mark.parametrize(
    ("body", "told", "where"),
    [
        ("profile: []", 'unknown setting "profile"', ""),
        ("profiles: {}", "is not a list", "profiles"),
        ("profiles: [3]", "is not a mapping", "profiles[0]"),
        ("profiles: [{plugins: {scores: {}}}]", 'unknown extension point "scores"', "plugins"),
        ("profiles: [{plugins: {score: {enabled: [{weight: 1}]}}}]", "no name", "enabled[0].name"),
        (
            "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}}]",
            "-1 is not a whole number",
            "enabled[0].weight",
        ),
        (
            "profiles: [{plugins: {score: {enabled: [{name: A}, {name: A}]}}}]",
            '"A" is enabled twice',
            "enabled[1]",
        ),
        (
            "profiles: [{pluginConfig: [{name: A}, {name: A}]}]",
            '"A" is configured twice',
            "pluginConfig[1]",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path, body, told, where):
    with pytest.raises((InputError, UnknownName), match=told.replace("[", r"\[")) as raised:
        loaded(tmp_path, body)
    assert "scheduler.yaml" in raised.value.where
    assert where in raised.value.where


@pytest.mark.parametrize(
    ("strategy", "told"),
    [
        ("{type: Tightest}", 'unknown type "Tightest"'),
        ("{resources: [{name: cpu}, {name: cpu}]}", "listed twice"),
        ("{resources: [{name: cpu, weight: 101}]}", "101 is not a whole number"),
        ("{type: RequestedToCapacityRatio}", "at least one point"),
        (
            "{type: RequestedToCapacityRatio, requestedToCapacityRatio:"
            " {shape: [{utilization: 50, score: 1}, {utilization: 50, score: 2}]}}",
            "rising order",
        ),
        (
            "{type: RequestedToCapacityRatio, requestedToCapacityRatio:"
            " {shape: [{utilization: 50, score: 11}]}}",
            "11 is not a whole number from 0 to 10",
        ),
    ],
)
def test_a_wrong_strategy_is_told(tmp_path, strategy, told):
    with pytest.raises(InputError, match=told):
        loaded(tmp_path, fit(strategy))


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load(str(tmp_path / "scheduler.yaml"))


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.yaml", "kind: [", "not valid YAML"),
        ("a.json", "{", "not JSON"),
        ("a.yaml", "", "the file contains no KubeSchedulerConfiguration"),
        ("a.yaml", "- 1", "the file contains no KubeSchedulerConfiguration"),
        ("a.yaml", "kind: Config\napiVersion: simon/v1alpha1", r"\(Config instead\)"),
        ("a.yaml", "kind: KubeSchedulerConfiguration", "nothing is not a known version"),
        (
            "a.yaml",
            "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v2",
            "v2 is not a known version",
        ),
    ],
)
def test_a_file_that_is_something_else_is_told(tmp_path, name, text, told):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=told) as raised:
        load(str(path))
    assert name in raised.value.where


def test_a_file_that_is_no_text_is_told(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        load(str(path))


def test_a_yaml_error_names_its_line(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("kind: Config\n\tapiVersion: x\n")
    with pytest.raises(InputError) as raised:
        load(str(path))
    assert "line 2" in raised.value.where


def test_the_policy_can_be_read_as_python(tmp_path):
    policy = loaded(tmp_path, scoring(("GpuPackingScore", 1000)), "v1beta1")
    assert "def score(pod, node):" in policy.source.text
    assert "return 1000 * gpu_packing(pod, node)" in policy.source.text
    assert "scheduler.yaml, profile simon-scheduler" in policy.source.text


def test_a_plugin_that_is_misspelt_is_told_with_the_one_that_may_be_meant(tmp_path):
    with pytest.raises(UsageError, match="NodeResourceFit") as raised:
        loaded(tmp_path, scoring(("NodeResourceFit", 1)))
    assert raised.value.hint.startswith("did you mean NodeResourcesFit; --ignore-unknown-plugins")
