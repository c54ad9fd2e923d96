from podium.evaluation.cases import Case, TrainingSet
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.search.generators.generator import Request
from podium.search.generators.llm.templates import Templates
from podium.search.generators.llm.workload import describe_nodes, describe_pods, writer_for

CLUSTER = Cluster.of(
    [
        *(NodeSpec(f"a{i}", 96000, 393216, 8, "A10") for i in range(3)),
        NodeSpec("t", 32000, 131072, 2, "T4"),
        NodeSpec("c", 64000, 262144, 0, ""),
    ]
)
PODS = Workload.of(
    [
        PodSpec("a", 8000, 32768, 1, 500),
        PodSpec("b", 8000, 32768, 1, 500),
        PodSpec("c", 24000, 65536, 2, 1000, "A10"),
        PodSpec("d", 4000, 8192, 0, 0),
    ]
).on(CLUSTER)


def test_nodes_are_described_by_kind_with_what_each_gpu_has_beside_it():
    assert list(describe_nodes(CLUSTER)) == [
        "- 3 x 8 GPUs A10 (node.gpu_model 0), 96 cores, 384 GiB: 12.0 cores and 48 GiB a GPU",
        "- 1 x 2 GPUs T4 (node.gpu_model 1), 32 cores, 128 GiB: 16.0 cores and 64 GiB a GPU",
        "- 1 x no GPU, 64 cores, 256 GiB",
    ]


def test_pods_are_described_by_class_demand_cpu_a_gpu_and_models():
    classes, demand, asked, shares, models = describe_pods(PODS, CLUSTER)
    assert classes == "- of the pods: CPU-only 25.0 %, share 50.0 %, 2 GPUs 25.0 %"
    assert demand == "- of the GPU demand: share 33.3 %, 2 GPUs 66.7 %"
    assert asked.startswith("- GPU pods ask for 16 (a tenth less than 12.8,")
    assert shares == "- shares of a GPU, in milli: 500 (100 %)"
    assert models == (
        "- 33.3 % of the GPU pods accept only some GPU models; of these, A10 (bit 0) 100 %"
    )


def test_pods_without_gpus_are_described_by_class_alone():
    pods = Workload.of([PodSpec("a", 8000, 32768)]).on(CLUSTER)
    assert list(describe_pods(pods, CLUSTER)) == ["- of the pods: CPU-only 100.0 %"]


def test_a_prompt_tells_what_is_trained_on_and_where_fgd_and_the_best_lose_gpus():
    cases = [Case(nodes=8, pods=80, seed=seed) for seed in (1000, 1001)]
    writer = writer_for(TrainingSet(tuple(cases)), Templates.read())
    prompt = writer.write(Request((1,), best="Under program 7, the best so far: Overall: idle"))
    assert prompt.system.count("openb, 80 pods:") == 1  # one case of each trace is enough
    assert "and 8 nodes with" in prompt.system
    told = prompt.user.index("Under fgd on openb inflation seed 1000: lost stranded without CPU")
    assert told < prompt.user.index("Under program 7") < prompt.user.index("# Now")
