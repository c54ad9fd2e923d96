"""Turns a KubeSchedulerConfiguration into a policy: the scheduler that a team runs today."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podium.errors import InputError, UsageError, advice_on
from podium.files.excerpt import excerpt
from podium.files.json_text import JsonError, parse_value
from podium.files.text_file import read_text, reading
from podium.files.yaml_tree import parse_yaml
from podium.policies.policy import PairPolicy, Policy, policy_of
from podium.policies.scheduler_config.plugin_sets import NEUTRAL, NOT_SCORING, enabled_scores
from podium.policies.scheduler_config.plugin_text import GPU_METHODS, Enabled, policy_text
from podium.policies.scheduler_config.plugins import PLUGINS
from podium.policies.scheduler_config.section import Section
from podium.policies.source import read_source

GROUP = "kubescheduler.config.k8s.io"
KIND = "KubeSchedulerConfiguration"
VERSIONS = ("v1", "v1beta3", "v1beta2", "v1beta1")
GPU_SHARE = "Open-Gpu-Share"
LARGEST_BYTES = 16 << 20
"""Bytes of a configuration; a ConfigMap holds a sixteenth of it."""

_IRRELEVANT = (
    "apiVersion", "kind", "metadata", "leaderElection", "clientConnection", "healthzBindAddress",
    "metricsBindAddress", "enableProfiling", "enableContentionProfiling", "parallelism",
    "podInitialBackoffSeconds", "podMaxBackoffSeconds", "delayCacheUntilActive",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile of a configuration, checked."""

    name: str
    version: str
    plugins: Section
    arguments: dict[str, Section]  # by plugin
    notes: tuple[str, ...]


def load_scheduler_config(path: Path, *, ignore_unknown_plugins: bool = False) -> Policy:
    """Reads a configuration file as one policy.

    Its notes name everything in the file that a simulation does not honour.
    """
    profile = _profile(Section(path, "", _document(path)))
    weights = enabled_scores(profile.plugins, profile.version)
    unknown = [name for name in weights if name not in PLUGINS and name not in NEUTRAL]
    if unknown and not ignore_unknown_plugins:
        raise UsageError(
            f'the score plugin "{unknown[0]}" is not supported',
            where=f"{path}, profile {profile.name}",
            hint=f"{advice_on(unknown[0], [*PLUGINS, *NEUTRAL])}; --ignore-unknown-plugins leaves "
            "others out",
        )
    enabled = [
        Enabled(name, weight, PLUGINS[name](_arguments(profile, name), profile.version))
        for name, weight in weights.items()
        if name in PLUGINS
    ]
    notes = [*profile.notes, *(f'the score plugin "{name}" is left out' for name in unknown)]
    notes += [note for plugin in enabled for note in plugin.draft.notes]
    share = _arguments(profile, GPU_SHARE).only(
        ("dimExtMethod", "normMethod", "gpuSelMethod", "apiVersion", "kind")
    )
    neutral = [name for name in weights if name in NEUTRAL]
    method = share.one_of("gpuSelMethod", GPU_METHODS, "best")
    text = policy_text(enabled, neutral, method, f"{path.name}, profile {profile.name}")
    policy = policy_of(read_source(text, f"{path} (as Python)"), path.stem)
    unique = tuple(dict.fromkeys(notes))
    if isinstance(policy, PairPolicy):
        return replace(policy, notes=unique, is_kept=True)
    return replace(policy, notes=unique)


def _document(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise InputError.at(path, "no such file", hint=f"give the path of a {KIND}")
    documents = _json(path) if path.suffix == ".json" else _yaml(path)
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == KIND:
            return document
    kinds = sorted(
        {excerpt(each.get("kind"), quote="") for each in documents if isinstance(each, dict)}
    )
    found = f" ({', '.join(kinds)} instead)" if kinds else ""
    raise InputError.at(
        path,
        f"the file contains no {KIND}{found}",
        hint="clusters go to --cluster, pods to --trace",
    )


def _json(path: Path) -> list[Any]:
    try:
        return [parse_value(read_text(path, LARGEST_BYTES))]
    except JsonError as error:
        raise InputError.at(path, f"not JSON: {error}", line=error.line) from error


def _yaml(path: Path) -> list[Any]:
    with reading(path, most_bytes=LARGEST_BYTES) as stream:
        return [root.typed_value(path) for root in parse_yaml(stream, path)]


def _profile(root: Section) -> Profile:
    root.only((*_IRRELEVANT, "percentageOfNodesToScore", "profiles", "extenders"))
    profiles = root.sections("profiles")
    first = profiles[0] if profiles else Section(root.file, "profiles[0]", {})
    first.only(("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"))
    name = first.text("schedulerName", "default-scheduler")
    plugins = first.section("plugins")
    notes = [*_sampling(root, first), *_extending(root), *_filtering(plugins)]
    others = [each.text("schedulerName", "default-scheduler") for each in profiles[1:]]
    if others:
        notes.append(f"only the first profile, {name}, is used; not {', '.join(others)}")
    arguments = _plugin_config(first)
    return Profile(name, _version(root), plugins, arguments, tuple(notes))


def _version(root: Section) -> str:
    group, _, version = root.text("apiVersion").partition("/")
    if group != GROUP or version not in VERSIONS:
        known = ", ".join(f"{GROUP}/{each}" for each in VERSIONS)
        shown = root.text("apiVersion") or "nothing"
        raise root.error(f"{shown} is not a known version", key="apiVersion", hint=f"use {known}")
    return version


def _sampling(root: Section, profile: Section) -> list[str]:
    for section in (profile, root):
        if section.values.get("percentageOfNodesToScore") is not None:
            percent = section.number("percentageOfNodesToScore", 0, 100, 0)
            if percent == 100:
                return []
            return [f"percentageOfNodesToScore {percent} is not honoured: all nodes are scored"]
    return ["kube-scheduler scores only part of the nodes of a large cluster; here all are scored"]


def _extending(root: Section) -> list[str]:
    return ["extenders are not called"] if root.sections("extenders") else []


def _filtering(plugins: Section) -> list[str]:
    named = [each.text("name") for each in plugins.section("filter").sections("enabled")]
    known = {*PLUGINS, *NEUTRAL, *NOT_SCORING}
    return [
        f'the filter plugin "{name}" is not simulated; what fits is decided by resources'
        for name in named
        if name not in known
    ]


def _plugin_config(profile: Section) -> dict[str, Section]:
    found: dict[str, Section] = {}
    for each in profile.sections("pluginConfig"):
        name = each.only(("name", "args")).text("name")
        if name in found:
            raise each.error(f'the plugin "{name}" is configured twice')
        found[name] = each.section("args")
    return found


def _arguments(profile: Profile, plugin: str) -> Section:
    empty = Section(profile.plugins.file, f"pluginConfig of {plugin}", {})
    return profile.arguments.get(plugin, empty)
