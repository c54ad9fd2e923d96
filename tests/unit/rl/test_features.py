"""Describes nodes and pods: every feature by example, and every name on the page."""

from pathlib import Path

import numpy as np
import pytest

from podium.model.records import Node, Pod
from podium.policies.networks import features

PAGE = Path(__file__).parents[3] / "docs" / "training.md"


def node(*free, cpu_left=48_000, classes=0):
    slots = (*free, *(0,) * (8 - len(free)))
    return Node(cpu_left, 96_000, 262_144, 524_288, len(free), 0, 0, classes, slots)


def pod(gpu_count=1, gpu_milli=1000, cpu_milli=12_000, gpu_models=-1):
    return Pod(cpu_milli, 131_072, gpu_count, gpu_milli, gpu_models, 0, 0)


def written(shown, offered=None):
    row = np.zeros(features.NODE_FEATURES, np.float32)
    features.write_state(row, shown, shown.gpu_milli_left, 8, 0.25)
    if offered is not None:
        features.write_pair(row, offered, shown, shown.gpu_milli_left, 8)
    return dict(zip(features.NODE_NAMES, row.tolist(), strict=True))


def test_the_state_of_a_node():
    found = written(node(1000, 1000, 600, 0, classes=0b101))
    assert found == pytest.approx(
        {
            **dict.fromkeys(features.NODE_NAMES, 0.0),
            "is_present": 1.0,
            "cpu_left": 0.5,
            "memory_left": 0.5,
            "gpu_left": 0.65,
            "gpus_left": 0.325,
            "whole_gpus_left": 0.25,
            "parts_left": 0.075,
            "largest_part_left": 0.6,
            "cpu_beside_gpus_left": 48 / (48 + 12 * 2.6),
            "cpu_total": 0.75,
            "memory_total": 0.5,
            "gpus_total": 0.5,
            "model_share": 0.25,
            "runs_shares": 1.0,
            "runs_whole": 1.0,
        }
    )


def test_what_whole_gpus_leave():
    found = written(node(1000, 1000, 600, 0), pod(gpu_count=2))
    assert found["whole_gpus_after"] == 0.0
    assert found["gpus_after"] == pytest.approx(0.075)
    assert found["cpu_after"] == pytest.approx(0.375)
    assert found["memory_after"] == pytest.approx(0.25)
    assert found["slot_after"] == found["opens_gpu"] == found["is_full_after"] == 0.0


def test_a_part_goes_to_the_gpu_that_fits_the_tightest():
    found = written(node(1000, 800, 600, 0), pod(gpu_milli=550))
    assert found["slot_after"] == pytest.approx(0.05)
    assert found["opens_gpu"] == 0.0
    assert found["whole_gpus_after"] == pytest.approx(1 / 8)


def test_a_part_that_fits_no_gpu_in_use_opens_one():
    found = written(node(1000, 1000, 100), pod(gpu_milli=550))
    assert found["slot_after"] == pytest.approx(0.45)
    assert found["opens_gpu"] == 1.0
    assert found["whole_gpus_after"] == pytest.approx(1 / 8)


def test_the_last_gpu_leaves_a_full_node():
    assert written(node(0, 0, 550), pod(gpu_milli=550))["is_full_after"] == 1.0
    assert written(node(0, 0, 551), pod(gpu_milli=550))["is_full_after"] == 0.0
    assert written(node(), pod(gpu_count=0, gpu_milli=0))["is_full_after"] == 0.0


def test_a_pod():
    row = np.zeros(features.POD_FEATURES)
    features.write_pod(row, pod(gpu_milli=500, gpu_models=0b11), 3)
    assert dict(zip(features.POD_NAMES, row, strict=True)) == pytest.approx(
        {
            "is_present": 1.0,
            "cpu": 0.09375,
            "memory": 0.125,
            "gpus": 0.0625,
            "whole_gpus": 0.0,
            "part": 0.5,
            "cpu_beside_gpus": 12 / 18,
            "is_choosy": 1.0,
            "held": 0.75,
        }
    )


@pytest.mark.parametrize(
    "name", sorted({*features.NODE_NAMES, *features.POD_NAMES, *features.CONTEXT_NAMES})
)
def test_the_page_names_every_feature(name):
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")
