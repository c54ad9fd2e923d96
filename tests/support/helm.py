"""Renders, checks and installs the Helm chart of Podium."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.kube.policy_files import FOLDER as POLICY_FOLDER

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "podium"
KUBERNETES = "1.36.4"
NAMESPACE = "podium-system"
MONITORING = "monitoring.coreos.com/v1"

POLICY = (
    'def score(pod, node):\n    """Prefers the fullest ${node}: {{ .Values }}."""\n\n    return 1\n'
)
"""A policy with what a template might take for its own."""

CARD = json.dumps(
    {
        "name": "run:ab12",
        "summary": "",
        "sha256": hashlib.sha256(POLICY.encode()).hexdigest(),
        "decision": {"promoted": False, "reasons": ["it was not promoted"]},
    }
)
"""Of a policy that was found and not promoted."""

EXTENDER_WITH_ALL = {
    "mode": "extender",
    "replicas": 1,
    "tls": {"secretName": "podium-tls"},
    "service": {"clusterIP": "10.0.0.77", "annotations": {"team": "gpu"}},
    "extender": {
        "filter": True, "bind": True, "events": True, "managedResources": ["nvidia.com/gpu"],
    },
    "learning": {"enabled": True},
    "store": {"urlSecret": {"name": "podium-store"}},
    "networkPolicy": {"from": [{"ipBlock": {"cidr": "10.1.0.0/28"}}]},
    "policy": {
        "name": "mine", "shadow": ["best-fit", "found", "net.json"], "unvalidated": True,
        "sources": {"mine": POLICY, "found": POLICY}, "cards": {"found": CARD},
        "existingConfigMap": "policies",
    },
    "imagePullSecrets": [{"name": "pull"}],
    "image": {"digest": f"sha256:{'0' * 64}"},
    "serviceAccount": {"name": "scorer", "annotations": {"team": "gpu"}},
}  # fmt: skip
LEARNING = {
    "replicas": 1,
    "learning": {"enabled": True},
    "persistence": {"size": "5Gi", "storageClass": "fast"},
    "config": {"lambdaUncertainty": 0.5, "enableInterference": True},
    "settings": {"extender": {"window_pods": 1000000}, "serve": {"read_limit_s": 2.5}},
    "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
    "tolerations": [{"operator": "Exists"}],
    "podLabels": {"team": "gpu"},
    "podAnnotations": {"team": "gpu"},
}
BARE = {
    "replicas": 1,
    "scheduler": {"resourceScore": "none"},
    "policy": {"existingConfigMap": "policies", "name": "policy.py"},
    "serviceAccount": {"create": False, "name": "own"},
    "rbac": {"create": False},
    **{name: {"enabled": False} for name in
       ("networkPolicy", "serviceMonitor", "prometheusRule", "dashboard", "podDisruptionBudget")},
}  # fmt: skip
VALUE_SETS: dict[str, dict[str, Any]] = {
    "default": {},
    "extender": {"mode": "extender"},
    "extender-with-all": EXTENDER_WITH_ALL,
    "learning": LEARNING,
    "bare": BARE,
}


def helm_program() -> str:
    """Finds helm beside Python or on the path, or skips the test."""
    beside = shutil.which("helm", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("helm")
    if found is None:
        pytest.skip("helm is not there: requirements/dev.txt brings it for Linux on x86-64")
    return found


def helm(
    *arguments: str | Path, folder: Path, values: dict[str, Any] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs helm with values from a file, and with nothing of the machine's own configuration."""
    more = []
    if values is not None:
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        more = ["--values", str(file)]
    homes = {f"HELM_{name}_HOME": str(folder / name) for name in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run(
        [helm_program(), *map(str, arguments), *more],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **homes},
        capture_output=True,
        text=True,
        check=False,
    )


def template(values: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    """Renders the chart, for a cluster that has the Prometheus operator."""
    return helm(
        "template", "podium", CHART, "--namespace", NAMESPACE, "--kube-version", KUBERNETES,
        "--api-versions", MONITORING, folder=folder, values=values,
    )  # fmt: skip


def rendered(values: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Gives the objects of the chart."""
    done = template(values, folder)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def of_kind(objects: list[dict[str, Any]], kind: str, ending: str = "") -> dict[str, Any]:
    """Gives the one object of a kind, whose name may have to end in some way."""
    (found,) = [
        each
        for each in objects
        if each["kind"] == kind and each["metadata"]["name"].endswith(ending)
    ]
    return found


def mounted(objects: list[dict[str, Any]], folder: Path) -> dict[str, str]:
    """Puts the policies where their volume would be; gives the settings that name them there."""
    held = of_kind(objects, "ConfigMap", "-policy")
    files = {name: text.encode() for name, text in held["data"].items()}
    files |= {name: b64decode(each) for name, each in held.get("binaryData", {}).items()}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    told = of_kind(objects, "ConfigMap", "-settings")["data"]
    return {
        name: told[f"PODIUM_EXTENDER_{name.upper()}"].replace(POLICY_FOLDER, str(folder))
        for name in ("policy", "shadow")
    }


def scheduler_configuration(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Gives the KubeSchedulerConfiguration of the chart."""
    text = of_kind(objects, "ConfigMap", "-kube-scheduler")["data"]["config.yaml"]
    return yaml.safe_load(text)
