"""Runs kube-scheduler by its defaults, packing, and with Podium, on one control plane."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from podium.errors import MissingError
from podium.experiments.try_plan import PACKING, STOCK, Tally, TryPlan

if TYPE_CHECKING:
    from podium.kube.local.control_plane import ControlPlane
    from podium.kube.local.server import KubeApi

DECISION_S = 30.0
POLL_S = 0.004


class TryListener:
    """Hears of what happens; this base class ignores it."""

    def status(self, text: str) -> None:
        """Hears what is being done."""

    def decided(self, arm: str, tally: Tally) -> None:
        """Hears of one more pod of a run that was bound or found no room."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs schedulers on one control plane, one after the other."""

    plan: TryPlan
    plane: ControlPlane
    api: KubeApi
    listener: TryListener

    def create_nodes(self) -> None:
        """Makes the nodes, which all runs share."""
        from podium.kube.local.workload import node_objects

        self.api.create_all(node_objects(self.plan.cluster))

    def begin(self) -> None:
        """Leaves no pods but those that run already: kube-scheduler finds them as it starts."""
        from podium.kube.local.workload import running_objects

        self._delete_pods()
        self.api.create_all(running_objects(self.plan.running))

    def _delete_pods(self) -> None:
        from podium.kube.local.server import AT_ONCE
        from podium.kube.local.workload import NAMESPACE

        self.api.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods", AT_ONCE)

    @contextmanager
    def stock_scheduler(self) -> Iterator[None]:
        """Runs kube-scheduler with its own scores; Podium counts parts of GPUs if there are any."""
        self.listener.status("starting kube-scheduler with its defaults")
        if not self.plan.has_parts:
            with self.plane.scheduler():
                yield
            return
        with (
            self._service(STOCK) as url,
            self.plane.scheduler(_counting(url)),
        ):
            yield

    @contextmanager
    def packing_scheduler(self) -> Iterator[None]:
        """Runs kube-scheduler with the chart's profile alone.

        It does not see parts of GPUs: where there are any, Podium scores in its place, as it would.
        """
        self.listener.status("starting kube-scheduler with the packing profile of the chart")
        if not self.plan.has_parts:
            with self.plane.scheduler(_installed("")):
                yield
            return
        with self._service(PACKING) as url, self.plane.scheduler(_installed(url, _COUNTING)):
            yield

    @contextmanager
    def policy_scheduler(self) -> Iterator[str]:
        """Runs kube-scheduler as the chart installs it with Podium, and gives Podium's address."""
        self.listener.status("starting Podium and kube-scheduler")
        counting = _COUNTING if self.plan.has_parts else {}
        with (
            self._service(self._reference()) as url,
            self.plane.scheduler(_installed(url, counting)),
        ):
            yield url

    def submit(self, arm: str) -> Tally:
        """Submits pods one after the other, each once the last is decided."""
        from podium.kube.local.workload import pod_objects

        tally = Tally()
        plan = self.plan
        manifests = pod_objects(plan.pods)
        for name, gpus, manifest in zip(plan.class_names, plan.gpus, manifests, strict=True):
            self.api.create(manifest)
            tally = tally.plus(name, gpus, is_bound=bool(self._place_of(manifest)))
            self.listener.decided(arm, tally)
        return self.plan.count(self._all_places())

    def _place_of(self, manifest: Mapping[str, Any]) -> str:
        """Waits for a decision, and names the node; empty if there was no room."""
        from podium.kube.local.server import unschedulable

        deadline_s = time.monotonic() + DECISION_S
        while time.monotonic() < deadline_s:
            seen = self.api.get(manifest)
            if seen["spec"].get("nodeName"):
                return str(seen["spec"]["nodeName"])
            # An error on the way, such as a bind that came too late, is tried again.
            if (unschedulable(seen) or "").startswith("Unschedulable:"):
                return ""
            time.sleep(POLL_S)
        raise MissingError(
            f"kube-scheduler has not decided on a pod for {DECISION_S:g} s",
            where=f"pod {manifest['metadata']['name']}",
            hint="the machine may be too busy; try fewer --nodes",
        )

    def _all_places(self) -> list[str]:
        """Looks at all pods again: one that found no room at first may have found some since."""
        from podium.kube.local.workload import pod_objects

        nodes = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in self.api.pods()}
        return [nodes.get(each["metadata"]["name"]) or "" for each in pod_objects(self.plan.pods)]

    def _reference(self) -> str:
        """Names the policy so that the service finds it, which runs in another folder."""
        policy, reference = self.plan.policy, self.plan.reference
        if Path(reference).is_file():
            return str(Path(reference).resolve())
        if policy.source is not None and ":" in reference:
            file = self.plane.folder / "policy.py"
            file.write_text(policy.source.text)
            return str(file)
        return reference

    @contextmanager
    def _service(self, policy: str) -> Iterator[str]:
        """Runs `podium serve` with the extender, and gives its address."""
        from podium.kube.local.daemon import free_ports, running

        (port,) = free_ports(1)
        command: list[str | Path] = [
            *(sys.executable, "-P", "-m", "podium", "serve", "--port", str(port))
        ]
        environ = _environment(self.plane, policy, is_counting=self.plan.has_parts)
        with running(command, self.plane.log("podium"), environ, "podium serve") as daemon:
            daemon.wait_until_ready(port)
            yield f"http://127.0.0.1:{port}"


_NEUTRAL = re.compile(
    r'podium_extender_neutral_total\{reason="(?P<reason>[^"]*)",verb="prioritize"\} (?P<count>\S+)'
)
_COUNTING = {"filterVerb": "filter", "bindVerb": "bind", "ignorable": False}


PATIENCE = "5s"
"""Of kube-scheduler: nobody waits for this cluster, and the machine may be busy."""


def _installed(url: str, verbs: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Gives the configuration that the chart installs, with more verbs where they are needed."""
    from podium.kube.manifests import scheduler_configuration

    found = scheduler_configuration(url)
    for extender in found.get("extenders", ()):
        extender.update(verbs, httpTimeout=PATIENCE)
    return found


def _counting(url: str) -> dict[str, Any]:
    """Leaves the profile as it is and has Podium count parts of GPUs."""
    extender = {"urlPrefix": f"{url}/extender", "nodeCacheCapable": True, "httpTimeout": PATIENCE}
    return {
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": "default-scheduler"}],
        "extenders": [{**extender, **_COUNTING}],
    }


def _environment(plane: ControlPlane, policy: str, *, is_counting: bool) -> dict[str, str]:
    """Gives the service its settings; those of the user's own service stay out of it."""
    others = ("PODIUM_SERVE_", "PODIUM_EXTENDER_", "PODIUM_STORE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return {
        **kept,
        "XDG_CONFIG_HOME": str(plane.folder),
        "PODIUM_STORE_URL": str(plane.folder / "podium.db"),
        "PODIUM_SERVE_HOST": "127.0.0.1",
        "PODIUM_SERVE_COMPONENTS": "extender",
        "PODIUM_EXTENDER_KUBECONFIG": str(plane.kubeconfig),
        "PODIUM_EXTENDER_POLICY": policy,
        "PODIUM_EXTENDER_UNVALIDATED": "true",  # it harms nobody here
        "PODIUM_EXTENDER_FILTER": str(is_counting).lower(),
        "PODIUM_EXTENDER_BIND": str(is_counting).lower(),
    }


def metrics_of(url: str) -> str:
    """Asks the service at an address for its metrics."""
    from urllib.request import urlopen

    with urlopen(f"{url}/metrics", timeout=DECISION_S) as reply:
        return str(reply.read().decode())


def unscored(metrics: str) -> Iterator[str]:
    """Notes how often Podium preferred no node, and why; pods are placed all the same then."""
    counts = {match["reason"]: float(match["count"]) for match in _NEUTRAL.finditer(metrics)}
    told = ", ".join(f"{reason} ({count:g} times)" for reason, count in counts.items() if count)
    if told:
        yield f"for some pods Podium gave no scores, and kube-scheduler decided alone: {told}"
