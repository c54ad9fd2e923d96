import json
from pathlib import Path

import pytest

from podium.errors import PolicyError, UnknownName, UsageError
from podium.experiments.case import Inputs, load_case, named_policy
from podium.settings import load_settings
from podium.sim import Inflation, Replay, Rounds
from support.kubelike import gpu_node, gpu_pod
from support.small_trace import write_orders, write_simon_config

pytestmark = pytest.mark.usefixtures("small_trace")


def case_of(inputs=Inputs(), seed=None, **flags):  # noqa: B008 - frozen
    """Loads the case of settings given as flags."""
    given = {f"simulate.{name}": value for name, value in flags.items()}
    return load_case(load_settings(given), inputs, seed)


FILES = {"trace": "pods.csv", "cluster": "nodes.csv"}


def test_pods_come_from_the_trace_and_nodes_from_the_cluster():
    case = case_of(**FILES)
    assert (len(case.cluster), len(case.workload)) == (2, 3)
    assert (case.cluster.name, case.workload.name) == ("nodes.csv", "pods.csv")
    assert case.protocol == Replay()
    assert (case.setup.seed, case.setup.tier, case.setup.ranks) == (0, "auto", "shuffled")
    assert case.notes == ()


def test_a_trace_with_nodes_is_its_own_cluster():
    case = case_of(trace="openb:16", inputs=Inputs(pods=5))
    assert (len(case.cluster), len(case.workload)) == (16, 5)


def test_the_cluster_goes_before_the_nodes_of_the_trace():
    case = case_of(trace="openb:16", cluster="nodes.csv", inputs=Inputs(pods=5))
    assert (len(case.cluster), len(case.workload)) == (2, 5)


def test_a_cluster_may_bring_its_pods_unless_a_trace_is_named():
    write_simon_config(Path.cwd())
    assert len(case_of(cluster="config.yaml").workload) == 3
    other = case_of(cluster="config.yaml", trace="openb", inputs=Inputs(pods=7))
    assert (len(other.cluster), len(other.workload)) == (2, 7)


def test_sizes_go_to_what_is_generated():
    case = case_of(trace="pods.csv", cluster="openb", inputs=Inputs(nodes=9))
    assert (len(case.cluster), len(case.workload)) == (9, 3)
    case = case_of(trace="openb", cluster="nodes.csv", inputs=Inputs(pods=9))
    assert (len(case.cluster), len(case.workload)) == (2, 9)


def test_the_seed_draws_the_generated_trace():
    inputs = Inputs(nodes=20, pods=20)
    first, same, other = (case_of(seed=seed, inputs=inputs) for seed in (3, 3, 4))
    assert first.workload.pods.tobytes() == same.workload.pods.tobytes()
    assert first.workload.pods.tobytes() != other.workload.pods.tobytes()
    assert first.setup.seed == 3


@pytest.mark.parametrize(
    ("flags", "protocol"),
    [
        ({"protocol": "replay", "load": 3.0}, Replay(load=3.0)),
        ({"protocol": "inflation", "ratio": 0.9}, Inflation(ratio=0.9)),
        ({"protocol": "rounds"}, Rounds()),
    ],
)
def test_protocols_take_their_settings(flags, protocol):
    assert case_of(**FILES, **flags).protocol == protocol


def test_holding_reaches_every_protocol():
    for name in ("replay", "inflation", "rounds"):
        holding = case_of(**FILES, protocol=name, hold_limit=7, max_holds=8).protocol.holding
        assert (holding.hold_limit, holding.max_holds) == (7, 8)


def test_an_order_means_inflation():
    write_orders(Path("o.jsonl.gz"), {"seed": 4, "arrivals": [2, 0]})
    case = case_of(**FILES, seed=4, inputs=Inputs(orders=Path("o.jsonl.gz")))
    assert case.protocol.order.arrivals.tolist() == [2, 0]


def test_a_config_settles_what_nothing_else_does():
    write_simon_config(Path.cwd(), workloadTuningConfig={"ratio": 1.2, "seed": 9})
    case = case_of(cluster="config.yaml")
    assert (case.protocol.ratio, case.setup.seed) == (1.2, 9)
    assert case_of(cluster="config.yaml", seed=0).setup.seed == 0
    assert case_of(cluster="config.yaml", protocol="rounds").protocol == Rounds()


def test_a_config_without_a_ratio_leaves_the_protocol_alone():
    write_simon_config(Path.cwd())
    assert case_of(cluster="config.yaml", protocol="rounds").protocol.name == "rounds"


def test_what_is_not_honoured_is_noted():
    write_simon_config(Path.cwd(), descheduleConfig={"ratio": 0.1, "policy": "cosSim"})
    assert any("descheduleConfig" in note for note in case_of(cluster="config.yaml").notes)


def test_an_error_about_a_default_blames_no_setting():
    with pytest.raises(UnknownName) as caught:
        named_policy("fdg", "")
    assert caught.value.where == ""


def test_a_cluster_without_nodes_is_refused():
    with pytest.raises(UsageError, match=r"pods\.csv contains no nodes"):
        case_of(trace="pods.csv", cluster="pods.csv")


def test_a_policy_file_that_cannot_run_is_told_with_advice():
    Path("broken.py").write_text("score = 1 +\n")
    with pytest.raises(PolicyError) as caught:
        named_policy("broken.py", "argument POLICY")
    assert (caught.value.where, caught.value.hint) == (
        "broken.py, line 1",
        "correct the file, or name another one",
    )


def write_dump():
    """Writes the dump of a cluster with one node and two pods."""
    objects = [gpu_node("a"), gpu_pod("p"), gpu_pod("q")]
    Path("dump.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    return {"trace": "dump.json", "protocol": "rounds"}


def test_a_published_trace_is_known_in_advance_and_ties_go_by_order():
    for flags in (FILES, {"trace": "openb:16"}):
        setup = case_of(**flags).setup
        assert (setup.demand, setup.ties) == ("trace", "order")


def test_a_published_experiment_stays_as_it_is_where_it_is_written_for_kubernetes():
    write_simon_config(Path.cwd())
    setup = case_of(cluster="config.yaml").setup
    assert (setup.demand, setup.ties) == ("trace", "order")


def test_a_cluster_knows_the_pods_that_came_and_packs():
    setup = case_of(**write_dump()).setup
    assert (setup.demand, setup.ties) == ("seen", "profile")


def test_who_chooses_demand_and_ties_gets_them():
    setup = case_of(**write_dump(), demand="warm", ties="order").setup
    assert (setup.demand, setup.ties) == ("warm", "order")
    setup = case_of(**FILES, demand="seen", ties="profile").setup
    assert (setup.demand, setup.ties) == ("seen", "profile")
