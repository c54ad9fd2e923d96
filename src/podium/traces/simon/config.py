"""Parses a `simon/v1alpha1` Config into settings and notes on what is not honoured.

https://github.com/hkust-adsl/kubernetes-scheduler-simulator, pkg/api/v1alpha1/types.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podium.model.workload import TypicalPods
from podium.traces.fields import FieldError, flag_of, mapping_at, number_of, text_of, whole_of

_LIVE_HINT = (
    "write the cluster into a file with `kubectl get nodes,pods -A -o yaml > cluster.yaml` "
    "and name that file, or a folder, in spec.cluster.customConfig"
)
_CUSTOM = "spec.customConfig"
_TYPICAL = f"{_CUSTOM}.typicalPodsConfig"
_RATIO_KEYS = frozenset({"ratio", "seed"})
_KNOWN = {
    "spec": frozenset({"cluster", "appList", "newNode", "customConfig"}),
    "spec.cluster": frozenset({"customConfig", "kubeConfig"}),
    _CUSTOM: frozenset(
        {"shufflePod", "exportConfig", "workloadInflationConfig", "workloadTuningConfig",
         "newWorkloadConfig", "descheduleConfig", "typicalPodsConfig"}
    ),
    f"{_CUSTOM}.workloadInflationConfig": _RATIO_KEYS,
    f"{_CUSTOM}.workloadTuningConfig": _RATIO_KEYS,
    _TYPICAL: frozenset(
        {"isInvolvedCpuPods", "podPopularityThreshold", "podIncreaseStep", "gpuResWeight"}
    ),
}  # fmt: skip
_MOST_SEED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Resizing:
    """Holds the ratio and the seed of one of the two ways to grow a workload."""

    ratio: float
    seed: int | None


@dataclass(frozen=True, slots=True)
class SimonConfig:
    """Holds the settings that have a counterpart, and notes on the rest."""

    folder: str
    more_pods: str
    is_shuffled: bool
    tuning: Resizing  # a ratio above 0: GPU demand as a share of the cluster
    inflation: Resizing  # a ratio above 1: so many times the pods
    typical: TypicalPods
    notes: tuple[str, ...]


def parse_simon(config: Mapping[str, Any]) -> SimonConfig:
    """Reads a Config object; raises FieldError on a value that cannot be used."""
    spec = mapping_at(config, "spec", "spec")
    cluster = mapping_at(spec, "cluster", "spec.cluster")
    custom = mapping_at(spec, "customConfig", _CUSTOM)
    folder = text_of(cluster.get("customConfig"), "spec.cluster.customConfig")
    if not folder:
        field = "spec.cluster.kubeConfig" if cluster.get("kubeConfig") else "spec.cluster"
        raise FieldError(field, f"a folder of manifests is needed: {_LIVE_HINT}")
    return SimonConfig(
        folder=folder,
        more_pods=text_of(custom.get("newWorkloadConfig"), f"{_CUSTOM}.newWorkloadConfig"),
        is_shuffled=_flag(custom, "shufflePod", _CUSTOM),
        tuning=_resizing(custom, "workloadTuningConfig"),
        inflation=_resizing(custom, "workloadInflationConfig"),
        typical=_typical(custom),
        notes=(*_unknown(spec), *_unhonoured(spec, cluster, custom)),
    )


def _resizing(custom: Mapping[str, Any], key: str) -> Resizing:
    field = f"{_CUSTOM}.{key}"
    part = mapping_at(custom, key, field)
    seed = None
    if part.get("seed") is not None:
        seed = whole_of(part["seed"], f"{field}.seed", 0, _MOST_SEED)
    return Resizing(number_of(part.get("ratio") or 0, f"{field}.ratio"), seed)


def _typical(custom: Mapping[str, Any]) -> TypicalPods:
    """Reads the typical-pods settings; what is absent has the simulator's own default."""
    part = mapping_at(custom, "typicalPodsConfig", _TYPICAL)
    percent = part.get("podPopularityThreshold") or 0
    step = part.get("podIncreaseStep") or 0
    weight = part.get("gpuResWeight") or 0
    return TypicalPods(
        is_involved_cpu_pods=_flag(part, "isInvolvedCpuPods", _TYPICAL),
        pod_popularity_threshold=whole_of(percent, f"{_TYPICAL}.podPopularityThreshold", 0, 100)
        or 60,
        pod_increase_step=whole_of(step, f"{_TYPICAL}.podIncreaseStep") or 10,
        gpu_res_weight=max(0.0, number_of(weight, f"{_TYPICAL}.gpuResWeight")),
    )


def _flag(part: Mapping[str, Any], key: str, field: str) -> bool:
    return part.get(key) is not None and flag_of(part[key], f"{field}.{key}")


def _unknown(spec: Mapping[str, Any]) -> Iterator[str]:
    for field, known in _KNOWN.items():
        part = spec
        for key in field.split(".")[1:]:
            part = mapping_at(part, key, field)
        yield from (f"{field}.{key} is not known: not honoured" for key in part if key not in known)


def _unhonoured(
    spec: Mapping[str, Any], cluster: Mapping[str, Any], custom: Mapping[str, Any]
) -> Iterator[str]:
    export = mapping_at(custom, "exportConfig", f"{_CUSTOM}.exportConfig")
    settings = {
        "spec.cluster.kubeConfig": cluster.get("kubeConfig"),
        "spec.appList": spec.get("appList"),
        "spec.newNode": spec.get("newNode"),
        **{f"{_CUSTOM}.exportConfig.{key}": value for key, value in export.items()},
    }
    yield from (f"{field} is not honoured" for field, value in settings.items() if value)
    field = f"{_CUSTOM}.descheduleConfig"
    deschedule = mapping_at(custom, "descheduleConfig", field)
    if number_of(deschedule.get("ratio") or 0, f"{field}.ratio") > 0:
        yield f"{field} is not honoured: Podium does not move running pods"
    growth = _resizing(custom, "workloadInflationConfig").ratio
    if growth > 1 and _resizing(custom, "workloadTuningConfig").ratio > 0:
        yield f"{_CUSTOM}.workloadInflationConfig is not honoured beside workloadTuningConfig"
    elif growth > 1:
        yield (
            f"{_CUSTOM}.workloadInflationConfig: {growth:g} times the pods are run as the share "
            "of GPU demand that they stand for, at most that of the cluster"
        )
    if not custom.get("typicalPodsConfig"):
        yield f"{_TYPICAL} is absent: GPU pods only, 60 %, step 10, as in the simulator"
