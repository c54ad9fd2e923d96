"""Turns a KubeSchedulerConfiguration into a policy: the scheduler that a team runs today."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from podium.errors import UsageError, advice_on
from podium.policies.policy import PairPolicy, Policy, policy_of
from podium.policies.scheduler_config.documents import DEFAULT_NAME, find_configuration
from podium.policies.scheduler_config.plugin_sets import NEUTRAL, NOT_SCORING, enabled_scores
from podium.policies.scheduler_config.plugin_text import GPU_METHODS, Enabled, policy_text
from podium.policies.scheduler_config.plugins import PLUGINS
from podium.policies.scheduler_config.section import Section
from podium.policies.source import read_source

GROUP = "kubescheduler.config.k8s.io"
VERSIONS = ("v1", "v1beta3", "v1beta2", "v1beta1")
GPU_SHARE = "Open-Gpu-Share"

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


def load_scheduler_config(
    path: Path, profile_name: str | None = None, *, ignore_unknown_plugins: bool = False
) -> Policy:
    """Reads one profile of a configuration file as a policy: the first, or the one of that name.

    Its notes name everything in the file that a simulation does not honour.
    """
    profile = _profile(find_configuration(path, profile_name), profile_name)
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
    title = path.stem if profile_name is None else f"{path.stem}#{profile_name}"
    policy = policy_of(read_source(text, f"{path} (as Python)"), title)
    unique, terms = tuple(dict.fromkeys(notes)), tuple(plugin.name for plugin in enabled)
    if isinstance(policy, PairPolicy):
        return replace(policy, notes=unique, terms=terms, is_kept=True)
    return replace(policy, notes=unique, terms=terms)


def _profile(root: Section, wanted: str | None) -> Profile:
    root.only((*_IRRELEVANT, "percentageOfNodesToScore", "profiles", "extenders"))
    profiles = root.sections("profiles") or [Section(root.file, "profiles[0]", {})]
    names = [each.text("schedulerName", DEFAULT_NAME) for each in profiles]
    if wanted is not None and names.count(wanted) > 1:
        raise root.error(f'two profiles are named "{wanted}"', key="profiles")
    chosen = profiles[0 if wanted is None else names.index(wanted)]
    chosen.only(("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"))
    plugins, arguments = chosen.section("plugins"), _plugin_config(chosen)
    notes = [
        *_sampling(root, chosen), *_extending(root), *_filtering(plugins), *_unheeded(arguments),
    ]  # fmt: skip
    if wanted is None and len(names) > 1:
        others = ", ".join(names[1:])
        notes.append(
            f"only the first profile, {names[0]}, is used; not {others} "
            f"({root.file.name}#{names[1]} names one)"
        )
    name = names[0] if wanted is None else wanted
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


def _unheeded(arguments: dict[str, Section]) -> list[str]:
    """Names arguments of plugins that a simulation has none of, such as addedAffinity."""
    given = {
        name: [key for key in section.values if key not in ("apiVersion", "kind")]
        for name, section in arguments.items()
        if name not in PLUGINS and name != GPU_SHARE
    }
    return [
        f"arguments of {name} are not honoured: {', '.join(map(str, keys))}"
        for name, keys in given.items()
        if keys
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
