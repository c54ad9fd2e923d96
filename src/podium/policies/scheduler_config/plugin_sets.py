"""Determines which score plugins a scheduler profile enables, and with what weights.

mergePlugins of pkg/scheduler/apis/config/<version>/default_plugins.go and
expandMultiPointPlugins of pkg/scheduler/framework/runtime/framework.go, kubernetes/kubernetes.
"""

from __future__ import annotations

from podium.policies.scheduler_config.section import Section

LARGEST_WEIGHT = 2**31 - 1

_V1 = {
    "TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1, "PodTopologySpread": 2,
    "InterPodAffinity": 2, "NodeResourcesBalancedAllocation": 1, "ImageLocality": 1,
}  # fmt: skip
_V1BETA2 = {**_V1, "TaintToleration": 1, "NodeAffinity": 1, "InterPodAffinity": 1}
_V1BETA1 = {
    **{name: weight for name, weight in _V1BETA2.items() if name != "NodeResourcesFit"},
    "NodeResourcesLeastAllocated": 1, "NodePreferAvoidPods": 10000,
}  # fmt: skip
DEFAULTS = {"v1": _V1, "v1beta3": _V1, "v1beta2": _V1BETA2, "v1beta1": _V1BETA1}
"""Score plugins and weights of a profile that names none, by API version."""

NEUTRAL = frozenset(
    {*_V1, "NodePreferAvoidPods", "SelectorSpread", "ServiceAffinity", "VolumeBinding",
     "DynamicResources"} - {"NodeResourcesFit", "NodeResourcesBalancedAllocation"}
)  # fmt: skip
"""Plugins that score all nodes alike where there are no taints, affinities, claims and images."""

NOT_SCORING = frozenset(
    ["AzureDiskLimits", "CinderLimits", "DefaultBinder", "DefaultPreemption",
     "DeferredPodScheduling", "EBSLimits", "GCEPDLimits", "GangScheduling", "NodeDeclaredFeatures",
     "NodeName", "NodePorts", "NodeUnschedulable", "NodeVolumeLimits", "Open-Gpu-Share",
     "PrioritySort", "SchedulingGates", "VolumeRestrictions", "VolumeZone"]
)  # fmt: skip
"""Plugins that may be listed under multiPoint and have no score."""

POINTS = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve",
    "permit", "preBind", "bind", "postBind", "multiPoint",
)  # fmt: skip


def enabled_scores(plugins: Section, version: str) -> dict[str, int]:
    """Lists the score plugins of a profile with their weights, neutral ones included."""
    plugins.only(POINTS, "extension point")
    score = plugins.section("score").only(("enabled", "disabled"))
    if version in ("v1beta1", "v1beta2"):
        if "multiPoint" in plugins.values:
            raise plugins.error(f"{version} has no multiPoint", hint="use v1beta3 or v1")
        return _merged(DEFAULTS[version], score)
    multi_point = plugins.section("multiPoint").only(("enabled", "disabled"))
    everywhere = _merged(DEFAULTS[version], multi_point)
    disabled = _disabled(score)
    if "*" in disabled:
        return _enabled(score)
    inherited = {
        name: weight
        for name, weight in everywhere.items()
        if name not in disabled and name not in NOT_SCORING
    }
    return {**inherited, **_enabled(score)}


def _merged(defaults: dict[str, int], custom: Section) -> dict[str, int]:
    disabled = _disabled(custom)
    remaining = {name: weight for name, weight in defaults.items() if name not in disabled}
    return {**({} if "*" in disabled else remaining), **_enabled(custom)}


def _disabled(point: Section) -> set[str]:
    return {_name(plugin) for plugin in point.sections("disabled")}


def _enabled(point: Section) -> dict[str, int]:
    found: dict[str, int] = {}
    for plugin in point.sections("enabled"):
        name = _name(plugin.only(("name", "weight")))
        if name in found:
            raise plugin.error(f'the plugin "{name}" is enabled twice')
        found[name] = plugin.number("weight", 0, LARGEST_WEIGHT, 0) or 1
    return found


def _name(plugin: Section) -> str:
    name = plugin.text("name")
    if not name:
        raise plugin.error("a plugin has no name", key="name")
    return name
