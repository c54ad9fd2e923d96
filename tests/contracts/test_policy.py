"""Holds every policy that ships, and policies made of configurations, to the contract."""

import pytest

from podium.policies import catalogue, load
from podium.testing import check_policy
from support.depth import every
from support.scheduler_configs import fit, scoring, write_config

PACKING = fit("{type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 3}, {name: cpu}]}")
SHAPED = fit(
    "{type: RequestedToCapacityRatio, resources: [{name: nvidia.com/gpu}, {name: memory}],"
    " requestedToCapacityRatio: {shape: [{utilization: 0, score: 9}, {utilization: 70, score: 2}]}}"
)
DOT_PRODUCT = "    - {{name: DotProductScore, args: {{dimExtMethod: {}, normMethod: {}}}}}\n"
CONFIGURATIONS = {
    "default": ("", "v1"),
    "default of v1beta1": ("", "v1beta1"),
    "packing": (PACKING, "v1"),
    "shaped": (SHAPED, "v1"),
    "fgd": (scoring(("FGDScore", 1000), method="FGDScore"), "v1beta1"),
    "fgd with the worst GPU": (scoring(("FGDScore", 1), method="worst"), "v1beta1"),
    "mixture": (scoring(("BestFitScore", 2), ("Simon", 1), ("RandomScore", 1)), "v1beta1"),
    **{
        f"dot product {method} {norm}": (
            scoring(("DotProductScore", 1), arguments=DOT_PRODUCT.format(method, norm)),
            "v1beta1",
        )
        for method, norm in [("share", "max"), ("divide", "node"), ("extend", "pod")]
    },
}


def assert_keeps_the_contract(policy):
    report = check_policy(policy, seed=11)
    assert report.broken == ()
    assert report.is_ok


@pytest.mark.parametrize("name", [info.name for info in catalogue()])
def test_a_policy_of_the_catalogue_keeps_the_contract(name):
    assert_keeps_the_contract(load(name))


@pytest.mark.parametrize("name", every(8, CONFIGURATIONS))
def test_a_policy_made_of_a_configuration_keeps_the_contract(tmp_path, name):
    body, version = CONFIGURATIONS[name]
    assert_keeps_the_contract(load(str(write_config(tmp_path, body, version))))
