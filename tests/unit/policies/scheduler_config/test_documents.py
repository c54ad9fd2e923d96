import textwrap

import pytest

from podium.errors import InputError
from podium.policies import load
from podium.policies.loaders import profile_reference
from support.scheduler_configs import HEAD, write_config

TWO = """
    percentageOfNodesToScore: 100
    profiles:
      - schedulerName: spread
      - schedulerName: gpu-binpack
        pluginConfig:
          - name: NodeResourcesFit
            args: {scoringStrategy: {type: MostAllocated}}
"""


def in_config_map(*texts, name="scheduler"):
    """Wraps texts in a ConfigMap, each under a key of its own."""
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n"
    parts = [
        f"  config-{i}.yaml: |\n{textwrap.indent(text, '    ')}" for i, text in enumerate(texts)
    ]
    return head + "\n".join(parts) + "\n"


def configuration(body):
    return HEAD.format(version="v1") + textwrap.dedent(body)


def test_a_profile_is_named_behind_the_file(tmp_path):
    path = write_config(tmp_path, TWO)
    policy = load(f"{path}#gpu-binpack")
    assert policy.name == "scheduler#gpu-binpack"
    assert "most_allocated" in policy.source.text
    assert not any("profile" in note for note in policy.notes)
    assert "least_allocated" in load(f"{path}#spread").source.text


def test_without_a_name_the_first_profile_is_used_and_the_note_says_how_to_name_another(tmp_path):
    policy = load(str(write_config(tmp_path, TWO)))
    assert policy.name == "scheduler"
    (note,) = [note for note in policy.notes if "profile" in note]
    assert "spread" in note
    assert "scheduler.yaml#gpu-binpack" in note


@pytest.mark.parametrize("name", ["binpack", ""])
def test_an_unknown_profile_is_told_with_those_that_there_are(tmp_path, name):
    with pytest.raises(InputError, match=f'no profile is named "{name}"') as caught:
        load(f"{write_config(tmp_path, TWO)}#{name}")
    assert "spread, gpu-binpack" in caught.value.hint


def test_a_configuration_without_profiles_has_the_default_one(tmp_path):
    policy = load(f"{write_config(tmp_path)}#default-scheduler")
    assert policy.name == "scheduler#default-scheduler"


def test_two_profiles_of_one_name_cannot_be_told_apart(tmp_path):
    twice = "profiles: [{schedulerName: same}, {schedulerName: same}]"
    with pytest.raises(InputError, match='two profiles are named "same"'):
        load(f"{write_config(tmp_path, twice)}#same")


def test_a_file_whose_name_has_the_mark_is_still_a_file(tmp_path):
    path = write_config(tmp_path, name="a#b.yaml")
    assert profile_reference(str(path)) is None
    assert load(str(path)).name == "a#b"


def test_a_config_map_around_a_configuration_is_opened(tmp_path):
    path = tmp_path / "map.yaml"
    path.write_text(in_config_map("leader: elected\n", configuration(TWO)))
    assert "most_allocated" in load(f"{path}#gpu-binpack").source.text


def test_the_configuration_is_found_among_other_documents_and_lists(tmp_path):
    path = tmp_path / "all.yaml"
    others = "apiVersion: v1\nkind: ServiceAccount\n---\n"
    listed = textwrap.indent(in_config_map(configuration(TWO)), "    ").replace(
        "    api", "  - api", 1
    )
    path.write_text(f"{others}apiVersion: v1\nkind: List\nitems:\n{listed}")
    assert "most_allocated" in load(f"{path}#gpu-binpack").source.text


def test_several_configurations_need_a_profile_that_only_one_has(tmp_path):
    path = tmp_path / "map.yaml"
    other = "profiles: [{schedulerName: other}]"
    path.write_text(in_config_map(configuration(TWO), configuration(other)))
    with pytest.raises(InputError, match="2 configurations are possible") as caught:
        load(str(path))
    assert "data.config-0.yaml, data.config-1.yaml" in caught.value.message
    assert "map.yaml#other" in caught.value.hint
    assert load(f"{path}#other").name == "map#other"
    path.write_text(in_config_map(configuration(TWO), configuration(TWO)))
    with pytest.raises(InputError, match="2 configurations are possible"):
        load(f"{path}#spread")


def test_a_mistake_inside_a_config_map_is_told_with_its_key(tmp_path):
    path = tmp_path / "map.yaml"
    path.write_text(in_config_map(configuration("profles: []")))
    with pytest.raises(Exception, match='unknown setting "profles"') as caught:
        load(str(path))
    assert "data.config-0.yaml" in caught.value.where
    path.write_text(in_config_map(configuration("profiles: [")))
    with pytest.raises(InputError) as caught:
        load(str(path))
    assert "data.config-0.yaml" in caught.value.where


def test_a_config_map_of_something_else_is_no_policy(tmp_path):
    path = tmp_path / "map.yaml"
    path.write_text(in_config_map("a: b\n"))
    with pytest.raises(InputError, match=r"contains no KubeSchedulerConfiguration \(ConfigMap"):
        load(str(path))


def test_arguments_of_plugins_that_score_nothing_here_are_named(tmp_path):
    body = """
        profiles:
          - pluginConfig:
              - name: NodeAffinity
                args: {apiVersion: v1, addedAffinity: {requiredDuringScheduling: {}}}
              - name: PodTopologySpread
                args: {defaultConstraints: [], defaultingType: List}
    """
    notes = load(str(write_config(tmp_path, body))).notes
    assert "arguments of NodeAffinity are not honoured: addedAffinity" in notes
    assert any("defaultConstraints, defaultingType" in note for note in notes)
