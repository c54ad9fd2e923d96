"""Writes the objects that install Podium on a cluster, as plain YAML.

The templates in `data` are rendered from the chart in `charts/podium`, by `make manifests`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any, Literal

import yaml

from podium import __version__
from podium.errors import UsageError
from podium.kube.policy_files import PackedPolicy, data_of
from podium.settings import Extender

Mode = Literal["scheduler", "extender"]

OWN_IMAGE = f"podium:{__version__}"
KUBE_SCHEDULER_IMAGE = "registry.k8s.io/kube-scheduler"
DEFAULT = PackedPolicy(Extender().policy)
LARGEST_BYTES = 900_000
"""Of all policy files: a ConfigMap holds 1 MiB, its own fields included."""

LARGEST_APPLIED = 180_000
"""Of these: kubectl apply notes what it applied in an annotation of 256 KiB, files as base64."""

# Kubernetes also takes names such as 1e3 and on, which are no texts to YAML.
_LABEL = re.compile(r"[a-z][-a-z0-9]{0,61}[a-z0-9]")
_SUBDOMAIN = re.compile(
    r"(?=.{1,63}\Z)[a-z]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_VERSION = re.compile(r"v\d+\.\d+\.\d+")
_OLDEST = (1, 33)
_EXTENDERS = re.compile(r"^    extenders:\n(?:     .*\n)+", re.MULTILINE)
_DYNAMIC_RESOURCES = re.compile(r"^ *- name: DynamicResources\n.*\n", re.MULTILINE)
_MARK = re.compile(r"^ *podium\.dev/unvalidated: .*\n", re.MULTILINE)
_FIRST_DOCUMENT = re.compile(r"\A.*?^---\n", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Installation:
    """Describes how Podium is installed; the rest is as in the chart's own values."""

    mode: Mode = "scheduler"
    namespace: str = "podium-system"
    scheduler_name: str = "podium-scheduler"
    image: str = OWN_IMAGE
    kubernetes_version: str = "v1.36.4"
    policy: PackedPolicy = DEFAULT
    shadow: tuple[PackedPolicy, ...] = ()
    is_unvalidated: bool = False  # the policy is known not to be validated
    is_disabled: bool = False  # kube-scheduler does not ask Podium, and packs by itself

    @property
    def policies(self) -> tuple[PackedPolicy, ...]:
        """Lists the policy that scores, and its shadows."""
        return (self.policy, *self.shadow)

    @property
    def policy_bytes(self) -> int:
        """Counts the bytes of all policy files."""
        return sum(each.size_bytes for each in self.policies)

    @property
    def is_cluster_namespace(self) -> bool:
        """Tells whether the namespace is one that every cluster has, or Kubernetes reserves."""
        return self.namespace == "default" or self.namespace.startswith("kube-")

    def __post_init__(self) -> None:
        _check("--namespace", self.namespace, _LABEL, "a name such as podium-system")
        _check("--scheduler-name", self.scheduler_name, _SUBDOMAIN, "a name such as gpu-scheduler")
        _check("--image", self.image, _IMAGE, "the name of an image, such as podium:0.1.0")
        _check("--kubernetes-version", self.kubernetes_version, _VERSION, "one such as v1.36.4")
        self._check_versions_and_modes()
        if self.policy_bytes > LARGEST_BYTES:
            raise UsageError(
                f"the policies have {self.policy_bytes:,} bytes, and a ConfigMap holds "
                f"{LARGEST_BYTES:,}",
                where="--policy",
                hint="leave out a --shadow; or give the chart some in policy.sources, and others "
                "in a ConfigMap of yours (policy.existingConfigMap)",
            )

    def _check_versions_and_modes(self) -> None:
        if _minor(self.kubernetes_version) < _OLDEST:
            raise UsageError(
                f"{self.kubernetes_version} is too old: Podium needs Kubernetes 1.33 or newer",
                where="--kubernetes-version",
                hint="upgrade the cluster first",
            )
        if self.is_disabled and self.mode == "extender":
            raise UsageError(
                "in mode extender your own kube-scheduler asks Podium",
                where="--disabled",
                hint="take extenders out of its configuration",
            )
        if self.scheduler_name == "default-scheduler":
            raise UsageError(
                "default-scheduler is the cluster's own kube-scheduler",
                where="--scheduler-name",
                hint="choose another name, or --mode extender",
            )


def manifests(installation: Installation) -> str:
    """Writes all objects as YAML documents, in the order in which they can be made."""
    variant = "-policy-file" if installation.policy_bytes else ""
    file = files("podium.kube") / "data" / f"{installation.mode}{variant}.yaml"
    template = file.read_text(encoding="utf-8")
    for part in _left_out(installation):
        template = part.sub("", template)
    fields = _fields(installation)
    digest = hashlib.sha256("\0".join([template, *fields.values()]).encode()).hexdigest()
    text = Template(template).substitute(fields, checksum=digest)
    _check_files(text, installation.policies)
    return _without_namespace(text, installation) if installation.is_cluster_namespace else text


def scheduler_configuration(
    url: str = "", scheduler_name: str = "default-scheduler"
) -> dict[str, Any]:
    """Gives the configuration of the chart's kube-scheduler, without its connections.

    It asks Podium at an address; without one, kube-scheduler packs by itself.
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


def _left_out(installation: Installation) -> Iterator[re.Pattern[str]]:
    """Names the parts of a template that an installation does not have."""
    if not installation.is_unvalidated:
        yield _MARK
    if installation.is_disabled:
        yield _EXTENDERS
    if _minor(installation.kubernetes_version) < (1, 34):
        yield _DYNAMIC_RESOURCES  # it does not score there


def _fields(installation: Installation) -> dict[str, str]:
    return {
        "namespace": installation.namespace,
        "scheduler_name": installation.scheduler_name,
        "image": installation.image,
        "kube_scheduler_image": f"{KUBE_SCHEDULER_IMAGE}:{installation.kubernetes_version}",
        "policy": installation.policy.reference,
        "shadow": ",".join(each.reference for each in installation.shadow),
        "unvalidated": str(installation.is_unvalidated).lower(),
        "policy_files": data_of(installation.policies),
    }


def _minor(version: str) -> tuple[int, int]:
    """Gives the major and minor number of a version such as v1.36.4."""
    major, minor, _ = version.removeprefix("v").split(".")
    return int(major), int(minor)


def _without_namespace(text: str, installation: Installation) -> str:
    """Leaves out the Namespace: its Pod Security level would bind the pods of others as well."""
    left = _FIRST_DOCUMENT.sub("", text, count=1)
    return (
        f"# The namespace {installation.namespace} is the cluster's own and left as it is.\n{left}"
    )


def _check(flag: str, value: str, pattern: re.Pattern[str], expected: str) -> None:
    if not pattern.fullmatch(value) or not isinstance(yaml.safe_load(value), str):
        raise UsageError(f'"{value}" cannot be used', where=flag, hint=f"give {expected}")


def _check_files(text: str, policies: Sequence[PackedPolicy]) -> None:
    """Makes sure that policies come out of the YAML as they went in."""
    wanted = {name: held for each in policies for name, held in each.texts.items()}
    if not wanted:
        return
    try:
        found = [each["data"] for each in objects(text) if "data" in each]
    except yaml.YAMLError:
        found = []
    if wanted not in found:
        raise UsageError(
            "a policy has characters that a ConfigMap cannot hold",
            where="--policy",
            hint="remove control characters from it",
        )
