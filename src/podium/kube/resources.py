"""Lists the kinds of objects that Podium reads, and finds out which of them a cluster has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Required, TypedDict

from podium.files.excerpt import excerpt

if TYPE_CHECKING:
    from podium.kube.client import KubeClient


@dataclass(frozen=True, slots=True)
class Resource:
    """Is one kind of object at one version of its API group."""

    kind: str
    plural: str
    group: str = ""  # empty is the core group
    version: str = "v1"  # of a group that the cluster has: the one it prefers
    is_namespaced: bool = True
    is_needed: bool = False  # without it there is nothing to look at

    @property
    def name(self) -> str:
        """Names the kind with its API group, as `LiveState` does."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def api_version(self) -> str:
        """Gives the apiVersion of such objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "") -> str:
        """Gives the path under which such objects are listed, all or those of a namespace."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        where = f"/namespaces/{namespace}" if namespace and self.is_namespaced else ""
        return f"{root}{where}/{self.plural}"


NODES = Resource("Node", "nodes", is_namespaced=False, is_needed=True)
PODS = Resource("Pod", "pods", is_needed=True)

RESOURCES = (
    NODES,
    PODS,
    Resource("Namespace", "namespaces", is_namespaced=False),
    Resource("PriorityClass", "priorityclasses", "scheduling.k8s.io", is_namespaced=False),
    Resource("PodDisruptionBudget", "poddisruptionbudgets", "policy"),
    Resource("Job", "jobs", "batch"),
    Resource("PodGroup", "podgroups", "scheduling.k8s.io"),
    Resource("Workload", "workloads", "scheduling.k8s.io"),
    Resource("PodGroup", "podgroups", "scheduling.x-k8s.io"),
    Resource("PodGroup", "podgroups", "scheduling.sigs.k8s.io"),
    Resource("PodGroup", "podgroups", "scheduling.volcano.sh"),
    Resource("PodGroup", "podgroups", "scheduling.run.ai"),
    Resource("JobSet", "jobsets", "jobset.x-k8s.io"),
    Resource("LeaderWorkerSet", "leaderworkersets", "leaderworkerset.x-k8s.io"),
    Resource("ResourceSlice", "resourceslices", "resource.k8s.io", is_namespaced=False),
    Resource("ResourceClaim", "resourceclaims", "resource.k8s.io"),
    Resource("ResourceClaimTemplate", "resourceclaimtemplates", "resource.k8s.io"),
    Resource("DeviceClass", "deviceclasses", "resource.k8s.io", is_namespaced=False),
    Resource("Device", "devices", "scheduling.koordinator.sh", is_namespaced=False),
)
"""Everything that `podium.traces.kubernetes` understands, nodes and pods first."""

VOLUMES = (
    Resource("PersistentVolumeClaim", "persistentvolumeclaims"),
    Resource("PersistentVolume", "persistentvolumes", is_namespaced=False),
    Resource("StorageClass", "storageclasses", "storage.k8s.io", is_namespaced=False),
)
"""What tells where volumes let pods run; they are looked at once, and not watched."""


async def served(
    client: KubeClient, wanted: Sequence[Resource] = RESOURCES
) -> tuple[Resource, ...]:
    """Finds the resources that a cluster has, each at the version that it prefers."""
    groups = await _groups(client)
    found = {each.name: each for each in wanted if not each.group}
    for group in dict.fromkeys(each.group for each in wanted if each.group in groups):
        for version in groups[group]:
            plurals = await _plurals(client, group, version)
            for each in wanted:
                if each.group == group and each.plural in plurals:
                    found.setdefault(each.name, replace(each, version=version))
    return tuple(found[each.name] for each in wanted if each.name in found)


async def _groups(client: KubeClient) -> dict[str, list[str]]:
    """Gives the API groups with their versions, the preferred one first."""
    groups = {}
    for group in (await _told(client, "/apis")).get("groups") or ():
        versions = [each["version"] for each in group.get("versions") or ()]
        preferred = (group.get("preferredVersion") or {}).get("version")
        groups[group["name"]] = sorted(versions, key=lambda version: version != preferred)
    return groups


async def _plurals(client: KubeClient, group: str, version: str) -> set[str]:
    listed = await _told(client, f"/apis/{group}/{version}")
    return {each["name"] for each in listed.get("resources") or ()}


class _Version(TypedDict):
    version: str


class _Group(TypedDict, total=False):
    name: Required[str]
    versions: list[_Version] | None
    preferredVersion: dict[str, Any] | None


class _Plural(TypedDict):
    name: str


class _Told(TypedDict, total=False):
    groups: list[_Group] | None
    resources: list[_Plural] | None


async def _told(client: KubeClient, path: str) -> _Told:
    import msgspec

    from podium.kube.client import KubeError

    try:
        return msgspec.json.decode(await client.get(path), type=_Told)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        what = excerpt(str(error), 200, quote="")
        text = f"the cluster does not say which kinds it has: {what}"
        raise KubeError(text, where=f"{client.url}{path}") from error
