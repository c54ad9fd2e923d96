from pathlib import Path

import pytest

from podium.errors import InputError
from podium.policies.scheduler_config.plugin_sets import DEFAULTS, enabled_scores
from podium.policies.scheduler_config.section import Section


def enabled(version="v1", **points):
    return enabled_scores(Section(Path("s.yaml"), "plugins", points), version)


def listed(*names, **weights):
    return [{"name": name} for name in names] + [
        {"name": name, "weight": weight} for name, weight in weights.items()
    ]


@pytest.mark.parametrize("version", ["v1", "v1beta3", "v1beta2", "v1beta1"])
def test_a_profile_that_names_no_plugin_has_the_defaults_of_its_version(version):
    assert enabled(version) == DEFAULTS[version]


def test_the_oldest_version_spreads_by_a_plugin_of_its_own():
    assert "NodeResourcesFit" not in DEFAULTS["v1beta1"]
    assert DEFAULTS["v1beta1"]["NodeResourcesLeastAllocated"] == 1


def test_default_weights_are_those_of_the_versions():
    assert DEFAULTS["v1"]["TaintToleration"] == 3
    assert DEFAULTS["v1"]["InterPodAffinity"] == 2
    assert DEFAULTS["v1beta2"]["TaintToleration"] == 1
    assert DEFAULTS["v1beta1"]["PodTopologySpread"] == 2


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_enabled_plugins_join_the_defaults(version):
    found = enabled(version, score={"enabled": listed(Mine=7)})
    assert found == {**DEFAULTS[version], "Mine": 7}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_default_that_is_enabled_again_takes_the_new_weight(version):
    found = enabled(version, score={"enabled": listed(ImageLocality=9)})
    assert found == {**DEFAULTS[version], "ImageLocality": 9}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_plugin_can_be_disabled_by_name(version):
    found = enabled(version, score={"disabled": listed("ImageLocality")})
    assert found == {k: v for k, v in DEFAULTS[version].items() if k != "ImageLocality"}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_star_disables_all_that_is_not_enabled(version):
    found = enabled(version, score={"disabled": listed("*"), "enabled": listed(Mine=2)})
    assert found == {"Mine": 2}


@pytest.mark.parametrize("weight", [{}, {"weight": 0}])
def test_a_weight_of_0_and_no_weight_are_1(weight):
    assert enabled(score={"disabled": listed("*"), "enabled": [{"name": "Mine", **weight}]}) == {
        "Mine": 1
    }


def test_plugins_of_all_points_score_where_they_can():
    found = enabled(multiPoint={"enabled": [*listed("NodePorts"), *listed(Mine=3)]})
    assert found == {**DEFAULTS["v1"], "Mine": 3}


def test_a_plugin_of_all_points_can_be_disabled_for_scores():
    found = enabled(
        multiPoint={"disabled": listed("*"), "enabled": listed("Mine", "Other")},
        score={"disabled": listed("Mine")},
    )
    assert found == {"Other": 1}


def test_the_weight_of_the_score_point_goes_before_that_of_all_points():
    found = enabled(
        multiPoint={"disabled": listed("*"), "enabled": listed(Mine=3)},
        score={"enabled": listed(Mine=5)},
    )
    assert found == {"Mine": 5}


def test_a_star_for_scores_disables_what_all_points_enable():
    found = enabled(multiPoint={"enabled": listed("Mine")}, score={"disabled": listed("*")})
    assert found == {}


def test_old_versions_know_no_multi_point():
    with pytest.raises(InputError, match="v1beta2 has no multiPoint"):
        enabled("v1beta2", multiPoint={"enabled": listed("Mine")})
