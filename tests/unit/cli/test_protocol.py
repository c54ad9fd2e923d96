from pathlib import Path

import numpy as np
import pytest

from podium.cli.protocol import Choice, check_order_of, read_order_of
from podium.errors import InputError, UsageError
from podium.model import Cluster, Workload
from podium.settings import load_settings
from podium.sim import Inflation, Order, Replay, Rounds
from podium.traces.trace import Experiment
from support.runs import THREE_PODS, THREE_PODS_NODES
from support.small_trace import write_orders

CONFIG = Experiment(ratio=1.2, seed=9, is_shuffled=True)
PLAIN_CONFIG = Experiment(ratio=None, seed=None, is_shuffled=False)


def choice(experiment=None, orders=None, **flags):
    given = {f"simulate.{name}": value for name, value in flags.items()}
    return Choice(load_settings(given), experiment, orders)


@pytest.mark.parametrize(
    ("experiment", "flags", "protocol"),
    [
        (None, {}, Replay()),
        (None, {"load": 2.0}, Replay(load=2.0)),
        (None, {"protocol": "rounds"}, Rounds()),
        (None, {"protocol": "inflation"}, Inflation(ratio=1.3)),
        (CONFIG, {}, Inflation(ratio=1.2)),
        (CONFIG, {"ratio": 2.0}, Inflation(ratio=2.0)),
        (CONFIG, {"protocol": "replay"}, Replay()),
        (PLAIN_CONFIG, {}, Replay()),
    ],
)
def test_flags_go_before_a_config_which_goes_before_defaults(experiment, flags, protocol):
    assert choice(experiment, **flags).protocol(0) == protocol


@pytest.mark.parametrize(
    ("experiment", "flags", "seed"),
    [(None, {}, 0), (CONFIG, {}, 9), (CONFIG, {"seed": 0}, 0), (PLAIN_CONFIG, {}, 0)],
)
def test_a_seed_of_a_config_stands_in_for_the_default_only(experiment, flags, seed):
    assert choice(experiment, **flags).seed() == seed


def test_a_ratio_beyond_reason_blames_its_flag():
    with pytest.raises(UsageError, match="ratio is 101") as caught:
        choice(protocol="inflation", ratio=101.0).protocol(0)
    assert caught.value.where == "flag --ratio, [simulate] ratio"


def test_flags_that_change_nothing_are_named():
    chosen = choice(load=2.0, ratio=2.0)
    assert list(chosen.unused(Rounds())) == [
        "--load changes nothing in rounds",
        "--ratio changes nothing in rounds",
    ]
    assert list(chosen.unused(Inflation())) == ["--load changes nothing in inflation"]
    assert list(choice().unused(Rounds())) == []


def test_orders_blame_their_file():
    path = Path("o.jsonl.gz")
    write_orders(path, {"seed": 1, "arrivals": [0, 2]}, {"seed": 2, "arrivals": []})
    assert read_order_of(path, 1).arrivals.tolist() == [0, 2]
    with pytest.raises(InputError) as caught:
        read_order_of(path, 3)
    assert caught.value.where == "o.jsonl.gz"
    assert "1, 2" in caught.value.hint


@pytest.mark.parametrize(
    "order", [Order(np.arange(5)), Order(np.arange(3), np.arange(3)), Order(np.arange(0))]
)
def test_an_order_for_another_trace_or_cluster_is_refused(order):
    cluster, workload = Cluster.of(THREE_PODS_NODES), Workload.of(THREE_PODS)
    with pytest.raises(InputError) as caught:
        check_order_of(Path("o.jsonl"), Inflation(order=order), cluster, workload)
    assert caught.value.where == "flag --orders, o.jsonl"
    assert caught.value.hint


def test_runs_without_an_order_have_nothing_to_check():
    cluster, workload = Cluster.of(THREE_PODS_NODES), Workload.of(THREE_PODS)
    check_order_of(Path("none"), Replay(), cluster, workload)
    check_order_of(Path("none"), Inflation(), cluster, workload)
