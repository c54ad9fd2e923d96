"""Writes the objects that install Podium on a cluster, as plain YAML.

The templates in `data` are rendered from the chart in `charts/podium`, by `make manifests`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any, Literal

import yaml

from podium import __version__
from podium.errors import UsageError

Mode = Literal["scheduler", "extender"]

OWN_IMAGE = f"podium:{__version__}"
KUBE_SCHEDULER_IMAGE = "registry.k8s.io/kube-scheduler"
LARGEST_SOURCE_BYTES = 900_000
"""A ConfigMap holds 1 MiB, its own fields included."""

# Kubernetes also takes names such as 1e3 and on, which are no texts to YAML.
_LABEL = re.compile(r"[a-z][-a-z0-9]{0,61}[a-z0-9]")
_SUBDOMAIN = re.compile(
    r"(?=.{1,63}\Z)[a-z]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_VERSION = re.compile(r"v\d+\.\d+\.\d+")
_FIRST_DOCUMENT = re.compile(r"\A.*?^---\n", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Installation:
    """Describes how Podium is installed; the rest is as in the chart's own values."""

    mode: Mode = "scheduler"
    namespace: str = "podium-system"
    scheduler_name: str = "podium-scheduler"
    image: str = OWN_IMAGE
    kubernetes_version: str = "v1.36.4"
    policy: str = "fgd"  # one that ships with Podium
    policy_source: str = ""  # the text of another one, which replaces it

    @property
    def is_cluster_namespace(self) -> bool:
        """Tells whether the namespace is one that every cluster has, or Kubernetes reserves."""
        return self.namespace == "default" or self.namespace.startswith("kube-")

    def __post_init__(self) -> None:
        _check("--namespace", self.namespace, _LABEL, "a name such as podium-system")
        _check("--scheduler-name", self.scheduler_name, _SUBDOMAIN, "a name such as gpu-scheduler")
        _check("--image", self.image, _IMAGE, "the name of an image, such as podium:0.1.0")
        _check("--kubernetes-version", self.kubernetes_version, _VERSION, "one such as v1.36.4")
        if self.scheduler_name == "default-scheduler":
            raise UsageError(
                "default-scheduler is the cluster's own kube-scheduler",
                where="--scheduler-name",
                hint="choose another name, or --mode extender",
            )
        if len(self.policy_source.encode()) > LARGEST_SOURCE_BYTES:
            raise UsageError(
                f"a ConfigMap cannot hold a policy of more than {LARGEST_SOURCE_BYTES:,} bytes",
                where="--policy",
            )


def manifests(installation: Installation) -> str:
    """Writes all objects as YAML documents, in the order in which they can be made."""
    variant = "-policy-file" if installation.policy_source else ""
    template = files("podium.kube") / "data" / f"{installation.mode}{variant}.yaml"
    fields = _fields(installation)
    digest = hashlib.sha256("\0".join(fields.values()).encode()).hexdigest()
    text = Template(template.read_text(encoding="utf-8")).substitute(fields, checksum=digest)
    _check_source(text, installation.policy_source)
    return _without_namespace(text, installation) if installation.is_cluster_namespace else text


def scheduler_configuration(
    url: str = "", scheduler_name: str = "default-scheduler"
) -> dict[str, Any]:
    """Gives the configuration of the chart's kube-scheduler, without its connections.

    It asks Podium at an address, or nobody where there is none: then kube-scheduler packs by itself.
    """
    data = [each.get("data", {}) for each in objects(manifests(Installation()))]
    (text,) = [each["config.yaml"] for each in data if "config.yaml" in each]
    found: dict[str, Any] = yaml.safe_load(text)
    kept = {key: found[key] for key in ("apiVersion", "kind", "percentageOfNodesToScore")}
    profiles = [{**each, "schedulerName": scheduler_name} for each in found["profiles"]]
    extenders = [{**each, "urlPrefix": f"{url}/extender"} for each in found["extenders"] if url]
    asking = {"extenders": extenders} if extenders else {}
    return {**kept, "profiles": profiles, **asking}


def objects(text: str) -> list[Mapping[str, Any]]:
    """Reads the documents again, for those who want JSON."""
    return list(yaml.safe_load_all(text))


def _fields(installation: Installation) -> dict[str, str]:
    source = installation.policy_source.replace("\r\n", "\n").rstrip("\n")
    return {
        "namespace": installation.namespace,
        "scheduler_name": installation.scheduler_name,
        "image": installation.image,
        "kube_scheduler_image": f"{KUBE_SCHEDULER_IMAGE}:{installation.kubernetes_version}",
        "policy": installation.policy,
        "policy_source": "\n".join(f"    {line}" if line else "" for line in source.split("\n")),
    }


def _without_namespace(text: str, installation: Installation) -> str:
    """Leaves out the Namespace: its Pod Security level would bind the pods of others as well."""
    left = _FIRST_DOCUMENT.sub("", text, count=1)
    return (
        f"# The namespace {installation.namespace} is the cluster's own and left as it is.\n{left}"
    )


def _check(flag: str, value: str, pattern: re.Pattern[str], expected: str) -> None:
    if not pattern.fullmatch(value) or not isinstance(yaml.safe_load(value), str):
        raise UsageError(f'"{value}" cannot be used', where=flag, hint=f"give {expected}")


def _check_source(text: str, source: str) -> None:
    """Makes sure that the policy comes out of the YAML as it went in."""
    if not source:
        return
    try:
        found = [each["data"].get("policy.py") for each in objects(text) if "data" in each]
    except yaml.YAMLError:
        found = []
    if source.replace("\r\n", "\n").rstrip("\n") + "\n" not in found:
        raise UsageError(
            "the policy has characters that a ConfigMap cannot hold",
            where="--policy",
            hint="remove control characters from it",
        )
